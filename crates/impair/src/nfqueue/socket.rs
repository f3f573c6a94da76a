//! The socket over which the kernel hands over the packets of one queue.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with, sockopt,
};

use super::message::{Message, Messages};
use super::request::{self, PacketVerdict, QueueMode};

/// Room for messages about packets that we have not read yet. Every message takes about a kilobyte of it.
const RECEIVE_BUFFER: usize = 64 << 20;
/// The first number of a queue that we try.
pub const FIRST_QUEUE: u16 = 7400;
/// How many numbers we try.
const TRIED_QUEUES: u16 = 1000;
/// Larger than any message: the content of a packet is cut at 64 KB.
pub const MESSAGE_BUFFER: usize = 128 << 10;

/// The reader of one queue.
#[derive(Debug)]
pub struct QueueSocket {
    socket: OwnedFd,
    queue: u16,
}

impl QueueSocket {
    /// Becomes the reader of a queue that has none.
    ///
    /// # Errors
    /// If the kernel has no packet queues, or if this process may not read them.
    pub fn open(mode: QueueMode) -> io::Result<QueueSocket> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER))?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        // Without the rights to go beyond the limit of the system, the limit has to do.
        sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))?;
        let mut opened = QueueSocket { socket, queue: 0 };
        let mut refused = io::Error::from(Errno::BUSY);
        for queue in FIRST_QUEUE..FIRST_QUEUE + TRIED_QUEUES {
            match opened.ask(&request::bind(queue, u32::from(queue))) {
                Ok(()) => {
                    opened.queue = queue;
                    opened.ask(&request::configure(queue, mode, 1))?;
                    return Ok(opened);
                }
                // Someone else reads this one. The kernel says the same if we may read none.
                Err(error)
                    if [Some(Errno::BUSY), Some(Errno::PERM)].contains(&Errno::from_io_error(&error)) =>
                {
                    refused = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// The number of the queue.
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Sends a request and waits for the answer.
    fn ask(&self, request: &[u8]) -> io::Result<()> {
        self.send(request)?;
        let mut buffer = vec![0; MESSAGE_BUFFER];
        loop {
            let length = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?.1;
            for message in Messages::new(&buffer[..length.min(MESSAGE_BUFFER)]) {
                match message.map_err(io::Error::other)? {
                    Message::Answer { error: 0, .. } => return Ok(()),
                    Message::Answer { error, .. } => return Err(io::Error::from_raw_os_error(error)),
                    _ => {}
                }
            }
        }
    }

    fn send(&self, request: &[u8]) -> io::Result<()> {
        sendto(&self.socket, request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Receives what the kernel has sent since the last call. `None` if that is nothing. The buffer has at least
    /// [`MESSAGE_BUFFER`] bytes.
    ///
    /// # Errors
    /// `ENOBUFS` if messages were lost because we were too slow; other errors are final.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<Messages<'a>>> {
        match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((_, length)) => Ok(Some(Messages::new(&buffer[..length.min(buffer.len())]))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a verdict on one packet.
    ///
    /// # Errors
    /// If the kernel does not take the message.
    pub fn decide(&self, id: u32, verdict: PacketVerdict) -> io::Result<()> {
        self.send(&request::verdict(self.queue, id, verdict))
    }

    /// Gives a verdict on all packets that wait, up to and including one.
    ///
    /// # Errors
    /// If the kernel does not take the message.
    pub fn decide_up_to(&self, id: u32, verdict: PacketVerdict) -> io::Result<()> {
        self.send(&request::verdict_up_to(self.queue, id, verdict))
    }
}

impl AsFd for QueueSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
