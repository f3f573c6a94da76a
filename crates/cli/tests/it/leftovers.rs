//! What tests leave behind that fail or are killed: processes below those that they started, and network namespaces.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use rustix::process::{Pid, Signal, kill_process};

/// Where the kernel shows named network namespaces.
const NAMESPACES: &str = "/run/netns";

/// Kills a process and all below it. A master that is killed alone leaves its workers, and a run its device.
pub fn kill_family(pid: Pid) {
    let children = children(pid);
    let _ = kill_process(pid, Signal::KILL);
    children.into_iter().for_each(kill_family);
}

fn children(parent: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name of the program stands in parentheses, and may contain anything; the state and the parent follow.
        let parent_of: i32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        (parent_of == parent.as_raw_nonzero().get()).then(|| Pid::from_raw(pid)).flatten()
    };
    processes.filter_map(is_child).collect()
}

/// Removes the namespaces and labs of tests that no longer run, once in a process. Tests that are killed, or panic a second time,
/// cannot do it themselves; addresses of a lab that stayed would be taken.
pub fn remove() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| remove_of(|owner| !Path::new("/proc").join(owner.to_string()).exists()));
}

/// Removes the namespaces of the tests in processes that `is_gone` names.
fn remove_of(is_gone: impl Fn(u32) -> bool) {
    let names: Vec<String> = names().into_iter().filter(|name| owner(name).is_some_and(&is_gone)).collect();
    let labs: BTreeSet<&str> = names.iter().filter_map(|name| lab(name)).collect();
    for lab in labs {
        // Ends the processes in the lab, and removes what the ledger of changes has.
        let _ = Command::new(env!("CARGO_BIN_EXE_polygraph")).args(["lab", "down", lab]).output();
    }
    for name in names.iter().filter(|name| self::names().contains(name)) {
        let inside = Command::new("ip").args(["netns", "pids", name]).output();
        let inside =
            inside.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let pids = inside.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        for pid in pids {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = Command::new("ip").args(["netns", "del", name]).output();
    }
}

/// All named namespaces.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The name of the lab to which a namespace belongs.
fn lab(namespace: &str) -> Option<&str> {
    Some(namespace.strip_prefix("pglab-")?.rsplit_once('-')?.0)
}

/// The process of the test that made a namespace. All tests that make namespaces or labs begin their names with `pg` and their
/// process id.
fn owner(namespace: &str) -> Option<u32> {
    let name = namespace.strip_prefix("pglab-").unwrap_or(namespace).strip_prefix("pg")?;
    let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    name[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sandbox::{PATIENCE, Sandbox};

    #[test]
    fn names_tell_whose_they_are() {
        assert_eq!(owner("pglab-pg123a-clt1"), Some(123));
        assert_eq!(owner("pg45-0a"), Some(45));
        assert_eq!(owner("pg678"), Some(678));
        assert_eq!((owner("pglab-small-clt1"), owner("pgsql"), owner("blue")), (None, None, None));
        assert_eq!((lab("pglab-pg123a-clt1"), lab("pg45-0a")), (Some("pg123a"), None));
    }

    /// Like a master with a worker. The worker ignores that its input ends, and says its process id.
    #[test]
    fn a_program_that_is_dropped_takes_its_children_with_it() {
        let sandbox = Sandbox::new();
        sandbox.write("master.sh", "sh -c 'echo worker $$; exec sleep 600' &\nwait\n");
        let mut master = sandbox.start_program("sh", "master.sh");
        let worker = master.wait_for("worker").split_once(' ').unwrap().1.parse().unwrap();
        let worker = Pid::from_raw(worker).unwrap();
        assert_eq!(children(master.pid()), [worker]);
        drop(master);
        let deadline = Instant::now() + PATIENCE;
        while !is_gone(worker) {
            assert!(Instant::now() < deadline, "the worker outlives its master");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A process that has ended, or only waits for its parent to notice.
    fn is_gone(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.map_or(true, |stat| {
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        })
    }

    /// A process that has ended and been waited for, so that no other has its number yet.
    fn ended() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn namespaces_of_tests_that_were_killed_go_with_the_processes_in_them() {
        let owner = ended();
        let name = format!("pg{owner}leftover");
        let ip = |words: &str| Command::new("ip").args(words.split_whitespace()).status().unwrap().success();
        assert!(ip(&format!("netns add {name}")), "this test needs root and iproute2");
        let mut inside: Child = Command::new("ip")
            .args(["netns", "exec", &name, "sh", "-c", "echo here; exec sleep 600"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(inside.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        // Another process of tests may have the same idea at the same time.
        remove_of(|process| process == owner);
        assert!(!names().contains(&name));
        assert!(!inside.wait().unwrap().success(), "it was killed");
    }

    #[test]
    fn labs_of_tests_that_were_killed_are_taken_down() {
        let (owner, sandbox) = (ended(), Sandbox::new());
        let lab = format!("pg{owner}z");
        let two_hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/two-hosts.toml");
        sandbox.write(&format!("{lab}.toml"), &std::fs::read_to_string(two_hosts).unwrap());
        let up = sandbox.polygraph(&format!("lab up {lab}.toml"));
        assert_eq!(up.code(), Some(0), "labs need root and iproute2: {up:?}");
        assert!(names().iter().any(|name| name.contains(&lab)));
        remove_of(|process| process == owner);
        assert!(!names().iter().any(|name| name.contains(&lab)));
        assert!(!Path::new(&format!("/run/polygraph/labs/{lab}.json")).exists());
    }
}
