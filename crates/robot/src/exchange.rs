//! One exchange: a connection is taken, the request sent, the reply read.

use std::io::{self, IoSlice};

use polygraph_link::{Conn, ConnectError, Link, Nanos, send_all, yield_now};
use polygraph_stats::ErrorKind;

use crate::crew::{Crew, Leased};
use crate::order::Order;
use crate::reply::{Facts, ReplyReader};

/// A request is tried on so many connections that the peer closed before it answered at all.
const MAX_RETRIES: u32 = 10;

/// Why an exchange failed.
#[derive(Debug)]
pub struct Fault {
    /// Its class.
    pub kind: ErrorKind,
    /// What was seen, for people.
    pub detail: String,
}

impl From<ConnectError> for Fault {
    fn from(error: ConnectError) -> Fault {
        let kind = match error {
            ConnectError::NoPort => ErrorKind::NoPort,
            ConnectError::NoDescriptor => ErrorKind::NoDescriptor,
            ConnectError::Bind(_) => ErrorKind::System,
            ConnectError::Refused(_) => ErrorKind::ConnectFailed,
        };
        Fault { kind, detail: error.to_string() }
    }
}

/// Carries out `order` for `robot`; its lifetime counts from `started`.
///
/// # Errors
/// What made the transaction fail.
pub async fn exchange<L: Link>(
    crew: &Crew<L>,
    robot: usize,
    order: &Order,
    started: Nanos,
) -> Result<Facts, Fault> {
    let deadline = crew.settings().lifetime.map(|lifetime| started + lifetime);
    for _ in 0..=MAX_RETRIES {
        let mut leased = crew.lease(robot, order.origin)?;
        let reused = leased.uses > 0;
        if !reused {
            // Connections first, requests then: when many transactions begin at once, a peer that is woken by the
            // first request finds the others already there, instead of being woken by each.
            yield_now().await;
        }
        leased.uses += 1;
        let mut reader = ReplyReader::default();
        match converse(crew, &mut leased, order, deadline, &mut reader).await {
            Ok(()) => {
                let facts = reader.facts();
                crew.give_back(robot, leased, facts.keep_alive);
                return Ok(facts);
            }
            // The peer closed an idle connection just as we used it: nobody's fault (RFC 9112, section 9.5).
            Err(fault) if reused && reader.is_silent() && fault.kind != ErrorKind::Timeout => {
                crew.close(leased, false);
                crew.count_retry();
            }
            Err(fault) => {
                crew.close(leased, false);
                return Err(fault);
            }
        }
    }
    Err(Fault { kind: ErrorKind::NoReply, detail: format!("closed {MAX_RETRIES} times before any reply") })
}

/// Sends the request and reads the reply on one connection.
async fn converse<L: Link>(
    crew: &Crew<L>,
    leased: &mut Leased<L::Conn>,
    order: &Order,
    deadline: Option<Nanos>,
    reader: &mut ReplyReader,
) -> Result<(), Fault> {
    let last = leased.uses >= leased.use_limit;
    let conn = &mut leased.conn;
    conn.set_deadline(deadline);

    // Nearly always the socket takes the whole request at once and the loop's one buffer is enough.
    let unsent = crew.with_request(order, last, |request| {
        crew.count_written(request.len());
        match conn.try_send(&[IoSlice::new(request)]) {
            Ok(n) if n == request.len() => Ok(None),
            Ok(n) => Ok(Some(request[n..].to_vec())),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Some(request.to_vec())),
            Err(e) => Err(e),
        }
    });
    if let Some(rest) = unsent.map_err(|e| sending(&e))? {
        conn.writable().await.map_err(|e| sending(&e))?;
        send_all(conn, &rest).await.map_err(|e| sending(&e))?;
    }

    loop {
        let fed = conn
            .recv(|data| {
                crew.count_read(data.len());
                reader.feed(data)
            })
            .await;
        match fed {
            Ok(Ok(true)) => break,
            Ok(Ok(false)) => {}
            Ok(Err(kind)) => return Err(Fault { kind, detail: describe(reader) }),
            Err(e) => return Err(receiving(&e, reader)),
        }
    }
    conn.set_deadline(None);
    Ok(())
}

fn sending(error: &io::Error) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
        io::ErrorKind::AddrNotAvailable => ErrorKind::NoPort,
        _ => ErrorKind::ConnectFailed,
    };
    Fault { kind, detail: format!("while sending the request: {error}") }
}

fn receiving(error: &io::Error, reader: &ReplyReader) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset => ErrorKind::Reset,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => ErrorKind::ConnectFailed,
        _ => ErrorKind::System,
    };
    Fault { kind, detail: format!("while waiting for the reply: {error}; {}", describe(reader)) }
}

fn describe(reader: &ReplyReader) -> String {
    let facts = reader.facts();
    if reader.is_silent() {
        "nothing received".into()
    } else if facts.status == 0 {
        format!("{} bytes of an incomplete head received", facts.size())
    } else {
        format!("status {}, {} body bytes received", facts.status, facts.body_bytes)
    }
}
