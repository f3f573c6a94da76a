//! Logs come from the disks of agents into a result directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polygraph_text::{bytes, counted};

use super::{Fleet, FleetEvent, PROMPT, Watch, unexpected};
use crate::error::{FleetError, Result};
use crate::names::{AgentName, RunId};
use crate::protocol::{AgentRequest, Answer, StoredFile, bucket};

/// How often an agent is asked for its list of files.
const ATTEMPTS: usize = 6;
/// For how long an agent is asked for a file again. A cluster of NATS that has lost a server needs up to ten seconds to elect leaders.
const AGAIN: Duration = Duration::from_secs(60);
/// How long an agent may take to send a file, besides the time for its bytes.
const SENDING: Duration = Duration::from_secs(20);
/// Bytes per second that agents send at least.
const SLOWEST: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_secs(2);
/// The directory of what processes printed, in a result directory.
const CONSOLE: &str = "console";

/// The files of agents that are now in a result directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectedLogs {
    /// The logs.
    pub logs: Vec<PathBuf>,
    /// Agents whose files could not be fetched, with the reasons.
    pub missing: Vec<(AgentName, String)>,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Fleet {
    /// Fetches the files of a run from these agents, one after another, so that the object store needs room for one.
    ///
    /// # Errors
    /// If the server stores no files, or the directory cannot be written.
    pub async fn collect(
        &mut self,
        run: &RunId,
        agents: &[AgentName],
        directory: &Path,
        watch: Watch<'_>,
    ) -> Result<CollectedLogs> {
        let console = directory.join(CONSOLE);
        std::fs::create_dir_all(&console).map_err(FleetError::file(&console))?;
        let mut collected = CollectedLogs::default();
        for agent in agents {
            match self.collect_from(run, agent, directory, &mut collected, watch).await {
                Ok(()) => {}
                Err(error @ FleetError::File { .. }) => return Err(error),
                Err(error) => collected.missing.push((agent.clone(), error.to_string())),
            }
        }
        watch(FleetEvent::Step(format!(
            "{} collected ({})",
            counted(collected.logs.len() as u64, "log"),
            bytes(Some(collected.bytes as f64))
        )));
        Ok(collected)
    }

    /// Removes what is left of a run in the object store.
    pub async fn clean_up(&mut self, run: &RunId) {
        self.bus.remove_bucket(&bucket(run)).await;
    }

    async fn collect_from(
        &mut self,
        run: &RunId,
        agent: &AgentName,
        directory: &Path,
        collected: &mut CollectedLogs,
        watch: Watch<'_>,
    ) -> Result<()> {
        let asked = AgentRequest::Files { run: run.clone() };
        let files = match self.persistently(agent, &asked, "list its files", PROMPT).await? {
            Answer::Files(files) => files,
            other => return unexpected(agent, &other),
        };
        for file in files {
            let name = format!("{agent}-{}", file.name);
            let is_log = name.ends_with(".log");
            let path = if is_log { directory.join(name) } else { directory.join(CONSOLE).join(name) };
            self.fetch(run, agent, &file, &path, watch).await?;
            collected.bytes += file.bytes;
            collected.logs.extend(is_log.then_some(path));
        }
        Ok(())
    }

    /// Lets an agent send a file, and fetches it. Both are repeated if the server or the store was restarted meanwhile.
    async fn fetch(
        &mut self,
        run: &RunId,
        agent: &AgentName,
        file: &StoredFile,
        path: &Path,
        watch: Watch<'_>,
    ) -> Result<()> {
        let bucket = bucket(run);
        let send = AgentRequest::Send { run: run.clone(), name: file.name.clone() };
        let limit = SENDING + Duration::from_secs(file.bytes / SLOWEST);
        let begin = Instant::now();
        loop {
            let done = match self.bus.make_bucket(&bucket).await {
                Ok(()) => self.ask(agent, &send, "send a file", limit).await.map(drop),
                Err(error) => Err(error),
            };
            let done = match done {
                Ok(()) => self.bus.get_file(&bucket, &file.object, path).await.and_then(|bytes| {
                    let is_whole = bytes >= file.bytes;
                    let part = format!("{} has {bytes} of {} bytes", file.object, file.bytes);
                    if is_whole { Ok(()) } else { Err(FleetError::Nats(part)) }
                }),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => {
                    self.bus.remove_file(&bucket, &file.object).await;
                    return Ok(());
                }
                Err(error @ FleetError::File { .. }) => return Err(error),
                Err(error) if begin.elapsed() > AGAIN => return Err(error),
                Err(error) => {
                    watch(FleetEvent::Step(format!("{} is asked for again: {error}", file.object)));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Asks an agent until it answers.
    async fn persistently(
        &mut self,
        agent: &AgentName,
        request: &AgentRequest,
        what: &'static str,
        limit: Duration,
    ) -> Result<Answer> {
        for _ in 1..ATTEMPTS {
            match self.ask(agent, request, what, limit).await {
                Err(FleetError::Silent { .. } | FleetError::Absent { .. }) => tokio::time::sleep(PAUSE).await,
                other => return other,
            }
        }
        self.ask(agent, request, what, limit).await
    }
}
