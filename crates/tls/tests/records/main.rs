//! Malformed records, by chance here and with coverage in `fuzz/`.

#![cfg(feature = "rustls")]

mod targets;

use proptest::prelude::*;

/// The start of a real session: the first flight of a client.
fn client_hello() -> Vec<u8> {
    use std::sync::Arc;

    use polygraph_link::Link;
    use polygraph_sim::VirtualLink;
    use polygraph_tls::client::ClientConfigs;
    use polygraph_tls::handshake::TlsPeer;
    use polygraph_tls::settings::ClientTls;
    use polygraph_traffic::Seed;

    let link = VirtualLink::new(0);
    let (ours, mut theirs) = link.pair();
    let mut rng = Seed(1).stream("test", 1);
    let settings = Arc::new(ClientTls::default());
    let mut robot = ClientConfigs::default().robot(0, &settings, 0, &mut rng).unwrap();
    let peer = ("10.0.0.1:443".parse().unwrap(), None);
    let wanted = TlsPeer { peer, name: "a.test", resume: true, protocol: None };
    let mut conn = robot.connect(&link, ours, &wanted).unwrap();
    link.spawn(async move { drop(conn.handshake().await) });
    link.run(polygraph_link::SECOND);
    theirs.take_arrived()
}

#[test]
fn mutated_flights_never_panic() {
    let flight = client_hello();
    assert!(flight.len() > 100 && flight[0] == 0x16, "{flight:?}");
    let config = ProptestConfig { cases: 400, ..ProptestConfig::default() };
    let changes = prop::collection::vec((0..flight.len(), any::<u8>()), 0..6);
    proptest!(config, |(cut in any::<u8>(), changes in changes, end in 0..=flight.len(), more in prop::collection::vec(any::<u8>(), 0..80))| {
        let mut data = vec![cut];
        data.extend_from_slice(&flight[..end]);
        for (at, byte) in changes {
            if let Some(place) = data.get_mut(at + 1) {
                *place = byte;
            }
        }
        data.extend(more);
        targets::records(&data);
    });
}
