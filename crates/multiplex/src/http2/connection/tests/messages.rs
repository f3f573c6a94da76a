//! Messages on their way between two sides.

use proptest::prelude::*;

use super::*;
use crate::message::MessageError;
use crate::message::request::{FieldName, RequestFields, RequestLine};

#[test]
fn requests_and_replies_become_frames() {
    let (mut client, mut server) = (client(), server());
    client.take_bytes();
    server.take_bytes();
    let post = "POST /p HTTP/1.1\r\nHost: h\r\nX-Xact: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut message = OutgoingMessage::request("http");
    let (_, place) = message.take_head(post.as_bytes(), |section| client.send_request(section)).unwrap();
    let place = place.unwrap().unwrap();
    let mut open = OpenData::default();
    let chunks = b"3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n";
    message.take_content(chunks, |bytes| client.put_content(place, &mut open, bytes)).unwrap();
    client.end_content(place, &open, &message).unwrap();
    let bytes = client.unsent().to_vec();
    assert_eq!(sent(&mut client), ["HEADERS 1", "DATA 1 abc", "HEADERS 1 end"]);
    server.receive(&bytes);
    let (at, to) = server.accept().unwrap();
    let expected = "POST /p HTTP/1.1\r\nHost: h\r\nx-xact: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n";
    assert_eq!(read(&mut server, at), (expected.to_owned(), "end".to_owned()));
    let mut message = OutgoingMessage::reply(to);
    for part in
        [&b"HTTP/1.1 100 Continue\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok"]
    {
        assert_eq!(reply(&mut server, at, &mut message, part), part.len());
    }
    server.leave(at);
    let bytes = server.unsent().to_vec();
    assert_eq!(sent(&mut server), ["HEADERS 1", "HEADERS 1", "DATA 1 ok end"]);
    client.receive(&bytes);
    let expected = "HTTP/1.1 100 \r\n\r\nHTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(read(&mut client, place), (expected.to_owned(), "end".to_owned()));
    client.leave(place);
    assert_eq!((client.streams.open_count(), server.streams.open_count()), (0, 0));
    let bytes = (client.take_bytes(), server.take_bytes());
    assert_eq!((bytes.0.sent, bytes.0.sent_content, bytes.0.received_content), (bytes.1.received, 3, 2));
    assert_eq!(client.take_bytes(), WireBytes::default());
}

/// Whichever way a request is passed on, its frames and its size are the same.
#[test]
fn requests_need_no_text() {
    let head = "GET /x HTTP/1.1\r\nAccept: */*\r\nHost: h:1\r\nPragma: a b\r\nX-Xact:  1 \r\nAccept-Encoding: gzip, deflate\r\n\
        Connection: close\r\n\r\n";
    let (mut one, mut other) = (client(), client());
    for _ in 0..3 {
        let first = request(&mut one, head);
        let line = RequestLine { method: "GET", authority: "h:1", path: b"/x" };
        let add = |fields: &mut RequestFields<'_>, name, value: &[u8]| {
            fields.add(&FieldName::new(name), |out| out.extend_from_slice(value));
        };
        let (second, size) = other
            .send_request_of(&line, "http", |fields| {
                add(fields, "Accept", b"*/*");
                fields.skip("Host", 3);
                add(fields, "Pragma", b"a b");
                add(fields, "X-Xact", b" 1 ");
                add(fields, "Accept-Encoding", b"gzip, deflate");
                fields.skip("Connection", 5);
            })
            .unwrap();
        assert_eq!((first, one.unsent(), head.len()), (second, other.unsent(), size));
        let bad = other.send_request_of(&line, "http", |fields| add(fields, "Accept", b"a\r\nb"));
        assert_eq!(bad, Err(MessageError::FieldValue));
        let mut message = OutgoingMessage::request("http");
        assert_eq!(message.give_up_request(), Some("http"));
        assert!(message.is_done() && message.give_up_request().is_none());
        // What was given up must not be in the tables.
        one.encoder.give_up();
    }
}

#[test]
fn large_heads_are_continued() {
    let (mut client, mut server) = (client(), server());
    let head =
        format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", format!("X: {}\r\n", "y".repeat(5000)).repeat(9));
    request(&mut client, &head);
    server.receive(client.unsent());
    let (place, _) = server.accept().unwrap();
    assert_eq!(read(&mut server, place).0.len(), head.len());
}

/// The header of a frame does not get in the way of its content.
#[test]
fn content_is_cut_into_frames_that_the_peer_takes() {
    let mut server = server();
    server.receive(&get(1));
    let (place, to) = server.accept().unwrap();
    let mut message = OutgoingMessage::reply(to);
    reply(&mut server, place, &mut message, b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n");
    assert_eq!(reply(&mut server, place, &mut message, &[b'x'; 40_000]), 40_000);
    let lengths: Vec<_> = sent(&mut server).iter().map(|word| word.len()).collect();
    let data = "DATA 1 ".len();
    assert_eq!(lengths, ["HEADERS 1".len(), data + 16_384, data + 16_384, data + 7232 + " end".len()]);
    assert_eq!(server.all_bytes().sent_content, 40_000);
    assert_eq!(HEADER, 9);
}

proptest! {
    /// Two sides that talk to each other, with what they send cut anywhere.
    #[test]
    fn messages_arrive_as_they_were_sent(
        sizes in prop::collection::vec((0usize..70_000, 0usize..70_000), 1..5),
        cut in 100usize..5000,
        window in 65_535u32..200_000,
    ) {
        let settings = Http2Settings { streams: 3, window };
        let mut client = Connection::new(Side::Client, &settings);
        let mut server = Connection::new(Side::Server(TargetForm::Origin), &settings);
        // The limit of streams must be known before the first of them.
        client.receive(server.unsent());
        server.note_sent(server.unsent().len());
        let body = |size: usize, salt: usize| (0..size).map(|n| b'a' + ((n * 7 + salt) % 26) as u8).collect::<Vec<u8>>();
        // What is left to send, what was received, for both directions of each stream.
        let mut waiting: Vec<_> = sizes.iter().enumerate().rev().collect();
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        let mut complete = 0;
        for round in 0..20_000 {
            while !waiting.is_empty() && client.can_open().unwrap() {
                let (number, (size, _)) = waiting.pop().unwrap();
                let head = format!("POST /{number} HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n");
                let mut message = OutgoingMessage::request("http");
                let (_, place) = message.take_head(head.as_bytes(), |section| client.send_request(section)).unwrap();
                clients.push((number, place.unwrap().unwrap(), message, body(*size, number), String::new()));
            }
            for (_, place, message, left, _) in &mut clients {
                let used = reply(&mut client, *place, message, left);
                left.drain(..used);
            }
            for _ in 0..1 + round % 3 {
                let piece = client.unsent()[..cut.min(client.unsent().len())].to_vec();
                client.note_sent(piece.len());
                server.receive(&piece);
            }
            while let Some((place, to)) = server.accept() {
                servers.push((place, OutgoingMessage::reply(to), String::new(), None));
            }
            servers.retain_mut(|(place, message, text, left)| {
                let (more, state) = read(&mut server, *place);
                *text += &more;
                if state == "end" && left.is_none() {
                    let number: usize = text[6..7].parse().unwrap();
                    assert!(text.as_bytes().ends_with(&body(sizes[number].0, number)));
                    let size = sizes[number].1;
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
                    reply(&mut server, *place, message, head.as_bytes());
                    *left = Some(body(size, number + 9));
                }
                if let Some(left) = left {
                    let used = reply(&mut server, *place, message, left);
                    left.drain(..used);
                    if message.is_done() {
                        server.leave(*place);
                        return false;
                    }
                }
                true
            });
            let piece = server.unsent()[..cut.min(server.unsent().len())].to_vec();
            server.note_sent(piece.len());
            client.receive(&piece);
            clients.retain_mut(|(number, place, _, _, text)| {
                let (more, state) = read(&mut client, *place);
                *text += &more;
                assert!(state == "more" || state == "end", "{state}");
                if state == "end" {
                    let size = sizes[*number].1;
                    assert!(text.starts_with(&format!("HTTP/1.1 200 \r\ncontent-length: {size}\r\n\r\n")));
                    assert!(text.as_bytes().ends_with(&body(size, *number + 9)));
                    client.leave(*place);
                    complete += 1;
                }
                state != "end"
            });
            if complete == sizes.len() {
                break;
            }
        }
        prop_assert_eq!(complete, sizes.len());
        prop_assert!(client.end().is_none() && server.end().is_none());
        prop_assert_eq!((client.streams.open_count(), server.streams.open_count()), (0, 0));
    }

    #[test]
    fn cuts_do_not_matter(cut in 1usize..40, frames in prop::collection::vec((0u8..10, 0u8..48, 0u32..6, prop::collection::vec(any::<u8>(), 0..20)), 0..12)) {
        let bytes: Vec<u8> = frames.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
        let run = |size: usize| {
            let mut server = server();
            bytes.chunks(size.max(1)).for_each(|piece| server.receive(piece));
            (sent(&mut server), server.requests, server.end().is_some())
        };
        prop_assert_eq!(run(cut), run(bytes.len()));
    }
}
