//! Foreign URLs: loops, and kinds of robots with the same trace, share the URLs of a trace.

use std::sync::Arc;

use polygraph_traffic::World;

use crate::settings::{Profile, Settings};

/// The position of a loop in the trace of a kind of robots. The loop uses a share of the URLs that is proportional to its robots.
#[derive(Debug)]
pub struct TraceWalk {
    /// Number of URLs that the loop has used so far.
    pub world: World,
    /// Number of robots with this trace: on all loops, on the loops before this one, and on this one.
    all: u64,
    before: u64,
    own: u64,
}

impl TraceWalk {
    /// The start of the trace of `kind`.
    pub fn new(settings: &Settings, kind: &Profile) -> TraceWalk {
        let here = settings.first_robot..settings.first_robot + settings.robots;
        let (mut walk, mut number) = (TraceWalk { world: World::default(), all: 0, before: 0, own: 0 }, 0);
        for profile in &settings.profiles {
            let of_profile = number..number + profile.count;
            number = of_profile.end;
            if profile.foreign > 0.0 && go_together(profile, kind) {
                let until = |end: usize| end.clamp(of_profile.start, of_profile.end) - of_profile.start;
                walk.all += profile.count as u64;
                walk.before += until(here.start) as u64;
                walk.own += (until(here.end) - until(here.start)) as u64;
            }
        }
        walk
    }

    /// The number, among the URLs of all loops, of the loop's URL number `name`. Both count from 1.
    pub fn number(&self, name: u64) -> u64 {
        let (own, at) = (self.own.max(1), name.saturating_sub(1));
        at / own * self.all + self.before + at % own + 1
    }
}

/// The first kind of robots with the same trace.
pub fn first_with(settings: &Settings, kind: &Profile) -> usize {
    settings.profiles.iter().position(|profile| go_together(profile, kind)).unwrap_or(0)
}

fn go_together(one: &Profile, other: &Profile) -> bool {
    Arc::ptr_eq(&one.trace, &other.trace) || one.trace == other.trace
}
