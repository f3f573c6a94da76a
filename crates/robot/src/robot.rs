//! One robot: what it is made of.

use std::collections::VecDeque;

use polygraph_link::Nanos;
use polygraph_traffic::{Oid, Random, Selector, Stream};

use crate::connections::pool::PooledConnection;
use crate::exchange::pipeline::Backlog;
use crate::load::session::SessionState;
use crate::request::auth::RobotCredentials;
use crate::request::cookies::CookieJar;
use crate::settings::{Load, Settings};

/// A robot.
#[derive(Debug)]
pub struct Robot<C> {
    /// Decides everything that is this robot's own choice but the times of its launches.
    pub rng: Stream,
    /// Decides these, so that what came of earlier launches moves no later one.
    pub(crate) arrivals: Stream,
    /// Its number among its kind.
    pub number: u32,
    /// It is active while the populus factor is above this (0 to 1).
    pub(crate) rank: f32,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub(crate) http_minor: u8,
    /// Open connections, busy and idle.
    pub open: u32,
    /// Transactions that are running.
    pub(crate) active: u32,
    /// Launches to be left out because embedded objects and redirects took their place.
    pub(crate) extra: u32,
    /// The same, from a moment on that is still to come: pages whose parts nobody has seen yet.
    pub(crate) owed: Vec<(Nanos, u32)>,
    /// Idle connections, the most recently used one last. They go through many hands, so they are passed on by pointer.
    pub idle: Vec<Box<PooledConnection<C>>>,
    /// What only some robots have.
    pub(crate) private: Option<Box<Private>>,
}

/// What only some robots have.
#[derive(Debug, Default)]
pub(crate) struct Private {
    pub(crate) session: Option<SessionState>,
    /// Embedded objects received lately, the oldest first.
    pub(crate) received: VecDeque<Oid>,
    /// Resolvers of request bodies sent so far, by kind.
    pub(crate) sent: Vec<(u8, u64)>,
    /// World of its request bodies.
    pub(crate) world: Option<polygraph_traffic::UniqId>,
    pub(crate) jar: Option<CookieJar>,
    pub(crate) backlog: Backlog,
    pub(crate) credentials: Option<Box<RobotCredentials>>,
}

impl<C> Robot<C> {
    /// So many launches are to be left out from `from` on.
    pub(crate) fn owe(&mut self, from: Nanos, launches: u32) {
        if launches > 0 {
            self.owed.push((from, launches));
        }
    }

    /// Whether the launch that is due now is to be left out.
    pub(crate) fn leaves_out(&mut self, due: Nanos) -> bool {
        let extra = &mut self.extra;
        self.owed.retain(|&(from, launches)| {
            if from <= due {
                *extra = extra.saturating_add(launches);
            }
            from > due
        });
        let leaves = *extra > 0;
        *extra -= u32::from(leaves);
        leaves
    }

    /// So many launches need not be left out: what they would have made room for does not come.
    pub(crate) fn forgive(&mut self, launches: u32) {
        let at_once = launches.min(self.extra);
        self.extra -= at_once;
        let mut rest = launches - at_once;
        for (_, owed) in self.owed.iter_mut().rev() {
            let less = rest.min(*owed);
            *owed -= less;
            rest -= less;
        }
        self.owed.retain(|&(_, owed)| owed > 0);
    }
}

pub(crate) fn new_robot<C>(settings: &Settings, number: usize) -> Robot<C> {
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
        owed: Vec::new(),
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
    let is_open = matches!(robot.load, Load::Open { .. } | Load::InterArrival(_));
    if robot.embed_recur <= 0.0 || !is_open || !field.rules.begins_within_pages() {
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

/// The place of a robot in the request in which robots become active. Multiples of the golden ratio are spread so
/// evenly that of `all` robots very nearly a share `x` has a rank below `x`, on every loop alike; the first
/// robot is active whenever any is.
fn rank(number: usize) -> f32 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    ((number as f64 * GOLDEN).fract() as f32).min(0.999_999)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_tests::{pages, settings};

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

    #[test]
    fn launches_are_left_out_from_the_moment_on_that_parts_are_expected() {
        let mut robot = new_robot::<()>(&settings(pages(), |_| {}), 0);
        robot.extra = 0;
        robot.owe(5, 2);
        robot.owe(9, 3);
        robot.owe(3, 0);
        let left_out: Vec<Nanos> = (1..=12).filter(|&due| robot.leaves_out(due)).collect();
        assert_eq!(left_out, [5, 6, 9, 10, 11]);
        // What does not come is not made room for: first of what counts already, then of what comes last.
        robot.owe(20, 2);
        robot.owe(30, 2);
        assert!(robot.leaves_out(20));
        robot.forgive(2);
        let left_out: Vec<Nanos> = (21..=40).filter(|&due| robot.leaves_out(due)).collect();
        assert_eq!(left_out, [30]);
    }
}
