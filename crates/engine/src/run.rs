//! Runs a test: the entry points of this crate.

use polygraph_stats::{Header, Record};

use crate::coordinator::Coordinator;
use crate::outcome::{EngineError, RunOutcome};
use crate::setup::RunSetup;

/// A test whose loops wait for the first phase. Its servers listen already.
#[derive(Debug)]
pub struct RunningTest {
    runtime: tokio::runtime::LocalRuntime,
    coordinator: Coordinator,
}

/// Starts the loops of a test.
///
/// The worker processes of a side are this program, started again with [`WORKER`](crate::relay::WORKER) as its first
/// argument. This function must be called on a thread that outlives the run.
///
/// # Errors
/// If a loop cannot be started, for example because an address cannot be used.
pub fn start(job: RunSetup) -> Result<RunningTest, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .map_err(EngineError::Loop)?;
    let coordinator = runtime.block_on(async { Coordinator::start(job) })?;
    Ok(RunningTest { runtime, coordinator })
}

impl RunningTest {
    /// Follows the test to its end. `watch` receives every record of all logs when it is written.
    ///
    /// # Errors
    /// If a log cannot be written. A failed test is not an error, see [`RunOutcome::reason`].
    pub fn follow(self, mut watch: impl FnMut(&Header, &Record)) -> Result<RunOutcome, EngineError> {
        let RunningTest { runtime, mut coordinator } = self;
        runtime.block_on(coordinator.follow(&mut watch))
    }
}

/// Runs a test to its end: [`start`] and [`RunningTest::follow`].
///
/// # Errors
/// If the test cannot be run. A failed test is not an error, see [`RunOutcome::reason`].
pub fn run(job: RunSetup, watch: impl FnMut(&Header, &Record)) -> Result<RunOutcome, EngineError> {
    start(job)?.follow(watch)
}
