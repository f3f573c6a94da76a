//! The controller: it finds agents, asks them, and carries out runs with them.
//!
//! * this file: questions and answers.
//! * `checks`: whether agents can work together; a pure function.
//! * `choice`: the agents of a run, and what each of them does.
//! * `roster`: what is known of the agents of a run, and who is lost; pure, too.
//! * `persistence`: questions and files that survive the loss of a server of NATS.
//! * `start`: files, processes and the common start.
//! * `follow`: a run from its start to its end.
//! * `collect`: logs.

mod checks;
mod choice;
mod collect;
mod follow;
mod persistence;
mod roster;
mod start;

use std::time::{Duration, Instant};

use crate::agent::unix_ns;
use crate::bus::{Bus, BusOptions, Inbox};
use crate::clock::{ClockOffset, RoundTrip};
use crate::error::{FleetError, Result};
use crate::names::AgentName;
use crate::protocol::{ALL_AGENTS, AgentRequest, Answer, Inventory, agent_subject, decode, encode};

pub use self::checks::{Candidate, check};
pub use self::choice::{Choice, ChoiceRules, members};
pub use self::collect::CollectedLogs;
pub use self::follow::{Followed, Incident, Stopper};
pub use self::roster::{Loss, LostPolicy};
pub use self::start::{FleetRun, RunFile};

/// How long an agent may take to answer a question that needs no work.
pub const PROMPT: Duration = Duration::from_secs(5);
/// How long an agent may take for work such as fetching or sending files.
pub const WORK: Duration = Duration::from_secs(600);
/// Questions about the time; the fastest answer counts.
const ROUND_TRIPS: usize = 8;

/// What happens to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetEvent {
    /// A step of the controller.
    Step(String),
    /// A process of an agent printed a line.
    Line {
        /// The agent.
        agent: AgentName,
        /// The line.
        text: String,
    },
    /// An agent or process is lost or has come back, or NATS has.
    Warning(String),
}

/// Shows what happens.
pub type Watch<'a> = &'a mut dyn FnMut(FleetEvent);

/// A connection to a fleet.
#[derive(Debug)]
pub struct Fleet {
    pub(crate) bus: Bus,
    answers: Inbox,
    prefix: String,
    asked: u64,
}

impl Fleet {
    /// Connects to the NATS of a fleet.
    ///
    /// # Errors
    /// If no server can be reached, or it refuses the credentials.
    pub async fn connect(options: &BusOptions) -> Result<Fleet> {
        let bus = Bus::connect(options, false).await?;
        let prefix = bus.new_inbox();
        let answers = bus.subscribe(format!("{prefix}.*")).await?;
        Ok(Fleet { bus, answers, prefix, asked: 0 })
    }

    /// The agents that answer within `wait`; if `wanted` names some, these, as soon as all have answered.
    ///
    /// # Errors
    /// If a wanted agent does not answer, or two agents have the same name.
    pub async fn inventory(&mut self, wanted: &[AgentName], wait: Duration) -> Result<Vec<Inventory>> {
        self.asked += 1;
        let subject = format!("{}.{}", self.prefix, self.asked);
        let deadline = Instant::now() + wait;
        self.bus
            .publish(ALL_AGENTS.to_owned(), Some(subject.clone()), encode(&AgentRequest::Inventory))
            .await;
        let mut found: Vec<Inventory> = Vec::new();
        let is_missing = |found: &[Inventory], name: &AgentName| found.iter().all(|it| it.name != *name);
        loop {
            let all_there = !wanted.is_empty() && !wanted.iter().any(|name| is_missing(&found, name));
            let left = deadline.saturating_duration_since(Instant::now());
            // Agents with the same name answer at about the same time.
            let left = if all_there { left.min(Duration::from_millis(100)) } else { left };
            let Ok(Some(message)) = tokio::time::timeout(left, self.answers.next()).await else { break };
            if message.subject != subject || message.is_undelivered {
                continue;
            }
            if let Answer::Inventory(inventory) = decode(&message.bytes)? {
                found.push(*inventory);
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = found.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(FleetError::Unfit(vec![format!(
                "two agents have the name {}, on {} and on {}: give one of them another --name",
                pair[0].name, pair[0].host, pair[1].host
            )]));
        }
        if let Some(name) = wanted.iter().find(|name| is_missing(&found, name)) {
            return Err(FleetError::Silent { agent: name.clone(), what: "inventory" });
        }
        if !wanted.is_empty() {
            found.retain(|it| wanted.contains(&it.name));
        }
        Ok(found)
    }

    /// Asks one agent.
    ///
    /// # Errors
    /// If it does not answer in time, or refuses.
    pub async fn ask(
        &mut self,
        agent: &AgentName,
        request: &AgentRequest,
        what: &'static str,
        limit: Duration,
    ) -> Result<Answer> {
        let asked = [(agent.clone(), encode(request))];
        let mut answers = self.ask_each(&asked, what, limit).await;
        answers.pop().map_or_else(|| silent(agent, what), |(_, answer)| answer)
    }

    /// Asks several agents at the same time. The answers are in the order of the questions.
    pub async fn ask_all<'a>(
        &mut self,
        requests: impl IntoIterator<Item = (&'a AgentName, AgentRequest)>,
        what: &'static str,
        limit: Duration,
    ) -> Vec<(AgentName, Result<Answer>)> {
        let requests: Vec<(AgentName, Vec<u8>)> =
            requests.into_iter().map(|(agent, request)| (agent.clone(), encode(&request))).collect();
        self.ask_each(&requests, what, limit).await
    }

    async fn ask_each(
        &mut self,
        requests: &[(AgentName, Vec<u8>)],
        what: &'static str,
        limit: Duration,
    ) -> Vec<(AgentName, Result<Answer>)> {
        let first = self.asked + 1;
        let deadline = Instant::now() + limit;
        for (agent, bytes) in requests {
            self.asked += 1;
            let reply = format!("{}.{}", self.prefix, self.asked);
            self.bus.publish(agent_subject(agent), Some(reply), bytes.clone()).await;
        }
        let mut answers: Vec<Option<Result<Answer>>> = requests.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(Some(message)) = tokio::time::timeout(left, self.answers.next()).await else { break };
            // Late answers to earlier questions have smaller numbers.
            let number = message.subject.rsplit('.').next().and_then(|text| text.parse::<u64>().ok());
            let Some(at) = number.and_then(|number| number.checked_sub(first)) else { continue };
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let Some((agent, _)) = requests.get(at) else { continue };
            answers[at] = Some(match message.is_undelivered {
                true => Err(FleetError::Absent { agent: agent.clone(), what }),
                false => answer_of(agent, &message.bytes),
            });
        }
        let pairs = requests.iter().zip(answers);
        pairs
            .map(|((agent, _), answer)| (agent.clone(), answer.unwrap_or_else(|| silent(agent, what))))
            .collect()
    }

    /// Measures how far the clock of an agent's host is from that of this one.
    ///
    /// # Errors
    /// If the agent does not answer.
    pub async fn clock_offset(&mut self, agent: &AgentName) -> Result<ClockOffset> {
        let mut trips = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let sent = unix_ns();
            let answer = self.ask(agent, &AgentRequest::Clock, "clock", PROMPT).await?;
            let received = unix_ns();
            match answer {
                Answer::Clock(remote) => trips.push(RoundTrip { sent, remote, received }),
                other => return unexpected(agent, &other),
            }
        }
        ClockOffset::measured(&trips).map_or_else(|| silent(agent, "clock"), Ok)
    }
}

fn silent<T>(agent: &AgentName, what: &'static str) -> Result<T> {
    Err(FleetError::Silent { agent: agent.clone(), what })
}

fn answer_of(agent: &AgentName, bytes: &[u8]) -> Result<Answer> {
    match decode(bytes)? {
        Answer::Refused(reason) => Err(FleetError::Refused { agent: agent.clone(), reason }),
        answer => Ok(answer),
    }
}

/// An answer to another question.
pub(crate) fn unexpected<T>(agent: &AgentName, answer: &Answer) -> Result<T> {
    let kind = format!("{answer:?}");
    let kind = kind.split(['(', ' ', '{']).next().unwrap_or_default();
    Err(FleetError::Refused {
        agent: agent.clone(),
        reason: format!("it gave an unexpected answer ({kind})"),
    })
}
