//! Whether the planned load was offered, and whether the device kept up with it.

use polygraph_stats::{Block, Class, ErrorKind};

use super::chance::{allowance, batches};
use super::explained::{explained, occupied};
use super::{Findings, LimitingParty, foreign};
use crate::facts::{PhaseFacts, RunFacts};
use crate::figures::error_count;
use crate::scope::Scope;
use crate::series::SeriesPoint;

/// Largest share by which the measured rate may be below the offered rate.
pub(super) const GAP_MAX: f64 = 0.03;
/// Seconds from the start of a run in which levels rise to their steady values; growth in this time proves nothing.
pub(super) const SETTLING_S: f64 = 5.0;
/// Number of parts of a phase; a level must grow in each of them.
const GROWTH_PARTS: usize = 5;

/// The robots did not offer the planned rate, and random arrivals do not explain the difference. The bench is responsible only
/// for requests that start by the clock, not for those that could not start because connections were at their limit or because
/// the page that embeds them was not answered, and not for the sizes of pages in a short phase: there robots may skip more
/// launches, for the parts of large pages before, than they request parts.
pub(super) fn offered(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|headline| headline.primary) else { return };
    let Some(planned) = headline.planned_rate else { return };
    let scope = &headline.scope;
    let expected = planned * scope.seconds;
    if expected <= 0.0 {
        return;
    }
    let started = scope.block.xacts.entered as f64;
    let gap = expected - started;
    let batch = batches(facts, headline);
    let allowed = (expected * GAP_MAX).max(allowance(expected * batch, batch));
    if gap <= allowed {
        return;
    }
    let text = format!(
        "{:.2} transactions per second were planned, {:.2} were started ({:.1} % fewer)",
        planned,
        started / scope.seconds,
        100.0 * gap / expected
    );
    if error_count(&scope.block, ErrorKind::TooManyOpen) >= 0.5 * gap {
        let text = format!("{text}, because connections were at their limit");
        match explained(facts, scope, &headline.phase) {
            Some((party, why)) => found.invalid("offered", party, format!("{text}{why}")),
            None => found.add_slow_device("following", text),
        }
    } else if gap - withheld(&scope.block) <= allowed {
        // The rule `following` finds a device that makes robots wait longer and longer: transactions start and do not end.
        let text = format!(
            "{text}, because pages were still unanswered when the phase ended: the device cannot keep up, or the warm-up was too \
             short"
        );
        found.warn("offered", text);
    } else if !launched_as_planned(&scope.block, expected) {
        found.invalid(
            "offered",
            LimitingParty::Client,
            format!("the bench did not offer the planned load: {text}"),
        );
    }
}

/// Whether the robots launched requests by the clock as planned, or skipped launches for the parts of pages.
fn launched_as_planned(block: &Block, expected: f64) -> bool {
    // Lateness is recorded only for launches by the clock.
    let launches = (block.late_us.count() + block.skipped_launches) as f64;
    block.skipped_launches > 0 && expected - launches <= (expected * GAP_MAX).max(allowance(expected, 1.0))
}

/// The number of transactions that could not start because the page that embeds them was not answered. When robots request a
/// page, they skip later launches for its parts, and request the parts when they have read the page. So each launch without a
/// good reply costs as many transactions as follow a launch with a good reply. Launches before the phase that are answered in it
/// make up for as many at its end. Infinite if nothing was answered.
fn withheld(block: &Block) -> f64 {
    // Lateness is recorded only for launches by the clock.
    let launched = block.late_us.count() as f64;
    let followers = block.xacts.entered as f64 - launched;
    let following = block.embedded.count + block.class(Class::RedirectedReq).size.count();
    let answered = block.ok_count().saturating_sub(following);
    if answered == 0 {
        return f64::INFINITY;
    }
    (launched - answered as f64).max(0.0) * followers / answered as f64
}

/// More transactions started than ended: the difference is the growth of the level. The level must have risen all the time,
/// because a burst at the very end, such as a large page or two, proves nothing. Only the second half of the phase counts;
/// otherwise a phase without warm-up would fail while its level rises to its steady value. A steady level of mean L varies like
/// the number of starts, so the difference of two levels has a variance of 2 L, and more where starts come in batches.
pub(super) fn following(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|headline| headline.primary) else { return };
    let batch = batches(facts, headline);
    for (phase, begin_s, end_s) in primary(facts) {
        let middle = (begin_s + end_s) / 2.0;
        if middle < SETTLING_S {
            continue;
        }
        let half = points(facts, middle, end_s);
        let (begun, ended) = (total(&half, "baseline.req.rate"), total(&half, "baseline.rep.rate"));
        let level = total(&half, "xact.level.mean") / seconds(&half).max(1.0);
        let random = allowance(2.0 * level * batch, batch);
        let gap = begun - ended - ramped(facts, phase, &half);
        if gap > (begun * GAP_MAX).max(random) && has_risen(&half, gap) {
            let text = format!(
                "the device cannot keep up: in the second half of phase {}, {begun:.0} transactions started and {ended:.0} \
                 ended ({:.1} % fewer)",
                phase.name,
                100.0 * (begun - ended) / begun
            );
            match phase.scope.as_ref().and_then(|scope| limited(facts, scope, &phase.name, gap)) {
                Some((party, why)) => found.invalid("following", party, format!("{text}{why}")),
                None => found.add_slow_device("following", text),
            }
        }
    }
}

/// Why transactions had to wait, if the bench explains it: robots may not open more connections, or other failures that it explains.
/// So many more transactions than before had not ended.
pub(super) fn limited(
    facts: &RunFacts,
    scope: &Scope,
    phase: &str,
    more: f64,
) -> Option<(LimitingParty, String)> {
    let by_robots = || Some((LimitingParty::Test, occupied(facts, phase)?));
    explained(facts, scope, phase).or_else(by_robots).or_else(|| foreign::piled_up(facts, scope, more))
}

/// The primary phases that were measured, with their start and end. Between them, the load may be any other.
pub(super) fn primary(facts: &RunFacts) -> impl Iterator<Item = (&PhaseFacts, f64, f64)> {
    let phases = facts.main_side().phases.iter().filter(|phase| phase.primary && phase.scope.is_some());
    phases.filter_map(|phase| Some((phase, phase.begin_s?, phase.end_s?)))
}

pub(super) fn points(facts: &RunFacts, begin_s: f64, end_s: f64) -> Vec<&SeriesPoint> {
    let series = facts.main_side().series.iter();
    series.filter(|point| point.at_s >= begin_s && point.at_s <= end_s).collect()
}

pub(super) fn seconds(points: &[&SeriesPoint]) -> f64 {
    points.iter().map(|point| point.seconds).sum()
}

pub(super) fn total(points: &[&SeriesPoint], figure: &str) -> f64 {
    points.iter().filter_map(|point| Some(point.get(figure)? * point.seconds)).sum()
}

/// By how much the level of transactions grows in the second half of a phase because its planned load does: by the growth of the rate
/// times the time that a transaction takes at the start of this half (Little's law).
fn ramped(facts: &RunFacts, phase: &PhaseFacts, half: &[&SeriesPoint]) -> f64 {
    let (true, Some(load), Some(rate)) = (phase.is_ramp(), phase.load, facts.main_side().offered_rate())
    else {
        return 0.0;
    };
    let start = &half[..half.len().div_ceil(4)];
    let ended = total(start, "baseline.rep.rate");
    let takes_s = if ended > 0.0 { total(start, "xact.level.mean") / ended } else { 0.0 };
    (rate * (load.end - load.beg) / 2.0 * takes_s).max(0.0)
}

/// Whether the mean level of transactions rose by a large part of `gap`: a steady rise by `gap` makes the means of the first and
/// the second half of the time differ by half of it.
fn has_risen(points: &[&SeriesPoint], gap: f64) -> bool {
    let level = |points| mean(points, "xact.level.mean");
    let part = points.len() / 2;
    part == 0 || level(&points[points.len() - part..]) - level(&points[..part]) > gap / 3.0
}

pub(super) fn mean(points: &[&SeriesPoint], figure: &str) -> f64 {
    let values: Vec<f64> = points.iter().filter_map(|point| point.get(figure)).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// This rule judges transactions, not open connections: pools of idle persistent connections may grow all the time without harm.
pub(super) fn growing(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|headline| headline.primary) else { return };
    let batch = batches(facts, headline);
    for (phase, begin_s, end_s) in primary(facts) {
        let points = points(facts, begin_s.max(SETTLING_S), end_s);
        if points.len() < 2 * GROWTH_PARTS {
            continue;
        }
        let edge = |i| points.len() * i / GROWTH_PARTS;
        let parts = |figure: &str| {
            let part = |i| mean(&points[edge(i)..edge(i + 1)], figure);
            (0..GROWTH_PARTS).map(part).collect::<Vec<f64>>()
        };
        let levels = parts("xact.level.mean");
        // With the load, the level grows; how long transactions take should not.
        let grows = match phase.is_ramp() {
            true => levels.iter().zip(parts("baseline.req.rate")).map(|(level, rate)| level / rate).collect(),
            false => levels.clone(),
        };
        let (first, last) = (grows[0], grows[GROWTH_PARTS - 1]);
        let grown = last - first;
        // What approaches its steady value grows less and less: its last step is then a small part of the whole growth.
        let settling = last - grows[GROWTH_PARTS - 2] < 0.1 * grown;
        let in_each = grows.windows(2).all(|pair| pair[1] > pair[0]);
        let level = levels[GROWTH_PARTS - 1];
        let random = allowance(2.0 * level * batch, batch) / level.max(1.0);
        if in_each && !settling && grown > 0.5 * first && grown > random * last {
            let text = format!(
                "concurrent transactions grew throughout phase {}, from {:.0} to {level:.0}",
                phase.name, levels[0]
            );
            match phase.scope.as_ref().and_then(|scope| foreign::piled_up(facts, scope, grown)) {
                Some((party, why)) => found.invalid("growing", party, format!("{text}{why}")),
                None => found.add_slow_device("growing", text),
            }
        }
    }
}
