//! The settings of a run that both sides share and that are not part of the test.

use polygraph_engine::Engine;
use polygraph_stats::DumpPlan;

use crate::{Notice, Notify};

/// Default number of seconds without a successful transaction after which a run fails.
pub const FAIL_TIMEOUT_S: Option<f64> = Some(15.0);

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The command line, word by word, for the logs.
    pub command: Vec<String>,
    /// The user's name for the run; empty if there is none.
    pub label: String,
    /// Length of statistics intervals in seconds.
    pub interval_s: f64,
    /// Timers closer together than this share a wake-up, in seconds.
    pub timer_quantum_s: f64,
    /// The run ends after this many seconds without traffic; `None`: never.
    pub idle_timeout_s: Option<f64>,
    /// Event loops of each side; `None`: as many as suit the load and the processors.
    pub loops: Option<usize>,
    /// Worker processes of each side; 0: as many as the limit of file descriptors requires.
    pub workers: usize,
    /// What event loops wait with; `None` in simulations.
    pub engine: Option<Engine>,
    /// Seed of everything that all processes of a test must agree on.
    pub global_seed: u64,
    /// Seed of this process's own choices.
    pub local_seed: u64,
    /// Objects and transactions get ids that no other run has. Otherwise ids depend on seeds only.
    pub unique_ids: bool,
    /// The messages that the console shows.
    pub dump: DumpPlan,
}

impl RunSettings {
    /// Tells the user if event loops do not wait with epoll, once the test can start.
    pub fn announce_engine(&self, notify: Notify) {
        if self.engine() == Engine::Uring {
            notify(Notice::Note("event loops wait with io_uring".to_owned()));
        }
    }

    /// What event loops wait with.
    pub fn engine(&self) -> Engine {
        self.engine.unwrap_or(Engine::Epoll)
    }

    /// Settings of a simulation, which is the same whenever it is repeated.
    pub fn of_simulation(global_seed: u64, local_seed: u64, interval_s: f64) -> RunSettings {
        RunSettings {
            command: Vec::new(),
            label: String::new(),
            interval_s,
            timer_quantum_s: 0.0,
            idle_timeout_s: None,
            loops: Some(1),
            workers: 0,
            engine: None,
            global_seed,
            local_seed,
            unique_ids: false,
            dump: DumpPlan::default(),
        }
    }
}
