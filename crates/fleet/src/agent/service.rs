//! What an agent does for each request.

use std::path::{Path, PathBuf};
use std::process::Command;

use polygraph_stats::Side;

use super::process::stem;
use super::{Agent, AgentEvent, LOOK, inventory, unix_ns};
use crate::error::{FleetError, Result};
use crate::names::{RelativePath, RunId};
use crate::protocol::{
    AgentRequest, Answer, Assignment, Inventory, SideAssignment, StoredFile, bucket, decode,
};

/// Options of processes that only the agent sets.
const OWN: [&str; 6] = ["--config", "--cfg_dirs", "--log", "--only_addrs", "--start_at", "--set"];
/// The longest text of a command that is sent to a controller, in bytes.
const LONGEST_OUTPUT: usize = 200_000;

impl Agent {
    /// Carries out a request.
    pub(super) async fn carry_out(&self, bytes: &[u8]) -> Answer {
        let request = match decode::<AgentRequest>(bytes) {
            Ok(request) => request,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        match self.answer_to(request).await {
            Ok(answer) => answer,
            Err(FleetError::Refused { reason, .. }) => Answer::Refused(reason),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// What the agent says about itself.
    pub(super) fn inventory(&self) -> Inventory {
        let busy = self.runs.borrow().active().into_iter().next();
        inventory::inventory(&self.options, self.instance, busy)
    }

    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(FleetError::Refused { agent: self.options.name.clone(), reason: reason.into() })
    }

    async fn answer_to(&self, request: AgentRequest) -> Result<Answer> {
        match request {
            AgentRequest::Inventory => Ok(Answer::Inventory(Box::new(self.inventory()))),
            AgentRequest::Clock => Ok(Answer::Clock(unix_ns())),
            AgentRequest::Owns { addresses } => {
                let (claimed, is_local) = (self.options.addresses.clone(), self.options.is_local);
                let owned = off_loop(move || inventory::owned(&addresses, &claimed, is_local)).await?;
                owned.map(Answer::Owned).or_else(|reason| self.refuse(reason))
            }
            AgentRequest::Doctor { words } => {
                let fixed = ["doctor", "--quick"].map(str::to_owned);
                self.output(fixed.into_iter().chain(words).collect(), self.options.logs.clone()).await
            }
            AgentRequest::Prepare(assignment) => self.prepare(*assignment).await,
            AgentRequest::Check { run } => {
                let (directory, words) = self.check_words(&run)?;
                self.output(words, directory).await
            }
            AgentRequest::Start { run, side, start_unix_ns } => self.start(&run, side, start_unix_ns),
            AgentRequest::State { run } => match self.runs.borrow().state(&run) {
                Some(state) => Ok(Answer::State(state)),
                None => self.refuse(format!("the run {run} is not known here")),
            },
            AgentRequest::Stop { run } => {
                self.runs.borrow_mut().stop(run.as_ref());
                Ok(Answer::Done)
            }
            AgentRequest::Files { run } => self.files(&run),
            AgentRequest::Send { run, name } => self.send(&run, &name).await,
            AgentRequest::Runs => {
                let mut all = self.runs.borrow().states();
                all.reverse();
                Ok(Answer::Runs(all))
            }
        }
    }

    /// Runs a command of this program to its end.
    async fn output(&self, words: Vec<String>, directory: PathBuf) -> Result<Answer> {
        let program = self.options.program.clone();
        let done =
            off_loop(move || Command::new(program).args(words).current_dir(directory).output()).await??;
        let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&done.stderr));
        let end = (0..=LONGEST_OUTPUT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        Ok(Answer::Output { code: done.status.code(), text })
    }

    /// Prepares a run. A controller asks again if the answer may have been lost; then this waits for the end of what was begun.
    async fn prepare(&self, assignment: Assignment) -> Result<Answer> {
        let run = assignment.run.clone();
        while self.preparing.borrow().contains(&run) {
            tokio::time::sleep(LOOK).await;
        }
        if self.runs.borrow().assignment(&run) == Some(&assignment) {
            return Ok(Answer::Done);
        }
        self.preparing.borrow_mut().insert(run.clone());
        let prepared = self.fetch_part(assignment).await;
        self.preparing.borrow_mut().remove(&run);
        prepared
    }

    async fn fetch_part(&self, assignment: Assignment) -> Result<Answer> {
        if let Some(busy) = self.runs.borrow().active().first() {
            return self.refuse(format!("the run {busy} goes on here"));
        }
        if assignment.allow_exec && !self.options.allow_exec {
            return self
                .refuse("the workload may run commands, and this agent was started without --allow_exec");
        }
        for part in &assignment.sides {
            self.check_part(part)?;
        }
        let run = assignment.run.clone();
        let workload = self.runs.borrow().workload(&run);
        if self.runs.borrow().assignment(&run).is_some() {
            return self.refuse(format!("there is a run {run} already"));
        }
        for file in &assignment.files {
            let path = file.below(&workload);
            make_parent(&path).await?;
            self.bus.get_file(&bucket(&run), &file.to_string(), &path).await?;
        }
        let directory = assignment.directory.below(&workload);
        tokio::fs::create_dir_all(&directory).await.map_err(FleetError::file(&directory))?;
        self.runs.borrow_mut().prepare(assignment)?;
        Ok(Answer::Done)
    }

    fn check_part(&self, part: &SideAssignment) -> Result<()> {
        let may = if part.side == Side::Client { self.options.client } else { self.options.server };
        if !may {
            return self.refuse(format!("this agent runs no {}: see its --roles", part.side.name()));
        }
        let option = |word: &String| word.split('=').next().unwrap_or_default().replace('-', "_");
        let own = part.words.iter().find(|word| {
            OWN.iter().any(|own| own.replace('-', "_") == option(word)) || option(word) == "__allow_exec"
        });
        match own {
            Some(word) => self.refuse(format!("the option {word} belongs to the agent")),
            None => Ok(()),
        }
    }

    /// The options that name the workload.
    fn workload_words(assignment: &Assignment) -> Vec<String> {
        let mut words = Vec::new();
        for directory in &assignment.cfg_dirs {
            words.extend(["--cfg_dirs".to_owned(), assignment.as_seen_by_processes(directory)]);
        }
        for (name, value) in &assignment.settings {
            words.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        if assignment.allow_exec {
            words.push("--allow_exec".to_owned());
        }
        words
    }

    fn check_words(&self, run: &RunId) -> Result<(PathBuf, Vec<String>)> {
        let runs = self.runs.borrow();
        let Some(assignment) = runs.assignment(run) else {
            return self.refuse(format!("the run {run} is not known here"));
        };
        let workload = runs.workload(run);
        let file = assignment.as_seen_by_processes(&assignment.config);
        let words = ["check".to_owned(), file].into_iter().chain(Self::workload_words(assignment)).collect();
        Ok((assignment.directory.below(&workload), words))
    }

    fn start(&self, run: &RunId, side: Side, start_unix_ns: u64) -> Result<Answer> {
        let (directory, words) = {
            let runs = self.runs.borrow();
            let Some((assignment, part)) = runs.assignment(run).and_then(|assignment| {
                Some((assignment, assignment.sides.iter().find(|part| part.side == side)?))
            }) else {
                return self.refuse(format!("no {} of the run {run} are prepared here", side.name()));
            };
            let workload = runs.workload(run);
            let log = runs.directory(run).join(format!("{}.log", stem(side)));
            let fixed = [
                stem(side).to_owned(),
                "--config".to_owned(),
                assignment.as_seen_by_processes(&assignment.config),
                "--log".to_owned(),
                log.display().to_string(),
                "--only_addrs".to_owned(),
                part.addresses.clone(),
                "--start_at".to_owned(),
                format!("@{}.{:09}", start_unix_ns / 1_000_000_000, start_unix_ns % 1_000_000_000),
            ];
            let words = fixed.into_iter().chain(Self::workload_words(assignment));
            (
                assignment.directory.below(&workload),
                words.chain(part.words.iter().cloned()).collect::<Vec<_>>(),
            )
        };
        let mut runs = self.runs.borrow_mut();
        match runs.process(run, side) {
            // The controller may not have heard the answer.
            Some(process) if process.started_for == Some(start_unix_ns) => Ok(Answer::Done),
            Some(process) if process.stage == crate::protocol::ProcessStage::Prepared => {
                process.start(&self.options.program, &words, &directory)?;
                process.started_for = Some(start_unix_ns);
                (self.tell)(AgentEvent::Note(format!("{run}: {} started", side.name())));
                Ok(Answer::Done)
            }
            _ => self.refuse(format!("the {} of the run {run} was started before", side.name())),
        }
    }

    fn files(&self, run: &RunId) -> Result<Answer> {
        let files = self.runs.borrow().files(run);
        self.runs.borrow_mut().note_heard(run);
        if files.is_empty() {
            return self.refuse(format!("there are no files of the run {run} here"));
        }
        let stored = files.into_iter().map(|(name, path)| StoredFile {
            object: self.object(&name),
            bytes: std::fs::metadata(path).map_or(0, |data| data.len()),
            name,
        });
        Ok(Answer::Files(stored.collect()))
    }

    fn object(&self, name: &RelativePath) -> String {
        format!("{}/{name}", self.options.name)
    }

    async fn send(&self, run: &RunId, name: &RelativePath) -> Result<Answer> {
        let path = self.runs.borrow().files(run).into_iter().find(|(known, _)| known == name);
        let Some((_, path)) = path else {
            return self.refuse(format!("there is no file {name} of the run {run} here"));
        };
        self.bus.put_file(&bucket(run), &self.object(name), &path).await?;
        (self.tell)(AgentEvent::Note(format!("{run}: {name} sent")));
        Ok(Answer::Done)
    }
}

/// Does what takes long on another thread, so that the agent can answer others.
async fn off_loop<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| FleetError::System(std::io::Error::other(error)))
}

async fn make_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    tokio::fs::create_dir_all(parent).await.map_err(FleetError::file(parent))
}
