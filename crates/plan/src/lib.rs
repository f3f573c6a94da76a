//! From options or a workload to a plan: values, phases, goals.
//!
//! * [`values`]: the value grammar of the command lines (`80p`, `250/sec`, `norm:3s,1.5s`).
//! * [`goal`]: when a phase has done its work, and when the test has failed.
//! * [`phases`]: the phases of a test in order.

pub mod goal;
pub mod phases;
pub mod values;

pub use goal::Goal;
pub use phases::{Phase, PhaseLoad, Schedule};
