//! Ports of devices. Listening is detected from outside, so that the device's log contains no connection of this
//! program.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The range of ports for `port 0`. It is below the ports that Linux assigns to outgoing connections by default (from
/// 32768), so no connection takes a port between its choice and its use.
const FREE_PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Checks that a device can listen on `address` and returns it. Port 0 is replaced with a free port.
///
/// # Errors
/// If the address cannot be used, or no port is free.
pub fn resolve_port(address: SocketAddr) -> io::Result<SocketAddr> {
    if address.port() != 0 {
        return TcpListener::bind(address).map(|_| address);
    }
    // A port is not assigned again soon, because its device may be down for a moment. Processes that start at the
    // same time start at different ports.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = u32::from(FREE_PORTS.end - FREE_PORTS.start);
    let first = std::process::id().wrapping_mul(61);
    let steps = (0..span).map(|_| first.wrapping_add(NEXT.fetch_add(1, Relaxed)) % span);
    let ports = steps.map(|step| FREE_PORTS.start + step as u16);
    let mut last = io::ErrorKind::AddrInUse.into();
    for port in ports {
        let candidate = SocketAddr::new(address.ip(), port);
        match TcpListener::bind(candidate) {
            Ok(_) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Whether a process listens on `address` in the network namespace of process `pid`.
pub(crate) fn is_listening(pid: u32, address: SocketAddr) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().filter_map(listener).any(|found| {
            found.port() == address.port() && (found.ip() == address.ip() || found.ip().is_unspecified())
        })
    })
}

/// The address in a line of `/proc/net/tcp` or `tcp6`, if it is that of a listening socket.
fn listener(line: &str) -> Option<SocketAddr> {
    const LISTEN: &str = "0A";
    let mut columns = line.split_whitespace();
    let (local, state) = (columns.nth(1)?, columns.nth(1)?);
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Each group of 8 digits is a word of 32 bits of the address in network order, printed as a number of this
    // machine.
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(index * 8)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    (state == LISTEN).then(|| SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_seen() {
        for ip in ["127.0.0.1", "127.0.0.9", "0.0.0.0", "::1"] {
            let address = resolve_port(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
            assert!(FREE_PORTS.contains(&address.port()), "{address}");
            let me = std::process::id();
            assert!(!is_listening(me, address), "{address} before");
            let socket = TcpListener::bind(address).unwrap();
            assert!(is_listening(me, address), "{address}");
            assert!(resolve_port(address).is_err(), "{address} is taken");
            drop(socket);
            assert!(!is_listening(me, address), "{address} after");
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in
            ["", "sl local_address rem_address st", "0: 0100007F:1F90 0100007F:1F91 01", "0: 01:1 0:0 0A"]
        {
            assert_eq!(listener(line), None, "{line}");
        }
    }
}
