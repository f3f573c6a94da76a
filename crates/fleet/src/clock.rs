//! The offset of another host's clock, from round trips (RFC 5905, section 8, with one time stamp of the other side).

use std::time::Duration;

/// One question about the time, with the clocks in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The clock of this host when the question was sent.
    pub sent: u64,
    /// The clock of the other host when it answered.
    pub remote: u64,
    /// The clock of this host when the answer came.
    pub received: u64,
}

/// How far the clock of another host is from that of this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// How many seconds the other clock is ahead.
    pub seconds: f64,
    /// The offset is right within so many seconds.
    pub uncertainty: f64,
}

impl ClockOffset {
    /// The offset by the shortest of several round trips, which is the most exact one; `None` if there is none.
    pub fn measured(trips: &[RoundTrip]) -> Option<ClockOffset> {
        let best = trips
            .iter()
            .filter(|trip| trip.received >= trip.sent)
            .min_by_key(|trip| trip.received - trip.sent)?;
        let half = (best.received - best.sent) as f64 / 2.0;
        // Differences first: a clock in nanoseconds does not fit into 53 bits.
        let ahead = i128::from(best.remote) - i128::from(best.sent);
        Some(ClockOffset { seconds: (ahead as f64 - half) * 1e-9, uncertainty: half * 1e-9 })
    }

    /// Whether the clocks differ by more than this, beyond doubt.
    pub fn exceeds(&self, limit: Duration) -> bool {
        self.seconds.abs() - self.uncertainty > limit.as_secs_f64()
    }
}

impl std::fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:+.3} ms ± {:.3}", self.seconds * 1e3, self.uncertainty * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 1_795_435_200_000_000_000;

    fn trip(sent: u64, remote: i64, received: u64) -> RoundTrip {
        RoundTrip {
            sent: BASE + sent,
            remote: BASE.checked_add_signed(remote).unwrap(),
            received: BASE + received,
        }
    }

    #[test]
    fn the_shortest_round_trip_counts() {
        let trips = [trip(0, 90_000_000, 100_000_000), trip(0, 3_000_000, 2_000_000), trip(5, 9, 4)];
        let offset = ClockOffset::measured(&trips).unwrap();
        assert!((offset.seconds - 0.002).abs() < 1e-9, "{offset:?}");
        assert!((offset.uncertainty - 0.001).abs() < 1e-9, "{offset:?}");
        assert_eq!(offset.to_string(), "+2.000 ms ± 1.000");
        assert_eq!(ClockOffset::measured(&[]), None);
        assert_eq!(ClockOffset::measured(&[trip(5, 9, 4)]), None);
    }

    #[test]
    fn clocks_differ_only_beyond_doubt() {
        let behind = ClockOffset::measured(&[trip(0, -8_000_000, 4_000_000)]).unwrap();
        assert!((behind.seconds + 0.010).abs() < 1e-9);
        for (limit_ms, exceeds) in [(5, true), (7, true), (8, false), (10, false)] {
            assert_eq!(behind.exceeds(Duration::from_millis(limit_ms)), exceeds, "{limit_ms}");
        }
    }
}
