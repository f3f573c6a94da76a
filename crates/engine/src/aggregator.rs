//! The aggregator of a run: writes the statistics that loops deliver and the events of the phase controller to the
//! logs of all sides, and passes them to the observer.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use polygraph_link::Nanos;
use polygraph_stats::{EndReason, ErrorSample, Header, Record, Side, Window};
use polygraph_traffic::groups::PeerStatus;
use polygraph_traffic::store::SavedShare;

use crate::channels::{Delivery, PeerUpdate};
use crate::host::Host;
use crate::live_counters::Counts;
use crate::outcome::{EngineError, RunOutcome};
use crate::phase_controller::{ControlEvent, Observations};
use crate::side::SideState;
use crate::side_aggregator::SideAggregator;
use crate::transaction_samples::TransactionSamples;

/// A function that receives every record of all logs when it is written.
pub type Observer<'a> = dyn FnMut(&Header, &Record) + 'a;

/// The statistics of all sides of a run.
#[derive(Debug)]
pub struct Aggregator {
    host: Host,
    sides: Vec<SideState>,
    inbox: Receiver<Delivery>,
    /// Shares of the working set that loops have delivered, by loop; `None` if the working set is not stored.
    shares: Option<BTreeMap<usize, SavedShare>>,
    /// Statuses of other processes that nobody has taken yet, each with the side of the process that sent it.
    statuses: Vec<(Side, PeerStatus)>,
    /// Servers that the robots of each loop have not visited yet.
    unvisited: BTreeMap<usize, usize>,
    start: Nanos,
}

impl Aggregator {
    /// An aggregator of these sides, whose loops deliver to `inbox`. With `stores`, it collects the working set at
    /// the end.
    pub fn new(host: Host, sides: Vec<SideState>, inbox: Receiver<Delivery>, stores: bool) -> Aggregator {
        let shares = stores.then(BTreeMap::new);
        Aggregator {
            host,
            sides,
            inbox,
            shares,
            statuses: Vec::new(),
            unvisited: BTreeMap::new(),
            start: Nanos::ZERO,
        }
    }

    /// Opens the logs of a run that starts at `start`.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn open(&mut self, start: Nanos, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        self.start = start;
        for side in &mut self.sides {
            let Some(header) = side.header.take() else { continue };
            let recycled = side.loops.iter().map(|end| end.recycle.clone()).collect();
            let samples = TransactionSamples::new(std::mem::take(&mut side.samples));
            let paths = [&side.path, &side.sample_path].map(Option::as_deref);
            let mut aggregator = SideAggregator::open(self.host, header, start, paths, samples, recycled)
                .map_err(|source| side.log_error(source))?;
            let record = Record::Header(Box::new(aggregator.header().clone()));
            aggregator.write(&record).map_err(|source| side.log_error(source))?;
            observer(aggregator.header(), &record);
            side.aggregator = Some(aggregator);
        }
        Ok(())
    }

    /// Writes an event of the phase controller to the logs of all sides.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn record(&mut self, event: &ControlEvent, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        let record = event.record(self.start);
        if let ControlEvent::WorkloadError { at, kind, detail } = event
            && let Some(aggregator) = self.sides.iter_mut().find_map(|side| match side.side {
                Side::Client => side.aggregator.as_mut(),
                Side::Server => None,
            })
        {
            aggregator.note_error(ErrorSample {
                at_ns: (*at).as_u64(),
                kind: *kind,
                evidence: detail.clone().into(),
            });
        }
        for side in &mut self.sides {
            let Some(mut aggregator) = side.aggregator.take() else { continue };
            aggregator.write(&record).map_err(|source| side.log_error(source))?;
            observer(aggregator.header(), &record);
            side.aggregator = Some(aggregator);
        }
        Ok(())
    }

    /// Processes what loops have delivered since the last call.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn collect(&mut self, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        while let Ok(delivery) = self.inbox.try_recv() {
            let mut interval_report = match delivery {
                Delivery::Interval(interval_report) => interval_report,
                Delivery::Share { index, share } => {
                    if let Some(shares) = &mut self.shares {
                        shares.insert(index, *share);
                    }
                    continue;
                }
                Delivery::PeerUpdate(update) => {
                    self.take_peer_update(update);
                    continue;
                }
            };
            let Some(side) = self.sides.iter_mut().find(|side| side.side == interval_report.side) else {
                continue;
            };
            let Some(mut aggregator) = side.aggregator.take() else { continue };
            // Message dumps go to the console, not to the log.
            let at_ns = aggregator.since_start(interval_report.end);
            for text in std::mem::take(&mut interval_report.shown) {
                observer(aggregator.header(), &Record::Comment { at_ns, level: 0, text });
            }
            let records = aggregator.take(interval_report).map_err(|source| side.log_error(source))?;
            records.iter().for_each(|record| observer(aggregator.header(), record));
            aggregator.recycle(records);
            side.aggregator = Some(aggregator);
        }
        Ok(())
    }

    fn take_peer_update(&mut self, update: PeerUpdate) {
        let teller = match update.side {
            Side::Client => {
                self.unvisited.insert(update.index, update.unvisited);
                Side::Server
            }
            Side::Server => Side::Client,
        };
        self.statuses.extend(update.statuses.into_iter().map(|status| (teller, status)));
    }

    /// The statuses of other processes since the last call, each with the side of the process that sent it.
    fn take_statuses(&mut self) -> Vec<(Side, PeerStatus)> {
        std::mem::take(&mut self.statuses)
    }

    /// Servers that robots have not visited yet, over all loops.
    fn unvisited(&self) -> usize {
        self.unvisited.values().sum()
    }

    /// Whether all loops have delivered their statistics up to `at`.
    pub fn have_all_until(&self, at: Nanos) -> bool {
        let behind = |aggregator: &SideAggregator| aggregator.delivered() < aggregator.since_start(at);
        !self.sides.iter().filter_map(|side| side.aggregator.as_ref()).any(behind)
    }

    /// Writes the last records at `now` and closes the logs.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn close(
        &mut self,
        now: Nanos,
        reason: EndReason,
        observer: &mut Observer<'_>,
    ) -> Result<RunOutcome, EngineError> {
        self.collect(observer)?;
        let totals = self.counts().totals();
        for side in &mut self.sides {
            let Some(mut aggregator) = side.aggregator.take() else { continue };
            let records = aggregator.close(now, reason.clone()).map_err(|source| side.log_error(source))?;
            records.iter().for_each(|record| observer(aggregator.header(), record));
        }
        let loops = self.client().map_or(0, |side| side.loops.len());
        let shares = self.shares.take().filter(|shares| shares.len() == loops);
        Ok(RunOutcome { reason, totals, shares: shares.map(|shares| shares.into_values().collect()) })
    }

    /// The side of the robots, if this process runs robots.
    fn client(&self) -> Option<&SideState> {
        self.sides.iter().find(|side| side.side == Side::Client)
    }

    /// The counts by which phase goals are judged: those of the client side if there is one, otherwise those of the
    /// servers.
    fn counts(&self) -> Counts {
        self.client().or(self.sides.first()).map(SideState::counts).unwrap_or_default()
    }

    /// What the phase controller needs to know at `now`. `stop` is a reason outside the test to end it.
    pub fn observe(&mut self, now: Nanos, stop: Option<EndReason>) -> Observations {
        Observations {
            now,
            counts: self.counts(),
            delta: self.take_delta(),
            activity: self.activity(),
            stop,
            statuses: self.take_statuses(),
            unvisited: self.unvisited(),
        }
    }

    /// What happened on the robots' side since the last call, as far as loops have published it.
    fn take_delta(&self) -> Window {
        let mut all = Window::default();
        for end in self.client().iter().flat_map(|side| &side.loops) {
            all.merge(&end.live.take_delta());
        }
        all
    }

    /// Connections of all sides since the start.
    pub fn connections(&self) -> u64 {
        self.sides.iter().map(|side| side.counts().connections).sum()
    }

    /// A number that changes with every transaction and connection of any side.
    pub fn activity(&self) -> u64 {
        let counts = self.sides.iter().map(SideState::counts);
        counts.map(|counts| counts.started + counts.ok + counts.connections).sum()
    }
}
