//! The channels between the loops of a run and the coordinator, and the messages on them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use polygraph_link::Nanos;
use polygraph_stats::stall::Stall;
use polygraph_stats::{Block, ErrorSample, Side, TransactionSample};
use polygraph_traffic::groups::PeerStatus;
use polygraph_traffic::store::SavedShare;
use serde::{Deserialize, Serialize};

use crate::live_counters::LiveCounters;

/// The statistics of one loop in one interval.
#[derive(Debug, Serialize, Deserialize)]
pub struct IntervalReport {
    /// The side of the loop.
    pub side: Side,
    /// The number of the loop on its side.
    pub index: usize,
    /// The number of the phase.
    pub phase: usize,
    /// Start of the interval.
    pub begin: Nanos,
    /// End of the interval.
    pub end: Nanos,
    /// The statistics.
    pub block: Box<Block>,
    /// Examples of errors.
    pub samples: Vec<ErrorSample>,
    /// Transactions for transaction samples.
    pub taken: Vec<TransactionSample>,
    /// Message dumps for the console.
    pub shown: Vec<String>,
    /// Processor time of the loop in the interval, in nanoseconds.
    pub cpu_ns: u64,
    /// The id of the process that runs the loop.
    pub process: u32,
    /// Resident memory of that process at the end of the interval, in bytes.
    pub rss_bytes: u64,
    /// Times in which the loop did not run, by the clock of links.
    pub stalls: Vec<Stall>,
}

/// A message from a loop to the aggregator.
#[derive(Debug, Serialize, Deserialize)]
pub enum Delivery {
    /// The statistics of an interval.
    Interval(IntervalReport),
    /// The loop's share of the working set, once, at the end.
    Share {
        /// The number of the loop on the client side.
        index: usize,
        /// The share.
        share: Box<SavedShare>,
    },
    /// Statuses of other processes, whenever they change.
    PeerUpdate(PeerUpdate),
}

/// Statuses of other processes that a loop has received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerUpdate {
    /// The side of the loop; the statuses are those of the other side.
    pub side: Side,
    /// The number of the loop on its side.
    pub index: usize,
    /// The last status of each process.
    pub statuses: Vec<PeerStatus>,
    /// Servers that the robots of the loop have not visited yet.
    pub unvisited: usize,
}

impl PeerUpdate {
    /// Whether `earlier` is the same, apart from the times.
    pub fn is_repeated_by(&self, earlier: &PeerUpdate) -> bool {
        let facts =
            |status: &PeerStatus| (status.group, status.position, status.waits, status.gone, status.replaced);
        self.unvisited == earlier.unvisited
            && self.statuses.iter().map(facts).eq(earlier.statuses.iter().map(facts))
    }
}

/// The channels between a loop and the coordinator.
#[derive(Debug)]
pub struct LoopChannels {
    /// The number of the loop on its side.
    pub index: usize,
    /// Counters that the coordinator may read at any time.
    pub live: Arc<LiveCounters>,
    /// The channel for statistics and other deliveries.
    pub deliveries: Sender<Delivery>,
    /// The channel on which used statistics blocks come back, to be filled again.
    pub recycled: Receiver<Box<Block>>,
    /// The channel for the one message that the loop is ready, or why it is not.
    pub ready: Sender<Ready>,
}

impl LoopChannels {
    /// The channels of the loop with number `index` on its side, and the coordinator's end of them.
    pub fn open(
        index: usize,
        deliveries: &Sender<Delivery>,
        ready: &Sender<Ready>,
    ) -> (LoopChannels, LoopEnd) {
        let live = Arc::<LiveCounters>::default();
        let (recycle, recycled) = channel();
        let end = LoopEnd { live: Arc::clone(&live), recycle };
        (LoopChannels { index, live, deliveries: deliveries.clone(), recycled, ready: ready.clone() }, end)
    }
}

/// The coordinator's end of the channels of one loop.
#[derive(Clone, Debug)]
pub struct LoopEnd {
    /// The counters of the loop.
    pub live: Arc<LiveCounters>,
    /// The channel that returns used statistics blocks to the loop.
    pub recycle: Sender<Box<Block>>,
}

/// Whether a loop is ready, or why it cannot start.
pub type Ready = io::Result<()>;
