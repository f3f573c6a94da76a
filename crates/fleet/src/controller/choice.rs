//! The agents of a run, and what each of them does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use polygraph_addr::{Addr, AddrRange, compact, expand};
use polygraph_plan::{Division, Test, TestHost, divide};
use polygraph_stats::Side;

use super::{Candidate, Fleet, PROMPT, Watch, check, unexpected};
use crate::error::{FleetError, Result};
use crate::names::AgentName;
use crate::protocol::{AgentRequest, Answer, SideAssignment};

/// How long agents may take to own up to their addresses, which they try one by one.
const OWNING: Duration = Duration::from_secs(60);
/// More addresses than this are a typing error.
const MOST_ADDRESSES: u64 = 1 << 20;

/// Which agents may be chosen.
#[derive(Clone, Debug)]
pub struct ChoiceRules {
    /// Only these, which must be there; empty: all that answer.
    pub wanted: Vec<AgentName>,
    /// How long agents may take to answer.
    pub wait: Duration,
    /// The version of this program.
    pub version: String,
    /// By how much clocks may differ; `None`: by anything.
    pub clock_limit: Option<Duration>,
}

/// The agents of a run, and what each of them does.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The agents that take part.
    pub candidates: Vec<Candidate>,
    /// Agents that have none of the addresses of the workload.
    pub without_addresses: Vec<AgentName>,
    /// What each of them does.
    pub division: Division,
}

impl Fleet {
    /// Takes inventory, checks whether the agents can work together, and divides a test among them.
    ///
    /// # Errors
    /// If agents are missing or unfit, or addresses of the workload belong to nobody.
    pub async fn choose(&mut self, test: &Test, rules: &ChoiceRules) -> Result<Choice> {
        let found = self.inventory(&rules.wanted, rules.wait).await?;
        if found.is_empty() {
            return Err(FleetError::Unfit(vec![
                "no agent answers: start `polygraph agent --nats URL` on the hosts".to_owned(),
            ]));
        }
        let mut candidates = Vec::new();
        for inventory in found {
            // The versions differ if the answer cannot be read, which the check tells better.
            let clock = self.clock_offset(&inventory.name).await.ok();
            candidates.push(Candidate { inventory, clock });
        }
        let problems = check(&candidates, &rules.version, rules.clock_limit);
        if !problems.is_empty() {
            return Err(FleetError::Unfit(problems));
        }
        let wanted =
            [(Side::Client, addresses(test, Side::Client)), (Side::Server, addresses(test, Side::Server))];
        let (mut hosts, mut taking_part, mut without_addresses) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in candidates {
            let name = &candidate.inventory.name;
            let owned = self.owned(&candidate, &wanted).await?;
            if owned.is_empty() && !rules.wanted.contains(name) {
                without_addresses.push(name.clone());
                continue;
            }
            hosts.push(TestHost {
                name: name.to_string(),
                client: candidate.inventory.client,
                server: candidate.inventory.server,
                addresses: Some(owned),
                weight: candidate.inventory.weight,
                cores: Some(candidate.inventory.cores),
            });
            taking_part.push(candidate);
        }
        let division = divide(test, &hosts).map_err(|error| FleetError::Usage(error.to_string()))?;
        Ok(Choice { candidates: taking_part, without_addresses, division })
    }

    async fn owned(
        &mut self,
        candidate: &Candidate,
        wanted: &[(Side, BTreeSet<IpAddr>)],
    ) -> Result<BTreeSet<IpAddr>> {
        let inventory = &candidate.inventory;
        let runs = |side: Side| if side == Side::Client { inventory.client } else { inventory.server };
        let all: BTreeSet<IpAddr> =
            wanted.iter().filter(|(side, _)| runs(*side)).flat_map(|(_, all)| all.iter().copied()).collect();
        let ranges = compact(all.into_iter().map(Addr::from));
        let request = AgentRequest::Owns { addresses: ranges.iter().map(AddrRange::to_string).collect() };
        match self.ask(&inventory.name, &request, "addresses", OWNING).await? {
            Answer::Owned(ranges) => parse(&inventory.name, &ranges),
            other => unexpected(&inventory.name, &other),
        }
    }

    /// Lets the doctor of each agent judge its host for its part; returns what blocks the run, and what distorts results.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub async fn examine(
        &mut self,
        division: &Division,
        watch: Watch<'_>,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let mut asked = Vec::new();
        for share in &division.hosts {
            let name: AgentName =
                share.host.parse().map_err(|error| FleetError::Usage(format!("{error}")))?;
            for side in [Side::Client, Side::Server] {
                let Some(part) = share.side(side) else { continue };
                let mut words = vec!["--side".to_owned(), side.name().to_owned()];
                if let Some(rate) = part.rate.filter(|rate| *rate > 0.0) {
                    words.extend(["--req_rate".to_owned(), format!("{rate:.3}/sec")]);
                }
                asked.push((name.clone(), AgentRequest::Doctor { words }));
            }
        }
        let requests: Vec<_> = asked.iter().map(|(name, request)| (name, request.clone())).collect();
        // Hosts of one kind have the same findings.
        let (mut blocking, mut distorting) = (BTreeMap::new(), BTreeMap::new());
        for (agent, answer) in self.ask_persistently(requests, "the doctor", 6 * PROMPT, watch).await {
            let text = match answer? {
                Answer::Output { text, .. } => text,
                other => return unexpected(&agent, &other),
            };
            for line in text.lines() {
                let found = match line.split(' ').next() {
                    Some("BLOCKS") => &mut blocking,
                    Some("DISTORTS") => &mut distorting,
                    _ => continue,
                };
                found.entry(line.to_owned()).or_insert_with(BTreeSet::new).insert(agent.to_string());
            }
        }
        Ok((by_line(blocking), by_line(distorting)))
    }
}

/// Findings with the agents that have them.
fn by_line(found: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let text = |(line, agents): (String, BTreeSet<String>)| {
        format!("{}: {line}", agents.into_iter().collect::<Vec<_>>().join(", "))
    };
    found.into_iter().map(text).collect()
}

/// The processes of each agent. `words` are options of all, `own` those of each side. Processes have different seeds for their own
/// choices.
///
/// # Errors
/// If a host of the division has the name of no agent.
pub fn members(
    division: &Division,
    words: &[String],
    own: impl Fn(Side) -> Vec<String>,
) -> Result<Vec<(AgentName, Vec<SideAssignment>)>> {
    let mut members = Vec::new();
    let mut number = 0;
    for share in &division.hosts {
        let name: AgentName = share.host.parse().map_err(|error| FleetError::Usage(format!("{error}")))?;
        let mut parts = Vec::new();
        for side in [Side::Server, Side::Client] {
            let Some(part) = share.side(side) else { continue };
            number += 1;
            let seed = ["--local_rng_seed".to_owned(), number.to_string()];
            let own = own(side);
            // What the table of the division shows, unless the user wants something else.
            let is_given = own.iter().any(|word| word == "--loops");
            let loops =
                part.loops.filter(|_| !is_given).map(|loops| ["--loops".to_owned(), loops.to_string()]);
            let loops = loops.into_iter().flatten();
            let words = words.iter().cloned().chain(seed).chain(loops).chain(own).collect();
            parts.push(SideAssignment { side, addresses: part.ranges(), words });
        }
        if !parts.is_empty() {
            members.push((name, parts));
        }
    }
    Ok(members)
}

fn addresses(test: &Test, side: Side) -> BTreeSet<IpAddr> {
    match side {
        Side::Client => test.robots.iter().flat_map(|profile| profile.addresses.iter().copied()).collect(),
        Side::Server => {
            test.servers.iter().flat_map(|servers| &servers.sites).map(|site| site.listen.ip()).collect()
        }
    }
}

fn parse(agent: &AgentName, ranges: &[String]) -> Result<BTreeSet<IpAddr>> {
    let wrong = |why: String| FleetError::Refused { agent: agent.clone(), reason: why };
    let ranges = ranges
        .iter()
        .map(|text| AddrRange::parse(text).map_err(|error| wrong(error.to_string())))
        .collect::<Result<Vec<_>>>()?;
    let all = expand(&ranges, MOST_ADDRESSES).map_err(|error| wrong(error.to_string()))?;
    Ok(all.iter().filter_map(|addr| addr.host.ip()).collect())
}
