//! How the robots of a test are divided among processes, and where those of each kind are in the whole test.

use std::net::IpAddr;
use std::sync::Arc;

use crate::settings::{Profile, Settings};
use crate::share::{KindPlace, NumberRuns, RobotShare};

impl RobotShare {
    /// Divides a test: returns the kinds of robots with only those robots whose addresses `is_chosen` accepts, and their numbers. A
    /// kind without addresses is chosen as a whole; kinds of which nothing is left are left out.
    pub fn divide(
        whole: &[Arc<Profile>],
        is_chosen: impl Fn(IpAddr) -> bool,
    ) -> (Vec<Arc<Profile>>, RobotShare) {
        let (mut kinds, mut first) = (Vec::new(), 0);
        let mut share = RobotShare { numbers: NumberRuns::default(), places: Vec::new(), all: 0 };
        for (kind, place) in whole.iter().zip(whole_places(whole)) {
            let is_here = |member: &usize| {
                let addresses = &kind.addresses;
                addresses.is_empty() || is_chosen(addresses[member % addresses.len()])
            };
            let here: Vec<usize> = (0..kind.count).filter(is_here).collect();
            here.iter().for_each(|member| share.numbers.push(first + member));
            first += kind.count;
            if here.is_empty() {
                continue;
            }
            share.places.push(place);
            let mut part = Arc::clone(kind);
            if here.len() < kind.count {
                let part = Arc::make_mut(&mut part);
                let address = |member: &usize| part.addresses[member % part.addresses.len()];
                part.addresses = here.iter().map(address).collect();
                part.count = here.len();
            }
            kinds.push(part);
        }
        share.all = first;
        (kinds, share)
    }
}

/// Where the robots of each kind of this process are in the whole test.
pub fn places(settings: &Settings) -> Vec<KindPlace> {
    let kinds = 0..settings.profiles.len();
    match &settings.share {
        Some(share) => kinds.map(|kind| share.place(kind)).collect(),
        None => whole_places(&settings.profiles),
    }
}

/// Where the robots of all kinds of a whole test are.
fn whole_places(kinds: &[Arc<Profile>]) -> Vec<KindPlace> {
    let mut first = 0;
    let place = |(index, kind): (usize, &Arc<Profile>)| {
        let with_trace = |kinds: &[Arc<Profile>]| {
            let same = kinds.iter().filter(|other| other.follows_trace_of(kind));
            same.map(|other| other.count).sum()
        };
        let place =
            KindPlace { first, trace_before: with_trace(&kinds[..index]), trace_all: with_trace(kinds) };
        first += kind.count;
        place
    };
    kinds.iter().enumerate().map(place).collect()
}
