//! Seeded mutation of messages of the kernel, for fuzzing without coverage.

use std::path::Path;

use polygraph_impair::nfqueue::message::{Message, Messages};
use polygraph_impair::status::missed_packets;
use polygraph_testing::mutation::{Mutator, Random, files};

/// Takes any bytes for everything that bytes of the kernel are taken for. Nothing may panic or go on for ever. True if
/// the bytes contain a packet.
pub fn run(data: &[u8]) -> bool {
    let mut packets = 0;
    for (number, message) in Messages::new(data).enumerate() {
        assert!(number <= data.len() / 16, "each message takes its header");
        if let Ok(Message::Packet(packet)) = message {
            packets += 1;
            assert!(packet.length as usize >= packet.payload.len());
            assert!(is_inside(packet.payload, data), "what is copied is in the message");
        }
    }
    // The table of queues is text of the kernel.
    missed_packets(&String::from_utf8_lossy(data), &[0, 7400]);
    packets > 0
}

fn is_inside(part: &[u8], whole: &[u8]) -> bool {
    part.is_empty() || {
        let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
        whole.start <= part.start && part.end <= whole.end
    }
}

/// The messages that mutation starts from.
pub fn corpus() -> Vec<Vec<u8>> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/nfqueue"))
}

/// Headers of attributes, lengths at the limits, and rows of the table of queues.
const PIECES: &[&[u8]] = &[
    b"\x0b\0\x01\0\0\0\0\x07\x08\0\x03\0",
    b"\x08\0\x0d\0\0\0\x05\xdc",
    b"\x08\0\x0d\0\xff\xff\xff\xff",
    b"\x04\0\x0a\0",
    b"\xff\xff\x0a\0",
    b"\0\0\x01\0",
    b"\x03\0\x01\0",
    b"\x10\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0",
    b"\x24\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80",
    b"\x14\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\x02\0\x1c\xe8",
    b"\xff\xff\xff\xff",
    b"\n 7400 1 2 3 4 18446744073709551615 1 2 1\n",
];

/// Another message made from those of the corpus.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    Mutator { pieces: PIECES, head: 28, ..Mutator::default() }.mutate(corpus, random)
}
