//! Clocks of several hosts. Events of both sides can be put in order only if their times are those of one clock, so the times of clients
//! become those of the servers' clock if it is known to differ by much.

use polygraph_stats::record::environment::HOST;
use polygraph_stats::{Header, Side};

use crate::facts::{ProcessFacts, RunFacts};
use crate::source::{LogSource, RecordSource};
use crate::usage::{DeviceEnd, UsageSample};

/// Clocks that differ by fewer seconds put events in the right order: [`ClockAhead`](polygraph_stats::ClockAhead) is no more exact.
const APART_S: i64 = 2;
/// A `Date` that differs by more seconds is not that of a clock.
const APART_MOST_S: i64 = 86_400;

/// By how many seconds the servers' clock is ahead of that of this client, if that matters. One host has only one clock, so there a device has
/// changed `Date`.
pub(crate) fn ahead_s(facts: &RunFacts, client: &ProcessFacts) -> Option<i64> {
    let host = client.header.environment(HOST)?;
    let elsewhere =
        |server: &ProcessFacts| server.header.environment(HOST).is_some_and(|other| other != host);
    let ahead_s = client.clock.seconds()?;
    let matters = (APART_S..=APART_MOST_S).contains(&ahead_s.abs());
    (matters && facts.server.as_ref()?.processes.iter().all(elsewhere)).then_some(ahead_s)
}

/// A log whose times are those of another clock.
#[derive(Debug)]
pub(crate) struct Corrected<'a, S> {
    log: &'a S,
    header: Header,
}

/// The logs with the times of the servers' clock; `None` if they have them already. `facts` are those of the logs as they are.
pub(crate) fn corrected<'a, S: LogSource>(facts: &RunFacts, logs: &'a [S]) -> Option<Vec<Corrected<'a, S>>> {
    let clients = facts.client.iter().flat_map(|client| &client.processes);
    let mut ahead = clients.map(|client| ahead_s(facts, client));
    if ahead.clone().all(|ahead_s| ahead_s.is_none()) {
        return None;
    }
    let correct = |log: &'a S| {
        let mut header = log.header().clone();
        let ahead_s = if header.side == Side::Client { ahead.next().flatten().unwrap_or(0) } else { 0 };
        header.start_unix_ns = header.start_unix_ns.saturating_add_signed(ahead_s * 1_000_000_000);
        Corrected { log, header }
    };
    Some(logs.iter().map(correct).collect())
}

impl<S: LogSource> LogSource for Corrected<'_, S> {
    fn name(&self) -> &str {
        self.log.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn extent_ns(&self) -> u64 {
        self.log.extent_ns()
    }

    fn records(&self) -> RecordSource<'_> {
        self.log.records()
    }

    fn device_usage(&self) -> Vec<UsageSample> {
        self.log.device_usage()
    }

    fn device_end(&self) -> Option<DeviceEnd> {
        self.log.device_end()
    }
}
