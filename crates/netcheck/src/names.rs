//! Whether a name server answers for names, with which addresses, and how fast.
//!
//! Queries go over one UDP socket, with several on the way at a time. A query that is not answered is sent again once; a
//! reply that comes too late no longer counts.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use polygraph_dns::{DnsError, DomainName, Query, QueryType};

use crate::error::{CheckResult, Error};

/// How often a query is sent.
const ATTEMPTS: u32 = 2;
/// The largest datagram.
const LARGEST: usize = 1 << 16;
/// Most queries on the way at a time.
pub const MOST_WINDOW: usize = 1000;

/// A name to look up.
#[derive(Clone, Debug)]
pub struct NameCheck {
    /// The name.
    pub name: DomainName,
    /// The type of address.
    pub kind: QueryType,
    /// The addresses that the name must have, in any order. Empty: any.
    pub expected: Vec<IpAddr>,
}

/// What is checked, and how.
#[derive(Clone, Debug)]
pub struct NamesPlan {
    /// The name server.
    pub server: SocketAddr,
    /// The names.
    pub names: Vec<NameCheck>,
    /// How long the server may take to reply.
    pub timeout: Duration,
    /// How many queries are on the way at a time.
    pub window: usize,
}

/// The result for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameResult {
    /// The server replied with these addresses, after this time.
    Answered {
        /// The addresses.
        addresses: Vec<IpAddr>,
        /// From the last query to the reply.
        time: Duration,
        /// Whether these are the expected addresses.
        right: bool,
    },
    /// The server did not reply with an address.
    Failed(DnsError),
    /// Nothing listens at the server's port.
    Refused,
}

impl NameResult {
    /// Whether the server gave the right addresses.
    pub fn is_right(&self) -> bool {
        matches!(self, NameResult::Answered { right: true, .. })
    }
}

/// A query on the way.
struct Sent {
    index: usize,
    query: Query,
    attempt: u32,
    time: Instant,
}

/// Looks up all names. The results are in their order.
///
/// # Errors
/// If this host cannot send to the server.
pub fn measure(plan: &NamesPlan) -> CheckResult<Vec<NameResult>> {
    let cannot = |error: io::Error| Error::host(format!("cannot query {}", plan.server), error);
    let any: IpAddr = if plan.server.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).map_err(cannot)?;
    socket.connect(plan.server).map_err(cannot)?;
    let mut results: Vec<Option<NameResult>> = vec![None; plan.names.len()];
    let mut todo: VecDeque<(usize, u32)> = (0..plan.names.len()).map(|index| (index, 1)).collect();
    let mut sent: HashMap<u16, Sent> = HashMap::new();
    let mut next_id =
        std::hash::BuildHasher::hash_one(&std::collections::hash_map::RandomState::new(), 0) as u16;
    let mut buffer = vec![0; LARGEST];
    while !todo.is_empty() || !sent.is_empty() {
        while sent.len() < plan.window.clamp(1, MOST_WINDOW)
            && let Some((index, attempt)) = todo.pop_front()
        {
            while sent.contains_key(&next_id) {
                next_id = next_id.wrapping_add(1);
            }
            let name = &plan.names[index];
            let query = Query::new(next_id, name.name.clone(), name.kind);
            match socket.send(&query.message()) {
                // The server's port was closed a moment ago; the reply to this query says whether it still is.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(cannot(error)),
            }
            sent.insert(next_id, Sent { index, query, attempt, time: Instant::now() });
            next_id = next_id.wrapping_add(1);
        }
        let Some(deadline) = sent.values().map(|sent| sent.time + plan.timeout).min() else { continue };
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_micros(100));
        socket.set_read_timeout(Some(left)).map_err(cannot)?;
        let received = socket.recv(&mut buffer);
        let now = Instant::now();
        if let Ok(length) = received {
            take(plan, &buffer[..length], now, &mut sent, &mut results);
        }
        let refused = received.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        let late: Vec<u16> = sent
            .iter()
            .filter(|(_, sent)| refused || sent.time + plan.timeout <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            let Some(lost) = sent.remove(&id) else { continue };
            match lost.attempt {
                ATTEMPTS.. => {
                    let result =
                        if refused { NameResult::Refused } else { NameResult::Failed(DnsError::Timeout) };
                    results[lost.index] = Some(result);
                }
                attempt => todo.push_back((lost.index, attempt + 1)),
            }
        }
    }
    Ok(results.into_iter().map(|result| result.unwrap_or(NameResult::Failed(DnsError::Timeout))).collect())
}

/// Books a reply.
fn take(
    plan: &NamesPlan,
    datagram: &[u8],
    now: Instant,
    sent: &mut HashMap<u16, Sent>,
    results: &mut [Option<NameResult>],
) {
    let Some(id) = datagram.first_chunk().map(|id| u16::from_be_bytes(*id)) else { return };
    let Some(asked) = sent.get(&id) else { return };
    let result = match asked.query.read(datagram) {
        // A reply to something else: the right one may still come.
        Err(DnsError::Id | DnsError::Mismatch) => return,
        Err(error) => NameResult::Failed(error),
        Ok(addresses) => {
            let expected = &plan.names[asked.index].expected;
            let right = expected.is_empty() || same_addresses(&addresses, expected);
            NameResult::Answered { addresses, time: now.saturating_duration_since(asked.time), right }
        }
    };
    results[asked.index] = Some(result);
    sent.remove(&id);
}

/// Whether two lists have the same members. A server may leave out some of many addresses, because they do not fit into a
/// datagram.
fn same_addresses(found: &[IpAddr], expected: &[IpAddr]) -> bool {
    const FIT_ALWAYS: usize = 8;
    let contained = found.iter().all(|ip| expected.contains(ip));
    contained && (expected.len() > FIT_ALWAYS || expected.iter().all(|ip| found.contains(ip)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_any_order() {
        let ips = |list: &[u8]| list.iter().map(|n| IpAddr::from([10, 0, 0, *n])).collect::<Vec<_>>();
        assert!(same_addresses(&ips(&[2, 1]), &ips(&[1, 2])));
        assert!(!same_addresses(&ips(&[1]), &ips(&[1, 2])));
        assert!(!same_addresses(&ips(&[1, 2, 3]), &ips(&[1, 2])));
        let many: Vec<u8> = (0..100).collect();
        assert!(same_addresses(&ips(&[5, 6]), &ips(&many)));
        assert!(!same_addresses(&ips(&[5, 200]), &ips(&many)));
    }
}
