//! A sample of a test: some of its robots and servers, for part of its time.
//!
//! Whatever is the same for every robot and every server does not change: rates of robots, objects of a server,
//! how often each is requested, think times. Hit ratios, sizes and uses of connections are therefore those of
//! the whole test, except for chance. A test with shorter phases only would have fewer objects of each server,
//! and other hit ratios.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use polygraph_robot::{Field, Load, Profile};
use polygraph_traffic::Selector;

use crate::phases::{Schedule, WorkingSetLimit};
use crate::test::{Endpoint, Test, TestShare};

/// The number of robots from which on the share of active ones is a precise enough measure of the load.
const ROBOTS: f64 = 20.0;
/// The smallest share of their length that phases keep, because think times do not shrink.
const TIME: f64 = 0.05;

/// The three shares whose product is the share of requests that a sample takes from a test.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shares {
    robots: f64,
    time: f64,
    /// Share of its rate that each robot keeps.
    rate: f64,
}

impl Shares {
    /// Fewer robots first, then less time, and slower robots only if that is not enough.
    fn of(share: f64, robots: usize) -> Shares {
        let of_robots = share.max((ROBOTS / robots.max(1) as f64).min(1.0));
        let time = (share / of_robots).max(TIME);
        Shares { robots: of_robots, time, rate: share / of_robots / time }
    }
}

impl Test {
    /// A sample that makes the share `share` (at most 1) of the requests. Goals of transactions and bytes, and
    /// the working set, are those of one of `processes` that share the test.
    #[must_use]
    pub fn sample(&self, share: f64, processes: usize) -> Test {
        let shares = Shares::of(share, self.robot_count());
        let mut test = self.clone();
        test.schedule = schedule(&self.schedule, share * processes.max(1) as f64, shares.time);
        let robots = self.robots.iter().map(|profile| Arc::new(robots(profile, &self.field, share, shares)));
        test.robots = robots.collect();
        test.share = TestShare::default();
        let asked = RequestedServers::of(&test.robots, &self.field);
        for servers in &mut test.servers {
            servers.sites.retain(|site| asked.includes(site));
        }
        test
    }
}

/// The schedule with this share of the counts, and of the time.
fn schedule(whole: &Schedule, count: f64, time: f64) -> Schedule {
    let mut schedule = whole.scaled(count);
    for (phase, whole) in schedule.phases.iter_mut().zip(&whole.phases) {
        phase.goal.duration = whole.goal.duration.map(|seconds| seconds * time);
        phase.goal.errors = None;
        phase.samples.clear();
    }
    if let Some(WorkingSetLimit::After(seconds)) = whole.working_set {
        schedule.working_set = Some(WorkingSetLimit::After(seconds * time));
    }
    schedule
}

/// The robots of a sample, and the servers that they use.
fn robots(whole: &Profile, field: &Field, share: f64, shares: Shares) -> Profile {
    let mut profile = whole.clone();
    let wanted = whole.count as f64 * shares.robots;
    profile.count = (wanted.round() as usize).clamp(1, whole.count.max(1));
    profile.addresses.truncate(profile.count);
    if let Load::Open { rate } = &mut profile.load {
        // The rate compensates for rounding the number of robots.
        *rate *= shares.rate * wanted / profile.count as f64;
    }
    profile.origins = origins(&whole.origins, field, share);
    profile
}

/// A share of the servers of each sort, at least one. Together they get as many requests as all servers of the
/// sort.
fn origins(whole: &Selector<usize>, field: &Field, share: f64) -> Selector<usize> {
    let mut sorts: Vec<(usize, Vec<usize>, f64)> = Vec::new();
    for (at, &server) in whole.items().iter().enumerate() {
        let direct = field.servers.get(server).map_or(0, |server| server.direct);
        let weight = whole.probability(at);
        match sorts.iter_mut().find(|(known, ..)| *known == direct) {
            Some((_, servers, sum)) => {
                servers.push(server);
                *sum += weight;
            }
            None => sorts.push((direct, vec![server], weight)),
        }
    }
    Selector::weighted(sorts.into_iter().flat_map(|(_, servers, weight)| {
        let kept = ((servers.len() as f64 * share).round() as usize).clamp(1, servers.len());
        let step = servers.len() / kept;
        servers.into_iter().step_by(step).take(kept).map(move |server| (server, weight / kept as f64))
    }))
}

/// The visible servers that robots request.
struct RequestedServers<'a> {
    names: HashSet<&'a str>,
    addresses: HashSet<SocketAddr>,
}

impl<'a> RequestedServers<'a> {
    fn of(robots: &[Arc<Profile>], field: &'a Field) -> RequestedServers<'a> {
        let asked = robots.iter().flat_map(|profile| profile.origins.items());
        let servers = asked.filter_map(|&server| field.servers.get(server));
        let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
        for server in servers {
            names.insert(server.authority.as_str());
            addresses.extend(&server.addresses);
        }
        RequestedServers { names, addresses }
    }

    fn includes(&self, site: &Endpoint) -> bool {
        site.listen.ip().is_unspecified()
            || self.addresses.contains(&site.listen)
            || site.names.iter().any(|name| self.names.contains(name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_go_before_time_and_time_before_rates() {
        for (share, robots, of_robots, time, rate) in [
            (1.0, 2500, 1.0, 1.0, 1.0),
            (0.1, 2500, 0.1, 1.0, 1.0),
            (0.002, 2500, 0.008, 0.25, 1.0),
            (0.25, 2, 1.0, 0.25, 1.0),
            (0.01, 2, 1.0, 0.05, 0.2),
        ] {
            let shares = Shares::of(share, robots);
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(
                near(shares.robots, of_robots) && near(shares.time, time) && near(shares.rate, rate),
                "{share} of {robots}: {shares:?}"
            );
        }
    }

    #[test]
    fn each_sort_of_servers_is_asked_as_often_as_before() {
        let server = |direct| polygraph_robot::Server {
            authority: String::new(),
            addresses: Vec::new(),
            behind: Vec::new(),
            bad_certificate: None,
            direct,
            tls: false,
        };
        let field = Field {
            // A hundred servers of one sort, five of another.
            servers: (0..105).map(|at| server(usize::from(at >= 100))).collect(),
            direct: vec![Selector::default(); 2],
            catalog: polygraph_traffic::Catalog { seed: polygraph_traffic::Seed(1), contents: Vec::new() },
            marks_cachable: None,
            rules: polygraph_robot::Rules::default(),
            page_delay: 0.0,
            settle: 0.0,
            verify: polygraph_robot::Verify::Full,
            share_worlds: false,
            redirects: false,
            freshness: polygraph_robot::ToldFreshness::LifeCycle,
            substitutes: Vec::new(),
        };
        let few = origins(&Selector::even((0..105).collect()), &field, 0.04);
        assert_eq!(few.items(), [0, 25, 50, 75, 100]);
        let last = few.probability(4);
        assert!((last - 5.0 / 105.0).abs() < 1e-9, "{last}");
    }
}
