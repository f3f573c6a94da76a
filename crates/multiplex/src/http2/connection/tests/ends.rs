//! How streams and connections end.

use super::*;

#[test]
fn streams_that_are_dropped_early_are_reset() {
    let post = frame(kind::HEADERS, 4, 1, POST);
    for (frames, replies, expected) in [
        (vec![get(1)], false, "RST_STREAM 1 CANCEL"),
        (vec![get(1)], true, "HEADERS 1 end"),
        (vec![post.clone()], true, "HEADERS 1 end, RST_STREAM 1 NO_ERROR"),
        // Only the end of the stream is missing.
        (vec![post.clone(), frame(kind::DATA, 0, 1, b"abc")], true, "HEADERS 1 end"),
        (vec![post, reset(1, 8)], false, ""),
    ] {
        let mut server = server();
        server.receive(&frames.concat());
        let (place, to) = server.accept().unwrap();
        if replies {
            reply(&mut server, place, &mut OutgoingMessage::reply(to), b"HTTP/1.1 204 No Content\r\n\r\n");
        }
        server.leave(place);
        assert_eq!(sent(&mut server).join(", "), expected, "{frames:?}");
        server.receive(&frame(kind::DATA, 1, 1, b""));
        assert_eq!(server.streams.open_count(), 0);
    }
    let mut client = client();
    let place = request(&mut client, PLAIN);
    client.leave(place);
    assert_eq!(sent(&mut client), ["HEADERS 1 end", "RST_STREAM 1 CANCEL"]);
    // What the server sent before it knew is ignored, but its header blocks count.
    client.receive(&frame(kind::HEADERS, 4, 1, b"\x88\x40\x01a\x01b"));
    client.receive(&frame(kind::DATA, 1, 1, b"x"));
    // Behind its own reset, nothing may come.
    client.receive(&reset(1, 8));
    client.receive(&frame(kind::DATA, 1, 1, b"x"));
    assert_eq!(sent(&mut client), ["RST_STREAM 1 STREAM_CLOSED"]);
    let place = request(&mut client, PLAIN);
    client.receive(&frame(kind::HEADERS, BOTH, 3, b"\x89\xbe"));
    assert_eq!(read(&mut client, place).0, "HTTP/1.1 204 \r\na: b\r\n\r\n");
}

#[test]
fn the_end_of_a_connection_is_announced() {
    let mut server = server();
    server.receive(&get(1));
    server.announce_end();
    server.announce_end();
    assert_eq!(sent(&mut server), [format!("GOAWAY {MAX_31} NO_ERROR"), "PING".to_owned()]);
    // A request that was on its way is served, one after the last sign of life is not.
    server.receive(&get(3));
    server.receive(&frame(kind::PING, 1, 0, &LAST_PING));
    server.receive(&get(5));
    assert_eq!(sent(&mut server), ["GOAWAY 3 NO_ERROR", "RST_STREAM 5 REFUSED_STREAM"]);
    for _ in 0..2 {
        server.close_if_over();
        assert!(server.end().is_none());
        let (place, _) = server.accept().unwrap();
        server.leave(place);
    }
    server.close_if_over();
    assert!(matches!(server.end(), Some(End::Closed)));
}

#[test]
fn a_client_obeys_goaway() {
    for (code, end) in [(0, "end"), (2, "GOAWAY INTERNAL_ERROR: the peer has ended the connection")] {
        let mut client = client();
        let places = [PLAIN, PLAIN].map(|head| request(&mut client, head));
        client.receive(&frame(
            kind::GOAWAY,
            0,
            0,
            &[&1u32.to_be_bytes()[..], &u32::to_be_bytes(code)].concat(),
        ));
        assert!(client.has_goaway() && !client.is_usable() && client.end().is_none());
        let (_, failure) = read(&mut client, places[1]);
        assert!(failure.starts_with("GOAWAY") && failure.ends_with("not processed"), "{failure}");
        assert_eq!(read(&mut client, places[0]).1, "more");
        assert!(client.can_open().is_err());
        if code == 0 {
            client.receive(&frame(kind::HEADERS, BOTH, 1, b"\x88"));
            client.close_if_over();
        } else {
            client.receive_end();
        }
        assert_eq!(read(&mut client, places[0]).1, end);
    }
}
