//! One robot: what it is made of.

use std::collections::VecDeque;

use polygraph_traffic::{Oid, Random, Selector, Stream};

use crate::auth::Wallet;
use crate::cookies::Jar;
use crate::pipeline::Backlog;
use crate::pool::Leased;
use crate::session::Period;
use crate::settings::{Load, Settings};

/// A robot.
#[derive(Debug)]
pub struct Robot<C> {
    /// Decides everything that is this robot's own choice but the times of its launches.
    pub rng: Stream,
    /// Decides these, so that what came of earlier launches moves no later one.
    pub(super) arrivals: Stream,
    /// Its number among its kind.
    pub number: u32,
    /// It is active while the populus factor is above this (0 to 1).
    pub(super) rank: f32,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub(super) http_minor: u8,
    /// Open connections, busy and idle.
    pub open: u32,
    /// Transactions that are running.
    pub(super) active: u32,
    /// Launches to be left out because embedded objects and redirects took their place.
    pub(super) extra: u32,
    /// Idle connections, the most recently used one last. They go through many hands, so they are passed on by pointer.
    pub idle: Vec<Box<Leased<C>>>,
    /// What only some robots have.
    pub(super) private: Option<Box<Private>>,
}

/// What only some robots have.
#[derive(Debug, Default)]
pub(super) struct Private {
    pub(super) session: Option<Period>,
    /// Embedded objects received lately, the oldest first.
    pub(super) received: VecDeque<Oid>,
    /// Names of request bodies sent so far, by kind.
    pub(super) sent: Vec<(u8, u64)>,
    /// World of its request bodies.
    pub(super) world: Option<polygraph_traffic::UniqId>,
    pub(super) jar: Option<Jar>,
    pub(super) backlog: Backlog,
    pub(super) wallet: Option<Box<Wallet>>,
}

pub(super) fn new_robot<C>(settings: &Settings, number: usize) -> Robot<C> {
    let (profile, own) = settings.member(number);
    let mut choices = settings.seed.stream("agent", number as u64);
    Robot {
        rng: settings.seed.stream("robot", number as u64),
        arrivals: settings.seed.stream("arrivals", number as u64),
        number: own as u32,
        rank: rank(number),
        http_minor: settings.profiles[profile].http_minor.draw(&mut choices).copied().unwrap_or(1),
        open: 0,
        active: 0,
        extra: first_debt(settings, profile, &mut choices),
        idle: Vec::new(),
        private: None,
    }
}

/// Launches that a robot leaves out at first, as if it had been there before and were somewhere among the embedded
/// objects of a page. Without it all robots would begin with a page, and a test with few requests per robot would
/// offer several times its rate at first.
fn first_debt(settings: &Settings, profile: usize, rng: &mut Stream) -> u32 {
    const TRIES: usize = 8;
    let (field, robot) = (&settings.field, &settings.profiles[profile]);
    if robot.embed_recur <= 0.0 || !matches!(robot.load, Load::Open { .. } | Load::Gaps(_)) {
        return 0;
    }
    // A moment falls into a page in proportion to the number of its parts.
    let mut page = || {
        let server = robot.origins.draw(rng).copied().unwrap_or(0);
        let direct = field.servers.get(server).map(|server| &field.direct[server.direct])?;
        let kind = *direct.draw(rng)?;
        let world = polygraph_traffic::UniqId { counter: rng.bits() as u32 & !1, ..Default::default() };
        Some(field.catalog.embedded_count(&Oid { world, kind, name: 1 }))
    };
    let parts: Vec<(u64, f64)> =
        (0..TRIES).filter_map(|_| page()).map(|n| (n, robot.embed_recur.mul_add(n as f64, 1.0))).collect();
    let Some(&embedded) = Selector::weighted(parts).draw(rng) else { return 0 };
    rng.below((embedded as f64 * robot.embed_recur).round() as u64 + 1) as u32
}

/// The place of a robot in the order in which robots become active. Multiples of the golden ratio are spread so
/// evenly that of `all` robots very nearly a share `x` has a rank below `x`, on every loop alike; the first
/// robot is active whenever any is.
fn rank(number: usize) -> f32 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    ((number as f64 * GOLDEN).fract() as f32).min(0.999_999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_active_robots_is_as_asked() {
        for all in [1usize, 26, 250, 2500] {
            for share in [0.001, 0.09, 0.1, 0.5, 0.75, 1.0] {
                let active = (0..all).filter(|&n| f64::from(rank(n)) < share).count();
                let asked = (share * all as f64).max(1.0);
                assert!((active as f64 - asked).abs() <= 2.0, "{active} of {all} for {share}");
            }
        }
    }
}
