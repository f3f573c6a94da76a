//! The state of one robot.

use std::collections::VecDeque;

use polygraph_link::Nanos;
use polygraph_stats::HttpVersion;
use polygraph_traffic::{Oid, Random, Selector, Stream, UniqId};

use crate::connections::alternatives::Alternatives;
use crate::load::session::SessionState;
use crate::request::auth::RobotCredentials;
use crate::request::backlog::Backlog;
use crate::request::cookies::CookieJar;
use crate::settings::{Load, Settings};

/// The state of a robot.
#[derive(Debug)]
pub struct Robot {
    /// The stream of all choices of the robot except the times of its launches.
    pub rng: Stream,
    /// The stream of launch times, which are therefore independent of earlier choices.
    pub arrivals: Stream,
    /// The robot is active while the populus factor is above this (0 to 1).
    pub rank: f32,
    /// Number of running transactions.
    pub active: u32,
    /// Number of launches to skip because embedded objects and redirects took their place.
    pub to_skip: u32,
    /// Launches to skip from a later time on: those of pages whose embedded objects are not known yet.
    pub to_skip_later: Vec<(Nanos, u32)>,
    /// State that only some robots have.
    pub rare: Option<Box<RareState>>,
}

/// The state that only some robots have.
#[derive(Debug, Default)]
pub struct RareState {
    /// The session, if the profile has sessions.
    pub session: Option<SessionState>,
    /// The private cache: embedded objects that the robot received lately, the oldest first.
    pub received: VecDeque<Oid>,
    /// For each content type of request bodies, how many bodies the robot has made.
    pub bodies: Vec<(u8, u64)>,
    /// The world of the robot's request bodies.
    pub world: Option<UniqId>,
    /// The cookies, once the robot has any.
    pub cookies: Option<CookieJar>,
    /// Requests for embedded objects that wait to be pipelined.
    pub backlog: Backlog,
    /// The alternative services of servers.
    pub alternatives: Alternatives,
    /// The authentication state of the robot, once it was needed.
    pub credentials: Option<Box<RobotCredentials>>,
}

impl Robot {
    /// The robot at `position` among those of all loops of this process, before its first request.
    pub fn new(settings: &Settings, position: usize) -> Robot {
        let (_, mut choices) = draw_http_version(settings, position);
        let number = settings.number(position);
        Robot {
            rng: settings.seed.stream("robot", number as u64),
            arrivals: settings.seed.stream("arrivals", number as u64),
            rank: rank(number),
            active: 0,
            to_skip: draw_launches_to_skip(settings, settings.kind(position), &mut choices),
            to_skip_later: Vec::new(),
            rare: None,
        }
    }

    /// The state that only some robots have; it is created if it does not exist.
    pub fn rare(&mut self) -> &mut RareState {
        self.rare.get_or_insert_default()
    }

    /// Plans to skip `launches` launches from `from` on.
    pub fn skip_later(&mut self, from: Nanos, launches: u32) {
        if launches > 0 {
            self.to_skip_later.push((from, launches));
        }
    }

    /// Whether the robot skips the launch that is due at `due`.
    pub fn skips(&mut self, due: Nanos) -> bool {
        let to_skip = &mut self.to_skip;
        self.to_skip_later.retain(|&(from, launches)| {
            if from <= due {
                *to_skip = to_skip.saturating_add(launches);
            }
            from > due
        });
        let skips = *to_skip > 0;
        *to_skip -= u32::from(skips);
        skips
    }

    /// Gives back `launches` planned skips, because the embedded objects for which they would make room do not come.
    pub fn unskip(&mut self, launches: u32) {
        let at_once = launches.min(self.to_skip);
        self.to_skip -= at_once;
        let mut rest = launches - at_once;
        for (_, later) in self.to_skip_later.iter_mut().rev() {
            let less = rest.min(*later);
            *later -= less;
            rest -= less;
        }
        self.to_skip_later.retain(|&(_, later)| later > 0);
    }
}

/// The HTTP version of the robot at `position` (0 for HTTP/1.0, 1 for HTTP/1.1), and the stream of its further choices.
pub fn draw_http_version(settings: &Settings, position: usize) -> (HttpVersion, Stream) {
    let profile = &settings.profiles[settings.kind(position)];
    let mut choices = settings.seed.stream("agent", settings.number(position) as u64);
    (profile.http_version.draw(&mut choices).copied().unwrap_or_default(), choices)
}

/// The number of launches that a robot skips at first, as if the test had found it somewhere among the embedded objects of a page.
/// Otherwise all robots would start with a page, and a test with few requests per robot would offer several times its rate at
/// first.
fn draw_launches_to_skip(settings: &Settings, profile: usize, rng: &mut Stream) -> u32 {
    const TRIES: usize = 8;
    let (field, robot) = (&settings.field, &settings.profiles[profile]);
    let is_open = matches!(robot.load, Load::Open { .. } | Load::InterArrival(_));
    if robot.embed_recur <= 0.0 || !is_open || !field.rules.begins_within_pages() {
        return 0;
    }
    // The probability that a moment falls into a page is proportional to the number of its parts.
    let mut page = || {
        let server = robot.origins.draw(rng).copied().unwrap_or(0);
        let direct = field.servers.get(server).map(|server| &field.direct[server.direct])?;
        let kind = *direct.draw(rng)?;
        let world = UniqId { counter: rng.bits() as u32 & !1, ..Default::default() };
        Some(field.catalog.embedded_count(&Oid { world, kind, name: 1 }))
    };
    let parts: Vec<(u64, f64)> =
        (0..TRIES).filter_map(|_| page()).map(|n| (n, robot.embed_recur.mul_add(n as f64, 1.0))).collect();
    let Some(&embedded) = Selector::weighted(parts).draw(rng) else { return 0 };
    rng.below((embedded as f64 * robot.embed_recur).round() as u64 + 1) as u32
}

/// The rank of robot number `number` in the sequence in which robots become active, from 0 to 1. Multiples of the golden ratio are
/// spread so evenly that a share very close to `x` of all robots has a rank below `x`, on every loop alike. The first robot is
/// active whenever any robot is.
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
        let mut robot = Robot::new(&settings(pages(), |_| {}), 0);
        robot.to_skip = 0;
        robot.skip_later(Nanos::new(5), 2);
        robot.skip_later(Nanos::new(9), 3);
        robot.skip_later(Nanos::new(3), 0);
        let left_out: Vec<u64> = (1..=12).filter(|&due| robot.skips(Nanos::new(due))).collect();
        assert_eq!(left_out, [5, 6, 9, 10, 11]);
        // What does not come is not made room for: first of what counts already, then of what comes last.
        robot.skip_later(Nanos::new(20), 2);
        robot.skip_later(Nanos::new(30), 2);
        assert!(robot.skips(Nanos::new(20)));
        robot.unskip(2);
        let left_out: Vec<u64> = (21..=40).filter(|&due| robot.skips(Nanos::new(due))).collect();
        assert_eq!(left_out, [30]);
    }
}
