//! What the driver of a network card says: its receive ring and its offloads (`SIOCETHTOOL`, the interface of ethtool).

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType, socket};

/// What a driver says about its card.
#[derive(Debug, Default)]
pub(super) struct CardFacts {
    /// Packets that the receive ring holds, and the most that it could hold.
    pub ring: Option<(u64, u64)>,
    /// Offloads that are off.
    pub offloads_off: Vec<String>,
}

/// Numbers of requests, from `linux/ethtool.h`.
const GET_RINGS: u32 = 0x10;
/// Offloads as `ethtool -K` calls them, with the request that asks for each.
const OFFLOADS: [(&str, u32); 5] = [("rx", 0x14), ("tx", 0x16), ("tso", 0x1e), ("gso", 0x23), ("gro", 0x2b)];
/// `SIOCETHTOOL` of `linux/sockios.h`.
const ETHTOOL: libc::c_ulong = 0x8946;

/// A request and its answer: `struct ethtool_value` and `struct ethtool_ringparam` are the first words of it.
#[repr(C)]
#[derive(Default)]
struct Request {
    command: u32,
    values: [u32; 15],
}

/// Asks the driver of an interface. What it does not know stays unknown.
pub(super) fn read(interface: &str) -> CardFacts {
    let Ok(socket) = socket(AddressFamily::INET, SocketType::DGRAM, None) else {
        return CardFacts::default();
    };
    let ask = |command: u32| ask(&socket, interface, command);
    let is_off = |(_, command): &&(&str, u32)| ask(*command).is_some_and(|answer| answer[0] == 0);
    CardFacts {
        // The most of four rings, then what they hold now: receive, small, large, send.
        ring: ask(GET_RINGS)
            .filter(|answer| answer[0] > 0)
            .map(|answer| (answer[4].into(), answer[0].into())),
        offloads_off: OFFLOADS.iter().filter(is_off).map(|(name, _)| (*name).to_owned()).collect(),
    }
}

fn ask(socket: &OwnedFd, interface: &str, command: u32) -> Option<[u32; 15]> {
    let mut request = Request { command, ..Request::default() };
    // SAFETY: zero is a value of all members of this structure.
    let mut wrapper: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= wrapper.ifr_name.len() {
        return None;
    }
    for (to, from) in wrapper.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    wrapper.ifr_ifru.ifru_data = (&raw mut request).cast();
    // SAFETY: the descriptor is open, and the kernel writes answers to these commands into the 64 bytes of `request`,
    // which lives until after the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), ETHTOOL, &raw mut wrapper) };
    (done == 0).then_some(request.values)
}
