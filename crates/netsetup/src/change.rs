//! One change to this host, and how it is undone.

use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::namespace::end_processes_in;
use crate::netlink::{Netlink, Route};
use crate::prefix::IpPrefix;
use crate::program::run_program;

/// A change that is about to be made, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Something that a program of the system does, for example a firewall rule, a link or a namespace.
    Command {
        /// What was changed, for people.
        what: String,
        /// The command line that undoes it.
        undo: Vec<String>,
    },
    /// A setting of the kernel, a file below `/proc/sys` or `/sys`.
    Setting {
        /// The file.
        path: PathBuf,
        /// Its content before the change.
        before: String,
    },
    /// A file that was created.
    File {
        /// The file.
        path: PathBuf,
    },
    /// Addresses that an interface was given.
    Addresses {
        /// The name of the interface.
        interface: String,
        /// The addresses in the order in which they were added.
        addresses: Vec<IpPrefix>,
    },
    /// Routes that were added.
    Routes {
        /// The routes.
        routes: Vec<Route>,
    },
    /// A named network namespace, with everything in it.
    Namespace {
        /// Its name, as `ip netns` knows it.
        name: String,
    },
    /// A process that was started and goes on in the background.
    Process {
        /// Its id.
        pid: i32,
        /// When it started, in clock ticks after the start of the system; tells it from a later process with this id.
        started: u64,
        /// Whether the other changes of its record are of use only while it runs.
        #[serde(default)]
        needed: bool,
    },
}

impl Change {
    /// The change that the start of a process is. `None` if the process is gone.
    pub fn process(pid: i32) -> Option<Change> {
        Some(Change::Process { pid, started: start_of_process(pid)?, needed: false })
    }

    /// The same for a process without which the other changes of its record are of no use: when it is gone, they are
    /// abandoned, also if they were to stay.
    pub fn needed_process(pid: i32) -> Option<Change> {
        Some(Change::Process { pid, started: start_of_process(pid)?, needed: true })
    }

    /// Whether this is a process that other changes need and that is gone.
    pub(crate) fn is_missed(&self) -> bool {
        match self {
            Change::Process { pid, started, needed } => *needed && start_of_process(*pid) != Some(*started),
            _ => false,
        }
    }

    /// Whether the change disappears together with its network namespace.
    pub(crate) fn is_of_network(&self) -> bool {
        !matches!(self, Change::File { .. } | Change::Process { .. } | Change::Namespace { .. })
    }

    /// Undoes the change. A change that was never made, or is undone already, is not an error.
    ///
    /// # Errors
    /// If the change is still there afterwards, as far as can be seen.
    pub fn undo(&self) -> Result<()> {
        match self {
            Change::Command { undo, .. } => match run_program(undo) {
                Err(Error::Program { message, .. }) if is_absence(&message) => Ok(()),
                done => done.map(drop),
            },
            Change::Setting { path, before } => fs::write(path, before).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(Error::file(path, error)),
            }),
            Change::File { path } => fs::remove_file(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(Error::file(path, error)),
            }),
            Change::Addresses { interface, addresses } => {
                let mut netlink = Netlink::open()?;
                let found = netlink.interfaces()?.into_iter().find(|found| found.name == *interface);
                found.map_or(Ok(()), |found| netlink.remove_addresses(found.index, addresses))
            }
            Change::Routes { routes } => Netlink::open()?.remove_routes(routes),
            Change::Namespace { name } => {
                // Processes keep a namespace alive after its name is gone.
                end_processes_in(name);
                match run_program(&["ip", "netns", "del", name]) {
                    Err(Error::Program { message, .. }) if is_absence(&message) => Ok(()),
                    done => done.map(drop),
                }
            }
            Change::Process { pid, started, .. } => {
                if start_of_process(*pid) == Some(*started)
                    && let Some(pid) = Pid::from_raw(*pid)
                {
                    // It may have ended in between.
                    let _ = kill_process(pid, Signal::TERM);
                }
                Ok(())
            }
        }
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Command { what, .. } => f.write_str(what),
            Change::Setting { path, before } => write!(f, "{} (was {})", path.display(), before.trim()),
            Change::File { path } => write!(f, "file {}", path.display()),
            Change::Addresses { interface, addresses } => match &addresses[..] {
                [only] => write!(f, "address {only} of {interface}"),
                [first, .., last] => {
                    write!(f, "{} addresses of {interface}, {first} to {last}", addresses.len())
                }
                [] => write!(f, "no addresses of {interface}"),
            },
            Change::Routes { routes } => {
                let routes: Vec<String> = routes.iter().map(ToString::to_string).collect();
                write!(f, "route {}", routes.join(", "))
            }
            Change::Namespace { name } => write!(f, "network namespace {name}"),
            Change::Process { pid, .. } => write!(f, "process {pid}"),
        }
    }
}

/// Whether a program says that what it should remove is not there.
fn is_absence(message: &str) -> bool {
    const PHRASES: [&str; 8] = [
        "No such process",
        "No such file",
        "Cannot find device",
        "Cannot assign requested address",
        "does a matching rule exist",
        "No chain/target/match",
        "No such device",
        "Bad rule",
    ];
    PHRASES.iter().any(|phrase| message.contains(phrase))
}

/// When a process started, in clock ticks after the start of the system (proc(5), field 22 of `stat`). `None` if it has
/// ended, also if nobody has asked for its end yet.
fn start_of_process(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_files_are_put_back() {
        let _alone = crate::one_test_at_a_time();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("setting");
        fs::write(&path, "2\n").unwrap();
        Change::Setting { path: path.clone(), before: "1\n".to_owned() }.undo().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
        let file = Change::File { path: path.clone() };
        file.undo().unwrap();
        assert!(!path.exists());
        file.undo().unwrap();
    }

    #[test]
    fn a_process_is_ended_and_a_later_one_with_its_id_is_not() {
        let _alone = crate::one_test_at_a_time();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let Some(Change::Process { pid, started, .. }) = Change::process(pid) else { panic!() };
        Change::Process { pid, started: started + 1, needed: false }.undo().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        Change::Process { pid, started, needed: false }.undo().unwrap();
        // It has ended, whether somebody asks for its end or not.
        while Change::process(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(!child.wait().unwrap().success());
        assert_eq!(Change::process(pid), None);
    }
}
