use proptest::prelude::*;

use super::*;
use crate::head::{MAX_HEADERS, NO_HEADERS, any_reply, any_request};

const REPLIES: [&str; 8] = [
    "HTTP/1.1 200 OK\r\nCache-Control: public\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\nContent-Length: 10\r\nX-Target: 10.0.0.1:80\r\n\r\n0123456789",
    "HTTP/1.0 304 Not Modified\r\nServer: a b\r\nX-Phase-Sync-Pos: 1\r\nTransfer-Encoding-Of-Long-Name: x\r\n\r\n",
    "HTTP/1.1 200 \r\nA: b\r\n\r\n",
    "HTTP/1.1 404  Not\tFound \u{e4}\r\n\r\n",
    "HTTP/1.1 200\r\nA: b\r\n\r\n",
    "HTTP/1.1 200 OK\nA:b\nC:  d \ne:\tf\r\ng:\r\nh: \r\n_i~: \u{e4}\r\n\n",
    "\r\n\nHTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
];
const REQUESTS: [&str; 6] = [
    "GET http://10.0.0.1:80/w12.34/t01/_00000001 HTTP/1.1\r\nAccept: */*\r\nHost: 10.0.0.1\r\n\r\nrest",
    "GET / HTTP/1.0\r\n\r\n",
    "M-SEARCH * HTTP/1.1\r\nContent-MD5: x\r\n\r\n",
    "a!b \u{e4} HTTP/1.1\nA : b\r\n\r\n",
    "GET  / HTTP/1.1 \r\n\r\n",
    "\nPOST /x HTTP/1.1\r\nContent-Length: 0\r\n",
];

/// Whether a plain head was read. What is read must be the same in both ways.
fn is_plain_reply(bytes: &[u8]) -> bool {
    let (mut known, mut plain, mut any) = (NO_HEADERS, NO_HEADERS, NO_HEADERS);
    let read = reply(bytes, &HeadIndex::NONE, &mut known, &mut plain);
    if read.is_some() {
        assert_eq!(Ok(&read), any_reply(bytes, &mut any).as_ref(), "{}", bytes.escape_ascii());
    }
    read.is_some()
}

fn is_plain_request(bytes: &[u8]) -> bool {
    let (mut plain, mut any) = (NO_HEADERS, NO_HEADERS);
    let read = request(bytes, &mut plain);
    if read.is_some() {
        assert_eq!(Ok(&read), any_request(bytes, &mut any).as_ref(), "{}", bytes.escape_ascii());
    }
    read.is_some()
}

#[test]
fn usual_heads_are_plain() {
    assert_eq!(
        REPLIES.map(|text| is_plain_reply(text.as_bytes())),
        [true, true, true, false, false, false, false, false]
    );
    assert_eq!(
        REQUESTS.map(|text| is_plain_request(text.as_bytes())),
        [true, true, true, false, false, false]
    );
    for (count, expected) in [(MAX_HEADERS, true), (MAX_HEADERS + 1, false)] {
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
        assert_eq!(is_plain_reply(text.as_bytes()), expected, "{count} fields");
    }
}

#[test]
fn plain_heads_end_where_they_end() {
    for cut in 0..REPLIES[0].len() {
        assert_eq!(is_plain_reply(&REPLIES[0].as_bytes()[..cut]), cut + 10 >= REPLIES[0].len(), "{cut}");
    }
    for cut in 0..REQUESTS[0].len() {
        assert_eq!(is_plain_request(&REQUESTS[0].as_bytes()[..cut]), cut + 4 >= REQUESTS[0].len(), "{cut}");
    }
}

/// Every byte at every place, replaced, inserted and removed.
#[test]
fn one_wrong_byte_is_not_missed() {
    let check = |bytes: &[u8]| (is_plain_reply(bytes), is_plain_request(bytes));
    for text in REPLIES.iter().chain(&REQUESTS) {
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            for byte in 0..=u8::MAX {
                bytes[at] = byte;
                check(&bytes);
            }
            bytes.remove(at);
            check(&bytes);
            for byte in 0..=u8::MAX {
                bytes.insert(at, byte);
                check(&bytes);
                bytes.remove(at);
            }
        }
    }
}

proptest! {
    #[test]
    fn pieces_of_heads_are_read_alike(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "HTTP/1.1 ", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 200 OK\r\n", "GET / HTTP/1.1\r\n", "200 ", "OK", "\r\n", "\n", "\r",
                ": ", ":", " ", "\t", "Content-Length", "a", "-", "X-Xact: 1", "\0", "\u{7f}", "\u{e4}", "Date: x\r\n",
                "Server: a b\r\n", "_",
            ]),
            0..12,
        ),
        is_reply: bool,
    ) {
        let start = if is_reply { "HTTP/1.1 200 OK\r\n" } else { "GET /x HTTP/1.1\r\n" };
        let text = pieces.concat();
        for bytes in [text.clone(), format!("{start}{text}"), format!("{start}{text}\r\n\r\n")] {
            is_plain_reply(bytes.as_bytes());
            is_plain_request(bytes.as_bytes());
        }
    }
}
