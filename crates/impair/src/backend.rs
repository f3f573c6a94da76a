//! Chooses what emulates a path, sets it up and removes it.

use std::process::Child;
use std::time::Duration;

use polygraph_netsetup::{Changes, Ledger, Namespace, Netlink, State, Undone};
use rustix::thread::{CapabilitySet, capabilities};

use crate::active::{ActiveEmulation, ActiveFiles};
use crate::emulation::Emulation;
use crate::emulator::Queues;
use crate::error::WanError;
use crate::firewall::{self, Firewall, Step};
use crate::means::Means;
use crate::netem_host::{self, NetemSetup};
use crate::user_space;

/// What every record of an emulation starts with.
const PURPOSE: &str = "net wan";
/// How long the process of an emulation may take to end.
const END: Duration = Duration::from_secs(5);

/// What shall emulate a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Netem if it can do it, otherwise user space.
    Auto,
    /// The kernel.
    Netem,
    /// A process that holds packets.
    Nfqueue,
}

/// How an emulation is to be started.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// What shall do it.
    pub backend: Backend,
    /// The interfaces for netem; none for those with addresses of the networks.
    pub interfaces: Vec<String>,
    /// The command line of the process that holds packets; it calls [`user_space::serve`].
    pub process: Vec<String>,
    /// Whether everything ends together with this process.
    pub foreground: bool,
}

/// An emulation that has started.
#[derive(Debug)]
pub struct Started {
    /// The emulation as others find it.
    pub active: ActiveEmulation,
    /// Why it is not netem, if it could have been.
    pub fallback: Option<String>,
    changes: Changes,
    child: Option<Child>,
}

impl Started {
    /// Lets the emulation go on when this process ends.
    ///
    /// # Errors
    /// If this cannot be recorded.
    pub fn keep(self) -> Result<(), WanError> {
        Ok(self.changes.keep()?)
    }

    /// Removes the emulation.
    pub fn stop(mut self) -> Undone {
        let undone = self.changes.undo();
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        undone
    }
}

/// What would be run, for people. Numbers of queues are examples.
///
/// # Errors
/// If the back end cannot do it.
pub fn planned_steps(
    emulation: &Emulation,
    options: &StartOptions,
) -> Result<(Vec<Step>, Option<String>), WanError> {
    check_rights()?;
    let ledger = Ledger::of_system()?;
    match choose(&ledger, emulation, options)? {
        (Choice::Netem(setup), fallback) => Ok((netem_host::steps(emulation, &setup)?, fallback)),
        (Choice::Nfqueue(firewall), fallback) => {
            Ok((firewall.steps(&firewall::rules(emulation, &Queues::example(emulation))), fallback))
        }
    }
}

enum Choice {
    Netem(NetemSetup),
    Nfqueue(Firewall),
}

/// Checks that this process may change rules and queues, and read and send packets. Without this check, firewalls would
/// be blamed.
fn check_rights() -> Result<(), WanError> {
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    match capabilities(None) {
        Ok(own) if !own.effective.contains(needed) => Err(WanError::NotRoot {
            what: "emulating a path without the capabilities CAP_NET_ADMIN and CAP_NET_RAW".to_owned(),
        }),
        // Where capabilities cannot be read, the kernel says by itself what is not allowed.
        _ => Ok(()),
    }
}

/// Chooses, and says why netem is not chosen.
fn choose(
    ledger: &Ledger,
    emulation: &Emulation,
    options: &StartOptions,
) -> Result<(Choice, Option<String>), WanError> {
    // A wrong name is a mistake whatever holds the packets.
    if !options.interfaces.is_empty() {
        let mut netlink = Netlink::open()?;
        options.interfaces.iter().try_for_each(|name| netlink.interface(name).map(drop))?;
    }
    let mut fallback = None;
    if options.backend != Backend::Nfqueue {
        match choose_netem(ledger, emulation, options) {
            Ok(setup) => return Ok((Choice::Netem(setup), None)),
            Err(error) if options.backend == Backend::Netem => return Err(error),
            Err(error) => fallback = Some(error.to_string()),
        }
    }
    if !options.interfaces.is_empty() {
        return Err(WanError::NoInterfaces {
            because: fallback.map(|why| format!(" ({why})")).unwrap_or_default(),
        });
    }
    Ok((Choice::Nfqueue(choose_firewall(ledger, emulation)?), fallback))
}

fn choose_netem(
    ledger: &Ledger,
    emulation: &Emulation,
    options: &StartOptions,
) -> Result<NetemSetup, WanError> {
    if emulation.seed.is_some() {
        let reason = "it draws by itself, and a seed is given: leave out --seed".to_owned();
        return Err(WanError::NoNetem { reason });
    }
    netem_host::probe(ledger)?;
    let setup = netem_host::interfaces(emulation, &options.interfaces)?;
    // Whether netem knows the distributions shows here.
    netem_host::steps(emulation, &setup)?;
    Ok(setup)
}

fn choose_firewall(ledger: &Ledger, emulation: &Emulation) -> Result<Firewall, WanError> {
    let mut reasons = Vec::new();
    let families = |ipv6: bool| emulation.networks.iter().any(|network| network.address.is_ipv6() == ipv6);
    for firewall in Firewall::ALL {
        let probed: Result<Vec<()>, _> = [false, true]
            .into_iter()
            .filter(|&ipv6| families(ipv6))
            .map(|ipv6| firewall.probe(ledger, ipv6))
            .collect();
        match probed {
            Ok(_) => return Ok(firewall),
            Err(error) => reasons.push(error.to_string().replace('\n', " ")),
        }
    }
    Err(WanError::NoFirewall { reasons: reasons.join("; ") })
}

/// Sets up an emulation, after removing what killed processes have left behind.
///
/// # Errors
/// If no back end can do it, or if a change fails; then nothing is left behind.
pub fn start(emulation: &Emulation, options: &StartOptions) -> Result<Started, WanError> {
    check_rights()?;
    let ledger = Ledger::of_system()?;
    ledger.undo_abandoned()?;
    let (choice, fallback) = choose(&ledger, emulation, options)?;
    let mut changes = ledger.begin(&format!("{PURPOSE}: {emulation}"))?;
    let files = ActiveFiles::new(rustix::process::getpid().as_raw_nonzero().get())?;
    let (means, child) = match choice {
        Choice::Netem(setup) => {
            netem_host::start(emulation, &setup, &mut changes)?;
            (Means::Netem(setup), None)
        }
        Choice::Nfqueue(firewall) => {
            let process =
                user_space::start(emulation, &files, &options.process, options.foreground, &mut changes)?;
            for step in firewall.steps(&firewall::rules(emulation, &process.queues)) {
                step.make(&mut changes)?;
            }
            let (pid, queues, control) = (process.pid, process.queues, files.control.clone());
            (Means::Nfqueue { pid, queues, control, firewall }, Some(process.child))
        }
    };
    let active = ActiveEmulation { emulation: emulation.clone(), means, namespace: Namespace::current()? };
    active.announce(&files, &mut changes)?;
    Ok(Started { active, fallback, changes, child })
}

/// Removes all emulations of this namespace that are there to stay or left behind. The second value is the number of
/// those that belong to a command in the foreground.
///
/// # Errors
/// If the records cannot be read.
pub fn stop_all() -> Result<(Undone, usize), WanError> {
    let here = Namespace::current()?;
    let processes: Vec<i32> = ActiveEmulation::all_here()?
        .iter()
        .filter_map(|active| match active.means {
            Means::Nfqueue { pid, .. } => Some(pid),
            Means::Netem(_) => None,
        })
        .collect();
    let (mut all, mut in_use) = (Undone::default(), 0);
    let records = Ledger::of_system()?.records()?.into_iter().rev();
    for record in records.filter(|record| record.namespace == here && record.purpose.starts_with(PURPOSE)) {
        if record.state == State::InUse {
            in_use += 1;
            continue;
        }
        let undone = record.undo();
        all.done.extend(undone.done);
        all.failed.extend(undone.failed);
    }
    if in_use == 0 {
        processes.into_iter().for_each(wait_for_end);
    }
    Ok((all, in_use))
}

/// Waits until a process is gone that was asked to end.
fn wait_for_end(pid: i32) {
    let step = Duration::from_millis(5);
    // One that waits for its parent has closed its sockets.
    let stat = format!("/proc/{pid}/stat");
    let is_there = || std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
    let mut waited = Duration::ZERO;
    while is_there() && waited < END {
        std::thread::sleep(step);
        waited += step;
    }
}
