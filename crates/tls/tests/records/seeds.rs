//! Flights of real sessions, and mutations of them.

use std::sync::Arc;

use polygraph_link::{Link, SECOND};
use polygraph_sim::VirtualLink;
use polygraph_testing::mutation::{Mutator, Random};
use polygraph_tls::client::ClientConfigs;
use polygraph_tls::handshake::TlsPeer;
use polygraph_tls::names::Version;
use polygraph_tls::settings::{ClientTls, TlsOffer};
use polygraph_traffic::{Seed, Selector};

use crate::targets;

/// The first flight of a client that allows these versions only.
fn client_hello(versions: &[Version]) -> Vec<u8> {
    let link = VirtualLink::new(0);
    let (ours, mut theirs) = link.pair();
    let mut rng = Seed(1).stream("test", 1);
    let offer = TlsOffer { versions: Selector::only(versions.to_vec()), ..TlsOffer::default() };
    let settings = Arc::new(ClientTls { offer, ..ClientTls::default() });
    let mut robot = ClientConfigs::default().robot(0, &settings, 0, &mut rng).expect("usable settings");
    let peer = ("10.0.0.1:443".parse().expect("an address"), None);
    let wanted = TlsPeer { peer, name: "a.test", resume: true, protocol: None };
    let mut conn = robot.connect(&link, ours, &wanted).expect("a name");
    link.spawn(async move { drop(conn.handshake().await) });
    link.run(SECOND);
    theirs.take_arrived()
}

/// What a server answers to a flight.
fn answer_to(flight: &[u8]) -> Vec<u8> {
    let link = VirtualLink::new(0);
    let (mut ours, at_server) = link.pair();
    let mut conn = targets::server(&link, at_server);
    link.spawn(async move { drop(conn.handshake().await) });
    ours.send_at(link.now(), flight.to_vec());
    link.run(SECOND);
    ours.take_arrived()
}

/// Valid flights of both sides, in both versions, and records of every type.
pub fn seeds() -> Vec<Vec<u8>> {
    let hello = client_hello(&[Version::Tls12, Version::Tls13]);
    let older = client_hello(&[Version::Tls12]);
    let (answer, older_answer) = (answer_to(&hello), answer_to(&older));
    let alert = b"\x15\x03\x03\x00\x02\x02\x28".to_vec();
    let change = b"\x14\x03\x03\x00\x01\x01".to_vec();
    let data = b"\x17\x03\x03\x00\x20abcdefghijklmnopqrstuvwxyz012345".to_vec();
    let retry = [
        b"\x16\x03\x03\x00\x36\x02\x00\x00\x32\x03\x03".as_slice(),
        // The random bytes of a HelloRetryRequest (RFC 8446, section 4.1.3).
        b"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c",
        b"\x00\x13\x01\x00\x00\x0a\x00\x2b\x00\x02\x03\x04\x00\x33\x00\x02\x00\x17",
    ]
    .concat();
    let both = [hello.clone(), change.clone(), data.clone()].concat();
    vec![hello, older, answer, older_answer, alert, change, data, retry, both]
}

/// A seed with a few changes, behind the byte that says how it is cut.
pub fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    // Sizes and types are at the start.
    let mut data = Mutator { head: 12, ..Mutator::default() }.mutate(seeds, random);
    // Mostly in one piece.
    let cut = if random.below(4) == 0 { random.byte() } else { 255 };
    data.insert(0, cut);
    data
}
