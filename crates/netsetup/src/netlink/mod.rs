//! Interfaces, addresses and routes, read and changed over netlink: thousands of changes take one socket and few
//! system calls.

mod address;
mod interface;
mod route;

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::error::{Error, Result};

pub use address::InterfaceAddress;
pub use interface::Interface;
pub use route::{Route, RouteKind};

/// Requests in one datagram. The kernel answers all of them before the datagram counts as sent, and its answers must
/// fit into the receive buffer.
const BATCH: usize = 128;
/// The kernel fills no datagram beyond 32 KiB.
const ANSWER_BYTES: usize = 64 << 10;
/// A list that changes while it is read is read again, this often at most.
const ATTEMPTS: usize = 5;

/// A connection to the kernel's tables of interfaces, addresses and routes, in the network namespace of the thread
/// that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// A request that the kernel refused: its position in the batch, and what the kernel says.
#[derive(Debug)]
struct RefusedRequest {
    index: usize,
    error: io::Error,
}

impl Netlink {
    /// Opens a connection. Reading needs no rights; changes need root or CAP_NET_ADMIN.
    ///
    /// # Errors
    /// If the system has no netlink sockets, or allows no more open files.
    pub fn open() -> Result<Netlink> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // Answers need not repeat the requests.
            socket.set_cap_ack(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| system("opening a netlink socket", error))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Asks for all entries of a table.
    fn dump(&mut self, what: &str, request: &RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>> {
        for _ in 0..ATTEMPTS {
            if let Some(entries) = self.dump_once(request).map_err(|error| system(what, error))? {
                return Ok(entries);
            }
        }
        Err(system(what, io::Error::other("it changes while it is read; try again")))
    }

    /// All entries of a table; `None` if it changed while it was read.
    fn dump_once(&mut self, request: &RouteNetlinkMessage) -> io::Result<Option<Vec<RouteNetlinkMessage>>> {
        let sequence = self.next_sequence();
        let mut bytes = Vec::new();
        append(&mut bytes, request.clone(), NLM_F_REQUEST | NLM_F_DUMP, sequence);
        self.socket.send(&bytes, 0)?;
        let (mut entries, mut consistent) = (Vec::new(), true);
        loop {
            for message in self.receive()?.into_iter().filter(|m| m.header.sequence_number == sequence) {
                const INTERRUPTED: u16 = netlink_packet_core::NLM_F_DUMP_INTR;
                consistent &= message.header.flags & INTERRUPTED == 0;
                match message.payload {
                    NetlinkPayload::InnerMessage(entry) => entries.push(entry),
                    NetlinkPayload::Done(_) => return Ok(consistent.then_some(entries)),
                    NetlinkPayload::Error(answer) => return Err(answer.to_io()),
                    NetlinkPayload::Overrun(_) => return Err(lost()),
                    _ => {}
                }
            }
        }
    }

    /// Makes requests in order, and returns those that the kernel refused. The kernel carries out the others, whether
    /// they stand before or behind.
    fn change(
        &mut self,
        flags: u16,
        requests: impl IntoIterator<Item = RouteNetlinkMessage>,
    ) -> io::Result<Vec<RefusedRequest>> {
        let mut requests = requests.into_iter().peekable();
        let mut refusals = Vec::new();
        let mut sent = 0;
        while requests.peek().is_some() {
            let first = self.sequence.wrapping_add(1);
            let mut bytes = Vec::new();
            let mut last = first;
            for number in 0..BATCH {
                let Some(request) = requests.next() else { break };
                last = self.next_sequence();
                // Refusals are always answered. The last answer shows that the kernel is through.
                let at_end = number + 1 == BATCH || requests.peek().is_none();
                let acknowledge = if at_end { NLM_F_ACK } else { 0 };
                append(&mut bytes, request, NLM_F_REQUEST | flags | acknowledge, last);
            }
            self.socket.send(&bytes, 0)?;
            self.collect(first, last, sent, &mut refusals)?;
            sent += last.wrapping_sub(first) as usize + 1;
        }
        Ok(refusals)
    }

    /// Reads answers to the requests `first` to `last`, of which the first is number `base` of the caller.
    fn collect(
        &mut self,
        first: u32,
        last: u32,
        base: usize,
        refusals: &mut Vec<RefusedRequest>,
    ) -> io::Result<()> {
        loop {
            for message in self.receive()? {
                let index = message.header.sequence_number.wrapping_sub(first);
                if index > last.wrapping_sub(first) {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Error(answer) if answer.code.is_some() => {
                        refusals.push(RefusedRequest { index: base + index as usize, error: answer.to_io() });
                    }
                    NetlinkPayload::Overrun(_) => return Err(lost()),
                    _ => {}
                }
                if message.header.sequence_number == last {
                    return Ok(());
                }
            }
        }
    }

    /// The messages of one datagram.
    fn receive(&self) -> io::Result<Vec<NetlinkMessage<RouteNetlinkMessage>>> {
        let mut bytes: Vec<u8> = Vec::with_capacity(ANSWER_BYTES);
        loop {
            match self.socket.recv(&mut bytes, 0) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut messages = Vec::new();
        let mut rest = &bytes[..];
        let damaged = |error: netlink_packet_core::DecodeError| {
            io::Error::new(io::ErrorKind::InvalidData, format!("the kernel's answer cannot be read: {error}"))
        };
        while !rest.is_empty() {
            let length = NetlinkBuffer::new_checked(rest).map_err(damaged)?.length() as usize;
            messages.push(NetlinkMessage::deserialize(rest).map_err(damaged)?);
            // Messages start at multiples of four bytes.
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(messages)
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }
}

/// Appends a request to a datagram.
fn append(bytes: &mut Vec<u8>, request: RouteNetlinkMessage, flags: u16, sequence: u32) {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let start = bytes.len();
    bytes.resize(start + message.buffer_len().next_multiple_of(4), 0);
    message.serialize(&mut bytes[start..]);
}

fn lost() -> io::Error {
    io::Error::other("answers of the kernel were lost")
}

/// An error of the system as one of this crate.
fn system(what: impl Into<String>, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::NotRoot { what: what.into() },
        _ => Error::System { what: what.into(), error },
    }
}

/// Whether an error says that what should be removed is not there.
fn is_absent(error: &io::Error) -> bool {
    let absent = [rustix::io::Errno::ADDRNOTAVAIL, rustix::io::Errno::SRCH, rustix::io::Errno::NODEV];
    absent.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
