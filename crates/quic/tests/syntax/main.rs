//! Malformed streams of HTTP/3, by chance here and with coverage in `fuzz/`.

mod targets;

use polygraph_quic::http3::frames::{kind, put_header};
use polygraph_quic::http3::{control, qpack};
use polygraph_testing::mutation::{Mutator, Random};
use proptest::prelude::*;

/// How many mutations are tried.
const EXECUTIONS: u64 = 300_000;

/// Valid streams: a request with content and trailers, replies, control streams.
fn seeds() -> Vec<Vec<u8>> {
    let section = |fields: &[(&str, &str)]| {
        let mut section = Vec::new();
        qpack::put_prefix(&mut section);
        fields.iter().for_each(|(name, value)| qpack::put_field(name, value.as_bytes(), &mut section));
        section
    };
    let frame = |kind, payload: &[u8]| {
        let mut out = Vec::new();
        put_header(kind, payload.len(), &mut out);
        out.extend_from_slice(payload);
        out
    };
    let request = section(&[
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "www.example.com"),
        (":path", "/w12345678.00abcdef:0000002a/t03/_00000000000001f4"),
        ("x-xact", "00000001.00000abc:00000002 00000001.00000abc:00000004 0"),
        ("content-length", "7"),
    ]);
    let reply =
        section(&[(":status", "200"), ("content-type", "text/html; charset=utf-8"), ("cookie", "a=b")]);
    vec![
        [frame(kind::HEADERS, &request), frame(kind::DATA, b"content"), frame(kind::HEADERS, &section(&[("x", "y")]))]
            .concat(),
        [frame(kind::HEADERS, &section(&[(":status", "103")])), frame(kind::HEADERS, &reply), frame(0x21, b"grease")]
            .concat(),
        [control::start(70_000), control::goaway(8), control::goaway(4)].concat(),
        b"\x02\x20\x20".to_vec(),
        b"\x03\x44\x7f\x81\x01".to_vec(),
        request,
        // As other programs send it, with Huffman coding.
        b"\x00\x00\x51\x88\x60\xd5\x48\x5f\x2b\xce\x9a\x68\x2f\x01\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf"
            .to_vec(),
    ]
}

#[test]
fn mutated_streams_never_panic() {
    let (seeds, mut random) = (seeds(), Random(0x9e37_79b9_7f4a_7c15));
    for _ in 0..EXECUTIONS {
        let mut data = Mutator::default().mutate(&seeds, &mut random);
        data.insert(0, random.byte());
        targets::syntax(&data);
    }
}

proptest! {
    #[test]
    fn any_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
        targets::syntax(&data);
    }
}
