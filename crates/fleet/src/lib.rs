//! Many hosts: agents that run the processes of tests, and a controller that finds them, starts them together, follows them and
//! collects their logs, over NATS or ssh (docs/fleet.md).
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the messages and subjects; does no I/O and accepts any bytes |
//! | [`names`] | names of agents and runs, and paths, which are harmless by their types |
//! | [`clock`] | the offset of clocks from round trips |
//! | [`bus`] | messages by subjects and files, over NATS, or over ssh to agents that the controller starts |
//! | [`agent`] | the program on every host |
//! | [`files`] | the files of a workload, at places relative to each other |
//! | [`live`] | what monitors receive of a fleet |
//! | [`controller`] | the other side: inventory, start, follow, collect |
//!
//! # Decisions
//!
//! * **Load runs in its own processes**, `polygraph client` and `polygraph server`. They do not know the agent, do not share a
//!   runtime with it, and survive it; so nothing that happens to agents or NATS disturbs the load.
//! * **The bus is all that agents and controllers share**, so they do not know whether NATS or ssh carries it.
//! * **NATS does what NATS can**: finding agents, questions and answers, files in pieces with digests, clusters and reconnection.
//! * **Messages are complete.** A state says everything about a run on an agent, so whoever missed one needs only the next.
//! * **An agent starts nothing but this program**, with options of which it sets those that name files itself.
//! * **Logs stay on the hosts** until somebody removes them. What a controller did not get, it can fetch later.
//! * Everything runs on one thread; what an agent does for long goes to threads that block.

#![allow(
    clippy::disallowed_methods,
    reason = "agents start programs, and controllers and agents compare clocks and wait for each other"
)]

pub mod agent;
pub mod bus;
pub mod clock;
pub mod controller;
pub mod error;
pub mod files;
pub mod live;
pub mod names;
pub mod protocol;

pub use agent::{AgentEvent, AgentOptions};
pub use bus::BusOptions;
pub use clock::ClockOffset;
pub use controller::{Fleet, FleetEvent, FleetRun, LostPolicy};
pub use error::FleetError;
pub use names::{AgentName, RelativePath, RunId};

/// Runs a future on this thread until it is ready.
///
/// # Errors
/// If the system refuses a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let value = runtime.block_on(future);
    // Commands that an agent runs for a question need not be awaited.
    runtime.shutdown_background();
    Ok(value)
}
