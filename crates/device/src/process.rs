//! Programs of a device, run as child processes.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid, getrlimit, kill_process_group,
    set_parent_process_death_signal, setrlimit, waitid,
};

use crate::error::{Error, Result};
use crate::unix_user::UnixUser;
use crate::usage::Usage;

/// The interval between two checks of an awaited condition.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long a program may take to end before it is killed. Traffic Server takes at least three seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// The directory, user and limits of a device's programs.
#[derive(Clone, Debug)]
pub(crate) struct ProcessEnvironment {
    /// The current directory of the programs; files in it receive their output.
    pub work: PathBuf,
    /// The user to run as.
    pub user: Option<UnixUser>,
    /// Descriptors that each process may open.
    pub descriptors: u64,
}

/// A child process with its own process group, so that signals from the terminal do not reach it and all of its
/// children can be ended with it. The kernel asks the child to end when the thread that started it ends.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The id of the leader and of its group, which is not reused until the leader is waited for.
    group: Pid,
    program: PathBuf,
    /// The exit status, once the leader was waited for.
    status: Option<ExitStatus>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The exit status, if the process ended without being asked to.
    pub early: Option<ExitStatus>,
    /// Whether the process had to be killed because it did not end when asked to.
    pub killed: bool,
}

impl Process {
    /// Starts a program. Its output is appended to `<name>.out` and `<name>.err` in the work directory.
    pub fn start(program: &Path, args: &[String], home: &ProcessEnvironment, name: &str) -> Result<Process> {
        let child = command(program, args, home, name)?
            .spawn()
            .map_err(|source| Error::Start { program: program.into(), source })?;
        Ok(Process { group: Pid::from_child(&child), child, program: program.into(), status: None })
    }

    /// The process id of the group leader.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the group leader has ended.
    pub fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.status.is_some() || matches!(waitid(WaitId::Pid(self.group), look), Ok(Some(_)))
    }

    /// Waits until `ready` returns true.
    ///
    /// # Errors
    /// A description of the problem, if the process ends or `patience` is over before.
    pub fn wait_until(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut(u32) -> bool,
    ) -> std::result::Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            if self.has_ended() {
                let status = self.reap().map_or_else(String::new, |status| format!(" ({status})"));
                return Err(format!("{} ended before it was ready{status}", self.program.display()));
            }
            if ready(self.id()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = patience.as_secs();
                return Err(format!("{} was not ready after {seconds} s", self.program.display()));
            }
            thread::sleep(CHECK_INTERVAL);
        }
    }

    /// The resource usage of the process group.
    pub fn usage(&self) -> Usage {
        Usage::of_group(self.group.as_raw_nonzero().get())
    }

    /// Asks the process to end, waits, and kills the rest of its group.
    pub fn stop(&mut self) -> ProcessEnd {
        let early = self.has_ended();
        let mut killed = false;
        if !early {
            self.signal(Signal::TERM);
            killed = !self.wait(STOP_TIMEOUT);
        }
        let status = self.reap();
        ProcessEnd { early: status.filter(|_| early), killed }
    }

    /// Waits for the leader to end. Returns false if that takes longer than `patience`.
    pub fn wait(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(CHECK_INTERVAL);
        }
        true
    }

    /// Kills the rest of the group, because children that outlive their leader keep its port open. Returns the exit
    /// status of the leader.
    pub fn reap(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::KILL);
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
        self.status
    }

    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            // It is no error if the group has already ended.
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a program until it ends.
///
/// # Errors
/// If the program cannot be started. The inner error describes the problem if it fails or takes longer than
/// `patience`.
pub(crate) fn run(
    program: &Path,
    args: &[String],
    home: &ProcessEnvironment,
    name: &str,
    patience: Duration,
) -> Result<std::result::Result<(), String>> {
    let mut process = Process::start(program, args, home, name)?;
    let text = |what: &str| format!("{} {} {what}", program.display(), args.join(" "));
    if !process.wait(patience) {
        return Ok(Err(text(&format!("took longer than {} s", patience.as_secs()))));
    }
    Ok(match process.reap() {
        Some(status) if !status.success() => Err(text(&format!("failed ({status})"))),
        _ => Ok(()),
    })
}

fn command(program: &Path, args: &[String], home: &ProcessEnvironment, name: &str) -> Result<Command> {
    let output = |end: &str| {
        let path = home.work.join(format!("{name}.{end}"));
        let open = || {
            let mut file = File::options().create(true).append(true).open(&path)?;
            // HAProxy removes the append flag when it makes its output non-blocking, so the file position must be at
            // the end.
            file.seek(SeekFrom::End(0)).map(|_| Stdio::from(file))
        };
        open().map_err(Error::file("write", &path))
    };
    let mut command = Command::new(program);
    command.args(args).current_dir(&home.work).process_group(0);
    command.stdin(Stdio::null()).stdout(output("out")?).stderr(output("err")?);
    let (user, descriptors, parent) = (home.user, home.descriptors, getpid());
    // SAFETY: between fork and exec the closure makes system calls on values it owns and does nothing else.
    unsafe {
        command.pre_exec(move || prepare_child(user, descriptors, parent));
    }
    Ok(command)
}

fn prepare_child(user: Option<UnixUser>, descriptors: u64, parent: Pid) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), ..limit })?;
    if let Some(user) = user {
        user.assume()?;
    }
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have died before the death signal was set.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
