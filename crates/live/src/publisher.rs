//! Publishes the live statistics of this process: a thread that turns records into messages, and endpoints to which
//! monitors attach.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use polygraph_report::Verdict;
use polygraph_report::so_far::RunSoFar;
use polygraph_stats::{Header, Record};

use crate::endpoint::Endpoint;
use crate::event::Event;
use crate::from_records::SideStatistics;
use crate::hub::Hub;
use crate::statistics::LiveVerdict;

/// How often the verdict so far is computed. It costs some milliseconds.
const VERDICT_EVERY: Duration = Duration::from_secs(10);

/// Stack of the thread in bytes: as much as that of a program, because the statistics and the verdict of a whole run are moved about.
/// A thread's default of 2 MB is too little for some ways of compiling.
const STACK: usize = 8 << 20;

/// Publishes what a process does while it runs.
#[derive(Debug)]
pub struct Publisher {
    hub: Arc<Hub>,
    events: Option<Sender<Event>>,
    thread: Option<JoinHandle<()>>,
    endpoints: Vec<Endpoint>,
    headers: BTreeMap<&'static str, Arc<Header>>,
}

impl Publisher {
    /// A publisher to which nobody can attach so far.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn new() -> io::Result<Publisher> {
        let (events, inbox) = channel();
        let hub = Arc::new(Hub::of(events.clone()));
        let mut work = Work::new(Arc::clone(&hub));
        let thread = thread::Builder::new().name("live".into()).stack_size(STACK);
        let thread = thread.spawn(move || work.run(&inbox))?;
        Ok(Publisher {
            hub,
            events: Some(events),
            thread: Some(thread),
            endpoints: Vec::new(),
            headers: BTreeMap::new(),
        })
    }

    /// Lets monitors attach at an endpoint.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn serve(&mut self, endpoint: Endpoint) -> io::Result<()> {
        endpoint.serve(Arc::clone(&self.hub))?;
        self.endpoints.push(endpoint);
        Ok(())
    }

    /// Where messages meet their readers.
    pub fn hub(&self) -> Arc<Hub> {
        Arc::clone(&self.hub)
    }

    /// Publishes that a side waits for traffic.
    pub fn waiting(&mut self, header: &Header) {
        self.send(Event::Waiting(Box::new(header.clone())));
    }

    /// Publishes a record. It does not wait for anybody.
    pub fn observe(&mut self, header: &Header, record: &Record) {
        let wanted = match record {
            Record::Header(_) => {
                self.headers.insert(header.side.name(), Arc::new(header.clone()));
                false
            }
            Record::PhaseBegin { .. }
            | Record::Interval(_)
            | Record::PhaseEnd { .. }
            | Record::Stall(_)
            | Record::End { .. } => true,
            Record::Comment { .. } | Record::ErrorSample { .. } | Record::Xacts { .. } => false,
        };
        if let Some(known) = self.headers.get(header.side.name()).filter(|_| wanted) {
            let known = Arc::clone(known);
            self.send(Event::Record(known, Box::new(record.clone())));
        }
    }

    fn send(&self, event: Event) {
        if let Some(events) = &self.events {
            // The thread ends only with this channel.
            let _ = events.send(event);
        }
    }
}

impl Drop for Publisher {
    /// Publishes what is left, and ends the connections.
    fn drop(&mut self) {
        self.events = None;
        self.hub.forget_thread();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.hub.close();
        self.endpoints.drain(..).for_each(Endpoint::close);
    }
}

/// What the thread works with.
struct Work {
    hub: Arc<Hub>,
    sides: BTreeMap<&'static str, SideStatistics>,
    so_far: RunSoFar,
    /// Whether anybody has read a message. Before, the verdict would be for nobody, and a short run has better things to do.
    is_read: bool,
    judged: Option<Instant>,
}

impl Work {
    fn new(hub: Arc<Hub>) -> Work {
        Work { hub, sides: BTreeMap::new(), so_far: RunSoFar::default(), is_read: false, judged: None }
    }

    fn run(&mut self, inbox: &Receiver<Event>) {
        loop {
            match inbox.recv_timeout(VERDICT_EVERY) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Waiting(header) => {
                let side = SideStatistics::new(&header);
                self.hub.publish(side.now());
                self.sides.insert(header.side.name(), side);
            }
            Event::Record(header, record) => self.record(&header, &record),
            Event::Read(ready) => {
                self.is_read = true;
                self.judge();
                self.sides.values().for_each(|side| self.hub.amend(side.now()));
                drop(ready);
            }
        }
    }

    fn record(&mut self, header: &Arc<Header>, record: &Record) {
        self.so_far.add(header, record);
        let side = self.sides.entry(header.side.name()).or_insert_with(|| SideStatistics::new(header));
        if !side.add(header, record) {
            return;
        }
        let is_turn = matches!(record, Record::PhaseEnd { .. } | Record::End { .. });
        let is_due = self.judged.is_none_or(|last| last.elapsed() >= VERDICT_EVERY);
        if self.is_read && (is_turn || is_due) {
            self.judge();
        }
        if let Some(side) = self.sides.get(header.side.name()) {
            self.hub.publish(side.now());
        }
    }

    fn judge(&mut self) {
        let verdict = self.so_far.verdict();
        // Before the first verdict, it is worth another try with the next message.
        self.judged = verdict.is_some().then(Instant::now);
        let verdict = verdict.as_ref().map(live_verdict);
        self.sides.values_mut().for_each(|side| side.set_verdict(verdict.clone()));
    }
}

fn live_verdict(verdict: &Verdict) -> LiveVerdict {
    LiveVerdict {
        word: verdict.word(),
        meaning: verdict.meaning(),
        findings: verdict.findings.iter().map(|finding| finding.text.clone()).collect(),
    }
}
