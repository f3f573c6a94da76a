//! Network namespaces: in which one a change was made, and how to get there.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Where `ip netns` keeps named namespaces.
const NAMED: &str = "/run/netns";
/// How often one looks whether processes have ended.
const LOOK: Duration = Duration::from_millis(20);
/// How many looks processes get to end in order: three seconds.
const PATIENCE: usize = 150;
/// Stack of a thread in another namespace in bytes: as much as that of a program, because it may carry out whole runs.
const STACK: usize = 8 << 20;

/// A network namespace, by the number that the kernel gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace(u64);

impl Namespace {
    /// The namespace of this thread.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn current() -> Result<Namespace> {
        Namespace::of_file(Path::new("/proc/thread-self/ns/net"))
    }

    /// The namespace that `ip netns` knows by a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Namespace> {
        Namespace::of_file(&Path::new(NAMED).join(name))
    }

    fn of_file(path: &Path) -> Result<Namespace> {
        fs::metadata(path).map(|found| Namespace(found.ino())).map_err(|error| Error::file(path, error))
    }

    /// The processes in the namespace, apart from this one.
    pub fn processes(self) -> Vec<i32> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pid = |name: std::ffi::OsString| name.to_str()?.parse::<i32>().ok();
        all.filter_map(|process| Some((pid(process.file_name())?, process.path().join("ns/net"))))
            .filter(|(pid, path)| {
                *pid != getpid().as_raw_pid() && Namespace::of_file(path).ok() == Some(self)
            })
            .map(|(pid, _)| pid)
            .collect()
    }

    /// The name of the namespace, if `ip netns` knows it.
    pub fn name(self) -> Option<String> {
        self.named_file().and_then(|path| path.file_name()?.to_str().map(str::to_owned))
    }

    fn named_file(self) -> Option<PathBuf> {
        let files = fs::read_dir(NAMED).into_iter().flatten().flatten().map(|file| file.path());
        files.into_iter().find(|path| Namespace::of_file(path).ok() == Some(self))
    }

    /// A file through which the namespace can be entered: a named one, or that of a process in it. `None` if the
    /// namespace no longer exists.
    fn file(self) -> Option<PathBuf> {
        let processes = || fs::read_dir("/proc").into_iter().flatten().flatten();
        self.named_file().or_else(|| {
            processes()
                .map(|process| process.path().join("ns/net"))
                .find(|path| Namespace::of_file(path).ok() == Some(self))
        })
    }

    /// Does `work` in this namespace, in its own thread unless this thread is there already. `None` if the
    /// namespace no longer exists.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> Result<Option<T>> {
        if Namespace::current()? == self {
            return Ok(Some(work()));
        }
        let Some(path) = self.file() else { return Ok(None) };
        let file = File::open(&path).map_err(|error| Error::file(&path, error))?;
        thread::scope(|scope| {
            let inside = || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|error| Error::file(&path, error.into()))?;
                Ok(Some(work()))
            };
            let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, inside);
            let thread = thread.map_err(|error| Error::file(&path, error))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Ends all processes in a named namespace: they are asked to, then killed.
pub(crate) fn end_processes_in(name: &str) {
    let Ok(namespace) = Namespace::named(name) else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        for pid in namespace.processes().into_iter().filter_map(Pid::from_raw) {
            // It may have ended in between.
            let _ = kill_process(pid, signal);
        }
        for _ in 0..PATIENCE {
            if namespace.processes().is_empty() {
                return;
            }
            thread::sleep(LOOK);
        }
    }
}
