//! Plans of tests, from options or a workload: values, phases, goals, predictions.
//!
//! * [`values`]: the value grammar of the command lines (`80p`, `250/sec`, `norm:3s,1.5s`).
//! * [`goal`]: when a phase is complete, and when the test has failed.
//! * [`factor`]: how much of the configured behaviour applies in a phase.
//! * [`offered`]: the hit ratio that robots offer.
//! * [`peak`]: the search for the highest rate that a device sustains.
//! * [`phases`], [`table`]: the phases of a test in order, and as a table for people.
//! * [`rptmstat`]: the controller that keeps the response time within a window.
//! * [`script`]: code that runs with a phase.
//! * [`mod@lower`]: from a workload to a test that the engine can run.
//! * [`mod@test`]: a test as the engine runs it.
//! * [`bench_needs`]: how many hosts a workload needs, and the addresses of each of them.
//! * [`accounts`]: the accounts that robots log in with.
//! * [`predict`]: what load a workload offers, and what the hosts need for it.
//! * [`without_effect`]: settings that nothing reads.
//!
//! # Decisions
//!
//! * **[`lower`](mod@lower) decides on every field** of a workload: it is read, or any value but its default is rejected by name. Nothing is left out silently. Files and
//!   names come in through a trait, because plans do no I/O.
//! * **Ramps are straight lines** ([`factor`]): robots thin out a stream at the full rate, so nothing bursts and nothing gets stuck at zero.
//! * **`check` simulates a sample**: some robots and servers for the whole time, because hit ratios depend on the objects of a server and the rate of a
//!   robot, not on their numbers.
//! * **A peak search is a function of its trials** ([`peak`]): runs are votes, and the next step follows from all votes so far, so a search resumes by
//!   reading them again.

pub mod accounts;
pub mod bench_addresses;
pub mod bench_needs;
pub mod division;
pub mod factor;
pub mod goal;
pub mod lower;
pub mod offered;
pub mod peak;
pub mod phases;
pub mod predict;
pub mod rptmstat;
mod sample;
pub mod script;
pub mod table;
pub mod test;
pub mod values;
pub mod without_effect;

pub use bench_needs::{BenchNeeds, HostNeeds};
pub use division::{Division, DivisionError, HostShare, SideShare, TestHost, divide};
pub use factor::{Factor, Factors, Inheritance, Inherited, Levels};
pub use goal::{Goal, PositiveGoal};
pub use lower::{Environment, LowerError, lower, plain_tls};
pub use phases::{Phase, SamplePlan, Schedule, WorkingSetLimit};
pub use rptmstat::Rptmstat;
pub use script::Script;
pub use test::{Endpoint, ServerGroup, Test, TestShare};
