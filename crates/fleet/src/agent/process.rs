//! One process of a run. It is identified by files, so that an agent that was restarted finds it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use polygraph_stats::{LogReader, NextRecord, Record, Side};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::console::Console;
use crate::protocol::{ProcessStage, SideState};

/// What servers print when they accept connections.
const LISTENING: &str = "listening at";

/// A process of the system, beyond the time when its number is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    pid: i32,
    /// When it started, in ticks since the system did.
    begin: u64,
}

impl Identity {
    /// The process with this number; `None` if there is none, or it has ended.
    fn of(pid: i32) -> Option<Identity> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain anything.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let begin = fields.nth(18)?.parse().ok()?;
        (!is_dead).then_some(Identity { pid, begin })
    }

    fn is_alive(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }

    fn signal(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            // It may end in between.
            let _ = kill_process(pid, signal);
        }
    }
}

/// A process that publishes live statistics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Publisher(Identity);

impl Publisher {
    /// Whether the process runs.
    pub fn is_alive(self) -> bool {
        self.0.is_alive()
    }

    /// The socket where it publishes, in the directory for such sockets.
    pub fn socket(self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.live", self.0.pid))
    }
}

/// A process of a run, or the place of one.
#[derive(Debug)]
pub(super) struct RunProcess {
    /// Robots or servers.
    pub side: Side,
    /// How far it is.
    pub stage: ProcessStage,
    /// The start of the first phase that this agent has started it for, in nanoseconds since 1970.
    pub started_for: Option<u64>,
    directory: PathBuf,
    child: Option<Child>,
    identity: Option<Identity>,
    console: Console,
    /// Whether somebody passes its live statistics on.
    is_followed: bool,
}

/// The beginning of the names of a side's files.
pub(super) fn stem(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// How a process ended that was started by another agent, which cannot say it: by the end of its log.
fn code_by_log(log: &Path) -> Option<i32> {
    let mut reader = LogReader::open(log).ok()?;
    loop {
        let reason = match reader.next_record() {
            NextRecord::Record(record) => match *record {
                Record::End { reason, .. } => reason,
                _ => continue,
            },
            NextRecord::Unknown => continue,
            NextRecord::End | NextRecord::Damaged { .. } => return None,
        };
        return Some(i32::from(reason.exit_code()));
    }
}

impl RunProcess {
    /// The process of a side in the directory of a run: what its files say of it.
    pub fn found(directory: &Path, side: Side) -> RunProcess {
        let file = |end: &str| directory.join(format!("{}.{end}", stem(side)));
        let identity: Option<Identity> =
            fs::read(file("pid")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let code: Option<Option<i32>> =
            fs::read(file("exit")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let stage = match (identity, code) {
            (_, Some(code)) => ProcessStage::Ended(code),
            (Some(identity), None) if identity.is_alive() => ProcessStage::Started,
            (Some(_), None) => ProcessStage::Ended(code_by_log(&file("log"))),
            (None, None) => ProcessStage::Prepared,
        };
        let mut process = RunProcess {
            side,
            stage,
            started_for: None,
            directory: directory.to_owned(),
            child: None,
            identity,
            console: Console::new(&file("txt")),
            is_followed: false,
        };
        process.read_console();
        process
    }

    fn file(&self, end: &str) -> PathBuf {
        self.directory.join(format!("{}.{end}", stem(self.side)))
    }

    /// The log that it writes.
    pub fn log(&self) -> PathBuf {
        self.file("log")
    }

    /// Starts the process.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn start(&mut self, program: &Path, words: &[String], directory: &Path) -> io::Result<()> {
        let console = fs::File::create(self.file("txt"))?;
        let mut command = Command::new(program);
        command.args(words).current_dir(directory);
        // Files, because nobody reads a pipe when the agent is gone.
        command.stdin(Stdio::null()).stdout(console.try_clone()?).stderr(console);
        // Ctrl-C is for the agent, which stops its processes in order.
        command.process_group(0);
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
        self.identity = Identity::of(pid);
        self.child = Some(child);
        self.stage = ProcessStage::Started;
        fs::write(self.file("pid"), serde_json::to_vec(&self.identity)?)
    }

    /// Looks whether the process has ended and what it has printed; true if its stage is a new one.
    pub fn look(&mut self) -> bool {
        if !self.stage.runs() {
            return false;
        }
        let before = self.stage;
        let end = match (&mut self.child, self.identity) {
            (Some(child), _) => child.try_wait().ok().flatten().map(|status| status.code()),
            (None, Some(identity)) if identity.is_alive() => None,
            _ => Some(code_by_log(&self.log())),
        };
        // What it printed last is read after its end.
        self.read_console();
        if let Some(code) = end {
            self.stage = ProcessStage::Ended(code);
            // Without the file, an agent that is restarted knows only that the process has ended.
            let _ = fs::write(self.file("exit"), serde_json::to_vec(&code).unwrap_or_default());
        }
        self.stage != before
    }

    /// The process as a publisher, once, while it runs.
    pub fn new_publisher(&mut self) -> Option<Publisher> {
        let identity = self.identity.filter(|_| self.stage.runs() && !self.is_followed)?;
        self.is_followed = true;
        Some(Publisher(identity))
    }

    /// The process as a publisher, if it runs.
    pub fn publisher(&self) -> Option<Publisher> {
        self.identity.filter(|_| self.stage.runs()).map(Publisher)
    }

    fn read_console(&mut self) {
        let is_listening = self.console.new_lines().iter().any(|line| line.contains(LISTENING));
        if is_listening && self.stage == ProcessStage::Started {
            self.stage = ProcessStage::Listening;
        }
    }

    /// Asks the process to end, or ends it at once.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(identity) = self.identity.filter(|_| self.stage.runs()) {
            identity.signal(signal);
        }
    }

    /// What it does, for a controller.
    pub fn state(&self) -> SideState {
        SideState {
            side: self.side,
            stage: self.stage,
            lines: self.console.lines,
            last_lines: self.console.last.iter().cloned().collect(),
            log_bytes: fs::metadata(self.log()).map_or(0, |data| data.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_again_and_its_end_seen() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = RunProcess::found(directory.path(), Side::Server);
        assert_eq!(process.stage, ProcessStage::Prepared);
        let script = "echo listening at 1; read x < wait; exit 7";
        let fifo = directory.path().join("wait");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let words = ["-c".to_owned(), script.to_owned()];
        process.start(Path::new("/bin/sh"), &words, directory.path()).unwrap();
        while process.stage != ProcessStage::Listening {
            process.look();
            assert!(process.stage.runs());
            std::thread::yield_now();
        }
        // Another agent finds it, but is not its parent.
        let mut found = RunProcess::found(directory.path(), Side::Server);
        assert_eq!(found.stage, ProcessStage::Listening);
        fs::write(&fifo, "\n").unwrap();
        while !process.stage.has_ended() {
            process.look();
            std::thread::yield_now();
        }
        assert_eq!(process.stage, ProcessStage::Ended(Some(7)));
        assert!(found.look());
        assert_eq!(found.stage, ProcessStage::Ended(None));
        fs::write(directory.path().join("server.exit"), "7").unwrap();
        assert_eq!(RunProcess::found(directory.path(), Side::Server).stage, ProcessStage::Ended(Some(7)));
        // The number of a process is used again one day.
        fs::remove_file(directory.path().join("server.exit")).unwrap();
        fs::write(directory.path().join("server.pid"), r#"{"pid":1,"begin":987654321}"#).unwrap();
        assert_eq!(RunProcess::found(directory.path(), Side::Server).stage, ProcessStage::Ended(None));
    }
}
