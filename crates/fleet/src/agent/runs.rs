//! The runs on the disk of an agent: `DIR/RUN/` has the assignment, the files of the workload, and for each process its log, what
//! it prints, and how it ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use polygraph_stats::Side;
use rustix::process::Signal;

use super::process::{Publisher, RunProcess};
use crate::error::{FleetError, Result};
use crate::names::{AgentName, RelativePath, RunId};
use crate::protocol::{Assignment, RunState};

const ASSIGNMENT: &str = "assignment.json";
const WORKLOAD: &str = "workload";
/// Files of a run that are sent to controllers, by the ends of their names.
const SENT: [&str; 2] = ["log", "txt"];

/// The runs of an agent.
pub(super) struct Runs {
    directory: PathBuf,
    agent: AgentName,
    instance: u64,
    all: BTreeMap<RunId, Run>,
}

struct Run {
    assignment: Assignment,
    processes: Vec<RunProcess>,
    /// Whether a controller may wait for the end of this run: it was active here, and nobody has asked for its files since.
    is_awaited: bool,
}

/// What has changed since processes were looked after last.
#[derive(Default)]
pub(super) struct Changes {
    /// Runs with processes that have a new stage.
    pub runs: Vec<RunId>,
    /// The same in words.
    pub events: Vec<String>,
}

impl Runs {
    /// Reads the runs in a directory, which is made if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be made or read.
    pub fn open(directory: &Path, agent: AgentName, instance: u64) -> Result<Runs> {
        fs::create_dir_all(directory).map_err(FleetError::file(directory))?;
        // Processes work elsewhere, so their paths must not depend on where the agent works.
        let directory = directory.canonicalize().map_err(FleetError::file(directory))?;
        let mut runs = Runs { directory, agent, instance, all: BTreeMap::new() };
        let entries = fs::read_dir(&runs.directory).map_err(FleetError::file(&runs.directory))?;
        for entry in entries.flatten() {
            // Directories without a readable assignment are not runs.
            let Some(assignment) = read_assignment(&entry.path()) else { continue };
            let run = Run::found(&entry.path(), assignment);
            runs.all.insert(run.assignment.run.clone(), run);
        }
        Ok(runs)
    }

    /// The directory of a run.
    pub fn directory(&self, run: &RunId) -> PathBuf {
        self.directory.join(run.as_str())
    }

    /// The directory with the files of a run's workload.
    pub fn workload(&self, run: &RunId) -> PathBuf {
        self.directory(run).join(WORKLOAD)
    }

    /// Remembers the part in a run, whose files are there.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn prepare(&mut self, assignment: Assignment) -> Result<()> {
        let directory = self.directory(&assignment.run);
        let path = directory.join(ASSIGNMENT);
        let text = serde_json::to_vec_pretty(&assignment).map_err(std::io::Error::from)?;
        fs::write(&path, text).map_err(FleetError::file(path))?;
        self.all.insert(assignment.run.clone(), Run::found(&directory, assignment));
        Ok(())
    }

    /// The part in a run.
    pub fn assignment(&self, run: &RunId) -> Option<&Assignment> {
        self.all.get(run).map(|run| &run.assignment)
    }

    /// The process of one side of a run, to start it.
    pub fn process(&mut self, run: &RunId, side: Side) -> Option<&mut RunProcess> {
        let run = self.all.get_mut(run)?;
        run.is_awaited = true;
        run.processes.iter_mut().find(|process| process.side == side)
    }

    /// The runs with processes that run.
    pub fn active(&self) -> Vec<RunId> {
        self.all.iter().filter(|(_, run)| run.is_active()).map(|(id, _)| id.clone()).collect()
    }

    /// The runs whose states controllers want to hear: active ones, and those whose end nobody may have heard of.
    pub fn awaited(&self) -> Vec<RunId> {
        self.all.iter().filter(|(_, run)| run.is_awaited).map(|(id, _)| id.clone()).collect()
    }

    /// Looks after all processes.
    pub fn look(&mut self) -> Changes {
        let mut changes = Changes::default();
        for (id, run) in &mut self.all {
            run.is_awaited |= run.is_active();
            for process in &mut run.processes {
                if process.look() {
                    changes.events.push(format!("{id}: {} {}", process.side.name(), process.stage));
                    changes.runs.push(id.clone());
                }
            }
        }
        changes.runs.dedup();
        changes
    }

    /// The processes that run and have not been returned before.
    pub fn new_publishers(&mut self) -> Vec<Publisher> {
        let processes = self.all.values_mut().flat_map(|run| &mut run.processes);
        processes.filter_map(RunProcess::new_publisher).collect()
    }

    /// All processes that run.
    pub fn publishers(&self) -> Vec<Publisher> {
        let processes = self.all.values().flat_map(|run| &run.processes);
        processes.filter_map(RunProcess::publisher).collect()
    }

    /// Asks the processes of a run, or of all runs, to end.
    pub fn stop(&mut self, only: Option<&RunId>) {
        let chosen = self.all.iter_mut().filter(|(id, _)| only.is_none_or(|only| *id == only));
        for (_, run) in chosen {
            run.processes.iter_mut().for_each(|process| process.signal(Signal::TERM));
        }
    }

    /// Ends all processes at once.
    pub fn kill(&mut self) {
        let processes = self.all.values_mut().flat_map(|run| &mut run.processes);
        processes.for_each(|process| process.signal(Signal::KILL));
    }

    /// What the processes of a run do.
    pub fn state(&self, run: &RunId) -> Option<RunState> {
        let sides = self.all.get(run)?.processes.iter().map(RunProcess::state).collect();
        Some(RunState { agent: self.agent.clone(), instance: self.instance, run: run.clone(), sides })
    }

    /// All runs on the disk.
    pub fn states(&self) -> Vec<RunState> {
        self.all.keys().filter_map(|run| self.state(run)).collect()
    }

    /// Notes that a controller knows that a run is over.
    pub fn note_heard(&mut self, run: &RunId) {
        if let Some(run) = self.all.get_mut(run) {
            run.is_awaited = run.is_active();
        }
    }

    /// The files of a run for controllers.
    pub fn files(&self, run: &RunId) -> Vec<(RelativePath, PathBuf)> {
        let entries = fs::read_dir(self.directory(run)).into_iter().flatten().flatten();
        let mut files: Vec<(RelativePath, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let is_sent = path.extension().is_some_and(|end| SENT.iter().any(|sent| end == *sent));
                let name = entry.file_name().into_string().ok()?;
                Some((RelativePath::try_from(name).ok().filter(|_| is_sent && path.is_file())?, path))
            })
            .collect();
        files.sort();
        files
    }
}

impl Run {
    fn found(directory: &Path, assignment: Assignment) -> Run {
        let processes = assignment.sides.iter().map(|part| RunProcess::found(directory, part.side)).collect();
        Run { assignment, processes, is_awaited: false }
    }

    fn is_active(&self) -> bool {
        self.processes.iter().any(|process| process.stage.runs())
    }
}

fn read_assignment(directory: &Path) -> Option<Assignment> {
    serde_json::from_slice(&fs::read(directory.join(ASSIGNMENT)).ok()?).ok()
}
