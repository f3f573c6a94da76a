//! A single run: this program as a child process with a time limit and a result directory.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use polygraph_engine::signals::StopPoller;
use polygraph_report::figures::find;
use polygraph_report::{RunFacts, fold_files, text};
use polygraph_stats::exit_code;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::SeriesError;

/// Interval between checks of the child.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum time that a child takes to end after a signal.
const GOODBYE: Duration = Duration::from_secs(70);
/// Exit codes of `polygraph run` that come with results: valid, and failed or invalid.
const WITH_RESULTS: [i32; 2] = [exit_code::OK as i32, exit_code::FAILED as i32];
/// The exit code of a run that the user stopped.
const INTERRUPTED: i32 = exit_code::INTERRUPTED as i32;

/// A run to be carried out.
pub struct ChildRun<'a> {
    /// Path of this program.
    pub program: &'a Path,
    /// First part of the name of the result directory.
    pub label: &'a str,
    /// Parent directory of the result directory.
    pub place: &'a Path,
    /// Command-line options of the run.
    pub words: Vec<String>,
    /// Whether a fleet runs the robots and servers.
    pub with_fleet: bool,
    /// The child is killed after this time.
    pub limit: Duration,
}

/// The outcome of a child.
pub enum ChildOutcome {
    /// The run ended, successfully or not.
    Completed(Box<CompletedRun>),
    /// The user stopped the child or this program.
    Stopped,
    /// The run could not be carried out.
    Refused(String),
}

/// A finished run.
pub struct CompletedRun {
    /// Its result directory.
    pub directory: PathBuf,
    /// The facts in its logs, or why they are unknown.
    pub facts: Result<RunFacts, String>,
}

impl CompletedRun {
    /// The main figures in one line, with a remark.
    pub fn figures(&self, remark: &str) -> String {
        let Some(headline) = self.facts.as_ref().ok().and_then(|facts| facts.headline.as_ref()) else {
            return remark.to_owned();
        };
        let figure = |name: &str| find(name).and_then(|figure| figure.of(&headline.scope));
        format!(
            "mean {}, hits {} %; {remark}",
            text::ms(figure("resp_tm_mean")),
            text::number(figure("rep_dhr"), 1)
        )
    }
}

impl ChildRun<'_> {
    /// Starts the run and waits for its end; `progress` receives its output lines.
    ///
    /// # Errors
    /// If it cannot be started or waited for.
    pub fn run(
        self,
        stop: &mut StopPoller,
        mut progress: impl FnMut(&str),
    ) -> Result<ChildOutcome, SeriesError> {
        let name = self.program.display().to_string();
        let mut child =
            self.command().spawn().map_err(SeriesError::io(format!("start {name} for {}", self.label)))?;
        let pid = Pid::from_child(&child);
        let lines = child.stderr.take().map(follow);
        // The output is not needed, but a full pipe would stop the child.
        child.stdout.take().map(|mut out| thread::spawn(move || out.read_to_end(&mut Vec::new())));
        let begin = Instant::now();
        let mut said = Vec::new();
        let (mut stopped, mut asked) = (false, None);
        let status = loop {
            for line in lines.iter().flat_map(Receiver::try_iter) {
                progress(&line);
                said.push(line);
            }
            if let Some(status) = child.try_wait().map_err(SeriesError::io(format!("wait for {name}")))? {
                break status;
            }
            let late = begin.elapsed() > self.limit;
            stopped |= stop.pause(LOOK);
            match asked {
                None if stopped || late => {
                    asked = Some(Instant::now());
                    // The child may have ended just now.
                    let _ = kill_process(pid, Signal::TERM);
                }
                Some(since) if since.elapsed() > GOODBYE => {
                    let _ = child.kill();
                }
                _ => {}
            }
        };
        said.extend(lines.iter().flat_map(Receiver::iter));
        if stopped || (asked.is_none() && status.code() == Some(INTERRUPTED)) {
            return Ok(ChildOutcome::Stopped);
        }
        Ok(self.conclude(status, asked.is_some(), &said))
    }

    fn conclude(&self, status: ExitStatus, late: bool, said: &[String]) -> ChildOutcome {
        let newest = newest(self.place, self.label);
        let results = late || status.code().is_none_or(|code| WITH_RESULTS.contains(&code));
        match (newest, results) {
            (Some(directory), true) => {
                let mut facts = read(&directory);
                if late {
                    let limit = text::duration(self.limit.as_secs_f64());
                    facts = Err(format!("the run did not end within {limit} and was stopped"));
                }
                ChildOutcome::Completed(Box::new(CompletedRun { directory, facts }))
            }
            _ => {
                let last: Vec<&str> = said.iter().rev().take(5).rev().map(String::as_str).collect();
                ChildOutcome::Refused(format!(
                    "{}: the run could not be carried out: {}",
                    self.label,
                    last.join("; ")
                ))
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.arg("run").args(&self.words).args(["--label", self.label]).arg("--runs").arg(self.place);
        if !self.with_fleet {
            // Devices are checked before the series; a device that stopped during a run fails the next run.
            command.args(["--preflight", "no", "--predict", "no"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: between fork and exec the closure makes one system call and does nothing else.
        unsafe {
            // A run ends with its series, even if the series ends by `kill -9`.
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        command
    }
}

/// The output lines of a child.
fn follow(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line.trim().to_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

/// The newest result directory of a label; names end with the time.
fn newest(place: &Path, label: &str) -> Option<PathBuf> {
    let start = format!("{label}-");
    let entries = std::fs::read_dir(place).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    // The rest of the name must be a date, not a longer label.
    let own = names.filter(|name| {
        name.strip_prefix(&start).is_some_and(|rest| rest.len() >= 19 && rest.as_bytes()[4] == b'-')
    });
    own.max().map(|name| place.join(name))
}

/// Folds the logs of a result directory.
///
/// # Errors
/// If the directory has no readable logs; the error is a sentence for people.
pub fn read(directory: &Path) -> Result<RunFacts, String> {
    let entries = std::fs::read_dir(directory).map_err(|e| e.to_string())?;
    let mut logs: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    logs.sort();
    fold_files(&logs).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_directory_of_a_label() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "a-10-1-2026-11-21T10-00-00",
            "a-10-1-2026-11-21T10-00-01",
            "a-10-1-2026-11-21T10-00-01-1",
            "a-10-11-2026-11-21T11-00-00",
            "a-10-1-1-2026-11-21T12-00-00",
        ] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        let found = newest(place.path(), "a-10-1").unwrap();
        assert!(found.ends_with("a-10-1-2026-11-21T10-00-01-1"), "{}", found.display());
        assert_eq!(newest(place.path(), "b"), None);
        assert_eq!(newest(&place.path().join("none"), "a"), None);
    }
}
