//! Frames that break the protocol.

use super::*;

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
