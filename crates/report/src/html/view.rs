//! The data of a table: one side over one or more phases.

use std::borrow::Cow;

use crate::facts::{RunFacts, SideFacts};
use crate::scope::Scope;

/// A side over some phases, and the other side over the same.
pub struct View<'a> {
    /// The side.
    pub side: &'a SideFacts,
    /// The statistics of these phases.
    pub scope: &'a Scope,
    /// The servers over the same phases, if this is the clients' side and the servers have all of them.
    servers: Option<Cow<'a, Scope>>,
    /// The mean rate per second that was planned for these phases, if the plan tells it.
    pub planned_rate: Option<f64>,
    /// Which phases, in words.
    pub name: String,
}

/// Hit ratios in percent from the counts of clients and servers: documents, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSided {
    /// Replies that no server sent.
    pub hits: [Option<f64>; 2],
    /// The same, counting validations that servers answered with 304 as hits.
    pub cheap: [Option<f64>; 2],
}

impl<'a> View<'a> {
    /// The phases that headline figures come from.
    pub fn headline(facts: &'a RunFacts) -> Option<View<'a>> {
        let headline = facts.headline.as_ref()?;
        let side = facts.main_side();
        let names: Vec<&str> = headline.phase.split('|').collect();
        let several = if names.len() == 1 { "phase" } else { "phases" };
        Some(View {
            side,
            scope: &headline.scope,
            servers: servers(facts, side, &names),
            planned_rate: headline.planned_rate,
            name: format!("{several} {}", names.join(", ")),
        })
    }

    /// All phases of a side.
    pub fn all(facts: &'a RunFacts, side: &'a SideFacts) -> Option<View<'a>> {
        let of_clients = side.side == polygraph_stats::Side::Client;
        Some(View {
            side,
            scope: side.total.as_ref()?,
            servers: facts
                .server
                .as_ref()
                .filter(|_| of_clients)
                .and_then(|s| s.total.as_ref())
                .map(Cow::Borrowed),
            planned_rate: side.planned_rate(&side.phases.iter().collect::<Vec<_>>()),
            name: "all phases".to_owned(),
        })
    }

    /// A view of each phase of a side.
    pub fn each(facts: &'a RunFacts, side: &'a SideFacts) -> impl Iterator<Item = View<'a>> {
        side.phases.iter().filter_map(move |phase| {
            Some(View {
                side,
                scope: phase.scope.as_ref()?,
                servers: servers(facts, side, &[&phase.name]),
                planned_rate: side.planned_rate(&[phase]),
                name: format!("phase {}", phase.name),
            })
        })
    }

    /// Whether this side distinguishes hits from misses: robots do, servers see no hits.
    pub fn sees_hits(&self) -> bool {
        self.side.side == polygraph_stats::Side::Client
    }

    /// Hit ratios from the counts of both sides. They can be negative: a device that prefetches requests more from
    /// servers than its clients request.
    pub fn two_sided(&self) -> Option<TwoSided> {
        let (client, server) = (&self.scope.block, &self.servers.as_ref()?.block);
        let share = |got: f64, given: f64| (got > 0.0).then(|| 100.0 * (got - given) / got);
        let saved = &server.validations.useless.size;
        let got = (client.ok_count() - client.tls.refusal_count()) as f64;
        let given = server.ok_count() as f64;
        let (got_bytes, given_bytes) = (client.ok_bytes(), server.ok_bytes());
        Some(TwoSided {
            hits: [share(got, given), share(got_bytes, given_bytes)],
            cheap: [share(got, given - saved.count() as f64), share(got_bytes, given_bytes - saved.sum())],
        })
    }
}

fn servers<'a>(facts: &'a RunFacts, side: &SideFacts, names: &[&str]) -> Option<Cow<'a, Scope>> {
    if side.side != polygraph_stats::Side::Client || facts.missing().next().is_some() {
        return None;
    }
    let server = facts.server.as_ref()?;
    let scopes: Vec<&Scope> =
        names.iter().map(|name| server.phase(name)?.scope.as_ref()).collect::<Option<_>>()?;
    match scopes[..] {
        [one] => Some(Cow::Borrowed(one)),
        _ => Scope::sequential(scopes).map(Cow::Owned),
    }
}
