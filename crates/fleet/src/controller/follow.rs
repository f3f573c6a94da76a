//! A run from its start to its end.

use std::pin::Pin;
use std::time::{Duration, Instant};

use polygraph_stats::Side;

use super::roster::Roster;
use super::{Fleet, FleetEvent, FleetRun, Loss, LostPolicy, Watch};
use crate::agent::unix_ns;
use crate::error::{FleetError, Result};
use crate::names::AgentName;
use crate::protocol::{ALL_JOINED, ALL_STATES, Inventory, RunState, decode};

/// How often the controller looks who is silent.
const LOOK: Duration = Duration::from_millis(250);
/// How long servers may go on after the last client; by themselves they end after three seconds without requests.
const SERVERS_END: Duration = Duration::from_secs(20);
/// How long processes may take to end after they were asked to.
const END: Duration = Duration::from_secs(90);

/// Becomes ready when the user asks the run to stop.
pub type Stopper = Pin<Box<dyn Future<Output = ()>>>;

/// Something that disturbed a fleet during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// When the controller noticed it, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// What happened.
    pub text: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// What disturbed the fleet, in order: losses, late agents, connections that were lost and made again.
    pub incidents: Vec<Incident>,
    /// Agents and processes that were lost, in order.
    pub losses: Vec<Loss>,
    /// The agents that have their logs ready.
    pub present: Vec<AgentName>,
    /// The agents that are lost, with the logs on their disks.
    pub lost: Vec<AgentName>,
    /// Whether the user stopped the run.
    pub interrupted: bool,
}

impl FleetRun {
    /// Follows the run until all processes of agents that are not lost have ended.
    ///
    /// # Errors
    /// If processes do not end when they are asked to, or the connection to NATS was closed for good.
    pub async fn follow(&self, fleet: &mut Fleet, mut stop: Stopper, watch: Watch<'_>) -> Result<Followed> {
        let mut states = fleet.bus.subscribe(ALL_STATES.to_owned()).await?;
        let mut joined = fleet.bus.subscribe(ALL_JOINED.to_owned()).await?;
        let mut incidents = Vec::new();
        let mut watch = |event: FleetEvent| {
            if let FleetEvent::Warning(text) = &event {
                incidents.push(Incident { at_unix_ns: unix_ns(), text: text.clone() });
            }
            watch(event);
        };
        let sides = |parts: &[crate::protocol::SideAssignment]| parts.iter().map(|part| part.side).collect();
        let members = self.members.iter().map(|(name, parts)| (name.clone(), sides(parts))).collect();
        let mut roster = Roster::new(members, self.patience, Instant::now());
        let mut look = tokio::time::interval(LOOK);
        let mut shown = 0;
        let mut interrupted = false;
        // When processes were asked to end.
        let mut asked: Option<Instant> = None;
        let mut clients_ended: Option<Instant> = None;
        loop {
            let mut must_stop = false;
            tokio::select! {
                message = states.next() => {
                    let Some(message) = message else {
                        return Err(FleetError::Nats("the connection was closed for good".to_owned()));
                    };
                    // States of other programs and runs do not matter.
                    if let Ok(state) = decode::<RunState>(&message.bytes)
                        && state.run == self.run
                    {
                        roster.hear(state, Instant::now()).into_iter().for_each(&mut watch);
                    }
                }
                Some(message) = joined.next() => {
                    let late = decode::<Inventory>(&message.bytes).ok();
                    late.and_then(|inventory| roster.hear_joined(&inventory)).into_iter().for_each(&mut watch);
                }
                _ = look.tick() => {
                    roster.look(fleet.bus.is_connected(), Instant::now()).into_iter().for_each(&mut watch);
                }
                () = &mut stop, if !interrupted => {
                    interrupted = true;
                    must_stop = true;
                }
            }
            for loss in &roster.losses[shown..] {
                watch(FleetEvent::Warning(format!("{loss}{}", self.consequence())));
                must_stop |= self.policy == LostPolicy::Fail;
            }
            shown = roster.losses.len();
            if roster.have_ended(Side::Client) {
                let since = clients_ended.get_or_insert_with(Instant::now);
                if roster.have_ended(Side::Server) {
                    break;
                }
                must_stop |= since.elapsed() > SERVERS_END;
            }
            match asked {
                None if must_stop => {
                    asked = Some(Instant::now());
                    self.stop(fleet).await;
                }
                Some(begin) if begin.elapsed() > END && fleet.bus.is_connected() => {
                    return Err(FleetError::Unfit(vec![
                        "some processes do not end when they are asked to: see `polygraph fleet ls`"
                            .to_owned(),
                    ]));
                }
                _ => {}
            }
        }
        let (present, lost) = (roster.present(), roster.lost());
        Ok(Followed { incidents, losses: roster.losses, present, lost, interrupted })
    }

    fn consequence(&self) -> &'static str {
        match self.policy {
            LostPolicy::Fail => "; the run ends (--lost fail)",
            LostPolicy::Degrade => "; the run goes on without it (--lost degrade)",
        }
    }
}
