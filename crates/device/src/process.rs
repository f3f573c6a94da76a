//! A program of a device as a child of ours.

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

/// How often an awaited event is looked for.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// How long a program may take to end before it is killed. Traffic Server takes three seconds at its best.
const PATIENCE: Duration = Duration::from_secs(15);

/// The directory and the user of a device's programs.
#[derive(Clone, Debug)]
pub(crate) struct ProcessEnvironment {
    /// Their current directory; output goes to files in it.
    pub work: PathBuf,
    /// The user to become.
    pub user: Option<UnixUser>,
    /// Descriptors that each process may open.
    pub descriptors: u64,
}

/// A child with a process group of its own, so that signals of the terminal do not reach it and all of its
/// children can be ended with it. When the thread that started it dies, with or without its process, the child
/// is asked to end.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Id of the leader and of its group. Nobody else can have it until the leader is waited for.
    group: Pid,
    program: PathBuf,
    /// Set when the leader was waited for.
    status: Option<ExitStatus>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The exit status if it had ended before it was asked to.
    pub early: Option<ExitStatus>,
    /// It did not end when it was asked to, and was killed.
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

    /// The process id of the leader.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.status.is_some() || matches!(waitid(WaitId::Pid(self.group), look), Ok(Some(_)))
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// What happened instead.
    pub fn wait_until(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut(u32) -> bool,
    ) -> std::result::Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            if self.has_ended() {
                let status = self.reap().map_or_else(String::new, |status| format!(" ({status})"));
                return Err(format!("{} ended at once{status}", self.program.display()));
            }
            if ready(self.id()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = patience.as_secs();
                return Err(format!("{} was not ready after {seconds} s", self.program.display()));
            }
            thread::sleep(LOOK);
        }
    }

    /// What the whole group uses.
    pub fn usage(&self) -> Usage {
        Usage::of_group(self.group.as_raw_nonzero().get())
    }

    /// Asks it to end, waits, kills what is left of its group.
    pub fn stop(&mut self) -> ProcessEnd {
        let early = self.has_ended();
        let mut killed = false;
        if !early {
            self.signal(Signal::TERM);
            killed = !self.wait(PATIENCE);
        }
        let status = self.reap();
        ProcessEnd { early: status.filter(|_| early), killed }
    }

    /// Waits for the leader. Returns true if it ended in time.
    pub fn wait(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// Kills what there is of the group, for children that outlive their leader hold its port; then the exit
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
            // Nobody left to signal is what we want.
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a program to its end.
///
/// # Errors
/// If it cannot be started; and what went wrong, if it fails or takes longer than `patience`.
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
            // HAProxy takes appending away when it sets its output to non-blocking.
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
        user.become_it()?;
    }
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have died before the order was given.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
