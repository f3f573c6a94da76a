//! Places the agents of a workload on machines, for `pgl2ips`.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::{Addr, BenchRole, Host, compact, join};

/// The agents of one `Robot` or `Server` object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentGroup {
    /// Its label in the workload.
    pub kind: String,
    /// One address for each agent.
    pub addresses: Vec<Addr>,
}

/// One side of a bench: its machines and their agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SidePlan {
    /// The machines in order. A machine that is named twice runs two processes.
    pub hosts: Vec<Addr>,
    /// The addresses that the machines share, if the bench lists them; if empty, they share the addresses of
    /// the agents.
    pub aliases: Vec<Addr>,
    /// The agents in order of use.
    pub groups: Vec<AgentGroup>,
}

/// The agents of a workload on the machines of its bench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    machines: Vec<PlacedHost>,
    agents: Vec<PlacedAgents>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlacedHost {
    name: String,
    host: String,
    ips: HashSet<Host>,
    role: BenchRole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlacedAgents {
    name: String,
    kind: String,
    hosts: Vec<Host>,
    role: BenchRole,
}

/// Why agents cannot be placed or shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The addresses of a side cannot be shared evenly.
    #[error("{addresses} addresses of {role} do not divide evenly among {hosts} hosts of {}", role.side_name())]
    Uneven {
        /// The agents with these addresses.
        role: BenchRole,
        /// The number of different addresses.
        addresses: usize,
        /// The number of machines.
        hosts: usize,
    },
    /// No machine of this name.
    #[error("there is no host '{0}'; hosts are {1}")]
    NoHost(String, String),
    /// No agents of this name.
    #[error("there is no agent '{0}'; agents are {1}")]
    NoAgent(String, String),
    /// No variable of this name.
    #[error(
        "there is no variable '{0}'; write HOST.host, HOST.ips, HOST.agents or AGENT.kind, AGENT.ips, AGENT.agents"
    )]
    NoVariable(String),
}

/// The part of a placement to show; an empty scope means everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacementScope<'a> {
    /// One machine: `polyclt1`, `polysrv1` or its address.
    pub host: Option<&'a str>,
    /// Some agents: `robot1`, `server1` or their kind.
    pub agent: Option<&'a str>,
}

impl Placement {
    /// Cuts the different addresses of each side, in order, into equal consecutive slices, one for each
    /// machine. A side without machines has agents only.
    ///
    /// # Errors
    /// If the addresses of a side cannot be divided evenly among its machines.
    pub fn new(clients: SidePlan, servers: SidePlan) -> Result<Self, PlacementError> {
        let mut placement = Placement { machines: Vec::new(), agents: Vec::new() };
        placement.add(BenchRole::Robots, "polyclt", "robot", clients)?;
        placement.add(BenchRole::Servers, "polysrv", "server", servers)?;
        Ok(placement)
    }

    fn add(
        &mut self,
        role: BenchRole,
        machine: &str,
        agent: &str,
        side: SidePlan,
    ) -> Result<(), PlacementError> {
        let mut seen = HashSet::new();
        let of_agents =
            side.groups.iter().flat_map(|group| &group.addresses).filter(|_| side.aliases.is_empty());
        let all = side.aliases.iter().chain(of_agents).map(|addr| &addr.host);
        let unique: Vec<Host> = all.filter(|host| seen.insert(*host)).cloned().collect();
        let (addresses, hosts) = (unique.len(), side.hosts.len());
        if hosts > 0 && addresses % hosts > 0 {
            return Err(PlacementError::Uneven { role, addresses, hosts });
        }
        for (i, host) in side.hosts.iter().enumerate() {
            let share = addresses / hosts;
            let ips = unique[i * share..(i + 1) * share].iter().cloned().collect();
            let name = format!("{machine}{}", i + 1);
            self.machines.push(PlacedHost { name, host: host.host.to_string(), ips, role });
        }
        for (i, group) in side.groups.into_iter().enumerate() {
            let hosts = group.addresses.into_iter().map(|addr| addr.host).collect();
            self.agents.push(PlacedAgents {
                name: format!("{agent}{}", i + 1),
                kind: group.kind,
                hosts,
                role,
            });
        }
        Ok(())
    }

    /// One line for each machine and each kind of agents in the scope.
    ///
    /// # Errors
    /// If the scope names a machine or agents that do not exist.
    pub fn text(&self, scope: PlacementScope<'_>) -> Result<String, PlacementError> {
        let (machines, agents) = self.select(scope)?;
        let mut out =
            format!("scope: host={} agent={}\n\n", scope.host.unwrap_or("any"), scope.agent.unwrap_or("any"));
        for machine in &machines {
            let (ips, count) = ips(self.on_machine(machine, &agents));
            let _ = writeln!(out, "{}: host={} ips={ips} agents={count}", machine.name, machine.host);
        }
        for group in &agents {
            let (ips, count) = ips(self.of_group(group, scope, &machines));
            let _ = writeln!(out, "{}: kind={} ips={ips} agents={count}", group.name, group.kind);
        }
        Ok(out)
    }

    /// One value: `polyclt1.host`, `polyclt1.ips`, `polyclt1.agents`, `robot1.kind`, `robot1.ips`,
    /// `robot1.agents`.
    ///
    /// # Errors
    /// If there is no such machine, agent or variable.
    pub fn variable(&self, scope: PlacementScope<'_>, name: &str) -> Result<String, PlacementError> {
        let (machines, agents) = self.select(scope)?;
        let unknown = || PlacementError::NoVariable(name.to_owned());
        // Kinds and addresses may contain dots.
        let (object, field) = name.rsplit_once('.').ok_or_else(unknown)?;
        let machine = machines.iter().find(|machine| machine.is(object));
        let group = agents.iter().find(|group| group.is(object));
        let (label, selected) = match (machine, group) {
            (Some(machine), _) => (("host", &machine.host), self.on_machine(machine, &agents)),
            (None, Some(group)) => (("kind", &group.kind), self.of_group(group, scope, &machines)),
            (None, None) => return Err(unknown()),
        };
        match field {
            "ips" => Ok(ips(selected).0),
            "agents" => Ok(ips(selected).1.to_string()),
            _ if field == label.0 => Ok(label.1.clone()),
            _ => Err(unknown()),
        }
    }

    fn select(
        &self,
        scope: PlacementScope<'_>,
    ) -> Result<(Vec<&PlacedHost>, Vec<&PlacedAgents>), PlacementError> {
        let (mut machines, mut agents): (Vec<_>, Vec<_>) =
            (self.machines.iter().collect(), self.agents.iter().collect());
        if let Some(name) = scope.host {
            machines.retain(|machine| machine.is(name));
            if machines.is_empty() {
                let known = self.machines.iter().map(|machine| machine.name.as_str());
                return Err(PlacementError::NoHost(name.to_owned(), list(known)));
            }
            agents.retain(|group| machines.iter().any(|machine| machine.role == group.role));
        }
        if let Some(name) = scope.agent {
            agents.retain(|group| group.is(name));
            if agents.is_empty() {
                let known = self.agents.iter().map(|group| group.name.as_str());
                return Err(PlacementError::NoAgent(name.to_owned(), list(known)));
            }
            machines.retain(|machine| agents.iter().any(|group| group.role == machine.role));
        }
        Ok((machines, agents))
    }

    fn on_machine<'a>(&self, machine: &PlacedHost, agents: &[&'a PlacedAgents]) -> Vec<&'a Host> {
        let same_side = agents.iter().filter(|group| group.role == machine.role);
        same_side.flat_map(|group| &group.hosts).filter(|host| machine.ips.contains(*host)).collect()
    }

    fn of_group<'a>(
        &self,
        group: &'a PlacedAgents,
        scope: PlacementScope<'_>,
        machines: &[&PlacedHost],
    ) -> Vec<&'a Host> {
        let placed = |host: &&Host| machines.iter().any(|m| m.role == group.role && m.ips.contains(*host));
        group.hosts.iter().filter(|host| scope.host.is_none() || placed(host)).collect()
    }
}

impl PlacedHost {
    fn is(&self, name: &str) -> bool {
        self.name == name || self.host == name
    }
}

impl PlacedAgents {
    fn is(&self, name: &str) -> bool {
        self.name == name || self.kind == name
    }
}

/// The different addresses as ranges, and the number of agents.
fn ips(hosts: Vec<&Host>) -> (String, usize) {
    let mut seen = HashSet::new();
    let unique = hosts.iter().filter(|host| seen.insert(**host)).map(|host| Addr::new((*host).clone()));
    (join(&compact(unique), ","), hosts.len())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "not set".to_owned() } else { names.join(", ") }
}
