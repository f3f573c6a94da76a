//! Foreign URLs: loops, and kinds of robots with the same trace, share the URLs of a trace.

use polygraph_traffic::World;

use crate::divide;
use crate::settings::{Profile, Settings};
use crate::share::NumberRuns;

/// The position of a loop in the trace of a kind of robots. The loop uses a share of the URLs that is proportional to its robots.
#[derive(Debug)]
pub struct TraceWalk {
    /// Number of URLs that the loop has used so far.
    pub world: World,
    /// Number of robots with this trace in the whole test.
    all: usize,
    /// The loop's robots with this trace, by their numbers among all that have it.
    own: NumberRuns,
}

impl TraceWalk {
    /// The start of the trace of `kind`.
    pub fn new(settings: &Settings, kind: &Profile) -> TraceWalk {
        let mut walk = TraceWalk { world: World::default(), all: 0, own: NumberRuns::default() };
        if !settings.profiles.iter().any(|profile| profile.follows_trace_of(kind)) {
            return walk;
        }
        let places = divide::places(settings);
        for position in settings.first_robot..settings.first_robot + settings.robots {
            let index = settings.kind(position);
            if settings.profiles[index].follows_trace_of(kind) {
                let place = places[index];
                walk.all = place.trace_all;
                walk.own.push(place.trace_before + settings.number(position) - place.first);
            }
        }
        walk
    }

    /// The number, among the URLs of all loops, of the loop's URL number `name`. Both count from 1.
    pub fn number(&self, name: u64) -> u64 {
        let (own, at) = (self.own.len().max(1) as u64, name.saturating_sub(1));
        let robot = self.own.get((at % own) as usize).unwrap_or(0);
        at / own * self.all as u64 + robot as u64 + 1
    }
}

/// The first kind of robots with the same trace.
pub fn first_with(settings: &Settings, kind: &Profile) -> usize {
    settings.profiles.iter().position(|profile| profile.has_trace_of(kind)).unwrap_or(0)
}
