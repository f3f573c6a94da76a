//! Sends a status notification for every interval of statistics, and forgets it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_stats::{Header, Interval, Record, Side};

use crate::notification::{Micros, Notification};

/// The time of day.
pub(crate) fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Sends the notifications of a process.
#[derive(Debug)]
pub struct Notifier {
    socket: UdpSocket,
    /// Transactions since the start of the run, by side: those that succeeded, and those that failed.
    totals: BTreeMap<&'static str, [u64; 2]>,
}

impl Notifier {
    /// A notifier that sends to `receiver`, a host and a port.
    ///
    /// # Errors
    /// If the receiver has no IPv4 address, or there is no route to it.
    pub fn new(receiver: &str) -> io::Result<Notifier> {
        let address = receiver.to_socket_addrs()?.find(SocketAddr::is_ipv4);
        let address = address.ok_or_else(|| io::Error::other("the name has no IPv4 address"))?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // A run never waits for its monitor.
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        Ok(Notifier { socket, totals: BTreeMap::new() })
    }

    /// Sends the interval, if the record is one.
    pub fn observe(&mut self, header: &Header, record: &Record) {
        let Record::Interval(interval) = record else { return };
        let [ok, failed] = self.totals.entry(header.side.name()).or_default();
        *ok += interval.block.ok_count();
        *failed += interval.block.failed_count();
        let message = notification(header, interval, [*ok, *failed]);
        // Nobody may be listening, which is fine.
        let _ = self.socket.send(&message.encode());
    }
}

/// The notification of an interval; `totals` are the numbers of successful and failed transactions so far.
fn notification(header: &Header, interval: &Interval, [ok, failed]: [u64; 2]) -> Notification {
    let block = &interval.block;
    let rate = |count: f64| if interval.seconds() > 0.0 { count / interval.seconds() } else { 0.0 };
    let micros = |us: f64| Micros(us.round() as i64);
    Notification {
        label: header.label.clone(),
        start: Micros((header.start_unix_ns / 1000) as i64),
        sent: now(),
        response_time: block.mean_rptm_us().map(micros),
        request_rate: rate(block.xacts.entered as f64),
        reply_rate: rate(block.ok_count() as f64),
        bandwidth: rate(block.ok_bytes()),
        hit_ratio: match header.side {
            Side::Client => block.hit_ratio(),
            // Servers do not see hits.
            Side::Server => None,
        },
        connection_use: block.conn_uses.mean(),
        error_ratio: block.error_ratio(),
        transactions: ok as i64,
        errors: failed as i64,
        open_connections: block.conns.last as i64,
        side: header.side,
    }
}
