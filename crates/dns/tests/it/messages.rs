//! Replies as the resolver reads them, and as the server writes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::{Message, MessageBuilder, Name, Ttl};
use domain::rdata::{A, Aaaa, Cname};
use polygraph_dns::reply::{DnsOutcome, DnsReply, Transport, reply};
use polygraph_dns::{DnsError, DomainName, Query, QueryType, Zone};
use proptest::prelude::*;

type Names = Name<Vec<u8>>;

fn name(text: &str) -> Names {
    text.parse().unwrap()
}

fn query(kind: QueryType) -> Query {
    Query::new(7, DomainName::parse("w1.bench.tst").unwrap(), kind)
}

/// A reply to [`query`] with these records, `owner TYPE data` each.
fn answer(kind: Rtype, rcode: Rcode, records: &[&str]) -> Vec<u8> {
    let mut message = MessageBuilder::new_vec();
    message.header_mut().set_id(7);
    message.header_mut().set_qr(true);
    message.header_mut().set_rcode(rcode);
    let mut question = message.question();
    question.push((name("W1.Bench.tst"), kind)).unwrap();
    let mut answer = question.answer();
    for record in records {
        let [owner, kind, data] = record.split(' ').collect::<Vec<_>>()[..] else { panic!("{record}") };
        let (owner, ttl) = (name(owner), Ttl::from_secs(60));
        match kind {
            "A" => answer.push((owner, ttl, A::new(data.parse().unwrap()))),
            "AAAA" => answer.push((owner, ttl, Aaaa::new(data.parse().unwrap()))),
            "CNAME" => answer.push((owner, ttl, Cname::new(name(data)))),
            "CH" => answer.push((owner, Class::CH, ttl, A::new(data.parse().unwrap()))),
            _ => panic!("{record}"),
        }
        .unwrap();
    }
    answer.finish()
}

#[test]
fn a_query_is_as_the_standard_says() {
    let expected = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x02w1\x05bench\x03tst\0\0\x1c\0\x01";
    assert_eq!(query(QueryType::Aaaa).message(), expected);
}

#[test]
fn answers_are_read() {
    #[track_caller]
    fn check(kind: QueryType, records: &[&str], expected: Result<&[&str], DnsError>) {
        let rtype = if kind == QueryType::A { Rtype::A } else { Rtype::AAAA };
        let found = query(kind).read(&answer(rtype, Rcode::NOERROR, records));
        let expected = expected.map(|texts| texts.iter().map(|ip| ip.parse::<IpAddr>().unwrap()).collect());
        assert_eq!(found, expected, "{records:?}");
    }
    use QueryType::{A, Aaaa};
    check(A, &["w1.bench.tst A 10.0.0.1"], Ok(&["10.0.0.1"]));
    check(A, &["W1.BENCH.TST A 10.0.0.2", "w1.bench.tst A 10.0.0.1"], Ok(&["10.0.0.2", "10.0.0.1"]));
    check(Aaaa, &["w1.bench.tst AAAA ::1"], Ok(&["::1"]));
    check(Aaaa, &["w1.bench.tst A 10.0.0.1"], Err(DnsError::NoName));
    check(A, &[], Err(DnsError::NoName));
    check(A, &["w2.bench.tst A 10.0.0.1"], Err(DnsError::NoName));
    check(A, &["w1.bench.tst CH 10.0.0.1"], Err(DnsError::NoName));
    // Aliases, in the usual order and in another one.
    check(A, &["w1.bench.tst CNAME x.y", "x.y CNAME z", "z A 10.0.0.1"], Ok(&["10.0.0.1"]));
    check(A, &["Z A 10.0.0.1", "x.y CNAME z", "w1.bench.tst CNAME X.Y"], Ok(&["10.0.0.1"]));
    check(A, &["w1.bench.tst CNAME x.y"], Err(DnsError::NoName));
    check(A, &["w1.bench.tst CNAME x.y", "x.y CNAME w1.bench.tst"], Err(DnsError::Format));
    check(A, &["w1.bench.tst CNAME w1.bench.tst"], Err(DnsError::Format));
}

#[test]
fn response_codes_are_classes() {
    let cases = [
        (Rcode::FORMERR, DnsError::QueryFormat),
        (Rcode::SERVFAIL, DnsError::ServerFailure),
        (Rcode::NXDOMAIN, DnsError::NoName),
        (Rcode::NOTIMP, DnsError::NotSupported),
        (Rcode::REFUSED, DnsError::Refused),
        (Rcode::YXDOMAIN, DnsError::Other(6)),
        (Rcode::NOTZONE, DnsError::Other(10)),
    ];
    for (rcode, error) in cases {
        let reply = answer(Rtype::A, rcode, &["w1.bench.tst A 10.0.0.1"]);
        assert_eq!(query(QueryType::A).read(&reply), Err(error));
        // Some servers do not repeat a question that they do not like.
        let bare = [&reply[..4], &[0; 8]].concat();
        assert_eq!(query(QueryType::A).read(&bare), Err(error));
    }
}

#[test]
fn what_is_no_reply_to_the_question() {
    let query = query(QueryType::A);
    let good = answer(Rtype::A, Rcode::NOERROR, &["w1.bench.tst A 10.0.0.1"]);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        query.read(&bytes)
    };
    assert!(query.read(&good).is_ok());
    assert_eq!(changed(1, 8), Err(DnsError::Id));
    assert_eq!(query.read(b""), Err(DnsError::Id));
    assert_eq!(query.read(b"\0"), Err(DnsError::Id));
    assert_eq!(query.read(&query.message()), Err(DnsError::Mismatch), "our own query");
    assert_eq!(changed(13, b'v'), Err(DnsError::Mismatch), "another name");
    assert_eq!(changed(12 + 15, 28), Err(DnsError::Mismatch), "another type");
    assert_eq!(changed(12 + 17, 3), Err(DnsError::Mismatch), "another class");
    assert_eq!(changed(2, 0x90), Err(DnsError::Mismatch), "another operation");
    assert_eq!(query.read(&good[..11]), Err(DnsError::Format));
    assert_eq!(query.read(&good[..good.len() - 1]), Err(DnsError::Format));
    assert_eq!(changed(5, 0), Err(DnsError::Format), "no question");
    assert_eq!(changed(7, 2), Err(DnsError::Format), "more records than there are");
    // A name that points at itself.
    let mut looped = good.clone();
    looped.splice(30.., [0xc0, 30, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4]);
    assert_eq!(query.read(&looped), Err(DnsError::Format));
}

#[test]
fn truncated_replies_are_used_if_they_have_an_address() {
    let mut reply = answer(Rtype::A, Rcode::NOERROR, &["w1.bench.tst A 10.0.0.1"]);
    reply[2] |= 2;
    assert_eq!(query(QueryType::A).read(&reply), Ok(vec![IpAddr::from([10, 0, 0, 1])]));
    let mut reply = answer(Rtype::A, Rcode::NOERROR, &[]);
    reply[2] |= 2;
    assert_eq!(query(QueryType::A).read(&reply), Err(DnsError::Format));
}

fn zone() -> Zone {
    let mut zone = Zone::default();
    zone.add_zone("bench.tst").unwrap();
    zone.add("w1.bench.tst", &[[10, 0, 0, 1].into(), Ipv6Addr::LOCALHOST.into()]).unwrap();
    zone.add("*.dyn.bench.tst", &[[10, 0, 0, 2].into()]).unwrap();
    let many: Vec<IpAddr> = (0..700u16).map(|i| [10, 1, (i >> 8) as u8, i as u8].into()).collect();
    zone.add("many.bench.tst", &many).unwrap();
    zone
}

/// A request with recursion desired, and with EDNS if a payload size is given.
fn request(owner: &str, rtype: Rtype, class: Class, payload: Option<u16>) -> Vec<u8> {
    let mut message = MessageBuilder::new_vec();
    message.header_mut().set_id(0x1234);
    message.header_mut().set_rd(true);
    let mut question = message.question();
    question.push((name(owner), rtype, class)).unwrap();
    let mut end = question.additional();
    if let Some(size) = payload {
        end.opt(|opt| {
            opt.set_udp_payload_size(size);
            Ok(())
        })
        .unwrap();
    }
    end.finish()
}

fn udp(request: &[u8]) -> DnsReply {
    reply(&zone(), 60, request, Transport::Udp).unwrap()
}

#[test]
fn the_server_answers() {
    #[track_caller]
    fn check(owner: &str, rtype: Rtype, rcode: Rcode, records: u16, authority: u16, outcome: DnsOutcome) {
        let done = udp(&request(owner, rtype, Class::IN, None));
        let message = Message::from_octets(done.message).unwrap();
        let (header, counts) = (message.header(), message.header_counts());
        assert_eq!(
            (header.rcode(), counts.ancount(), counts.nscount(), done.outcome),
            (rcode, records, authority, outcome),
            "{owner} {rtype}"
        );
        assert_eq!((header.id(), header.qr(), header.rd(), header.ra()), (0x1234, true, true, false));
        assert_eq!(header.aa(), outcome != DnsOutcome::Refused, "{owner} {rtype}");
        let question = message.sole_question().unwrap();
        assert_eq!(question.qname().to_string(), owner, "case included");
    }
    use DnsOutcome::*;
    check("w1.bench.tst", Rtype::A, Rcode::NOERROR, 1, 0, Answered);
    check("W1.bENCH.tst", Rtype::AAAA, Rcode::NOERROR, 1, 0, Answered);
    check("w1.bench.tst", Rtype::ANY, Rcode::NOERROR, 2, 0, Answered);
    check("w1.bench.tst", Rtype::MX, Rcode::NOERROR, 0, 1, NoData);
    check("w7.dyn.bench.tst", Rtype::A, Rcode::NOERROR, 1, 0, Answered);
    check("w7.dyn.bench.tst", Rtype::AAAA, Rcode::NOERROR, 0, 1, NoData);
    check("bench.tst", Rtype::SOA, Rcode::NOERROR, 1, 0, Answered);
    check("bench.tst", Rtype::A, Rcode::NOERROR, 0, 1, NoData);
    check("w2.bench.tst", Rtype::A, Rcode::NXDOMAIN, 0, 1, NoName);
    check("w2.bench.tst", Rtype::ANY, Rcode::NXDOMAIN, 0, 1, NoName);
    check("example.com", Rtype::A, Rcode::REFUSED, 0, 0, Refused);
    check("bench.tst", Rtype::AXFR, Rcode::REFUSED, 0, 0, Refused);
}

#[test]
fn what_is_not_answered_with_records() {
    let good = request("w1.bench.tst", Rtype::A, Class::IN, None);
    let rcode = |reply: &DnsReply| Message::from_octets(&*reply.message).unwrap().header().rcode();
    #[track_caller]
    fn check(reply: DnsReply, rcode: Rcode, expected: (Rcode, DnsOutcome)) {
        assert_eq!((rcode, reply.outcome), expected);
    }
    let chaos = udp(&request("w1.bench.tst", Rtype::A, Class::CH, None));
    check(chaos.clone(), rcode(&chaos), (Rcode::REFUSED, DnsOutcome::Refused));
    let mut update = good.clone();
    update[2] = 5 << 3;
    let update = udp(&update);
    check(update.clone(), rcode(&update), (Rcode::NOTIMP, DnsOutcome::NotImplemented));
    let mut none = good[..12].to_vec();
    none[5] = 0;
    for broken in
        [none, good[..12].to_vec(), good[..good.len() - 1].to_vec(), [&good[..7], &[9], &good[8..]].concat()]
    {
        let broken = udp(&broken);
        check(broken.clone(), rcode(&broken), (Rcode::FORMERR, DnsOutcome::BadFormat));
        assert_eq!(broken.message.len(), 12);
    }
    let mut back = good.clone();
    back[2] |= 0x80;
    assert_eq!(reply(&zone(), 60, &back, Transport::Udp), None, "a reply gets none");
    assert_eq!(reply(&zone(), 60, &good[..11], Transport::Udp), None);
}

#[test]
fn replies_keep_to_the_size_that_the_client_takes() {
    #[track_caller]
    fn check(payload: Option<u16>, transport: Transport, limit: usize, records: u16, truncated: bool) {
        let request = request("many.bench.tst", Rtype::A, Class::IN, payload);
        let done = reply(&zone(), 60, &request, transport).unwrap();
        let message = Message::from_octets(&*done.message).unwrap();
        assert!(done.message.len() <= limit, "{} octets", done.message.len());
        // Not one more would have had room.
        assert!(!truncated || done.message.len() + 16 > limit, "{} octets", done.message.len());
        assert_eq!((message.header_counts().ancount(), done.truncated), (records, truncated));
        assert_eq!(message.header().tc(), truncated);
        assert_eq!(message.opt().is_some(), payload.is_some());
    }
    use Transport::{Tcp, Udp};
    check(None, Udp, 512, 30, true);
    check(Some(0), Udp, 512, 29, true);
    check(Some(1000), Udp, 1000, 59, true);
    check(Some(65_535), Udp, 1232, 74, true);
    check(None, Tcp, 65_535, 700, false);
    check(Some(512), Tcp, 65_535, 700, false);
}

#[test]
fn an_unknown_version_of_edns_is_told_so() {
    let mut later = request("w1.bench.tst", Rtype::A, Class::IN, Some(1232));
    let version = later.len() - 5;
    later[version] = 1;
    let done = udp(&later);
    let message = Message::from_octets(&*done.message).unwrap();
    assert_eq!((message.opt_rcode().to_int(), message.header_counts().ancount()), (16, 0));
    assert_eq!(done.outcome, DnsOutcome::NotImplemented);
    // Two OPT records are one too many.
    let mut twice = request("w1.bench.tst", Rtype::A, Class::IN, Some(1232));
    let opt = twice[twice.len() - 11..].to_vec();
    twice.extend(opt);
    twice[11] = 2;
    assert_eq!(udp(&twice).outcome, DnsOutcome::BadFormat);
}

fn label() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_-]{1,12}"
}

proptest! {
    /// Whatever is in the tables is found by a query, in any case of letters, and nothing else.
    #[test]
    fn what_the_server_says_the_resolver_reads(
        labels in prop::collection::vec(label(), 1..6),
        v4 in prop::collection::vec(any::<u32>().prop_map(Ipv4Addr::from), 0..20),
        v6 in prop::collection::vec(any::<u128>().prop_map(Ipv6Addr::from), 0..10),
        id: u16,
        upper: bool,
    ) {
        let text = labels.join(".");
        let mut zone = Zone::default();
        let all: Vec<IpAddr> =
            v4.iter().copied().map(IpAddr::from).chain(v6.iter().copied().map(IpAddr::from)).collect();
        zone.add(&text, &all).unwrap();
        let asked = if upper { text.to_ascii_uppercase() } else { text.to_ascii_lowercase() };
        for kind in [QueryType::A, QueryType::Aaaa] {
            let query = Query::new(id, DomainName::parse(&asked).unwrap(), kind);
            let done = reply(&zone, 60, &query.message(), Transport::Udp).unwrap();
            let mut expected: Vec<IpAddr> =
                all.iter().copied().filter(|ip| ip.is_ipv4() == (kind == QueryType::A)).collect();
            expected.sort();
            expected.dedup();
            match query.read(&done.message) {
                Ok(mut found) => {
                    found.sort();
                    prop_assert_eq!(found, expected);
                }
                Err(error) => {
                    prop_assert_eq!(error, DnsError::NoName);
                    prop_assert_eq!(expected.len(), 0);
                }
            }
        }
        // A name with one more label is not in the tables.
        let below = Query::new(id, DomainName::parse(&format!("x.{text}")).unwrap(), QueryType::A);
        let done = reply(&zone, 60, &below.message(), Transport::Udp).unwrap();
        prop_assert_eq!(below.read(&done.message), Err(DnsError::NoName));
    }

    /// A changed byte never gives other addresses than a wrong id, question or record would.
    #[test]
    fn a_reply_with_a_changed_byte_is_read_or_refused(at in 0usize..46, to: u8) {
        let mut bytes = answer(Rtype::A, Rcode::NOERROR, &["w1.bench.tst A 10.0.0.1"]);
        prop_assume!(at < bytes.len() && bytes[at] != to);
        bytes[at] = to;
        if query(QueryType::A).read(&bytes).is_ok() {
            // Flags that do not matter, upper case, counts of sections that are not read, ttl, the address.
            let letter = |i: usize| matches!(i, 13 | 14 | 16..=20 | 22..=24 | 31 | 32 | 34..=38 | 40..=42);
            prop_assert!(matches!(at, 2 | 3 | 8..=11) || letter(at) || at >= 30 + 18, "byte {} to {}", at, to);
        }
    }
}
