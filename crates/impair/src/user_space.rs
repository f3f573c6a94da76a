//! The process that holds packets: how it is started, and what it does.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use polygraph_netsetup::{Change, Changes};
use serde::{Deserialize, Serialize};

use crate::active::ActiveFiles;
use crate::emulation::Emulation;
use crate::emulator::{Emulator, Queues};
use crate::error::WanError;

/// Where processes in the background write what went wrong.
pub const LOG: &str = "/run/polygraph/wan.log";

/// What the process has to do: one line on its standard input.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    emulation: Emulation,
    control: PathBuf,
    /// Whether the process ends when its standard input is closed.
    follows_parent: bool,
}

/// Whether the process could start: one line on its standard output.
#[derive(Debug, Serialize, Deserialize)]
enum Ready {
    Reading(Queues),
    Failed(String),
}

/// A process that has started.
#[derive(Debug)]
pub struct UserSpaceProcess {
    /// Its id.
    pub pid: i32,
    /// The queues that it reads.
    pub queues: Queues,
    /// It keeps the pipes to the process open, which a process in the foreground needs.
    pub child: Child,
}

/// Starts the process. `command` is the command line that calls [`serve`].
///
/// # Errors
/// If it cannot be started or recorded, or if it cannot read packets.
pub fn start(
    emulation: &Emulation,
    files: &ActiveFiles,
    command: &[String],
    follows_parent: bool,
    changes: &mut Changes,
) -> Result<UserSpaceProcess, WanError> {
    let not_started = |reason: String| WanError::NotStarted { reason };
    let [program, args @ ..] = command else { return Err(not_started("no command".to_owned())) };
    let log =
        File::options().create(true).append(true).open(LOG).map_err(|error| WanError::system(LOG, error))?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| not_started(error.to_string()))?;
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    // It waits for its task, and ends without one. So it is recorded before it does anything.
    if let Some(change) = Change::needed_process(pid) {
        changes.make(change, || Ok(()))?;
    }
    let control = files.control.clone();
    changes.make(Change::File { path: control.clone() }, || Ok(()))?;
    let task = Task { emulation: emulation.clone(), control, follows_parent };
    let line = serde_json::to_string(&task).map_err(|error| not_started(error.to_string()))? + "\n";
    let given = child.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()));
    given.transpose().map_err(|error| not_started(error.to_string()))?;
    let mut answer = String::new();
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        reader.read_line(&mut answer).map_err(|error| not_started(error.to_string()))?;
    }
    match serde_json::from_str(&answer) {
        Ok(Ready::Reading(queues)) => Ok(UserSpaceProcess { pid, queues, child }),
        Ok(Ready::Failed(reason)) => Err(not_started(reason)),
        Err(_) => Err(not_started(format!("it ended early; {LOG} may say why"))),
    }
}

/// The life of the process, until `wait` returns. It is the leader of a session, so that it outlives its terminal.
///
/// # Errors
/// If the packets cannot be read, or if there is no task.
pub fn serve(wait: impl FnOnce() + Send + 'static) -> Result<(), WanError> {
    // A leader of a group cannot become one of a session; then a shell has seen to it.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/").map_err(|error| WanError::system("/", error))?;
    let mut stdin = io::stdin();
    let task = read_line(&mut stdin)
        .and_then(|line| serde_json::from_str::<Task>(&line).map_err(io::Error::from))
        .map_err(|error| WanError::system("no task on standard input", error))?;
    let opened = open(&task);
    let ready = match &opened {
        Ok((emulator, _)) => Ready::Reading(emulator.queues()),
        Err(error) => Ready::Failed(error.to_string()),
    };
    let line = serde_json::to_string(&ready).map_err(io::Error::from);
    line.and_then(|line| writeln!(io::stdout(), "{line}"))
        .map_err(|error| WanError::system("standard output", error))?;
    let (emulator, listener) = opened?;
    let lifeline = task.follows_parent.then_some(stdin.as_fd());
    let result = emulator.run(&listener, lifeline, wait);
    let _ = fs::remove_file(&task.control);
    result.map_err(|error| WanError::system("packet queues", error))
}

fn open(task: &Task) -> Result<(Emulator, UnixListener), WanError> {
    let emulator = Emulator::open(&task.emulation)
        .map_err(|error| WanError::system("the kernel does not hand over packets", error))?;
    // A process with this id may have been killed before.
    let _ = fs::remove_file(&task.control);
    let listener = UnixListener::bind(&task.control)
        .map_err(|error| WanError::system(task.control.display().to_string(), error))?;
    Ok((emulator, listener))
}

/// Reads a line and nothing after it.
fn read_line(input: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while input.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).map_err(io::Error::other)
}
