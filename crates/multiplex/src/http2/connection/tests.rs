use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake};

use proptest::prelude::*;

use super::super::frames::{FrameHeader, HEADER, Http2Frame, flag, kind};
use super::super::reader::Piece;
use super::*;
use crate::message::outgoing::OutgoingMessage;

const SETTINGS: Http2Settings = Http2Settings { streams: 2, window: 65_535 };
const BOTH: u8 = flag::END_HEADERS | flag::END_STREAM;
/// `GET http://h/`, without the dynamic table, and the same with a content of three bytes.
const GET: &[u8] = b"\x82\x86\x84\x01\x01h";
const POST: &[u8] = b"\x83\x86\x84\x01\x01h\x0f\x0d\x013";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader { length: payload.len(), kind, flags, stream }.put(&mut out);
    out.extend_from_slice(payload);
    out
}

fn get(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, BOTH, stream, GET)
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_settings(list, &mut out);
    out
}

/// What a connection sends, in words.
fn sent(connection: &mut Connection) -> Vec<String> {
    let (mut reader, mut words) = (FrameReader::default(), Vec::new());
    let mut bytes = connection.unsent().to_vec();
    connection.note_sent(bytes.len());
    if bytes.starts_with(PREFACE) {
        bytes.drain(..PREFACE.len());
    }
    let mut rest = &bytes[..];
    loop {
        let (used, piece) = reader.next(rest).unwrap();
        rest = &rest[used..];
        words.push(match piece {
            None => return words,
            Some(Piece::Data(part)) => {
                let end = if part.ends_stream { " end" } else { "" };
                format!("DATA {} {}{end}", part.stream, String::from_utf8_lossy(part.content))
            }
            Some(Piece::Whole(header, payload)) => {
                let id = header.stream;
                match Http2Frame::read(&header, payload).unwrap() {
                    Http2Frame::Headers { ends_stream, .. } => {
                        format!("HEADERS {id}{}", if ends_stream { " end" } else { "" })
                    }
                    Http2Frame::Reset { code } => format!("RST_STREAM {id} {}", codes::name(code)),
                    Http2Frame::GoAway { last, code } => format!("GOAWAY {last} {}", codes::name(code)),
                    Http2Frame::WindowUpdate { increment } => format!("WINDOW_UPDATE {id} {increment}"),
                    Http2Frame::Settings(_) => "SETTINGS".to_owned(),
                    Http2Frame::SettingsAck => "SETTINGS ACK".to_owned(),
                    Http2Frame::Ping(_) => "PING".to_owned(),
                    Http2Frame::Pong(_) => "PING ACK".to_owned(),
                    other => format!("{other:?}"),
                }
            }
        });
    }
}

fn server() -> Connection {
    let mut server = Connection::new(Side::Server(TargetForm::Origin), &SETTINGS);
    server.receive(PREFACE);
    server.receive(&settings(&[]));
    assert_eq!(sent(&mut server), ["SETTINGS", "SETTINGS ACK"]);
    server
}

fn client() -> Connection {
    let mut client = Connection::new(Side::Client, &SETTINGS);
    client.receive(&settings(&[]));
    assert_eq!(sent(&mut client), ["SETTINGS", "SETTINGS ACK"]);
    client
}

/// Sends a request, and returns its place.
fn request(client: &mut Connection, head: &str) -> usize {
    let mut request = OutgoingMessage::request("http");
    let (_, place) = request.take_head(head.as_bytes(), |section| client.send_request(section)).unwrap();
    place.unwrap().unwrap()
}

const PLAIN: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Sends parts of a reply as far as there is room; how many bytes were taken.
fn reply(server: &mut Connection, place: usize, message: &mut OutgoingMessage, bytes: &[u8]) -> usize {
    if message.expects_head() {
        let (used, sent) = message.take_head(bytes, |section| server.send_reply(place, section)).unwrap();
        sent.unwrap().unwrap();
        return used;
    }
    let (mut open, room) = (OpenData::default(), server.room(place).min(bytes.len()));
    let used =
        message.take_content(&bytes[..room], |bytes| server.put_content(place, &mut open, bytes)).unwrap();
    server.end_content(place, &open, message).unwrap();
    used
}

/// Everything that can be read from a stream, and how it ends.
fn read(connection: &mut Connection, place: usize) -> (String, String) {
    let mut text = String::new();
    loop {
        match connection.poll_read(place, Waker::noop()) {
            Poll::Ready(Ok(Some(data))) => {
                text += std::str::from_utf8(&data).unwrap();
                connection.note_read(place, data);
            }
            Poll::Ready(Ok(None)) => return (text, "end".into()),
            Poll::Ready(Err(error)) => return (text, error.to_string()),
            Poll::Pending => return (text, "more".into()),
        }
    }
}

#[test]
fn breaches_by_clients_have_their_codes() {
    let data = |flags, stream, content: &[u8]| frame(kind::DATA, flags, stream, content);
    let update = |stream, by: u32| frame(kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let post = |stream| frame(kind::HEADERS, flag::END_HEADERS, stream, POST);
    let own = frame(kind::HEADERS, BOTH | flag::PRIORITY, 1, &[b"\0\0\0\x01\0", GET].concat());
    for (frames, expected) in [
        // Streams that are idle or closed.
        (vec![data(0, 1, b"x")], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![reset(1, 8)], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![update(1, 9)], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![get(2)], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![get(5), get(3)], "GOAWAY 5 PROTOCOL_ERROR"),
        (vec![get(1), data(0, 1, b"x")], "RST_STREAM 1 STREAM_CLOSED"),
        (vec![get(1), get(1)], "RST_STREAM 1 STREAM_CLOSED"),
        (vec![get(1), reset(1, 8), data(0, 1, b"x")], "RST_STREAM 1 STREAM_CLOSED"),
        (vec![get(1), reset(1, 8), get(1)], "RST_STREAM 1 STREAM_CLOSED"),
        (vec![get(1), reset(1, 8), update(1, 9), reset(1, 8)], ""),
        // Connection and streams.
        (vec![frame(kind::PUSH_PROMISE, 4, 1, b"\0\0\0\x02")], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![settings(&[(2, 7)])], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![get(1), settings(&[(4, (1 << 31) - 1)]), update(1, 1)], "RST_STREAM 1 FLOW_CONTROL_ERROR"),
        (vec![update(0, (1 << 31) - 1)], "GOAWAY 0 FLOW_CONTROL_ERROR"),
        (vec![update(0, 0)], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![get(1), update(1, 0)], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![get(1), reset(1, 8), update(1, 0)], "GOAWAY 1 PROTOCOL_ERROR"),
        (vec![get(1), update(1, 1 << 30), update(1, 1 << 30)], "RST_STREAM 1 FLOW_CONTROL_ERROR"),
        (vec![get(1), update(1, 1 << 30), settings(&[(4, 1 << 30)])], "GOAWAY 1 FLOW_CONTROL_ERROR"),
        (vec![frame(kind::PRIORITY, 0, 1, b"\0\0\0\x01\0")], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![own], "RST_STREAM 1 PROTOCOL_ERROR"),
        // Header blocks.
        (vec![frame(kind::HEADERS, 1, 1, GET), get(3)], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![frame(kind::HEADERS, 1, 1, GET), data(0, 1, b"")], "GOAWAY 0 PROTOCOL_ERROR"),
        (
            vec![frame(kind::HEADERS, 1, 1, GET), frame(kind::CONTINUATION, 4, 3, b"")],
            "GOAWAY 0 PROTOCOL_ERROR",
        ),
        (vec![frame(kind::CONTINUATION, 4, 1, GET)], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![frame(kind::HEADERS, BOTH, 1, b"\x80")], "GOAWAY 1 COMPRESSION_ERROR"),
        (vec![get(1), get(3), frame(kind::HEADERS, BOTH, 5, b"\x80")], "GOAWAY 5 COMPRESSION_ERROR"),
        (vec![get(1), get(3), get(5)], "RST_STREAM 5 REFUSED_STREAM"),
        // Messages.
        (vec![frame(kind::HEADERS, BOTH, 1, &GET[..2])], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![frame(kind::HEADERS, BOTH, 1, POST)], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![post(1), data(1, 1, b"xx")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![post(1), data(0, 1, b"xxxx")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![post(1), data(0, 1, b"xxx"), frame(kind::HEADERS, 4, 1, b"")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (
            vec![post(1), data(0, 1, b"xxx"), frame(kind::HEADERS, 5, 1, b"\0\x01X\x01y")],
            "RST_STREAM 1 PROTOCOL_ERROR",
        ),
    ] {
        let mut server = server();
        server.receive(&frames.concat());
        let mut words = sent(&mut server);
        words.retain(|word| word != "SETTINGS ACK");
        assert_eq!(words.join(", "), expected, "{frames:?}");
        let is_fatal = expected.starts_with("GOAWAY");
        assert_eq!(server.end().is_some(), is_fatal);
        if !is_fatal {
            // The dynamic tables are still the same.
            server.receive(&frame(kind::HEADERS, BOTH, 99, &[b"\x40\x01a\x01b", GET].concat()));
            assert!(server.end().is_none());
        }
    }
}

#[test]
fn breaches_by_servers_have_their_codes() {
    let head = |flags, block: &[u8]| frame(kind::HEADERS, flags, 1, block);
    let data = |flags, content: &[u8]| frame(kind::DATA, flags, 1, content);
    for (frames, expected) in [
        (vec![settings(&[(2, 1)])], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![frame(kind::HEADERS, BOTH, 3, b"\x88")], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![frame(kind::HEADERS, BOTH, 2, b"\x88")], "GOAWAY 0 PROTOCOL_ERROR"),
        (vec![data(1, b"x")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![head(BOTH, b"\x88\x5c\x011")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![head(BOTH, b"\x08\x03100")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![head(BOTH, b"\x82")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![head(4, b"\x88\x5c\x011"), data(1, b"ab")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![head(4, b"\x88"), head(4, b"\x88")], "RST_STREAM 1 PROTOCOL_ERROR"),
        (vec![head(BOTH, b"\x88"), data(1, b"x")], "GOAWAY 0 STREAM_CLOSED"),
        (vec![head(BOTH, b"\x88"), head(BOTH, b"\x88")], "GOAWAY 0 STREAM_CLOSED"),
    ] {
        let mut client = client();
        let place = request(&mut client, PLAIN);
        sent(&mut client);
        client.receive(&frames.concat());
        let mut words = sent(&mut client);
        words.retain(|word| word != "SETTINGS ACK");
        assert_eq!(words.join(", "), expected, "{frames:?}");
        let failed = read(&mut client, place).1;
        assert!(failed.contains("_ERROR") || failed.contains("malformed") || failed == "end", "{failed}");
    }
}

#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    let whole = [PREFACE, &settings(&[]), &get(1)].concat();
    for size in [1, 7, whole.len()] {
        let mut server = Connection::new(Side::Server(TargetForm::Origin), &SETTINGS);
        whole.chunks(size).for_each(|piece| server.receive(piece));
        assert!(server.accept().is_some() && server.end().is_none());
    }
    for wrong in [
        &b"PRI * HTTP/2.1"[..],
        &[PREFACE, &get(1)].concat(),
        &[PREFACE, &frame(kind::SETTINGS, 1, 0, b"")].concat(),
    ] {
        let mut server = Connection::new(Side::Server(TargetForm::Origin), &SETTINGS);
        server.receive(wrong);
        assert_eq!(sent(&mut server), ["SETTINGS", "GOAWAY 0 PROTOCOL_ERROR"]);
    }
    let large = Http2Settings { window: 100_000, ..SETTINGS };
    let mut client = Connection::new(Side::Client, &large);
    assert_eq!(sent(&mut client), ["SETTINGS", "WINDOW_UPDATE 0 34465"]);
}

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

#[test]
fn content_keeps_to_the_windows() {
    let mut server = server();
    server.receive(
        &[settings(&[(4, 10)]), get(1), frame(kind::WINDOW_UPDATE, 0, 1, &5u32.to_be_bytes())].concat(),
    );
    sent(&mut server);
    let (place, to) = server.accept().unwrap();
    let mut message = OutgoingMessage::reply(to);
    reply(&mut server, place, &mut message, b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
    assert_eq!(reply(&mut server, place, &mut message, b"12345678901234567890"), 15);
    assert_eq!(sent(&mut server), ["HEADERS 1", "DATA 1 123456789012345"]);
    // A smaller window may make what is left negative.
    server.receive(&settings(&[(4, 0)]));
    server.receive(&frame(kind::WINDOW_UPDATE, 0, 1, &12u32.to_be_bytes()));
    assert_eq!(reply(&mut server, place, &mut message, b"67890"), 2);
    server.receive(&frame(kind::WINDOW_UPDATE, 0, 1, &12u32.to_be_bytes()));
    assert_eq!(reply(&mut server, place, &mut message, b"890"), 3);
    assert_eq!(sent(&mut server)[1..], ["DATA 1 67", "DATA 1 890 end"]);
}

#[test]
fn windows_are_given_back_when_content_is_read() {
    let mut server = server();
    let content = vec![b'x'; 16_384];
    let post = b"\x83\x86\x84\x01\x01h\x0f\x0d\x06999999";
    server.receive(&frame(kind::HEADERS, 4, 1, post));
    let (place, _) = server.accept().unwrap();
    for _ in 0..3 {
        server.receive(&frame(kind::DATA, 0, 1, &content));
    }
    assert!(sent(&mut server).is_empty());
    assert_eq!(read(&mut server, place).1, "more");
    assert_eq!(sent(&mut server), ["WINDOW_UPDATE 1 49152", "WINDOW_UPDATE 0 49152"]);
    // Nobody reads: the window ends.
    for _ in 0..4 {
        server.receive(&frame(kind::DATA, 0, 1, &content[..16_000]));
    }
    assert!(server.end().is_none());
    server.receive(&frame(kind::DATA, 0, 1, &content));
    assert_eq!(sent(&mut server), ["GOAWAY 1 FLOW_CONTROL_ERROR"]);
    // Content of a stream that is given up is given back, too, and so is padding.
    let mut server = self::server();
    server.receive(&frame(kind::HEADERS, 4, 1, post));
    let (place, _) = server.accept().unwrap();
    server.receive(&[frame(kind::DATA, 0, 1, &content), frame(kind::DATA, 0, 1, &content)].concat());
    server.leave(place);
    assert_eq!(sent(&mut server), ["RST_STREAM 1 CANCEL", "WINDOW_UPDATE 0 32768"]);
    server.receive(&[frame(kind::DATA, 0, 1, &content), frame(kind::DATA, 0, 1, &content)].concat());
    assert_eq!(sent(&mut server), ["WINDOW_UPDATE 0 32768"]);
    let padded = frame(kind::DATA, flag::PADDED, 3, &[&[255][..], &[0; 255]].concat());
    server.receive(&frame(kind::HEADERS, 4, 3, post));
    (0..128).for_each(|_| server.receive(&padded));
    assert_eq!(sent(&mut server), ["WINDOW_UPDATE 3 32768", "WINDOW_UPDATE 0 32768"]);
}

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
    // Behind a reset of its own, nothing may come.
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
    for id in (201..).step_by(2).take(21) {
        server.receive(&[get(id), reset(id, 8)].concat());
    }
    assert_eq!(sent(&mut server), ["GOAWAY 241 ENHANCE_YOUR_CALM"]);
}

/// Notes the order in which streams are woken.
struct Woken(usize, Arc<Mutex<Vec<usize>>>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn streams_take_turns_if_there_is_not_enough_room() {
    const SIZE: usize = 200_000;
    let mut server =
        Connection::new(Side::Server(TargetForm::Origin), &Http2Settings { streams: 9, ..SETTINGS });
    server.receive(&[PREFACE, &settings(&[(4, 1 << 20)])].concat());
    server.receive(&frame(kind::WINDOW_UPDATE, 0, 0, &(1u32 << 20).to_be_bytes()));
    let content = vec![b'x'; SIZE];
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut streams: Vec<_> = [1, 3, 5, 7, 9]
        .map(|id| {
            server.receive(&get(id));
            let (place, to) = server.accept().unwrap();
            let mut message = OutgoingMessage::reply(to);
            reply(&mut server, place, &mut message, b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n");
            (place, message, 0)
        })
        .into();
    order.lock().unwrap().extend(0..streams.len());
    sent(&mut server);
    // Each sends until there is no room, and then waits until it is woken.
    let mut most = 0;
    while streams.iter().any(|(_, _, done)| *done < SIZE) {
        let woken = std::mem::take(&mut *order.lock().unwrap());
        assert!(!woken.is_empty(), "nobody is woken");
        for number in woken {
            let (place, message, done) = &mut streams[number];
            while *done < SIZE {
                let used = reply(&mut server, *place, message, &content[*done..]);
                *done += used;
                if used == 0 {
                    server.when_room(*place, &Waker::from(Arc::new(Woken(number, Arc::clone(&order)))));
                    break;
                }
            }
        }
        let done = || streams.iter().map(|(_, _, done)| *done);
        most = most.max(done().max().unwrap() - done().min().unwrap());
        sent(&mut server);
    }
    assert!(most <= 2 * SEND_BUFFER, "one is {most} bytes ahead");
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
