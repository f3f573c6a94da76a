//! A dispatcher on loopback.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use polygraph_live::Dispatcher;
use polygraph_live::notification::{FORWARDED_BYTES, ForwardedNotification};

use crate::mutate;

/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn start() -> SocketAddr {
    let dispatcher = Dispatcher::bind(Ipv4Addr::LOCALHOST, 0).unwrap();
    let address = dispatcher.address().unwrap();
    // It ends with the test program.
    std::thread::spawn(move || dispatcher.run());
    address
}

fn next(stream: &mut TcpStream) -> ForwardedNotification {
    let mut bytes = [0; FORWARDED_BYTES];
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut bytes).unwrap();
    ForwardedNotification::decode(&bytes).unwrap()
}

/// Repeats datagrams until each monitor has one: a monitor is connected before its dispatcher knows it.
fn until_all_see(
    sender: &UdpSocket,
    datagram: &[u8],
    monitors: &mut [TcpStream],
) -> Vec<ForwardedNotification> {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        sender.send(datagram).unwrap();
        let mut bytes = [0; FORWARDED_BYTES];
        let sees = |monitor: &mut TcpStream| {
            monitor.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            monitor.peek(&mut bytes).is_ok_and(|length| length == FORWARDED_BYTES)
        };
        if monitors.iter_mut().map(sees).collect::<Vec<_>>().iter().all(|seen| *seen) {
            return monitors.iter_mut().map(next).collect();
        }
        assert!(std::time::Instant::now() < deadline, "no message came");
    }
}

#[test]
fn every_monitor_gets_every_message() {
    let address = start();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    sender.connect(address).unwrap();
    let mut monitors: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let good = &mutate::corpus()[0];
    // No notifications: nothing may be forwarded.
    for bad in [&good[1..], &[&good[..], &[0]].concat(), &[0; 124]] {
        sender.send(bad).unwrap();
    }
    let found = until_all_see(&sender, good, &mut monitors);
    for message in &found {
        assert_eq!(message.notification.label, "label");
        assert_eq!(SocketAddr::from(message.sender), sender.local_addr().unwrap());
        assert!((1..=3).contains(&message.copies), "{message:?}");
    }
    // When one has gone, the others go on.
    drop(monitors.remove(0));
    loop {
        sender.send(good).unwrap();
        let copies = next(&mut monitors[0]).copies;
        next(&mut monitors[1]);
        if copies == 2 {
            break;
        }
    }
}

#[test]
fn a_port_that_is_in_use_is_an_error() {
    let address = start();
    assert!(Dispatcher::bind(Ipv4Addr::LOCALHOST, address.port()).is_err());
}
