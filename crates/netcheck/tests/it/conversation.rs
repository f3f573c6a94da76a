//! The connection that ends in TIME_WAIT at the device, segment by segment.

use std::time::Duration;

use polygraph_netcheck::packet::{TcpFlags, TcpSegment};
use polygraph_netcheck::time_wait::{ConnectionEvent, CraftedConnection, ProbeAnswer};

const SYN_ACK: TcpFlags = TcpFlags::SYN;
const FIRST: u32 = u32::MAX - 3;
const DEVICE: u32 = u32::MAX - 1;

fn from_device(flags: TcpFlags, sequence: u32, acknowledgement: u32, payload: &[u8]) -> TcpSegment {
    TcpSegment {
        source_port: 80,
        destination_port: 40_000,
        sequence,
        acknowledgement,
        flags: flags | TcpFlags::ACK,
        window: 1000,
        max_segment: None,
        payload: payload.to_vec(),
    }
}

fn fresh() -> CraftedConnection {
    CraftedConnection::new((40_000, 80), FIRST, b"GET".to_vec())
}

/// A connection whose request was acknowledged.
fn open() -> CraftedConnection {
    let mut connection = fresh();
    let (sent, progress) = connection.receive(&from_device(SYN_ACK, DEVICE, FIRST.wrapping_add(1), b""));
    assert_eq!(progress, Some(ConnectionEvent::Connected));
    let [request] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(
        (&request.payload[..], request.sequence, request.acknowledgement),
        (&b"GET"[..], FIRST + 1, u32::MAX)
    );
    connection
}

#[test]
fn the_device_closes_first() {
    let mut connection = fresh();
    assert_eq!(connection.unacknowledged(), [connection.syn()]);
    assert_eq!(connection.syn().acknowledgement, 0);
    connection = open();
    // The reply in two parts, the second one twice and with a FIN; numbers run over.
    let acknowledged = FIRST.wrapping_add(4);
    let (sent, progress) = connection.receive(&from_device(TcpFlags::PSH, u32::MAX, acknowledged, b"ab"));
    assert_eq!((sent[0].acknowledgement, sent[0].sequence, progress), (1, acknowledged, None));
    assert!(connection.unacknowledged().is_empty());
    // A part that comes too early is not taken.
    let (sent, _) = connection.receive(&from_device(TcpFlags::FIN, 3, acknowledged, b"z"));
    assert_eq!((sent[0].acknowledgement, sent[0].flags), (1, TcpFlags::ACK));
    let last = from_device(TcpFlags::FIN, 0, acknowledged, b"bcd");
    let (sent, progress) = connection.receive(&last);
    assert_eq!((sent.len(), progress), (1, None));
    assert_eq!((sent[0].acknowledgement, sent[0].flags), (4, TcpFlags::FIN | TcpFlags::ACK));
    assert_eq!(connection.unacknowledged(), sent, "until it is acknowledged");
    assert_eq!(connection.receive(&last).0, sent);
    let end = from_device(TcpFlags::ACK, 4, acknowledged.wrapping_add(1), b"");
    assert_eq!(connection.receive(&end), (Vec::new(), Some(ConnectionEvent::Closed)));
    assert!(connection.unacknowledged().is_empty());

    // In TIME_WAIT: acknowledgements, a late copy of the first answer, a reset, and at last a new connection.
    assert_eq!(connection.answer_to_probe(&end), Some(ProbeAnswer::Acknowledged));
    let late = from_device(SYN_ACK, DEVICE, FIRST.wrapping_add(1), b"");
    assert_eq!(connection.answer_to_probe(&late), None);
    assert_eq!(connection.answer_to_probe(&from_device(TcpFlags::RST, 0, 0, b"")), Some(ProbeAnswer::Reset));
    let new = from_device(SYN_ACK, 77, FIRST.wrapping_add(1), b"");
    let Some(ProbeAnswer::Accepted(reset)) = connection.answer_to_probe(&new) else { panic!() };
    assert_eq!((reset.flags, reset.sequence), (TcpFlags::RST, FIRST.wrapping_add(1)));
    let other = TcpSegment { destination_port: 40_001, ..new };
    assert_eq!(connection.answer_to_probe(&other), None);
}

#[test]
fn devices_refuse_reset_and_fall_silent() {
    let device = "10.0.0.1:80".parse().unwrap();
    let complaint = |connection: &CraftedConnection| connection.complaint(device, Duration::from_secs(15));
    let mut connection = fresh();
    assert!(complaint(&connection).contains("does not answer"));
    // A reset that does not belong to this SYN.
    assert_eq!(connection.receive(&from_device(TcpFlags::RST, 0, FIRST, b"")), (Vec::new(), None));
    let refusal = from_device(TcpFlags::RST, 0, FIRST.wrapping_add(1), b"");
    assert_eq!(connection.receive(&refusal).1, Some(ConnectionEvent::Refused));

    let mut connection = open();
    assert!(complaint(&connection).contains("does not close the connection within 15 s"));
    assert_eq!(connection.unacknowledged().len(), 1, "the request is repeated");
    assert_eq!(connection.receive(&from_device(TcpFlags::RST, 7, 0, b"")).1, None, "a foreign reset");
    assert_eq!(
        connection.receive(&from_device(TcpFlags::RST, u32::MAX, 0, b"")).1,
        Some(ConnectionEvent::Reset)
    );

    // The device closes before it has taken the request: both are repeated.
    let mut connection = open();
    let (sent, _) = connection.receive(&from_device(TcpFlags::FIN, u32::MAX, FIRST.wrapping_add(1), b""));
    let flags: Vec<TcpFlags> = sent.iter().map(|segment| segment.flags).collect();
    assert_eq!(flags, [TcpFlags::PSH | TcpFlags::ACK, TcpFlags::FIN | TcpFlags::ACK]);
    assert!(complaint(&connection).contains("did not acknowledge"));
    // What acknowledges more than was sent is not from the device.
    let wrong = from_device(TcpFlags::ACK, 0, FIRST.wrapping_add(9), b"");
    assert_eq!(connection.receive(&wrong), (Vec::new(), None));
}
