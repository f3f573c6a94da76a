//! What a peer may not do too often.

use polygraph_link::Nanos;

use super::*;
use crate::rapid_reset::MOST_AT_ONCE;

#[test]
fn field_sections_without_end_are_floods() {
    let field = [b"\0\x01a\x7f\xe9\x06".as_slice(), &[b'x'; 1000]].concat();
    // So large that the stream is refused, but not the connection.
    let block = [GET, &field.repeat(70)].concat();
    for (flags, expected) in [(1, "HEADERS 1 end"), (0, "HEADERS 1 end, RST_STREAM 1 NO_ERROR")] {
        let mut server = server();
        let mut parts: Vec<_> =
            block.chunks(16_000).map(|part| frame(kind::CONTINUATION, 0, 1, part)).collect();
        parts[0][3..5].copy_from_slice(&[kind::HEADERS, flags]);
        parts.last_mut().unwrap()[4] = flag::END_HEADERS;
        server.receive(&parts.concat());
        assert_eq!(sent(&mut server).join(", "), expected);
        assert_eq!((server.requests, server.malformed, server.streams.open_count()), (1, 1, 0));
        assert!(server.end().is_none() && server.accept().is_none());
    }
    let mut client = client();
    let place = request(&mut client, PLAIN);
    sent(&mut client);
    let head = [b"\x88", &field.repeat(15)[..]].concat();
    client.receive(&frame(kind::HEADERS, 0, 1, &head));
    (0..5).for_each(|n| {
        client.receive(&frame(kind::CONTINUATION, if n == 4 { 4 } else { 0 }, 1, &field.repeat(15)))
    });
    assert_eq!(sent(&mut client), ["RST_STREAM 1 ENHANCE_YOUR_CALM"]);
    assert!(read(&mut client, place).1.contains("too large"));
    // Interim replies that nobody reads.
    let place = request(&mut client, PLAIN);
    let interim = frame(kind::HEADERS, 4, 3, &[b"\x08\x03103", &field.repeat(15)[..]].concat());
    (0..10).for_each(|_| client.receive(&interim));
    assert_eq!(sent(&mut client), ["HEADERS 3 end", "RST_STREAM 3 ENHANCE_YOUR_CALM"]);
    assert!(read(&mut client, place).0.len() < 100_000);
}

#[test]
fn rapid_resets_are_a_flood_unless_requests_are_read() {
    let mut server = server();
    for id in (1..200).step_by(2) {
        server.receive(&get(id));
        let (place, _) = server.accept().unwrap();
        read(&mut server, place);
        server.receive(&reset(id, 8));
        server.leave(place);
    }
    assert!(server.end().is_none());
    let mut ids = (201..).step_by(2);
    for round in 0..2 {
        // All of the round before are forgiven.
        server.now = Nanos::from_secs(100 * round);
        for id in ids.by_ref().take(MOST_AT_ONCE as usize) {
            server.receive(&[get(id), reset(id, 8)].concat());
            let (place, _) = server.accept().unwrap();
            server.leave(place);
        }
        assert!(server.end().is_none());
    }
    let last = ids.next().unwrap();
    server.receive(&[get(last), reset(last, 8)].concat());
    assert_eq!(sent(&mut server), [format!("GOAWAY {last} ENHANCE_YOUR_CALM")]);
}

/// A request that was read may be worked on for long.
#[test]
fn requests_that_are_given_up_while_the_server_works_are_bounded() {
    let mut server = server();
    let mut places = Vec::new();
    for id in (1..1000).step_by(2) {
        server.receive(&get(id));
        if let Some((place, _)) = server.accept() {
            read(&mut server, place);
            places.push(place);
        }
        server.receive(&reset(id, 8));
    }
    assert_eq!(places.len(), 2 * SETTINGS.streams as usize);
    assert!(sent(&mut server).iter().all(|frame| frame.ends_with("REFUSED_STREAM")));
    places.into_iter().for_each(|place| server.leave(place));
    server.receive(&get(1001));
    assert!(server.accept().is_some() && server.end().is_none());
    (1003..6000).step_by(2).for_each(|id| server.receive(&[get(id), reset(id, 8)].concat()));
    assert!(sent(&mut server).last().unwrap().ends_with("ENHANCE_YOUR_CALM"));
}

/// The server resets the streams, but the client made it do so (CVE-2025-8671).
#[test]
fn streams_that_clients_break_are_requests_that_they_give_up() {
    let nothing = |id| frame(kind::WINDOW_UPDATE, 0, id, &[0; 4]);
    let mut server = server();
    for id in (1..).step_by(2).take(MOST_AT_ONCE as usize + 1) {
        assert!(server.end().is_none(), "{id}");
        server.receive(&[get(id), nothing(id)].concat());
        let (place, _) = server.accept().unwrap();
        read(&mut server, place);
        server.leave(place);
    }
    assert!(sent(&mut server).last().unwrap().ends_with("ENHANCE_YOUR_CALM"));
}
