//! Receives status notifications and forwards each to all connected monitors: `udp2tcpd`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::notification::{FORWARDED_BYTES, ForwardedNotification, NOTIFICATION_BYTES, Notification};
use crate::notifier::now;

/// The port on which monitors look for a dispatcher, and on which it expects notifications.
pub const DEFAULT_PORT: u16 = 18256;

/// Messages that may wait for a monitor. One that falls further behind is disconnected, so that it cannot hold up others.
/// The kernel holds far more than that before anything waits here.
const BACKLOG: usize = 64;
/// The most monitors at a time.
const MOST_MONITORS: usize = 256;

type Message = [u8; FORWARDED_BYTES];

/// A dispatcher that listens.
#[derive(Debug)]
pub struct Dispatcher {
    datagrams: UdpSocket,
    listener: TcpListener,
    monitors: Arc<Mutex<Vec<SyncSender<Message>>>>,
}

impl Dispatcher {
    /// A dispatcher on a port of UDP and the same port of TCP. Port 0: any port that is free for both.
    ///
    /// # Errors
    /// If a port is in use or must not be used.
    pub fn bind(address: Ipv4Addr, port: u16) -> io::Result<Dispatcher> {
        const ATTEMPTS: usize = 20;
        let attempt = || {
            let listener = TcpListener::bind((address, port))?;
            let datagrams = UdpSocket::bind(listener.local_addr()?)?;
            Ok(Dispatcher { datagrams, listener, monitors: Arc::default() })
        };
        let retry = |found: &io::Result<Dispatcher>| {
            port == 0 && found.as_ref().is_err_and(|e| e.kind() == ErrorKind::AddrInUse)
        };
        let mut found = attempt();
        for _ in 0..ATTEMPTS {
            if !retry(&found) {
                break;
            }
            found = attempt();
        }
        found
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Forwards notifications until a socket fails.
    ///
    /// # Errors
    /// The failure of the socket.
    pub fn run(&self) -> io::Result<()> {
        let (listener, monitors) = (self.listener.try_clone()?, Arc::clone(&self.monitors));
        thread::Builder::new().name("monitors".into()).spawn(move || accept(&listener, &monitors))?;
        // One byte more than a notification, to recognise longer datagrams.
        let mut bytes = [0; NOTIFICATION_BYTES + 1];
        loop {
            let (length, sender) = match self.datagrams.recv_from(&mut bytes) {
                Ok(found) => found,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let datagram: Option<&[u8; NOTIFICATION_BYTES]> = bytes[..length].try_into().ok();
            if let (Some(datagram), IpAddr::V4(ip)) = (datagram, sender.ip())
                && Notification::decode(datagram).is_ok()
            {
                self.forward(datagram, SocketAddrV4::new(ip, sender.port()));
            }
        }
    }

    fn forward(&self, datagram: &[u8; NOTIFICATION_BYTES], sender: SocketAddrV4) {
        let mut monitors = self.monitors.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = u32::try_from(monitors.len()).unwrap_or(u32::MAX);
        let message = ForwardedNotification::encode(datagram, now(), sender, copies);
        monitors.retain(|monitor| match monitor.try_send(message) {
            Ok(()) => true,
            // It has gone, or it reads too slowly; its connection ends with the channel.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        });
    }
}

fn accept(listener: &TcpListener, monitors: &Mutex<Vec<SyncSender<Message>>>) {
    let connected = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Descriptors may have run out; connections that end make room.
            thread::sleep(std::time::Duration::from_millis(100));
            continue;
        };
        if connected.load(Ordering::Relaxed) >= MOST_MONITORS {
            continue;
        }
        let (to_monitor, messages) = sync_channel::<Message>(BACKLOG);
        let counted = Arc::clone(&connected);
        counted.fetch_add(1, Ordering::Relaxed);
        let serve = move || {
            serve(stream, messages.iter());
            counted.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("monitor".into()).spawn(serve).is_ok() {
            monitors.lock().unwrap_or_else(PoisonError::into_inner).push(to_monitor);
        } else {
            connected.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Sends messages until the monitor closes the connection or the channel ends.
fn serve(mut stream: TcpStream, messages: impl Iterator<Item = Message>) {
    let Ok(mut other_end) = stream.try_clone() else { return };
    // Monitors send nothing: anything to read is the end of the connection, and then writing must fail.
    let watch = move || {
        let _ = other_end.read(&mut [0]);
        let _ = other_end.shutdown(std::net::Shutdown::Both);
    };
    if thread::Builder::new().name("monitor-end".into()).spawn(watch).is_err() {
        return;
    }
    for message in messages {
        if stream.write_all(&message).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
}
