//! Questions and files that survive the loss of a server of NATS, until the load begins: agents connect to another server within seconds,
//! but what was on its way is lost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Fleet, FleetEvent, Watch, answer_of, silent};
use crate::bus::Bus;
use crate::error::{FleetError, Result};
use crate::names::AgentName;
use crate::protocol::{AgentRequest, Answer, agent_subject, encode};

/// How long an agent may be silent before it is asked again, if something may be lost; each time twice as long.
const SILENCE: Duration = Duration::from_secs(2);
/// How often an agent is asked that is not there.
const PAUSE: Duration = Duration::from_millis(500);
/// How long an agent may take to come back whose server is lost.
const COMING_BACK: Duration = Duration::from_secs(15);
/// How long the servers that are left may take to store files again.
const STORING: Duration = Duration::from_secs(40);

/// A question to an agent that has not answered yet.
struct Open {
    agent: AgentName,
    request: Vec<u8>,
    /// When it was asked last, and how long it may be silent then.
    asked: (Instant, Duration),
    /// Since when it is not there, if it is not.
    absent: Option<Instant>,
    answer: Option<Result<Answer>>,
}

impl Open {
    fn is_due(&self) -> bool {
        self.answer.is_none() && (self.absent.is_some() || self.asked.0.elapsed() >= self.asked.1)
    }
}

impl Fleet {
    /// Asks several agents at the same time, and those again that do not answer, if the question or the answer may be lost with a server
    /// of NATS. Agents take a question that they have heard before for the same one. The answers are in the order of the questions.
    pub async fn ask_persistently<'a>(
        &mut self,
        requests: impl IntoIterator<Item = (&'a AgentName, AgentRequest)>,
        what: &'static str,
        limit: Duration,
        watch: Watch<'_>,
    ) -> Vec<(AgentName, Result<Answer>)> {
        let (begin, connections) = (Instant::now(), self.bus.connections());
        let open = |(agent, request): (&AgentName, AgentRequest)| Open {
            agent: agent.clone(),
            request: encode(&request),
            asked: (begin, Duration::ZERO),
            absent: None,
            answer: None,
        };
        let mut all: Vec<Open> = requests.into_iter().map(open).collect();
        let (mut numbers, mut is_lost) = (BTreeMap::new(), false);
        while all.iter().any(|open| open.answer.is_none()) && begin.elapsed() < limit {
            self.ask_due(&mut all, &mut numbers).await;
            self.hear(&mut all, &numbers, begin + limit).await;
            let names = all.iter().filter(|open| open.answer.is_none()).map(|open| open.agent.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            if names.is_empty() {
                break;
            }
            if let Some(lost) = self.bus.lost_servers().await.filter(|_| !is_lost) {
                is_lost = true;
                watch(FleetEvent::Step(format!(
                    "{lost}: {names} did not answer ({what}), and are asked again"
                )));
            }
            let may_be_lost = is_lost || self.bus.connections() != connections;
            for open in &mut all {
                let waits = if may_be_lost { COMING_BACK } else { Duration::ZERO };
                if open.answer.is_none() && open.absent.is_some_and(|since| since.elapsed() >= waits) {
                    open.answer = Some(Err(FleetError::Absent { agent: open.agent.clone(), what }));
                }
                if !may_be_lost && open.absent.is_none() {
                    // Work may take its time.
                    open.asked = (Instant::now(), SILENCE);
                }
            }
        }
        let answer =
            |open: Open| (open.agent.clone(), open.answer.unwrap_or_else(|| silent(&open.agent, what)));
        all.into_iter().map(answer).collect()
    }

    /// Asks those agents whose turn it is.
    async fn ask_due(&mut self, all: &mut [Open], numbers: &mut BTreeMap<u64, usize>) {
        for (at, open) in all.iter_mut().enumerate().filter(|(_, open)| open.is_due()) {
            self.asked += 1;
            numbers.insert(self.asked, at);
            let reply = format!("{}.{}", self.prefix, self.asked);
            self.bus.publish(agent_subject(&open.agent), Some(reply), open.request.clone()).await;
            open.asked = (Instant::now(), (2 * open.asked.1).max(SILENCE));
        }
    }

    /// Takes answers until all are there or somebody may have to be asked again.
    async fn hear(&mut self, all: &mut [Open], numbers: &BTreeMap<u64, usize>, deadline: Instant) {
        let mut until = deadline.min(Instant::now() + SILENCE);
        while all.iter().any(|open| open.answer.is_none()) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(Some(message)) = tokio::time::timeout(left, self.answers.next()).await else { break };
            let number = message.subject.rsplit('.').next().and_then(|text| text.parse::<u64>().ok());
            // Late answers to other questions have other numbers.
            let Some(at) = number.and_then(|number| numbers.get(&number)) else { continue };
            let open = &mut all[*at];
            if message.is_undelivered {
                open.absent.get_or_insert_with(Instant::now);
                until = until.min(Instant::now() + PAUSE);
            } else {
                (open.absent, open.answer) = (None, Some(answer_of(&open.agent, &message.bytes)));
            }
        }
    }

    /// Does something with files in the store again and again, for some time, while a server of NATS is lost and the others may
    /// take its place.
    ///
    /// # Errors
    /// If it fails although all servers are there, or still after that time.
    pub async fn store_persistently<T>(
        &self,
        what: &str,
        watch: Watch<'_>,
        work: impl AsyncFn(&Bus) -> Result<T>,
    ) -> Result<T> {
        let begin = Instant::now();
        loop {
            let error = match work(&self.bus).await {
                Err(error @ FleetError::Nats(_)) => error,
                other => return other,
            };
            match self.bus.lost_servers().await {
                Some(lost) if begin.elapsed() < STORING => {
                    watch(FleetEvent::Step(format!("{lost}: {what} again, because of {error}")));
                    tokio::time::sleep(PAUSE).await;
                }
                _ => return Err(error),
            }
        }
    }

    /// An error that says which servers of NATS are lost, if some are.
    pub async fn with_lost_servers(&self, error: FleetError) -> FleetError {
        match self.bus.lost_servers().await {
            Some(lost) => FleetError::Unfit(vec![error.to_string(), lost]),
            None => error,
        }
    }
}
