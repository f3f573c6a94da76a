//! The hit ratio that robots offer.

use polygraph_robot::{Field, Profile};
use polygraph_traffic::{ContentKind, Selector};

use crate::test::{Test, rate};

/// The number of levels to which embedding is followed.
const DEPTH: usize = 4;

/// The document hit ratio of an ideal cache in the primary phase: the share of requests for known objects that
/// caches may store, among basic requests. Objects that are embedded in a known container are known as well.
///
/// `None` where the ratio depends on replies (the speed of different robots, or what they remember), or where
/// the test has no contents.
pub fn offered_dhr(test: &Test) -> Option<f64> {
    let phases = &test.schedule.phases;
    let primary = phases.iter().find(|phase| phase.primary).or(phases.first())?;
    if !primary.factors.recur.is_flat() {
        return None;
    }
    let (mut hits, mut all) = (0.0, 0.0);
    for profile in &test.robots {
        let weight = match &test.robots[..] {
            [_] => 1.0,
            _ => rate(profile)?,
        };
        if weight == 0.0 {
            continue;
        }
        let knows = profile.private_cache > 0 || profile.foreign > 0.0 || profile.session.is_some();
        if knows {
            return None;
        }
        let share = RequestShare::of(profile, &test.field, primary.factors.recur.beg);
        // The rate of a robot includes embedded objects: the more of them, the fewer page requests.
        hits += weight * share.hits / share.all;
        all += weight;
    }
    let ratio = hits / all;
    ratio.is_finite().then_some(ratio)
}

/// The requests that follow from one page request, itself included.
struct RequestShare {
    hits: f64,
    all: f64,
}

impl RequestShare {
    fn of(profile: &Profile, field: &Field, recur: f64) -> RequestShare {
        let mut share = RequestShare { hits: 0.0, all: 0.0 };
        for (index, &server) in profile.origins.items().iter().enumerate() {
            let part = profile.origins.probability(index);
            let Some(direct) = field.servers.get(server).and_then(|server| field.direct.get(server.direct))
            else {
                continue;
            };
            share.begin(profile, field, direct, part, recur);
        }
        share
    }

    fn begin(
        &mut self,
        profile: &Profile,
        field: &Field,
        direct: &Selector<ContentKind>,
        part: f64,
        recur: f64,
    ) {
        for (index, &kind) in direct.items().iter().enumerate() {
            let content = field.catalog.content(kind);
            let own = content.and_then(|content| content.behavior.as_ref()?.recurrence);
            let recurrence = own.unwrap_or(profile.behavior.recurrence) * recur;
            self.add(profile, field, kind, part * direct.probability(index), recurrence, DEPTH);
        }
    }

    fn add(
        &mut self,
        profile: &Profile,
        field: &Field,
        kind: ContentKind,
        weight: f64,
        recurrence: f64,
        depth: usize,
    ) {
        let Some(content) = field.catalog.content(kind) else { return };
        let cachable = field.marks_cachable.unwrap_or(content.cachable);
        self.all += weight;
        self.hits += weight * recurrence * cachable;
        let Some(embeds) = content.embeds.as_ref().filter(|_| depth > 0 && profile.embed_recur > 0.0) else {
            return;
        };
        let count = weight * profile.embed_recur * embeds.count.mean();
        for (index, &kind) in embeds.kinds.items().iter().enumerate() {
            self.add(profile, field, kind, count * embeds.kinds.probability(index), recurrence, depth - 1);
        }
    }
}
