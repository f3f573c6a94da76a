//! The books of all sides of a run: what loops deliver and what the conductor tells goes into their logs and to
//! whoever watches.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use polygraph_link::Nanos;
use polygraph_stats::{EndReason, Header, Record, Sample, Side, Window};
use polygraph_traffic::groups::Word;
use polygraph_traffic::store::Share;

use crate::conductor::{Event, Seen};
use crate::gauge::Counts;
use crate::host::Host;
use crate::keeper::{Delivery, Heard};
use crate::ledger::Ledger;
use crate::run::{EngineError, Outcome};
use crate::sampling::Samples;
use crate::side::SideState;

/// Sees every record of all logs as it is written.
pub type Observer<'a> = dyn FnMut(&Header, &Record) + 'a;

/// The books of all sides.
#[derive(Debug)]
pub struct Books {
    host: Host,
    sides: Vec<SideState>,
    inbox: Receiver<Delivery>,
    /// Shares of the working set that were delivered, by loop; `None` if nobody wants them.
    shares: Option<BTreeMap<usize, Share>>,
    /// What was heard of other processes and not asked for yet, with the side of who told it.
    words: Vec<(Side, Word)>,
    /// Servers that robots must still visit, by loop.
    unvisited: BTreeMap<usize, usize>,
    start: Nanos,
}

impl Books {
    /// Books of these sides, whose loops deliver to `inbox`; `stores`: the working set is wanted at the end.
    pub fn new(host: Host, sides: Vec<SideState>, inbox: Receiver<Delivery>, stores: bool) -> Books {
        let shares = stores.then(BTreeMap::new);
        Books { host, sides, inbox, shares, words: Vec::new(), unvisited: BTreeMap::new(), start: 0 }
    }

    /// Opens the logs of a run that starts at `start`.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn open(&mut self, start: Nanos, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        self.start = start;
        for side in &mut self.sides {
            let Some(header) = side.header.take() else { continue };
            let back = std::mem::take(&mut side.back);
            let samples = Samples::new(std::mem::take(&mut side.samples));
            let paths = [&side.path, &side.sample_path].map(Option::as_deref);
            let mut ledger = Ledger::open(self.host, header, start, paths, samples, back)
                .map_err(|source| side.log_error(source))?;
            let record = Record::Header(Box::new(ledger.header().clone()));
            ledger.write(&record).map_err(|source| side.log_error(source))?;
            observer(ledger.header(), &record);
            side.ledger = Some(ledger);
        }
        Ok(())
    }

    /// Writes what the conductor tells to the logs of all sides.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn tell(&mut self, event: &Event, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        let record = event.record(self.start);
        if let Event::Erred { at, kind, detail } = event
            && let Some(ledger) = self.sides.iter_mut().find_map(|side| match side.side {
                Side::Client => side.ledger.as_mut(),
                Side::Server => None,
            })
        {
            ledger.note_error(Sample { at_ns: *at, kind: *kind, evidence: detail.clone().into() });
        }
        for side in &mut self.sides {
            let Some(mut ledger) = side.ledger.take() else { continue };
            ledger.write(&record).map_err(|source| side.log_error(source))?;
            observer(ledger.header(), &record);
            side.ledger = Some(ledger);
        }
        Ok(())
    }

    /// Takes what loops have handed over.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn collect(&mut self, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        while let Ok(delivery) = self.inbox.try_recv() {
            let mut hand_over = match delivery {
                Delivery::Interval(hand_over) => hand_over,
                Delivery::Share { index, share } => {
                    if let Some(shares) = &mut self.shares {
                        shares.insert(index, *share);
                    }
                    continue;
                }
                Delivery::Heard(heard) => {
                    self.hear(heard);
                    continue;
                }
            };
            let Some(side) = self.sides.iter_mut().find(|side| side.side == hand_over.side) else { continue };
            let Some(mut ledger) = side.ledger.take() else { continue };
            // Dumps are for the console alone.
            let at_ns = ledger.since_start(hand_over.end);
            for text in std::mem::take(&mut hand_over.shown) {
                observer(ledger.header(), &Record::Comment { at_ns, level: 0, text });
            }
            let records = ledger.take(hand_over).map_err(|source| side.log_error(source))?;
            records.iter().for_each(|record| observer(ledger.header(), record));
            side.ledger = Some(ledger);
        }
        Ok(())
    }

    fn hear(&mut self, heard: Heard) {
        let teller = match heard.side {
            Side::Client => {
                self.unvisited.insert(heard.index, heard.unvisited);
                Side::Server
            }
            Side::Server => Side::Client,
        };
        self.words.extend(heard.words.into_iter().map(|word| (teller, word)));
    }

    /// What was heard of other processes since the last call, with the side of who told it.
    fn take_words(&mut self) -> Vec<(Side, Word)> {
        std::mem::take(&mut self.words)
    }

    /// Servers that robots must still visit, summed over loops.
    fn unvisited(&self) -> usize {
        self.unvisited.values().sum()
    }

    /// Whether all loops have delivered what they counted until `at`.
    pub fn have_all_until(&self, at: Nanos) -> bool {
        let behind = |ledger: &Ledger| ledger.delivered() < ledger.since_start(at);
        !self.sides.iter().filter_map(|side| side.ledger.as_ref()).any(behind)
    }

    /// Closes the books at `now`.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn close(
        &mut self,
        now: Nanos,
        reason: EndReason,
        observer: &mut Observer<'_>,
    ) -> Result<Outcome, EngineError> {
        self.collect(observer)?;
        let totals = self.counts().totals();
        for side in &mut self.sides {
            let Some(mut ledger) = side.ledger.take() else { continue };
            let records = ledger.close(now, reason.clone()).map_err(|source| side.log_error(source))?;
            records.iter().for_each(|record| observer(ledger.header(), record));
        }
        let loops = self.client().map_or(0, |side| side.gauges.len());
        let shares = self.shares.take().filter(|shares| shares.len() == loops);
        Ok(Outcome { reason, totals, shares: shares.map(|shares| shares.into_values().collect()) })
    }

    /// The side of the robots, if there is one.
    fn client(&self) -> Option<&SideState> {
        self.sides.iter().find(|side| side.side == Side::Client)
    }

    /// The counts by which goals are judged: the client's, where there is one.
    fn counts(&self) -> Counts {
        self.client().or(self.sides.first()).map(SideState::counts).unwrap_or_default()
    }

    /// What the conductor is shown at `now`, when something outside the test may want to `stop` it.
    pub fn seen(&mut self, now: Nanos, stop: Option<EndReason>) -> Seen {
        Seen {
            now,
            counts: self.counts(),
            news: self.take_news(),
            activity: self.activity(),
            stop,
            words: self.take_words(),
            unvisited: self.unvisited(),
        }
    }

    /// What happened on the robots' side since this was asked last, as far as loops publish it.
    fn take_news(&self) -> Window {
        let mut all = Window::default();
        for gauge in self.client().iter().flat_map(|side| &side.gauges) {
            all.merge(&gauge.take_news());
        }
        all
    }

    /// Connections of all sides so far.
    pub fn connections(&self) -> u64 {
        self.sides.iter().map(|side| side.counts().connections).sum()
    }

    /// A number that changes when anything happens on any side.
    pub fn activity(&self) -> u64 {
        let counts = self.sides.iter().map(SideState::counts);
        counts.map(|counts| counts.started + counts.ok + counts.connections).sum()
    }
}
