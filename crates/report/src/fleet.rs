//! The fleet of a run, from the manifest in its result directory: the agents, what each of them did, and what happened to them.

use serde::Deserialize;

/// The fleet of a run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FleetFacts {
    /// The id of the run, under which agents keep its files.
    pub run: String,
    /// What happens if an agent is lost: `fail` or `degrade`.
    pub lost_policy: String,
    /// The agents that took part.
    pub agents: Vec<AgentFacts>,
    /// What each of them did.
    pub division: DivisionFacts,
    /// What disturbed the fleet, in order.
    #[serde(default)]
    pub incidents: Vec<FleetIncident>,
    /// Agents and processes that were lost, in words.
    #[serde(default)]
    pub lost: Vec<String>,
    /// Agents whose logs are not in the result directory.
    #[serde(default)]
    pub missing_logs: Vec<String>,
}

/// An agent at the start of the run.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentFacts {
    /// What it said about itself.
    pub inventory: AgentInventory,
    /// How many seconds its clock was ahead of that of the controller.
    pub clock_offset_s: Option<f64>,
    /// The offset is right within so many seconds.
    pub clock_uncertainty_s: Option<f64>,
}

/// What an agent said about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentInventory {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Number of processors.
    pub cores: u32,
    /// Its strength compared to others.
    pub weight: f64,
}

/// What all agents did.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DivisionFacts {
    /// The agents.
    pub hosts: Vec<AgentShare>,
}

/// What one agent did.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentShare {
    /// The name of the agent.
    pub host: String,
    /// Its robots.
    pub client: Option<AgentSideShare>,
    /// Its servers.
    pub server: Option<AgentSideShare>,
}

/// The robots or servers of an agent.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentSideShare {
    /// Number of robots or servers.
    pub agents: u64,
    /// Requests per second at the busiest moment, if that is known before the test.
    pub rate: Option<f64>,
}

/// Something that disturbed a fleet.
#[derive(Clone, Debug, Deserialize)]
pub struct FleetIncident {
    /// The time of day.
    pub at: String,
    /// What happened.
    pub text: String,
}

impl FleetFacts {
    /// The fleet in the manifest of a result directory; `None` if the run had none.
    pub fn of_run(manifest: &serde_json::Value) -> Option<FleetFacts> {
        serde_json::from_value(manifest.get("fleet")?.clone()).ok()
    }

    /// What was lost, a sentence each.
    pub fn losses(&self) -> Vec<String> {
        let policy = match self.lost_policy.as_str() {
            "degrade" => "the verdict is about the others",
            _ => "the run has failed because of that",
        };
        let lost = self.lost.iter().map(|loss| format!("Lost during the run: {loss}; {policy}."));
        let missing = self.missing_logs.iter().map(|agent| {
            format!("The logs of {agent} are missing here; they are on the disk of its host. This report is without them.")
        });
        lost.chain(missing).collect()
    }
}
