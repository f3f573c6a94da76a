//! Labs: benches on one machine, whose hosts are network namespaces with links to a switch.
//!
//! ```text
//! lab file ──┐
//!            ├─> Lab (hosts, addresses) ──> UpPlan (commands) ──> namespaces ──> runs in them
//! workload ──┘ bench needs
//! ```
//!
//! `file` reads lab files, and `plan` finds out how many hosts and which addresses the bench of a workload needs;
//! `layout` makes a [`Lab`] of both. `up_plan` is the list of commands that
//! make a lab, as data; `up` carries it out, `down` removes a lab, `directory` knows the labs that are there. `run` runs
//! a test in a lab: `host_process` starts and follows the processes on its hosts.
//!
//! # Decisions
//!
//! * **Everything is inside of namespaces.** They are the only changes to the host, recorded with `netsetup`: when they
//!   are removed, their links, addresses, routes and rules are gone with them.
//! * **The plan is data.** The dry run prints what would be done, and tests read it without root.
//! * **The workload decides on addresses**, so that a lab and the tests in it always agree.

#![allow(
    clippy::disallowed_methods,
    reason = "a lab is made by programs of the system, and runs start processes and wait for them in real time"
)]

mod directory;
mod down;
mod error;
mod file;
mod host_process;
mod layout;
mod run;
mod up;
mod up_plan;

pub use directory::{LabDirectory, LabState};
pub use down::take_down;
pub use error::{LabError, Result};
pub use file::{AgentPlaces, LabFile};
pub use layout::{Lab, LabHost, LabNetwork, LabRole, LabWorkload};
pub use run::{LabRun, LabRunEvent};
pub use up::bring_up;
pub use up_plan::UpPlan;
