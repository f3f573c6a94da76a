//! How requests were spread over the servers while the headline figures were measured.

use polygraph_stats::{ByServer, ServerStats};

use crate::facts::{RunFacts, SideFacts};
use crate::scope::Scope;
use crate::spread::Spread;

/// The servers in the phases of the headline figures; `None` unless several servers were counted in the run. Servers that know
/// no phases, because they run without a workload file, are counted by windows of the series instead.
pub fn spread(facts: &RunFacts) -> Option<Spread> {
    let (headline, server) = (facts.headline.as_ref()?, facts.server.as_ref()?);
    let all: Vec<(&str, &ServerStats)> = server.total.as_ref()?.block.servers.iter().collect();
    if all.len() < 2 {
        return None;
    }
    let names = |side: &SideFacts| side.phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>();
    let (counted, seconds) = if names(server) == names(facts.main_side()) {
        let phases = headline.phase.split('|').filter_map(|name| server.phase(name)?.scope.as_ref());
        let scope = Scope::sequential(phases)?;
        (scope.block.servers, scope.seconds)
    } else {
        let mut counted = (ByServer::default(), 0.0);
        let time = headline.begin_s..headline.end_s;
        for point in server.series.iter().filter(|point| time.contains(&point.at_s)) {
            counted.0.merge(&point.servers);
            counted.1 += point.seconds;
        }
        counted
    };
    // A server that ended before is not in this phase.
    let stats = |(address, total): (&str, &ServerStats)| {
        let counted = counted.get(address).cloned().unwrap_or_default();
        (address.to_owned(), ServerStats { bad_certificate: total.bad_certificate, ..counted })
    };
    Some(Spread::new(all.into_iter().map(stats), seconds))
}

/// The servers in the phase with this name; `None` if the servers did not measure it.
pub fn spread_in(facts: &RunFacts, phase: &str) -> Option<Spread> {
    facts.server.as_ref()?.phase(phase)?.scope.as_ref().map(Spread::of)
}
