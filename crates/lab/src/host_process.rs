//! Processes on the hosts of a lab.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::error::{LabError, Result};

/// How many lines of a process are remembered.
const LAST_LINES: usize = 8;

/// A process in the namespace of a host. It ends when it is dropped, or when the thread that started it ends.
#[derive(Debug)]
pub(crate) struct HostProcess {
    /// The host.
    pub host: String,
    /// The log that it writes.
    pub log: PathBuf,
    child: Child,
    status: Option<ExitStatus>,
    lines: Receiver<String>,
    last: VecDeque<String>,
    readers: Vec<JoinHandle<()>>,
}

impl HostProcess {
    /// Starts a program in a namespace. What it prints goes to the file `console`.
    pub fn start(
        host: &str,
        namespace: &str,
        words: &[String],
        console: &Path,
        log: PathBuf,
    ) -> Result<HostProcess> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The terminal's Ctrl-C is for the run, which stops its processes in order.
        command.process_group(0);
        // SAFETY: between fork and exec the closure makes one system call and does nothing else.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        let file = File::create(console).map_err(LabError::file(console))?;
        let file = Arc::new(Mutex::new(file));
        let mut child = command.spawn().map_err(LabError::file(&PathBuf::from("ip")))?;
        let (sender, lines) = channel();
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|pipe| follow(pipe, Arc::clone(&file), sender.clone())));
        readers.extend(child.stderr.take().map(|pipe| follow(pipe, file, sender)));
        let (host, last) = (host.to_owned(), VecDeque::new());
        Ok(HostProcess { host, log, child, status: None, lines, last, readers })
    }

    /// The lines that it has printed since the last call.
    pub fn new_lines(&mut self) -> Vec<String> {
        let lines: Vec<String> = self.lines.try_iter().collect();
        self.last.extend(lines.iter().cloned());
        let surplus = self.last.len().saturating_sub(LAST_LINES);
        self.last.drain(..surplus);
        lines
    }

    /// How it ended; `None`: it has not. All that it printed can be read then.
    pub fn end(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
            if self.status.is_some() {
                self.readers.drain(..).for_each(|reader| drop(reader.join()));
            }
        }
        self.status
    }

    /// Asks it to end.
    pub fn stop(&mut self) {
        if self.end().is_none() {
            // It may have ended in between.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// The last lines that it printed.
    pub fn last_words(&mut self) -> String {
        self.new_lines();
        self.last.iter().map(String::as_str).collect::<Vec<_>>().join("\n  ")
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        if self.end().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Copies what a process prints to a file, and its lines to a channel.
fn follow(pipe: impl Read + Send + 'static, file: Arc<Mutex<File>>, lines: Sender<String>) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(std::result::Result::ok) {
            // A full disk must not stop the process.
            let _ = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
            let _ = lines.send(line.trim_end().to_owned());
        }
    })
}
