//! What is known of the agents of a run, and which of them are lost.

use std::time::{Duration, Instant};

use polygraph_stats::Side;

use super::FleetEvent;
use crate::names::AgentName;
use crate::protocol::{FAILED, INTERRUPTED, Inventory, ProcessStage, RunState, SideState};

/// What happens to a run that loses an agent or a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostPolicy {
    /// The others are asked to end, and the run has failed.
    #[default]
    Fail,
    /// The others go on.
    Degrade,
}

/// An agent or a process that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The agent.
    pub agent: AgentName,
    /// What happened.
    pub what: String,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.agent, self.what)
    }
}

struct Member {
    name: AgentName,
    sides: Vec<Side>,
    state: Option<RunState>,
    heard: Instant,
    is_lost: bool,
    lines: u64,
}

/// The agents of a run.
pub(super) struct Roster {
    members: Vec<Member>,
    /// An agent that says nothing for this time is lost.
    patience: Duration,
    connected_since: Option<Instant>,
    /// All losses so far.
    pub losses: Vec<Loss>,
}

impl Roster {
    /// Agents with the sides that they run.
    pub fn new(members: Vec<(AgentName, Vec<Side>)>, patience: Duration, now: Instant) -> Roster {
        let member =
            |(name, sides)| Member { name, sides, state: None, heard: now, is_lost: false, lines: 0 };
        Roster {
            members: members.into_iter().map(member).collect(),
            patience,
            connected_since: Some(now),
            losses: Vec::new(),
        }
    }

    /// Takes the state of an agent, and says what is new.
    pub fn hear(&mut self, state: RunState, now: Instant) -> Vec<FleetEvent> {
        let Some(member) = self.members.iter_mut().find(|member| member.name == state.agent) else {
            return Vec::new();
        };
        let mut events = Vec::new();
        member.heard = now;
        let is_restarted = member.state.as_ref().is_some_and(|known| known.instance != state.instance);
        match (std::mem::take(&mut member.is_lost), is_restarted) {
            (true, _) => events.push(FleetEvent::Warning(format!("{} is back", member.name))),
            (false, true) => events.push(FleetEvent::Warning(format!(
                "the agent {} was restarted; its processes have gone on",
                member.name
            ))),
            (false, false) => {}
        }
        // Processes with both sides print little at the same time; robots are what users watch.
        if let Some(side) = state.sides.iter().find(|side| side.side == Side::Client) {
            let new = usize::try_from(side.lines.saturating_sub(member.lines)).unwrap_or(usize::MAX);
            let skipped = side.last_lines.len().saturating_sub(new);
            let lines = side.last_lines.iter().skip(skipped).cloned();
            events.extend(lines.map(|text| FleetEvent::Line { agent: member.name.clone(), text }));
            member.lines = member.lines.max(side.lines);
        }
        for side in &state.sides {
            let before = member.state.as_ref().and_then(|known| stage(known, side.side));
            let is_new = before != Some(side.stage);
            if let Some(what) = failure(side).filter(|_| is_new) {
                self.losses.push(Loss { agent: member.name.clone(), what });
            }
        }
        member.state = Some(state);
        events
    }

    /// Takes the announcement of an agent that was started during the run.
    pub fn hear_joined(&self, inventory: &Inventory) -> Option<FleetEvent> {
        let is_member = self.members.iter().any(|member| member.name == inventory.name);
        // The state of a member that was restarted says so.
        (!is_member).then(|| {
            FleetEvent::Warning(format!(
                "the agent {} on {} is late: it takes no part in this run",
                inventory.name, inventory.host
            ))
        })
    }

    /// Notes whether there is a connection to NATS, and which agents are lost since the last call. Without a connection nobody
    /// can be heard, and afterwards agents have time to come back.
    pub fn look(&mut self, is_connected: bool, now: Instant) -> Vec<FleetEvent> {
        let mut events = Vec::new();
        match (self.connected_since, is_connected) {
            (Some(_), false) => {
                self.connected_since = None;
                events
                    .push(FleetEvent::Warning("the connection to NATS is lost; the load goes on".to_owned()));
            }
            (None, true) => {
                self.connected_since = Some(now);
                events.push(FleetEvent::Warning("the connection to NATS is back".to_owned()));
            }
            _ => {}
        }
        let Some(since) = self.connected_since else { return events };
        for member in self.members.iter_mut().filter(|member| !member.is_lost) {
            let is_done = member.state.as_ref().is_some_and(|state| has_ended(state, &member.sides));
            if is_done || now.saturating_duration_since(member.heard.max(since)) < self.patience {
                continue;
            }
            member.is_lost = true;
            let what = format!("the agent has said nothing for {} s", self.patience.as_secs_f64());
            self.losses.push(Loss { agent: member.name.clone(), what });
        }
        events
    }

    /// Whether all processes of one side have ended, except those of lost agents.
    pub fn have_ended(&self, side: Side) -> bool {
        self.members.iter().filter(|member| !member.is_lost && member.sides.contains(&side)).all(|member| {
            member.state.as_ref().and_then(|state| stage(state, side)).is_some_and(ProcessStage::has_ended)
        })
    }

    /// The agents that are not lost.
    pub fn present(&self) -> Vec<AgentName> {
        self.members.iter().filter(|member| !member.is_lost).map(|member| member.name.clone()).collect()
    }

    /// The agents that are lost.
    pub fn lost(&self) -> Vec<AgentName> {
        self.members.iter().filter(|member| member.is_lost).map(|member| member.name.clone()).collect()
    }
}

fn stage(state: &RunState, side: Side) -> Option<ProcessStage> {
    state.sides.iter().find(|known| known.side == side).map(|known| known.stage)
}

fn has_ended(state: &RunState, sides: &[Side]) -> bool {
    sides.iter().all(|side| stage(state, *side).is_some_and(ProcessStage::has_ended))
}

/// Why a process that has ended has no usable results; `None` if it has.
fn failure(state: &SideState) -> Option<String> {
    let ProcessStage::Ended(code) = state.stage else { return None };
    let how = match code {
        Some(0 | INTERRUPTED) => return None,
        // Without a log, its test has not begun.
        Some(FAILED) if state.log_bytes > 0 => return None,
        Some(code) => format!("ended with exit code {code}"),
        None => "was killed, or ended while no agent was there".to_owned(),
    };
    let last = state.last_lines.iter().rev().take(3).rev().map(|line| format!("\n    {line}"));
    Some(format!("its {} process {how}{}", state.side.name(), last.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn state(agent: &str, client: ProcessStage, lines: &[&str], count: u64) -> RunState {
        RunState {
            agent: agent.parse().unwrap(),
            instance: 1,
            run: "r".parse().unwrap(),
            sides: vec![SideState {
                side: Side::Client,
                stage: client,
                lines: count,
                last_lines: lines.iter().map(|line| (*line).to_owned()).collect(),
                log_bytes: 100,
            }],
        }
    }

    fn roster(now: Instant) -> Roster {
        let member = |name: &str| (name.parse().unwrap(), vec![Side::Client]);
        Roster::new(vec![member("a"), member("b")], 10 * SECOND, now)
    }

    #[test]
    fn who_says_nothing_is_lost_until_it_is_back() {
        let start = Instant::now();
        let mut roster = roster(start);
        roster.hear(state("a", ProcessStage::Started, &[], 0), start + 5 * SECOND);
        assert!(roster.look(true, start + 9 * SECOND).is_empty() && roster.losses.is_empty());
        roster.look(true, start + 10 * SECOND);
        assert_eq!(roster.losses.len(), 1);
        assert_eq!(roster.losses[0].to_string(), "b: the agent has said nothing for 10 s");
        assert_eq!(roster.lost(), ["b".parse().unwrap()]);
        let events = roster.hear(state("b", ProcessStage::Started, &[], 0), start + 12 * SECOND);
        assert_eq!(events, [FleetEvent::Warning("b is back".to_owned())]);
        assert!(roster.lost().is_empty());
    }

    #[test]
    fn agents_that_were_restarted_and_late_ones_are_told() {
        let start = Instant::now();
        let mut roster = roster(start);
        let mut again = state("a", ProcessStage::Started, &[], 0);
        assert!(roster.hear(again.clone(), start).is_empty());
        again.instance = 2;
        let told = "the agent a was restarted; its processes have gone on".to_owned();
        assert_eq!(roster.hear(again.clone(), start), [FleetEvent::Warning(told)]);
        assert!(roster.hear(again, start).is_empty() && roster.losses.is_empty());
        let mut inventory = Inventory {
            name: "c".parse().unwrap(),
            instance: 3,
            host: "pc7".to_owned(),
            version: String::new(),
            client: true,
            server: true,
            weight: 1.0,
            cores: 1,
            memory: 0,
            disk_free: 0,
            busy: None,
        };
        let told = "the agent c on pc7 is late: it takes no part in this run".to_owned();
        assert_eq!(roster.hear_joined(&inventory), Some(FleetEvent::Warning(told)));
        inventory.name = "b".parse().unwrap();
        assert_eq!(roster.hear_joined(&inventory), None);
    }

    #[test]
    fn nobody_is_lost_while_nats_is() {
        let start = Instant::now();
        let mut roster = roster(start);
        assert_eq!(roster.look(false, start + SECOND).len(), 1);
        assert!(roster.look(false, start + 100 * SECOND).is_empty());
        assert_eq!(roster.look(true, start + 101 * SECOND).len(), 1);
        roster.look(true, start + 110 * SECOND);
        assert!(roster.losses.is_empty());
        roster.look(true, start + 111 * SECOND);
        assert_eq!(roster.losses.len(), 2);
    }

    #[test]
    fn processes_that_end_without_results_are_losses() {
        let start = Instant::now();
        let mut roster = roster(start);
        roster.hear(state("a", ProcessStage::Ended(Some(0)), &[], 0), start);
        roster.hear(state("b", ProcessStage::Ended(Some(3)), &["error: no port"], 1), start);
        // It is published again.
        roster.hear(state("b", ProcessStage::Ended(Some(3)), &["error: no port"], 1), start);
        let texts: Vec<String> = roster.losses.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["b: its client process ended with exit code 3\n    error: no port"]);
        assert!(roster.have_ended(Side::Client) && roster.have_ended(Side::Server));
        // Who has ended need not say so for ever.
        roster.look(true, start + 100 * SECOND);
        assert_eq!(roster.losses.len(), 1);
        for (code, bytes, is_failure) in [
            (Some(0), 0, false),
            (Some(130), 9, false),
            (Some(1), 9, false),
            (Some(1), 0, true),
            (Some(2), 9, true),
            (None, 9, true),
        ] {
            let mut side = state("a", ProcessStage::Ended(code), &[], 0).sides.remove(0);
            side.log_bytes = bytes;
            assert_eq!(failure(&side).is_some(), is_failure, "{code:?} {bytes}");
        }
    }

    #[test]
    fn lines_are_shown_once() {
        let start = Instant::now();
        let mut roster = roster(start);
        let shown = |events: Vec<FleetEvent>| -> Vec<String> {
            let text = |event| match event {
                FleetEvent::Line { text, .. } => Some(text),
                _ => None,
            };
            events.into_iter().filter_map(text).collect()
        };
        assert_eq!(shown(roster.hear(state("a", ProcessStage::Started, &["1", "2"], 2), start)), ["1", "2"]);
        assert_eq!(shown(roster.hear(state("a", ProcessStage::Started, &["1", "2"], 2), start)), [""; 0]);
        assert_eq!(shown(roster.hear(state("a", ProcessStage::Started, &["2", "3"], 3), start)), ["3"]);
        // More were printed than are remembered.
        assert_eq!(shown(roster.hear(state("a", ProcessStage::Started, &["8", "9"], 9), start)), ["8", "9"]);
    }
}
