//! What would spoil a run on this host: facts, checks, and what mends what they find.
//!
//! ```text
//! /proc, /sys, system calls --read--> HostFacts --checks, with the PlannedLoad--> HostFinding --> text, JSON, fixes
//! ```
//!
//! `facts` is plain data, which `read` takes from the host and tests make up. Each check in `checks` is one pure
//! function; `catalogue` lists them all. `mend` applies what is safe. Nothing here makes load or prints.

#![allow(clippy::disallowed_methods, reason = "a sample of an idle host takes a moment of real time")]

pub mod catalogue;
mod checks;
pub mod facts;
mod finding;
mod mend;
pub mod parse;
mod planned_load;
mod read;
mod units;

pub use catalogue::{CHECKS, Diagnosis, HostCheck, diagnose, diagnose_quick, worst};
pub use facts::HostFacts;
pub use finding::{HostFinding, Impact, Remedy};
pub use mend::{Mended, PURPOSE, mend, take_back};
pub use planned_load::PlannedLoad;
pub use read::{Depth, read_descriptors, read_host, sample_idle};
