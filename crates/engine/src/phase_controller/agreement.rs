//! Agreement with the other processes of a test: when a phase may end, what this process reports, and which process
//! is given up.

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_stats::EndReason;
use polygraph_traffic::UniqId;
use polygraph_traffic::groups::PhaseStatus;

use super::barrier::{Barrier, LostPeer};
use super::{ControlEvent, ControllerState, CurrentPhase, NOTICE, Observations, PhaseController};

/// After a longer pause between steps this process was suspended, and does not know which processes sent a status
/// meanwhile.
const LONGEST_STEP: Nanos = SECOND;
/// How often the processes that this one waits for are reported.
const REMINDER_INTERVAL: Nanos = Nanos::from_secs(5);
/// How long servers stay after the end without a new connection, in seconds. Robots that know about the end are gone
/// by then.
const LINGER_SECONDS: f64 = 3.0;
/// How long the last phase of servers goes on without traffic after all clients have reached its end. Clients hear of that with their
/// replies, and end [`NOTICE`] later; what they receive until then must be in the logs of the servers, too.
const LAST_REPLIES: Nanos = Nanos::from_millis(500);
/// How long the last phase of servers goes on at most after all clients have reached its end, if there is traffic all the time.
const LONGEST_LAST_REPLIES: Nanos = Nanos::from_secs(10);

/// Settings for the agreement with other processes of a test.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// The group ids of this process.
    pub own: Vec<UniqId>,
    /// After this many seconds without a status, a group that others wait for is given up; `None`: never.
    pub patience: Option<f64>,
}

/// What the phase controller knows about other processes.
#[derive(Debug)]
pub(super) struct Agreement {
    pub barrier: Barrier,
    /// When this process completed its part of the current phase; it waits for others since then.
    waits_since: Option<Nanos>,
    /// When the controller was last called, and since when without a suspension.
    asked: Nanos,
    awake: Nanos,
    reminded: Nanos,
    lost: Option<LostPeer>,
}

impl Agreement {
    pub fn new(others: Option<&PeerSettings>, start: Nanos) -> Agreement {
        let own = others.map_or_else(Vec::new, |others| others.own.clone());
        let patience = others.and_then(|others| others.patience).map(nanos);
        Agreement {
            barrier: Barrier::new(own, patience),
            waits_since: None,
            asked: start,
            awake: start,
            reminded: start,
            lost: None,
        }
    }
}

impl PhaseController {
    /// Records the statuses of other processes.
    pub(super) fn record_peers(&mut self, observed: &Observations) {
        let agreement = &mut self.agreement;
        if observed.now > agreement.asked + LONGEST_STEP {
            agreement.awake = observed.now;
        }
        agreement.asked = observed.now;
        observed.statuses.iter().for_each(|(side, status)| agreement.barrier.record(*side, *status));
    }

    /// Whether the current phase ends at the same time in all processes.
    pub(super) fn is_shared(&self, current: &CurrentPhase) -> bool {
        self.plan.peers.is_some() && self.phase_of(current).synchronize
    }

    /// Whether this process runs servers only and knows clients; it then follows their phases.
    pub(super) fn follows(&self, current: &CurrentPhase) -> bool {
        let barrier = &self.agreement.barrier;
        !self.plan.has_robots && self.is_shared(current) && barrier.least_client().is_some()
    }

    /// When a process that runs servers only ends the current phase; `None` while that is unknown. When all clients have reached its
    /// end, the servers report that; the phase ends when one of the clients has gone on, because clients may still wait for
    /// another server. No client reports the end of the last phase, so it ends when no more requests arrive.
    pub(super) fn end_after_clients(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
    ) -> Option<Nanos> {
        let (next, barrier) = (current.phase as u64 + 1, &self.agreement.barrier);
        if barrier.least_client().is_none_or(|least| least < next) {
            return None;
        }
        let arrived = *self.agreement.waits_since.get_or_insert(observed.now);
        if next as usize == self.plan.schedule.phases.len() {
            let end = arrived.max(self.last_traffic.1) + LAST_REPLIES;
            return (end.min(arrived + LONGEST_LAST_REPLIES) <= observed.now).then_some(observed.now);
        }
        self.agreement.barrier.has_left(next).then_some(observed.now + NOTICE)
    }

    /// Records that this process has completed its part of the current phase. Returns whether all other processes
    /// have, too.
    pub(super) fn has_everyone_arrived(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) -> bool {
        let position = current.phase as u64 + 1;
        let is_first = self.agreement.waits_since.is_none();
        let since = *self.agreement.waits_since.get_or_insert(observed.now);
        let name = self.phase_of(current).name.clone();
        let others = self.agreement.barrier.len() - self.agreement.barrier.replaced(position).count();
        if self.agreement.barrier.have_all_reached(position) {
            if others > 0 {
                let waited = (observed.now - since).as_f64() / SECOND.as_f64();
                let text = format!(
                    "phase {name}: all {} processes have reached its end, after {waited:.2} s",
                    others + 1
                );
                events.push(ControlEvent::message(observed.now, 5, text));
            }
            for (side, status) in self.agreement.barrier.replaced(position) {
                let text = format!(
                    "phase {name}: the {} process {} has sent no status at its end, but others answer in its place",
                    side.name(),
                    status.group
                );
                events.push(ControlEvent::message(observed.now, 1, text));
            }
            return true;
        }
        if is_first || observed.now >= self.agreement.reminded + REMINDER_INTERVAL {
            self.agreement.reminded = observed.now;
            let lagging = self.agreement.barrier.lagging(position).map(|(side, status)| {
                let ago = (observed.now.saturating_sub(Nanos::new(status.at))).as_f64() / SECOND.as_f64();
                format!("{} {} at {}, last status {ago:.1} s ago", side.name(), status.group, status.position)
            });
            let list: Vec<String> = lagging.collect();
            let text =
                format!("phase {name}: this process is at {position} and waits for {}", list.join("; "));
            events.push(ControlEvent::message(observed.now, 10, text));
        }
        false
    }

    /// A new phase has started, so this process no longer waits for others.
    pub(super) fn start_phase_together(&mut self) {
        self.agreement.waits_since = None;
    }

    /// Publishes the phase status that loops send to other processes.
    pub(super) fn publish_status(&self) {
        if self.plan.peers.is_none() {
            return;
        }
        let agreement = &self.agreement;
        let is_there = agreement.waits_since.is_some();
        let (position, waits) = match &self.stage {
            ControllerState::Before(phase, _) => (*phase as u64, false),
            ControllerState::In(current) => {
                let is_held = self.plan.timeline.end(current.phase).is_none();
                (current.phase as u64 + u64::from(is_there), is_there && is_held)
            }
            ControllerState::Over(EndReason::Finished) => (self.plan.schedule.phases.len() as u64, false),
            ControllerState::Over(_) => (self.plan.timeline.phase_status().position, false),
        };
        let least = agreement.barrier.least_client().map_or(position, |least| least.min(position));
        let gone = agreement.lost.map(|lost| lost.group);
        self.plan.timeline.set_phase_status(PhaseStatus { position, least, waits, gone });
    }

    /// The reason to end the test if another process was lost.
    pub(super) fn lost_peer(&mut self, current: &CurrentPhase, observed: &Observations) -> Option<EndReason> {
        let patience = self.plan.peers.as_ref()?.patience;
        let agreement = &mut self.agreement;
        let waits = agreement.waits_since.map(|_| current.phase as u64 + 1);
        let since = agreement.waits_since.unwrap_or(Nanos::ZERO).max(agreement.awake);
        let lost = agreement.barrier.lost(waits, since, observed.now)?;
        agreement.lost = Some(lost);
        // A group that only others know is on our side, because processes hear only of the other side.
        let side = lost.side.unwrap_or(self.plan.main_side());
        let silence = patience.map_or("too long".to_owned(), |seconds| format!("{seconds} s"));
        let name = &self.phase_of(current).name;
        let why = format!(
            "the {} process {} has sent no status for {silence} while others waited for it at the end of a phase (here: {name})",
            side.name(),
            lost.group
        );
        Some(EndReason::fatal(side, why))
    }

    /// How many seconds without a connection the servers stay after the end of the test, because robots of other
    /// processes do not know about the end yet; `None`: they end at once.
    pub fn servers_linger(&self) -> Option<f64> {
        self.plan.peers.as_ref().filter(|_| !self.plan.has_robots)?;
        let idle = self.plan.idle_timeout;
        match self.ended()? {
            EndReason::Finished if self.agreement.barrier.is_empty() => None,
            // A client that does not wait for others sends nothing after its last request.
            EndReason::Finished if !self.plan.schedule.phases.last()?.synchronize => idle,
            EndReason::Finished => Some(idle.unwrap_or(LINGER_SECONDS).min(LINGER_SECONDS)),
            EndReason::Fatal { .. } if self.agreement.lost.is_some() => {
                Some(idle.unwrap_or(LINGER_SECONDS).min(LINGER_SECONDS))
            }
            _ => None,
        }
    }
}
