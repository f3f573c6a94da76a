//! The times of phases and the factors in force. The phase controller writes the timeline, all loops read it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polygraph_link::Nanos;
use polygraph_plan::{Factors, Schedule};
use polygraph_traffic::groups::PhaseStatus;
use serde::{Deserialize, Serialize};

/// The value of a time that is not decided yet.
const UNKNOWN: u64 = u64::MAX;

/// The times at which the run starts and its phases end. Each is set once, a little ahead, so that all loops switch
/// at the same moment.
#[derive(Debug)]
pub struct Timeline {
    start: AtomicU64,
    ends: Vec<AtomicU64>,
    /// The share of its goal that each phase has reached, as the bits of an `f64`.
    progress: Vec<AtomicU64>,
    /// The factors in force by phase: those of the schedule, until a load controller adjusts them.
    factors: Mutex<Vec<Factors>>,
    /// The phase status that loops send to other processes.
    phase_status: Mutex<PhaseStatus>,
    frozen_from: AtomicU64,
    servers_released: AtomicBool,
    deltas_wanted: AtomicBool,
}

/// A snapshot of the timeline for loops in other processes. All processes of a machine share the monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    start: u64,
    ends: Vec<u64>,
    progress: Vec<u64>,
    factors: Vec<Factors>,
    phase_status: PhaseStatus,
    frozen_from: u64,
    servers_released: bool,
    deltas_wanted: bool,
}

impl Timeline {
    /// The timeline of a schedule that has not started.
    pub fn new(schedule: &Schedule) -> Timeline {
        let cells = |value| schedule.phases.iter().map(|_| AtomicU64::new(value)).collect();
        Timeline {
            start: AtomicU64::new(UNKNOWN),
            ends: cells(UNKNOWN),
            progress: cells(0),
            factors: Mutex::new(schedule.phases.iter().map(|phase| phase.factors).collect()),
            phase_status: Mutex::default(),
            frozen_from: AtomicU64::new(UNKNOWN),
            servers_released: AtomicBool::new(false),
            deltas_wanted: AtomicBool::new(false),
        }
    }

    /// A snapshot of the timeline.
    pub fn decisions(&self) -> Decisions {
        let all = |cells: &[AtomicU64]| cells.iter().map(|cell| cell.load(Ordering::Acquire)).collect();
        Decisions {
            start: self.start.load(Ordering::Acquire),
            ends: all(&self.ends),
            progress: all(&self.progress),
            factors: self.all_factors().clone(),
            phase_status: self.phase_status(),
            frozen_from: self.frozen_from.load(Ordering::Acquire),
            servers_released: self.servers_released(),
            deltas_wanted: self.deltas_wanted(),
        }
    }

    /// Adopts a snapshot of another process. Ends come first: a loop that sees the start of a run must also see that
    /// the run was cut.
    pub fn adopt(&self, decisions: &Decisions) {
        let store = |cells: &[AtomicU64], values: &[u64]| {
            cells.iter().zip(values).for_each(|(cell, &value)| cell.store(value, Ordering::Release));
        };
        store(&self.ends, &decisions.ends);
        store(&self.progress, &decisions.progress);
        self.all_factors().clone_from(&decisions.factors);
        self.set_phase_status(decisions.phase_status);
        self.start.store(decisions.start, Ordering::Release);
        self.frozen_from.store(decisions.frozen_from, Ordering::Release);
        self.servers_released.store(decisions.servers_released, Ordering::Release);
        self.deltas_wanted.store(decisions.deltas_wanted, Ordering::Release);
    }

    /// Number of phases.
    pub fn phases(&self) -> usize {
        self.ends.len()
    }

    /// When the run starts; `None` if that is not decided.
    pub fn start(&self) -> Option<Nanos> {
        known(&self.start)
    }

    /// Sets the start of the run.
    pub fn set_start(&self, at: Nanos) {
        self.start.store(at.as_u64(), Ordering::Release);
    }

    /// When `phase` ends; `None` if that is not decided.
    pub fn end(&self, phase: usize) -> Option<Nanos> {
        known(&self.ends[phase])
    }

    /// Sets the end of `phase`.
    pub fn set_end(&self, phase: usize, at: Nanos) {
        self.ends[phase].store(at.as_u64(), Ordering::Release);
    }

    /// The share of its goal (0 to 1) that `phase` has reached. Factors follow it if the phase has no duration.
    pub fn progress(&self, phase: usize) -> f64 {
        f64::from_bits(self.progress[phase].load(Ordering::Acquire))
    }

    /// Publishes the progress of `phase`.
    pub fn set_progress(&self, phase: usize, share: f64) {
        self.progress[phase].store(share.to_bits(), Ordering::Release);
    }

    /// The factors in force in `phase`.
    pub fn factors(&self, phase: usize) -> Factors {
        self.all_factors()[phase]
    }

    /// Sets the factors of `phase`.
    pub fn set_factors(&self, phase: usize, factors: Factors) {
        self.all_factors()[phase] = factors;
    }

    /// The phase status that loops send to other processes.
    pub fn phase_status(&self) -> PhaseStatus {
        *self.phase_status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the phase status.
    pub fn set_phase_status(&self, phase_status: PhaseStatus) {
        *self.phase_status.lock().unwrap_or_else(PoisonError::into_inner) = phase_status;
    }

    fn all_factors(&self) -> MutexGuard<'_, Vec<Factors>> {
        self.factors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time from which the working set is frozen; `None` if that is not decided.
    pub fn frozen_from(&self) -> Option<Nanos> {
        known(&self.frozen_from)
    }

    /// Freezes the working set for all requests that are due at `at` or later.
    pub fn freeze_from(&self, at: Nanos) {
        self.frozen_from.store(at.as_u64(), Ordering::Release);
    }

    /// Whether servers may close their connections. While robots of this process are counting, a closed connection
    /// would look like a failure to them.
    pub fn servers_released(&self) -> bool {
        self.servers_released.load(Ordering::Acquire)
    }

    /// Lets servers close their connections.
    pub fn release_servers(&self) {
        self.servers_released.store(true, Ordering::Release);
    }

    /// Whether loops of robots publish deltas at every poll.
    pub fn deltas_wanted(&self) -> bool {
        self.deltas_wanted.load(Ordering::Acquire)
    }

    /// Makes loops of robots publish deltas for the rest of the run.
    pub fn request_deltas(&self) {
        self.deltas_wanted.store(true, Ordering::Release);
    }

    /// Ends the run at `at`: the phase that is running then, and all later ones. An end in the past is unchanged,
    /// because loops have acted on it.
    pub fn cut(&self, phase: usize, at: Nanos) {
        for end in &self.ends[phase..] {
            if end.load(Ordering::Acquire) > at.as_u64() {
                end.store(at.as_u64(), Ordering::Release);
            }
        }
    }
}

fn known(cell: &AtomicU64) -> Option<Nanos> {
    Some(cell.load(Ordering::Acquire)).filter(|&at| at != UNKNOWN).map(Nanos::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_plan::{Factor, Phase};

    #[test]
    fn decisions_are_the_same_wherever_they_are_adopted() {
        let schedule = Schedule { phases: vec![Phase::default(); 3], working_set: None };
        let (here, there) = (Timeline::new(&schedule), Timeline::new(&schedule));
        let same = || {
            there.adopt(&here.decisions());
            assert_eq!(there.decisions(), here.decisions());
        };
        same();
        assert_eq!((there.start(), there.end(0), there.frozen_from()), (None, None, None));
        here.set_start(Nanos::new(100));
        here.set_end(0, Nanos::new(200));
        here.set_progress(1, 0.25);
        same();
        assert_eq!(
            (there.start(), there.end(0), there.end(1)),
            (Some(Nanos::new(100)), Some(Nanos::new(200)), None)
        );
        assert_eq!((there.progress(0), there.progress(1)), (0.0, 0.25));
        here.set_factors(2, Factors { load: Factor::flat(0.5), ..Factors::ONE });
        same();
        assert_eq!([1, 2].map(|phase| there.factors(phase).load), [Factor::ONE, Factor::flat(0.5)]);
        here.set_phase_status(PhaseStatus { position: 2, least: 1, waits: true, gone: None });
        same();
        assert!(there.phase_status().waits);
        here.freeze_from(Nanos::new(250));
        here.cut(1, Nanos::new(300));
        here.release_servers();
        here.request_deltas();
        same();
        assert_eq!([0, 1, 2].map(|phase| there.end(phase)), [200, 300, 300].map(|at| Some(Nanos::new(at))));
        assert_eq!(there.frozen_from(), Some(Nanos::new(250)));
        assert!(there.servers_released() && there.deltas_wanted());
    }
}
