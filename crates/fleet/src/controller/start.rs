//! The start of a run: files are shipped, servers started, then clients, and all begin at one time of day.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use polygraph_stats::Side;
use polygraph_text::counted;

use super::{Fleet, FleetEvent, LostPolicy, PROMPT, WORK, Watch, unexpected};
use crate::agent::unix_ns;
use crate::bus::Bus;
use crate::error::{FleetError, Result};
use crate::names::{AgentName, RelativePath, RunId};
use crate::protocol::{AgentRequest, Answer, Assignment, ProcessStage, RunState, SideAssignment, bucket};

/// How often agents are asked whether their servers listen.
const ASK: Duration = Duration::from_millis(200);
/// What clients need from their start to the beginning of the first phase.
const CLIENTS_NEED: Duration = Duration::from_millis(1500);

/// A file that agents need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFile {
    /// Its place on this host.
    pub source: PathBuf,
    /// Its place below the directory of the run.
    pub path: RelativePath,
}

/// A run with agents.
#[derive(Clone, Debug)]
pub struct FleetRun {
    /// Its id.
    pub run: RunId,
    /// The agents, with their processes.
    pub members: Vec<(AgentName, Vec<SideAssignment>)>,
    /// The files that they need.
    pub files: Vec<RunFile>,
    /// The directory in which processes work.
    pub directory: RelativePath,
    /// The workload file.
    pub config: RelativePath,
    /// Directories with files that it includes.
    pub cfg_dirs: Vec<RelativePath>,
    /// Values that are set in the workload.
    pub settings: Vec<(String, String)>,
    /// Whether the workload may run commands.
    pub allow_exec: bool,
    /// The time from the start of the first process to the first phase.
    pub start_in: Duration,
    /// What happens if an agent is lost.
    pub policy: LostPolicy,
    /// An agent that says nothing for this time is lost.
    pub patience: Duration,
}

impl FleetRun {
    /// The agents that run a side.
    pub(super) fn with_side(&self, side: Side) -> impl Iterator<Item = &AgentName> {
        let has = move |parts: &[SideAssignment]| parts.iter().any(|part| part.side == side);
        self.members.iter().filter(move |(_, parts)| has(parts)).map(|(name, _)| name)
    }

    fn assignment(&self, sides: Vec<SideAssignment>) -> Assignment {
        Assignment {
            run: self.run.clone(),
            files: self.files.iter().map(|file| file.path.clone()).collect(),
            directory: self.directory.clone(),
            config: self.config.clone(),
            cfg_dirs: self.cfg_dirs.clone(),
            settings: self.settings.clone(),
            allow_exec: self.allow_exec,
            sides,
        }
    }

    /// Ships the files, and gives each agent its part. If a server of NATS is lost meanwhile, the others take its place.
    ///
    /// # Errors
    /// If the server stores no files, or an agent refuses its part.
    pub async fn prepare(&self, fleet: &mut Fleet, watch: Watch<'_>) -> Result<()> {
        match self.prepare_all(fleet, watch).await {
            Err(error) => Err(fleet.with_lost_servers(error).await),
            done => done,
        }
    }

    async fn prepare_all(&self, fleet: &mut Fleet, watch: Watch<'_>) -> Result<()> {
        let bucket = bucket(&self.run);
        for file in &self.files {
            let (name, bucket) = (file.path.to_string(), &bucket);
            // The bucket may be lost with its server, too.
            let store = async |bus: &Bus| {
                bus.make_bucket(bucket).await?;
                bus.put_file(bucket, &name, &file.source).await
            };
            fleet.store_persistently(&format!("{name} is shipped"), watch, store).await?;
        }
        watch(FleetEvent::Step(format!(
            "{} shipped to {}",
            counted(self.files.len() as u64, "file"),
            counted(self.members.len() as u64, "agent")
        )));
        let parts = self
            .members
            .iter()
            .map(|(name, parts)| (name, AgentRequest::Prepare(Box::new(self.assignment(parts.clone())))));
        let answers = fleet.ask_persistently(parts, "prepare the run", WORK, watch).await;
        check_all(answers)
    }

    /// Lets each agent compile the workload; returns what they printed, with their exit codes.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub async fn check(&self, fleet: &mut Fleet) -> Result<Vec<(AgentName, Option<i32>, String)>> {
        let asked =
            self.members.iter().map(|(name, _)| (name, AgentRequest::Check { run: self.run.clone() }));
        let mut found = Vec::new();
        for (agent, answer) in fleet.ask_all(asked, "check the workload", WORK).await {
            match answer? {
                Answer::Output { code, text } => found.push((agent, code, text)),
                other => return unexpected(&agent, &other),
            }
        }
        Ok(found)
    }

    /// Starts all processes, and returns the time of day at which they begin.
    ///
    /// # Errors
    /// If a process cannot work, or all of them take too long. Those that were started are asked to end.
    pub async fn start(&self, fleet: &mut Fleet, watch: Watch<'_>) -> Result<u64> {
        let started = self.start_all(fleet, watch).await;
        match started {
            Err(error) => {
                self.stop(fleet).await;
                Err(fleet.with_lost_servers(error).await)
            }
            done => done,
        }
    }

    /// Asks all processes of the run to end.
    pub async fn stop(&self, fleet: &mut Fleet) {
        let stop = AgentRequest::Stop { run: Some(self.run.clone()) };
        let asked = self.members.iter().map(|(name, _)| (name, stop.clone()));
        // Who does not answer has ended, or is lost; the caller sees that by their states.
        drop(fleet.ask_all(asked, "stop", Duration::from_secs(2)).await);
    }

    async fn start_all(&self, fleet: &mut Fleet, watch: Watch<'_>) -> Result<u64> {
        let begin = Instant::now();
        let start_unix_ns = unix_ns() + u64::try_from(self.start_in.as_nanos()).unwrap_or(u64::MAX);
        let latest = begin + self.start_in.saturating_sub(CLIENTS_NEED);
        self.start_side(fleet, (Side::Server, start_unix_ns), latest, watch).await?;
        self.wait_until_listening(fleet, latest, watch).await?;
        watch(FleetEvent::Step(format!(
            "servers of {} listen after {:.1} s",
            counted(self.with_side(Side::Server).count() as u64, "agent"),
            begin.elapsed().as_secs_f64()
        )));
        self.start_side(fleet, (Side::Client, start_unix_ns), latest, watch).await?;
        if Instant::now() > latest {
            return too_late(self.start_in, "clients were started");
        }
        watch(FleetEvent::Step(format!(
            "clients of {} started; all begin in {:.1} s",
            counted(self.with_side(Side::Client).count() as u64, "agent"),
            self.start_in.saturating_sub(begin.elapsed()).as_secs_f64()
        )));
        Ok(start_unix_ns)
    }

    async fn start_side(
        &self,
        fleet: &mut Fleet,
        (side, start_unix_ns): (Side, u64),
        latest: Instant,
        watch: Watch<'_>,
    ) -> Result<()> {
        let start = AgentRequest::Start { run: self.run.clone(), side, start_unix_ns };
        let asked: Vec<_> = self.with_side(side).map(|name| (name, start.clone())).collect();
        check_all(fleet.ask_persistently(asked, "start", left_until(latest), watch).await)
    }

    async fn wait_until_listening(&self, fleet: &mut Fleet, latest: Instant, watch: Watch<'_>) -> Result<()> {
        loop {
            let mut waiting = Vec::new();
            let asked: Vec<_> = self
                .with_side(Side::Server)
                .map(|name| (name, AgentRequest::State { run: self.run.clone() }))
                .collect();
            for (agent, answer) in fleet.ask_persistently(asked, "state", left_until(latest), watch).await {
                let state = match answer? {
                    Answer::State(state) => state,
                    other => return unexpected(&agent, &other),
                };
                let server = state.sides.iter().find(|side| side.side == Side::Server);
                match server.map(|server| server.stage) {
                    Some(ProcessStage::Listening) => {}
                    Some(ProcessStage::Ended(_)) => return Err(cannot_work(&state, Side::Server)),
                    _ => waiting.push(agent.to_string()),
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            if Instant::now() > latest {
                return too_late(self.start_in, &format!("the servers of {} listen", waiting.join(", ")));
            }
            tokio::time::sleep(ASK).await;
        }
    }
}

/// How long agents may take to answer if something has to happen at a time; not less than they are given for any question.
fn left_until(latest: Instant) -> Duration {
    latest.saturating_duration_since(Instant::now()).max(PROMPT)
}

fn too_late<T>(start_in: Duration, what: &str) -> Result<T> {
    Err(FleetError::Unfit(vec![format!(
        "it takes too long until {what}: the start was {} s away; add --start_in with a longer time",
        start_in.as_secs_f64()
    )]))
}

fn cannot_work(state: &RunState, side: Side) -> FleetError {
    let last = state.sides.iter().find(|known| known.side == side);
    let last = last.map_or_else(String::new, |known| known.last_lines.join("\n  "));
    FleetError::Refused {
        agent: state.agent.clone(),
        reason: format!("its {} process could not start:\n  {last}", side.name()),
    }
}

/// All failures in one error.
fn check_all(answers: Vec<(AgentName, Result<Answer>)>) -> Result<()> {
    let mut problems = Vec::new();
    for (agent, answer) in answers {
        match answer {
            Ok(Answer::Done) => {}
            Ok(other) => {
                problems.extend(unexpected::<()>(&agent, &other).err().map(|error| error.to_string()))
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(FleetError::Unfit(problems)) }
}
