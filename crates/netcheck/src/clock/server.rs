//! A server that tells the time of this host's clock.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ntp_packet::{NtpPacket, NtpTime};
use super::system_clock::system_clock;

/// How often the server looks whether it is to end.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct Shared {
    answered: AtomicU64,
    stopped: AtomicBool,
}

/// A server. It ends when it is dropped.
pub struct ClockServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ClockServer {
    /// Starts a server.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn start(address: SocketAddr) -> io::Result<ClockServer> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(PAUSE))?;
        let address = socket.local_addr()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("clock server".to_owned()).spawn(move || serve(&socket, &own))?;
        Ok(ClockServer { address, shared, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that were answered.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Acquire)
    }
}

impl Drop for ClockServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 512];
    while !shared.stopped.load(Ordering::Acquire) {
        let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
        let received = NtpTime::now();
        // A reply is not longer than its request, so nobody can use this server to multiply traffic.
        let Some(request) = NtpPacket::read(&buffer[..length]).filter(|request| !request.from_server) else {
            continue;
        };
        let reply = NtpPacket {
            from_server: true,
            synchronised: system_clock().is_some_and(|clock| clock.synchronised),
            originated: request.transmitted,
            received,
            transmitted: NtpTime::now(),
        };
        if socket.send_to(&reply.bytes(), client).is_ok() {
            shared.answered.fetch_add(1, Ordering::AcqRel);
        }
    }
}
