//! Changes to the network of this host: addresses, routes, rules and settings. Each change is recorded before it is
//! made, so that it is undone at the end, and after a crash by the next start or by `polygraph net clean`.
//!
//! `ledger` holds the records of all processes, `record` those of one, `change` what can be changed and how it is undone, `addressing`
//! changes of addresses and routes, `namespace` the
//! network namespace in which a change was made, `netlink` reads and changes interfaces, addresses and routes, `networks` finds the networks of many addresses, `program` runs the tools of the system.

#![allow(
    clippy::disallowed_methods,
    reason = "the network is changed by programs of the system, and in threads that enter a network namespace"
)]

mod addressing;
mod change;
mod error;
mod ledger;
mod namespace;
mod netlink;
mod networks;
mod prefix;
mod program;
mod record;

pub use addressing::MAX_INTERFACE_ADDRESSES;
pub use change::Change;
pub use error::{Error, Result};
pub use ledger::{Changes, Ledger, SYSTEM_DIRECTORY};
pub use namespace::Namespace;
pub use netlink::{Interface, InterfaceAddress, Netlink, Route, RouteKind};
pub use networks::{cover, networks, separate};
pub use prefix::IpPrefix;
pub use program::{run_program, run_program_with_input};
pub use record::{RecordedChanges, State, Undone};

/// Held by tests: a program that another test is just starting would hold copies of the descriptors of this one, and
/// of its locks.
#[cfg(test)]
pub(crate) fn one_test_at_a_time() -> std::sync::MutexGuard<'static, ()> {
    static TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
