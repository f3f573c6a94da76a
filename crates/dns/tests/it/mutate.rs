//! Seeded mutation of messages, for fuzzing without coverage: by tests briefly, by the example `fuzz_dns` at length.

use std::net::IpAddr;
use std::path::Path;

use polygraph_dns::reply::{DnsOutcome, LARGEST_DATAGRAM, STREAM_LIMIT, Transport, reply};
use polygraph_dns::{DnsError, DomainName, Query, QueryType, Zone};
use polygraph_testing::mutation::{Mutator, Random, files};

/// The tables and the question that all messages meet; the messages of the corpus are about them.
pub struct Subject {
    zone: Zone,
    queries: [Query; 2],
}

impl Subject {
    pub fn new() -> Subject {
        let mut zone = Zone::default();
        let mut add = |name: &str, count: u8| {
            let v4 = (0..count).map(|i| IpAddr::from([10, 0, 0, i]));
            let v6 = (0..count.div_ceil(2)).map(|i| IpAddr::from([0, 0, 0, 0, 0, 0, 0, u16::from(i)]));
            zone.add(name, &v4.chain(v6).collect::<Vec<_>>()).expect("a name");
        };
        add("w1.bench.tst", 1);
        add("many.bench.tst", 120);
        add("*.dyn.bench.tst", 3);
        add("alone.example", 2);
        zone.add_zone("bench.tst").expect("a zone");
        let name = DomainName::parse("w1.bench.tst").expect("a name");
        let query = |kind| Query::new(0x1234, name.clone(), kind);
        Subject { zone, queries: [query(QueryType::A), query(QueryType::Aaaa)] }
    }

    /// Takes any bytes for everything that foreign bytes are taken for. Nothing may panic or take long. True if the
    /// bytes were good enough to give addresses or to be given some.
    pub fn run(&self, data: &[u8]) -> bool {
        let mut deep = false;
        for query in &self.queries {
            match query.read(data) {
                Ok(addresses) => {
                    assert!(!addresses.is_empty());
                    deep = true;
                }
                Err(DnsError::AllFailed | DnsError::Timeout) => panic!("nothing that a message could say"),
                Err(_) => {}
            }
        }
        for (transport, limit) in [(Transport::Udp, LARGEST_DATAGRAM), (Transport::Tcp, STREAM_LIMIT)] {
            let Some(reply) = reply(&self.zone, 60, data, transport) else {
                assert!(data.len() < 12 || data[2] & 0x80 != 0, "a request gets a reply");
                continue;
            };
            let message = &reply.message;
            assert!((12..=limit).contains(&message.len()));
            assert_eq!((&message[..2], message[2] & 0x80), (&data[..2], 0x80), "a reply to this request");
            deep |= reply.outcome == DnsOutcome::Answered;
            // What we write others can read, down to the last octet.
            let parsed = domain::base::Message::from_slice(message).expect("a message");
            let count =
                parsed.iter().inspect(|record| assert!(record.is_ok(), "a record that can be read")).count();
            let counts = parsed.header_counts();
            assert_eq!(count, usize::from(counts.ancount() + counts.nscount() + counts.arcount()));
        }
        if let Ok(text) = std::str::from_utf8(data)
            && let Ok(name) = DomainName::parse(text)
        {
            assert_eq!(DomainName::parse(&name.to_string()).as_ref(), Ok(&name), "what is shown can be read");
        }
        deep
    }
}

/// The messages that mutation starts from.
pub fn corpus() -> Vec<Vec<u8>> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/dns"))
}

/// Octets that mean something in a message.
const PIECES: &[&[u8]] = &[
    b"\xc0\x0c",
    b"\xc0\x00",
    b"\xff\xff",
    b"\0",
    b"\0\x01\0\x01",
    b"\0\x1c\0\x01",
    b"\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c",
    b"\0\x06\0\x01",
    b"\0\xff\0\xff",
    b"\0\xfc\0\x01",
    b"\0\0\x29\x04\xd0\0\0\0\0\0\0",
    b"\0\0\x29\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x02w1\x05bench\x03tst\0",
    b"\x02W1\x05BENCH\x03TST\0",
    b"\x04many\xc0\x0f",
    b"\x01x\x03dyn\x05bench\x03tst\0",
    b"\x05alone\x07example\0",
    b"\x3fmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm",
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0",
    b"\x12\x34\x84\0\0\x01\0\x01\0\0\0\0",
    b"\0\0\0\x3c\0\x04\x0a\0\0\x01",
    b"\0\0\0\x3c\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
    b"w1.bench.tst",
    b"\\255\\.",
    b".",
];

/// Another message made from those of the corpus.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    Mutator { pieces: PIECES, head: 12, ..Mutator::default() }.mutate(corpus, random)
}
