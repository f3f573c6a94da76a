//! Messages to key distribution centres (KDCs) and their replies, over UDP and TCP (RFC 4120, section 7.2).

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use polygraph_kerberos::{code, error_code};
use polygraph_link::{Conn, Link, Nanos, send_all};

/// The largest reply over TCP that is accepted, in bytes. Tickets of users in many groups have some ten thousand.
const MAX_REPLY: usize = 1 << 20;

/// Larger messages go over TCP at once, if there is a KDC with TCP: as datagrams they would be fragmented.
const MAX_DATAGRAM: usize = 1400;

/// The KDCs of a realm.
#[derive(Clone, Copy, Debug)]
pub struct Kdcs<'a> {
    /// Those that are asked over UDP, in this order.
    pub udp: &'a [SocketAddr],
    /// Those that are asked over TCP, in this order, after those over UDP.
    pub tcp: &'a [SocketAddr],
    /// How long each of them has for its reply.
    pub timeout: Nanos,
}

/// Why a KDC gave no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It did not reply in time.
    Timeout,
    /// It closed the connection.
    Closed,
    /// It sent a reply of an impossible length.
    Length(u32),
    /// The reply does not fit a datagram.
    TooBig,
    /// The message could not be sent: nobody listens there, or there is no route.
    Socket(io::ErrorKind),
}

/// An attempt to get a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KdcAttempt {
    /// The KDC.
    pub server: SocketAddr,
    /// Whether it was asked over TCP.
    pub tcp: bool,
    /// Why it gave no reply.
    pub failure: Silence,
}

impl fmt::Display for KdcAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.tcp { "TCP" } else { "UDP" };
        write!(f, "{} over {protocol}: ", self.server)?;
        match self.failure {
            Silence::Timeout => f.write_str("no reply in time"),
            Silence::Closed => f.write_str("closed the connection"),
            Silence::Length(length) => write!(f, "a reply of {length} bytes"),
            Silence::TooBig => {
                f.write_str("the reply does not fit a datagram, and there are no `servers_tcp`")
            }
            Silence::Socket(kind) => kind.fmt(f),
        }
    }
}

/// A reply of a KDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KdcReply {
    /// The message.
    pub bytes: Vec<u8>,
    /// The KDC.
    pub server: SocketAddr,
    /// Whether the reply did not fit a datagram, so that the message was sent again over TCP.
    pub too_big: bool,
}

/// Sends `message` to one KDC after the other until one replies, from the address `from`, if it is of the same family.
///
/// # Errors
/// All attempts, if none replies.
pub async fn ask<L: Link>(
    link: &L,
    from: Option<IpAddr>,
    kdcs: Kdcs<'_>,
    message: &[u8],
) -> Result<KdcReply, Vec<KdcAttempt>> {
    let (mut attempts, mut too_big) = (Vec::new(), false);
    let datagrams = if message.len() > MAX_DATAGRAM && !kdcs.tcp.is_empty() { &[] } else { kdcs.udp };
    let all =
        datagrams.iter().map(|server| (*server, false)).chain(kdcs.tcp.iter().map(|server| (*server, true)));
    for (server, tcp) in all {
        if too_big && !tcp {
            continue;
        }
        let from = from.filter(|from| from.is_ipv4() == server.is_ipv4());
        let until = link.now().saturating_add(kdcs.timeout);
        let reply = match tcp {
            true => ask_stream(link, from, server, until, message).await,
            false => ask_datagram(link, from, server, until, message).await,
        };
        match reply {
            Ok(bytes) => return Ok(KdcReply { bytes, server, too_big }),
            Err(failure) => {
                too_big |= failure == Silence::TooBig;
                attempts.push(KdcAttempt { server, tcp, failure });
            }
        }
    }
    Err(attempts)
}

async fn ask_datagram<L: Link>(
    link: &L,
    from: Option<IpAddr>,
    server: SocketAddr,
    until: Nanos,
    message: &[u8],
) -> Result<Vec<u8>, Silence> {
    let accept = |datagram: &[u8]| Some(datagram.to_vec());
    let reply =
        link.exchange_datagram(from, server, message, Some(until), accept).await.map_err(|e| silence(&e))?;
    match error_code(&reply) {
        Some(code::TOO_BIG) => Err(Silence::TooBig),
        _ => Ok(reply),
    }
}

async fn ask_stream<L: Link>(
    link: &L,
    from: Option<IpAddr>,
    server: SocketAddr,
    until: Nanos,
    message: &[u8],
) -> Result<Vec<u8>, Silence> {
    let mut conn = link.connect(from, server).map_err(|error| {
        Silence::Socket(match error {
            polygraph_link::ConnectError::Refused(kind) | polygraph_link::ConnectError::Bind(kind) => kind,
            _ => io::ErrorKind::Other,
        })
    })?;
    conn.set_deadline(Some(until));
    let framed = [&(message.len() as u32).to_be_bytes(), message].concat();
    send_all(&mut conn, &framed).await.map_err(|e| silence(&e))?;
    let mut inbox = Vec::new();
    loop {
        let ended = conn
            .recv(|bytes| {
                inbox.extend_from_slice(bytes);
                bytes.is_empty()
            })
            .await
            .map_err(|e| silence(&e))?;
        if let Some((length, reply)) = inbox.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length);
            if length as usize > MAX_REPLY {
                return Err(Silence::Length(length));
            }
            if let Some(reply) = reply.get(..length as usize) {
                return Ok(reply.to_vec());
            }
        }
        if ended {
            return Err(Silence::Closed);
        }
    }
}

fn silence(error: &io::Error) -> Silence {
    match error.kind() {
        io::ErrorKind::TimedOut => Silence::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Silence::Closed,
        kind => Silence::Socket(kind),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use polygraph_link::SECOND;
    use polygraph_sim::VirtualLink;

    use super::*;

    /// What comes of asking a KDC over TCP that answers nothing, because no KDC exists in this world.
    #[test]
    fn kdcs_that_do_not_answer_are_named() {
        let link = VirtualLink::new(0);
        let came = Rc::new(RefCell::new(String::new()));
        let (result, asker) = (Rc::clone(&came), link.clone());
        link.spawn(async move {
            let server = "10.0.0.1:88".parse().unwrap();
            let kdcs = Kdcs { udp: &[], tcp: &[server], timeout: SECOND };
            let asked = ask(&asker, None, kdcs, b"?").await;
            let shown: Vec<String> = asked.unwrap_err().iter().map(KdcAttempt::to_string).collect();
            *result.borrow_mut() = shown.join(", ");
        });
        link.run(100 * SECOND);
        assert!(came.borrow().starts_with("10.0.0.1:88 over TCP: "), "{came:?}");
    }
}
