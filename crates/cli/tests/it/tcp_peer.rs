//! A small TCP of our own with a chosen TIME_WAIT, which no setting of Linux can change: it serves one page per connection
//! and closes first. It reads and writes segments over a raw socket; a socket that drops everything keeps the kernel silent.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use polygraph_netcheck::packet::{TcpFlags, TcpSegment, ipv4_payload};
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};

/// What the peer does when it has sent its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It closes, and stays in TIME_WAIT for this time.
    Close(Duration),
    /// It resets the connection.
    Reset,
    /// It waits for the client to close.
    KeepOpen,
}

const PAGE: &[u8] = b"HTTP/1.0 200 OK\r\n\r\npage";

/// A connection by its client.
struct Connection {
    /// The next octet of the peer, and of the client.
    next: (u32, u32),
    /// When TIME_WAIT ends. `None`: the connection is open.
    until: Option<Instant>,
}

/// The peer. It ends when it is dropped.
pub struct TcpPeer {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TcpPeer {
    /// Starts a peer at an address of the namespace of this thread.
    pub fn start(address: SocketAddr, manner: Manner) -> TcpPeer {
        let domain = Domain::for_address(address);
        let deaf = Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).unwrap();
        deaf.attach_filter(&[SockFilter::new(0x06, 0, 0, 0)]).unwrap();
        deaf.bind(&address.into()).unwrap();
        deaf.listen(1).unwrap();
        let raw = Socket::new(domain, Type::RAW, Some(Protocol::TCP)).unwrap();
        raw.bind(&SockAddr::from(SocketAddr::new(address.ip(), 0))).unwrap();
        raw.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let stopped = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || {
            serve(&raw, address, manner, &own);
            drop(deaf);
        });
        TcpPeer { stopped, thread: Some(thread) }
    }
}

impl Drop for TcpPeer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(raw: &Socket, address: SocketAddr, manner: Manner, stopped: &AtomicBool) {
    let mut connections: HashMap<(IpAddr, u16), Connection> = HashMap::new();
    let mut buffer = vec![MaybeUninit::uninit(); 65_536];
    let mut number = 1000_u32;
    while !stopped.load(Ordering::Relaxed) {
        let Ok((length, from)) = raw.recv_from(&mut buffer) else { continue };
        let client = from.as_socket().unwrap().ip();
        // SAFETY: `recv_from` has written this many octets.
        let packet = unsafe { &*(&raw const buffer[..length] as *const [u8]) };
        let tcp = if address.is_ipv4() { ipv4_payload(packet).unwrap().1 } else { packet };
        let Some(segment) =
            TcpSegment::read(tcp).filter(|segment| segment.destination_port == address.port())
        else {
            continue;
        };
        let key = (client, segment.source_port);
        connections.retain(|_, connection| connection.until.is_none_or(|until| Instant::now() < until));
        let answers = answer(&mut connections, key, &segment, manner, &mut number);
        for mut answer in answers {
            (answer.source_port, answer.destination_port) = (address.port(), segment.source_port);
            answer.window = 65_535;
            raw.send_to(&answer.bytes(address.ip(), client), &SockAddr::from(SocketAddr::new(client, 0)))
                .unwrap();
        }
    }
}

fn answer(
    connections: &mut HashMap<(IpAddr, u16), Connection>,
    key: (IpAddr, u16),
    segment: &TcpSegment,
    manner: Manner,
    number: &mut u32,
) -> Vec<TcpSegment> {
    let make = |flags: TcpFlags, (sequence, acknowledgement): (u32, u32)| TcpSegment {
        sequence,
        acknowledgement,
        flags,
        ..TcpSegment::default()
    };
    let Some(connection) = connections.get_mut(&key) else {
        if !segment.flags.has(TcpFlags::SYN) || segment.flags.has(TcpFlags::ACK) {
            return Vec::new();
        }
        *number += 100_000;
        let next = (*number + 1, segment.end());
        connections.insert(key, Connection { next, until: None });
        return vec![make(TcpFlags::SYN | TcpFlags::ACK, (*number, segment.end()))];
    };
    if segment.flags.has(TcpFlags::RST) {
        connections.remove(&key);
        return Vec::new();
    }
    if connection.until.is_some() {
        // TIME_WAIT: whatever comes is answered by the last acknowledgement.
        return vec![make(TcpFlags::ACK, connection.next)];
    }
    if segment.flags.has(TcpFlags::FIN) {
        connection.next.1 = segment.end();
        let Manner::Close(time) = manner else { return Vec::new() };
        connection.until = Some(Instant::now() + time);
        return vec![make(TcpFlags::ACK, connection.next)];
    }
    if segment.payload.is_empty() || segment.sequence != connection.next.1 {
        return Vec::new();
    }
    connection.next.1 = segment.end();
    let mut page = make(TcpFlags::ACK, connection.next);
    page.payload = PAGE.to_vec();
    match manner {
        Manner::Close(_) => page.flags = page.flags | TcpFlags::FIN,
        Manner::Reset => page = make(TcpFlags::RST | TcpFlags::ACK, connection.next),
        Manner::KeepOpen => {}
    }
    connection.next.0 = page.end();
    if manner == Manner::Reset {
        connections.remove(&key);
    }
    vec![page]
}
