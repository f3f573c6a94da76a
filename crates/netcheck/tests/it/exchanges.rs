//! Exchanges between both sides of a check over loopback addresses.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use polygraph_netcheck::Error;
use polygraph_netcheck::clock::{self, ClockPlan, ClockServer};
use polygraph_netcheck::throughput::client::{find_server, measure};
use polygraph_netcheck::throughput::{Direction, ThroughputServer, ThroughputTest};

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

fn test(server: SocketAddr, direction: Direction) -> ThroughputTest {
    ThroughputTest {
        server,
        sources: vec![[127, 0, 0, 2].into(), [127, 0, 0, 3].into()],
        streams: 3,
        duration: Duration::from_millis(200),
        direction,
        patience: Duration::from_secs(5),
    }
}

#[test]
fn both_sides_count_what_the_other_one_sent() {
    let server = ThroughputServer::start(LOCAL.into()).unwrap();
    for direction in [Direction::Both, Direction::Send, Direction::Receive] {
        let found = measure(&test(server.address(), direction)).unwrap();
        let count = |is_there: bool| if is_there { 3 } else { 0 };
        assert_eq!(found.client.sent.len(), count(direction.client_sends()));
        assert_eq!(found.server.sent.len(), count(direction.server_sends()));
        let ways =
            [(&found.client.sent, &found.server.received), (&found.server.sent, &found.client.received)];
        for (sent, received) in ways {
            assert_eq!(sent.len(), received.len());
            for (sent, received) in sent.iter().zip(received) {
                assert_eq!(sent.bytes, received.bytes);
                assert!(sent.bytes > 0 && received.complete && sent.segment > 0, "{sent:?} {received:?}");
            }
        }
        assert_eq!(
            (found.sent_rate().is_some(), found.received_rate().is_some()),
            (direction.client_sends(), direction.server_sends())
        );
        assert_eq!(found.broken(), 0);
        let sources: Vec<String> = found.ends.iter().map(|(from, _)| from.ip().to_string()).collect();
        assert_eq!(sources, ["127.0.0.2", "127.0.0.3", "127.0.0.2"]);
    }
    assert_eq!(server.finished(), 3);
}

#[test]
fn other_servers_and_wrong_requests_are_named() {
    let other = TcpListener::bind(SocketAddr::from(LOCAL)).unwrap();
    let address = other.local_addr().unwrap();
    let mut test = ThroughputTest { patience: Duration::from_millis(200), ..test(address, Direction::Both) };
    let text = |test: &ThroughputTest| measure(test).unwrap_err().to_string();
    assert!(text(&test).contains("is not a server of throughput tests"));
    assert_eq!(find_server(address, Duration::from_millis(200)), Some(false));
    drop(other);
    assert_eq!(find_server(address, Duration::from_millis(200)), None);
    assert!(text(&test).contains("does not accept a connection"));
    let server = ThroughputServer::start(LOCAL.into()).unwrap();
    (test.server, test.streams) = (server.address(), 1000);
    test.patience = Duration::from_secs(5);
    assert_eq!(find_server(test.server, test.patience), Some(true));
    assert!(text(&test).contains("1000 streams were asked for"), "{}", text(&test));
    test.sources = vec![[192, 0, 2, 77].into()];
    assert!(matches!(measure(&test), Err(Error::Host { .. })));
}

#[test]
fn the_own_clock_has_no_offset() {
    let server = ClockServer::start(LOCAL.into()).unwrap();
    let plan = ClockPlan {
        server: server.address(),
        count: 5,
        interval: Duration::from_millis(5),
        timeout: Duration::from_secs(5),
    };
    let found = clock::measure(&plan).unwrap();
    assert_eq!(found.exchanges, (5, 5));
    assert!(found.offset_s.abs() <= found.error_s + 1e-6, "{found:?}");
    // The server counts an answer when it is on its way, which may be when it has arrived already.
    for _ in 0..1000 {
        if server.answered() == 5 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} answers", server.answered());
}
