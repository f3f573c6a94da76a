//! Statistics by server: how a device spreads requests over the servers behind it.

use serde::{Deserialize, Serialize};

use crate::fold::{Fold, fold_fields};
use crate::histogram::CoarseHistogram;

/// Servers of an event loop that are counted one by one. A workload with more of them would make the log many times as long.
pub const MAX_SERVERS: usize = 64;

/// The requests that one server received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerStats {
    /// Requests that carry the mark of a robot's transaction (`X-Xact`). They are counted when they begin.
    pub requests: u64,
    /// Requests without the mark, which the device makes by itself: health checks, for example.
    pub unmarked: u64,
    /// Response times of replies to requests with the mark, in microseconds.
    pub rptm_us: CoarseHistogram,
    /// Bytes of these replies.
    pub bytes: u64,
    /// Requests with the mark that failed.
    pub failed: u64,
    /// Whether the certificate of the server is bad on purpose, so that nobody should ask it for anything.
    pub bad_certificate: bool,
}

fold_fields! {
    ServerStats { requests, unmarked, rptm_us, bytes, failed, bad_certificate }
}

/// The statistics of servers by address. The log of a process with one server has one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByServer(Vec<(String, ServerStats)>);

impl ByServer {
    /// The statistics of a server, to be added to. `place` is its place among the servers of the event loop: blocks that are being
    /// filled are not searched.
    #[inline]
    pub fn at_mut(&mut self, place: usize, address: &str) -> &mut ServerStats {
        if self.0.get(place).is_none_or(|(known, _)| known.is_empty()) {
            self.add(place, address);
        }
        &mut self.0[place].1
    }

    /// Adds the server with this place.
    #[cold]
    fn add(&mut self, place: usize, address: &str) {
        if self.0.len() <= place {
            self.0.resize_with(place + 1, Default::default);
        }
        address.clone_into(&mut self.0[place].0);
    }

    /// The servers with their addresses, in the order of their places; a server without requests is among them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ServerStats)> {
        self.0.iter().filter(|(address, _)| !address.is_empty()).map(|(address, stats)| (&**address, stats))
    }

    /// Adds the statistics of another loop, log or time.
    pub fn merge(&mut self, other: &ByServer) {
        self.fold(other);
    }

    /// The statistics of the server with this address, if it was counted.
    pub fn get(&self, address: &str) -> Option<&ServerStats> {
        self.iter().find(|(known, _)| *known == address).map(|(_, stats)| stats)
    }
}

/// Servers of other logs are added at the end: their places mean nothing here.
impl Fold for ByServer {
    fn fold(&mut self, other: &ByServer) {
        for (address, stats) in other.iter() {
            match self.0.iter_mut().find(|(known, _)| known == address) {
                Some((_, mine)) => mine.fold(stats),
                None => self.0.push((address.to_owned(), stats.clone())),
            }
        }
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(|(_, stats)| stats.clear());
    }

    fn drop_bins(&mut self) {
        self.0.iter_mut().for_each(|(_, stats)| stats.drop_bins());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_several_loops_and_logs_add_up_by_address() {
        let mut one = ByServer::default();
        one.at_mut(1, "b").requests += 2;
        assert_eq!(one.iter().map(|(address, _)| address).collect::<Vec<_>>(), ["b"]);
        one.at_mut(0, "a").unmarked += 1;
        let mut other = ByServer::default();
        other.at_mut(0, "b").requests += 3;
        let bad = other.at_mut(1, "c");
        (bad.failed, bad.bad_certificate) = (1, true);
        one.fold(&other);
        let requests: Vec<_> = one.iter().map(|(address, stats)| (address, stats.requests)).collect();
        assert_eq!(requests, [("a", 0), ("b", 5), ("c", 0)]);
        assert_eq!(one.get("c").map(|stats| stats.failed), Some(1));
        one.clear();
        let bad: Vec<_> = one.iter().map(|(_, stats)| stats.bad_certificate).collect();
        assert_eq!(bad, [false, false, true], "the next interval has the same servers");
        assert_eq!(one.iter().map(|(_, stats)| stats.requests).sum::<u64>(), 0);
        one.at_mut(1, "b").requests += 1;
        assert_eq!(one.get("b").map(|stats| stats.requests), Some(1));
    }
}
