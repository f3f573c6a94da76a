//! The fleet of a run: its agents, and what happened to them.

use super::page::{Part, Section};
use super::table::{Table, columns, row};
use crate::fleet::{AgentFacts, AgentSideShare, FleetFacts};
use crate::text;

/// The section about the fleet; empty if the run had none.
pub fn section(fleet: Option<&FleetFacts>) -> Section {
    let section = Section::new(
        "fleet",
        "Fleet",
        "The agents at the start of the run, their shares of the load, and everything that disturbed them. Clock offsets are those to the \
         controller. Rates are planned ones at the busiest moment; those of servers are without a cache.",
    );
    let Some(fleet) = fleet else { return section };
    let head = columns(&[
        "agent",
        "host",
        "processors",
        "weight",
        "clock offset",
        "robots",
        "requests/s",
        "servers",
        "requests/s",
    ]);
    let rows = fleet.agents.iter().map(|agent| agent_row(fleet, agent)).collect();
    let mut parts = vec![Part::Table(Table::new("Agents", head, rows))];
    if !fleet.incidents.is_empty() {
        let lines = fleet.incidents.iter().map(|incident| format!("{}: {}", incident.at, incident.text));
        parts.extend([Part::Heading("Incidents".to_owned()), Part::Notes(lines.collect())]);
    }
    section.with(parts)
}

fn agent_row(fleet: &FleetFacts, agent: &AgentFacts) -> Vec<String> {
    let inventory = &agent.inventory;
    let share = fleet.division.hosts.iter().find(|share| share.host == inventory.name);
    let side = |side: Option<&AgentSideShare>| {
        let rate = text::number(side.and_then(|side| side.rate), 1);
        [text::number(side.map(|side| side.agents as f64), 0), rate]
    };
    let clock = agent.clock_offset_s.zip(agent.clock_uncertainty_s).map_or_else(
        || text::UNDEFINED.to_owned(),
        |(offset, uncertainty)| format!("{:+.2} ms ± {:.2}", offset * 1e3, uncertainty * 1e3),
    );
    let own = [inventory.host.clone(), inventory.cores.to_string(), inventory.weight.to_string(), clock];
    let client = side(share.and_then(|share| share.client.as_ref()));
    let server = side(share.and_then(|share| share.server.as_ref()));
    row(&inventory.name, own.into_iter().chain(client).chain(server))
}
