//! The offset between the clocks of two hosts, by exchanges of NTP (RFC 5905), and what the kernel says about this clock.
//!
//! An exchange has four times: request sent and received, reply sent and received. If both ways take equally long, the
//! offset is the mean of the two differences; the truth is at most half the round trip away. Of several exchanges, the one
//! with the shortest round trip has the smallest error.

mod ntp_packet;
mod server;
mod system_clock;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::error::{CheckResult, Error};

pub use self::ntp_packet::{NtpPacket, NtpTime};
pub use self::server::ClockServer;
pub use self::system_clock::{SystemClock, system_clock};

/// The port of our own servers. That of NTP, 123, is often taken.
pub const PORT: u16 = 5001;

/// Which clock is compared, and how.
#[derive(Clone, Debug)]
pub struct ClockPlan {
    /// The server.
    pub server: SocketAddr,
    /// The number of exchanges.
    pub count: u32,
    /// The time between two of them.
    pub interval: Duration,
    /// How long a reply may take.
    pub timeout: Duration,
}

/// The offset of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// How far the server's clock is ahead of this one, in seconds.
    pub offset_s: f64,
    /// The largest error of the offset: half the round trip.
    pub error_s: f64,
    /// Exchanges, and those that were answered.
    pub exchanges: (u32, u32),
    /// Whether the server says that its clock is synchronised.
    pub synchronised: bool,
}

/// Compares the clocks.
///
/// # Errors
/// If this host cannot send to the server, or the server does not reply.
pub fn measure(plan: &ClockPlan) -> CheckResult<ClockOffset> {
    let cannot = |error| Error::host(format!("cannot send to {}", plan.server), error);
    let any: IpAddr = if plan.server.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).map_err(cannot)?;
    socket.connect(plan.server).map_err(cannot)?;
    let mut best: Option<ClockOffset> = None;
    let mut answered = 0;
    let begin = Instant::now();
    for number in 0..plan.count {
        std::thread::sleep((begin + plan.interval * number).saturating_duration_since(Instant::now()));
        let Some(found) = exchange(&socket, plan.timeout) else { continue };
        answered += 1;
        if best.is_none_or(|best| found.error_s < best.error_s) {
            best = Some(found);
        }
    }
    let silent = || {
        let server = plan.server;
        Error::Peer(format!(
            "{server} does not tell its time: start `polygraph net clock --listen` or a time server there"
        ))
    };
    best.map(|best| ClockOffset { exchanges: (plan.count, answered), ..best }).ok_or_else(silent)
}

fn exchange(socket: &UdpSocket, timeout: Duration) -> Option<ClockOffset> {
    let sent = NtpTime::now();
    let watch = Instant::now();
    socket.send(&NtpPacket::request(sent).bytes()).ok()?;
    let mut buffer = [0; 512];
    loop {
        let left = timeout.checked_sub(watch.elapsed()).filter(|left| !left.is_zero())?;
        socket.set_read_timeout(Some(left)).ok()?;
        let length = socket.recv(&mut buffer).ok()?;
        // The clock may be set meanwhile; the watch is not.
        let elapsed = watch.elapsed().as_secs_f64();
        let Some(reply) = NtpPacket::read(&buffer[..length]).filter(|reply| reply.answers(sent)) else {
            continue;
        };
        return Some(offset(sent, &reply, elapsed));
    }
}

fn offset(sent: NtpTime, reply: &NtpPacket, elapsed: f64) -> ClockOffset {
    // The server cannot have held the request longer than the exchange took.
    let held = reply.transmitted.since(reply.received).clamp(0.0, elapsed);
    let there = reply.received.since(sent);
    let back = reply.transmitted.since(sent) - elapsed;
    ClockOffset {
        offset_s: (there + back) / 2.0,
        error_s: (elapsed - held) / 2.0,
        exchanges: (1, 1),
        synchronised: reply.synchronised,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_an_error_of_half_the_round_trip() {
        let at = |seconds: f64| NtpTime::of_unix(Duration::from_secs_f64(1e9 + seconds));
        // The server is 5 s ahead; 30 ms there, 10 ms held, 10 ms back.
        let reply = NtpPacket {
            received: at(5.03),
            transmitted: at(5.04),
            synchronised: true,
            ..NtpPacket::request(at(0.0))
        };
        let found = offset(at(0.0), &reply, 0.05);
        assert!((found.offset_s - 5.01).abs() < 1e-6 && (found.error_s - 0.02).abs() < 1e-6, "{found:?}");
        // A server that lies about the time it held the request.
        let liar = NtpPacket { transmitted: at(9.0), ..reply };
        assert!(offset(at(0.0), &liar, 0.05).error_s >= 0.0);
    }
}
