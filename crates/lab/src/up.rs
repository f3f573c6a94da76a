//! Makes a lab.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use polygraph_netsetup::{Change, Changes, Ledger, run_program, run_program_with_input};

use crate::directory::{LabDirectory, LabState};
use crate::error::{LabError, Result};
use crate::layout::Lab;
use crate::up_plan::{NEIGHBOUR_LIMITS, UpPlan, neighbour_limit};

/// The settings of the kernel's table of neighbours.
const NEIGHBOURS: &str = "/proc/sys/net/ipv4/neigh/default";

/// How long the kernel may take to notice that the cables of a lab are plugged in. It takes up to a few seconds on a busy host.
const CABLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes a lab that stays until it is taken down. If that fails, nothing is left of it.
///
/// # Errors
/// If a lab of this name is up, or a command fails.
pub fn bring_up(lab: &Lab, plan: &UpPlan, directory: &LabDirectory, ledger: &Ledger) -> Result<()> {
    // What a killed process left behind may have the names of this lab.
    ledger.undo_abandoned()?;
    if directory.file(&lab.name).exists() {
        return Err(LabError::AlreadyUp(lab.name.clone()));
    }
    let mut changes = ledger.begin(&purpose(&lab.name))?;
    let mut state = LabState { lab: lab.clone(), complete: false };
    changes.make(Change::File { path: directory.file(&lab.name) }, || Ok(directory.write(&state)))??;
    let made = carry_out(plan, &mut changes);
    if let Err(error) = made {
        // Commands inside of the namespaces have their own records, which are undone first.
        undo_inside(ledger, &lab.name)?;
        return Err(error);
    }
    state.complete = true;
    directory.write(&state)?;
    changes.keep()?;
    Ok(())
}

fn carry_out(plan: &UpPlan, changes: &mut Changes) -> Result<()> {
    for name in &plan.namespaces {
        let change = Change::Namespace { name: name.clone() };
        changes.make(change, || run_program(&["ip", "netns", "add", name]).map(drop))?;
    }
    if let Some(size) = plan.neighbours {
        raise_neighbours(size, changes)?;
    }
    for step in &plan.steps {
        run_program_with_input(&step.command, &step.input)?;
    }
    plan.namespaces.iter().try_for_each(|namespace| wait_for_cables(namespace))
}

/// Waits until the cables of a namespace carry packets. Until then the kernel drops what is sent.
fn wait_for_cables(namespace: &str) -> Result<()> {
    let deadline = Instant::now() + CABLE_TIMEOUT;
    loop {
        let links = run_program(&["ip", "-n", namespace, "-br", "link", "show", "type", "veth"])?;
        let Some(down) = links.lines().find(|link| link.split_whitespace().nth(1) != Some("UP")) else {
            return Ok(());
        };
        if Instant::now() > deadline {
            return Err(LabError::CableDown { namespace: namespace.to_owned(), cable: down.to_owned() });
        }
        sleep(Duration::from_millis(10));
    }
}

/// Makes the kernel's table of neighbours large enough. Only the first namespace of a system has the setting.
fn raise_neighbours(size: usize, changes: &mut Changes) -> Result<()> {
    for (name, _) in NEIGHBOUR_LIMITS {
        let path = Path::new(NEIGHBOURS).join(name);
        let wanted = neighbour_limit(name, size);
        let present = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<usize>().ok());
        if present.is_some_and(|present| present < wanted) {
            changes.set(&path, &wanted.to_string())?;
        }
    }
    Ok(())
}

/// What the changes of a lab were made for, in the ledger.
pub(crate) fn purpose(lab: &str) -> String {
    format!("lab {lab}")
}

/// Undoes changes that commands made inside of a lab's namespaces.
pub(crate) fn undo_inside(ledger: &Ledger, lab: &str) -> Result<Vec<String>> {
    let prefix = crate::layout::namespace_prefix(lab);
    let mut done = Vec::new();
    for record in ledger.records()?.into_iter().rev() {
        let inside = record.namespace.name().is_some_and(|name| name.starts_with(&prefix));
        if inside && record.purpose != purpose(lab) {
            done.extend(record.undo().done);
        }
    }
    Ok(done)
}
