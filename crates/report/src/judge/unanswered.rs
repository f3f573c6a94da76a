//! Requests that the device never answered. They have not failed yet when a phase ends, because robots wait for long.

use super::blame::{self, Blame, ERRORS_MAX, failed_by};
use super::{FindingSeverity, Findings, LimitingParty, VerdictFinding};
use crate::facts::{PhaseFacts, RunFacts, SideFacts};
use crate::scope::Scope;
use crate::series::SeriesPoint;

pub(super) const PAUSE: &str = "pause";
/// The least age in seconds of a request that counts as unanswered.
const LEAST_AGE_S: f64 = 1.0;
/// So many seconds without a reply at the end of a phase are too many,
pub(super) const SILENT_S: f64 = 2.0;
/// if so many replies were to be expected in them.
const SILENT_LEAST: f64 = 30.0;
/// and if so many requests were waiting, on average.
const SILENT_LEVEL: f64 = 2.0;
/// A pause is longer than so many mean response times.
const PAUSE_MEANS: f64 = 2.0;
/// Largest share of their time that best-effort robots may spend on requests that failed or were not answered.
pub(super) const WASTED_MAX: f64 = 1.0 / 3.0;

/// Fewer requests without an answer than these, or than this share of all, are no news: packets may have been lost.
pub(super) const NEWS_LEAST: f64 = blame::WARNED_LEAST;
pub(super) const NEWS_SHARE: f64 = super::replies::WRONG_MAX;
/// They are news after this time in seconds. Who pauses for less answers them all.
pub(super) const NEWS_AGE_S: f64 = SILENT_S;

/// Requests that nobody had answered when a phase ended, and that nobody will, to judge by those that were answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forgotten {
    /// How many there are.
    pub count: f64,
    /// How long they had waited at least, in seconds.
    pub age_s: u64,
}

/// The requests that had waited for `least_s` seconds at least, and longer than any that was answered. What servers still work on is not
/// the device's.
fn forgotten(facts: &RunFacts, phase: &PhaseFacts, least_s: f64) -> Option<Forgotten> {
    let (client, scope) = (facts.client.as_ref()?, phase.evidence()?);
    let expected_s = expected_s(client.total.as_ref().unwrap_or(scope));
    let (age_s, waiting) = scope.block.unanswered.older_than(expected_s.max(least_s))?;
    let server = facts.server.as_ref().and_then(|server| server.phase(&phase.name)?.scope.as_ref());
    let count = waiting.saturating_sub(server.map_or(0, |scope| scope.block.xacts.last)) as f64;
    Some(Forgotten { count, age_s })
}

/// Failed transactions that count against the device.
fn failed(scope: &Scope) -> f64 {
    failed_by(scope, Blame::Device) + failed_by(scope, Blame::Slow)
}

/// The forgotten requests of a phase, if with those that failed they are too many, although those that failed are not.
fn too_many(facts: &RunFacts, phase: &PhaseFacts) -> Option<Forgotten> {
    let scope = phase.evidence()?;
    let (failed, ended) = (failed(scope), blame::ended(scope));
    forgotten(facts, phase, LEAST_AGE_S).filter(|Forgotten { count, .. }| {
        *count > 0.0 && failed <= ERRORS_MAX * ended && failed + count > ERRORS_MAX * (ended + count)
    })
}

/// The forgotten requests of a phase, if there are enough to tell.
pub(crate) fn told(facts: &RunFacts, phase: &PhaseFacts) -> Option<Forgotten> {
    let ended = blame::ended(phase.evidence()?);
    let is_news =
        |Forgotten { count, .. }: &Forgotten| *count >= NEWS_LEAST && *count > NEWS_SHARE * (ended + count);
    too_many(facts, phase).or_else(|| forgotten(facts, phase, NEWS_AGE_S).filter(is_news))
}

/// At the end of a primary phase, so many requests had been waiting for an answer, longer than any that was answered, that with those
/// that failed they are too many.
pub(super) fn unanswered(facts: &RunFacts, found: &mut Findings) {
    let Some(client) = &facts.client else { return };
    for phase in client.phases.iter().filter(|phase| phase.primary) {
        let Some(scope) = phase.evidence() else { continue };
        let Some(Forgotten { count: unanswered, .. }) = forgotten(facts, phase, LEAST_AGE_S) else {
            continue;
        };
        let (failed, ended) = (failed(scope), blame::ended(scope));
        let is_told = failed > ERRORS_MAX * ended;
        // Where a server has gone, requests wait for it.
        let is_news = !is_told && facts.origin_gone.is_none();
        if let Some(Forgotten { count, age_s }) = too_many(facts, phase) {
            let text = format!(
                "{count:.0} requests had waited for an answer of the device for {age_s} s or longer when phase {} ended; \
                 {ended:.0} transactions ended in it, {failed:.0} of them failed",
                phase.name
            );
            add(facts, found, text);
        } else if let Some((silent_s, expected)) = silent(client, phase).filter(|_| !is_told) {
            let text = format!(
                "no reply of the device arrived in the last {silent_s:.1} s of phase {}, in which {expected:.0} were to be expected",
                phase.name
            );
            add(facts, found, text);
        } else if let Some(share) = wasted(facts, phase, scope).filter(|_| unanswered + failed > 0.0) {
            let text = format!(
                "robots spent {:.0} % of phase {} on requests that failed or were never answered by the device",
                100.0 * share,
                phase.name
            );
            add(facts, found, text);
        } else if let Some(Forgotten { count, age_s }) = told(facts, phase).filter(|_| is_news) {
            let text = format!(
                "{count:.0} requests had waited for an answer for {age_s} s or longer when phase {} ended, longer than any that was answered: \
                 they count as no errors, because robots were still waiting",
                phase.name
            );
            found.warn("unanswered", text);
        }
    }
}

/// For how many seconds at the end of a phase no transaction ended, and how many would have at the rate before, if that is long and many.
/// Where servers think for long, such requests are not old enough to be unanswered.
fn silent(client: &SideFacts, phase: &PhaseFacts) -> Option<(f64, f64)> {
    let points = points(client, phase)?;
    let quiet = points.iter().rev().take_while(|point| is_quiet(point)).count();
    let (before, last) = points.split_at(points.len() - quiet);
    let silent_s = seconds(last);
    let expected = before.iter().map(|point| ended(point)).sum::<f64>() / seconds(before) * silent_s;
    (!phase.is_ramp() && silent_s >= SILENT_S && expected >= SILENT_LEAST).then_some((silent_s, expected))
}

/// A device that stood still within a primary phase and then answered everything; its users had to wait. A side of the bench that stood
/// still is a matter of `stalls`.
pub(super) fn pause(facts: &RunFacts, found: &mut Findings) {
    let Some(client) = facts.client.as_ref().filter(|_| facts.tested.is_device()) else { return };
    let stalled =
        |finding: &VerdictFinding| finding.rule == "stalls" && finding.weight == FindingSeverity::Invalid;
    if facts.origin_gone.is_some() || found.all.iter().any(stalled) {
        return;
    }
    for phase in client.phases.iter().filter(|phase| phase.primary && !phase.is_ramp()) {
        let Some(points) = points(client, phase) else { continue };
        let Some(mean_us) = phase.scope.as_ref().and_then(|scope| scope.block.mean_rptm_us()) else {
            continue;
        };
        let pauses = points.chunk_by(|a, b| is_quiet(a) == is_quiet(b)).filter(|part| is_quiet(part[0]));
        let longest = pauses.max_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let Some((first, silent_s)) = longest.map(|part| (part[0], seconds(part))) else { continue };
        // Where transactions take long, none ends at first, and then they may end in waves. At the end of the phase, nobody knows yet
        // whether answers will come.
        let replies = |is_part: &dyn Fn(&SeriesPoint) -> bool| {
            points.iter().any(|point| ended(point) > 0.0 && is_part(point))
        };
        let answered = replies(&|point| point.at_s < first.at_s) && replies(&|point| point.at_s > first.at_s);
        let is_long = silent_s >= SILENT_S.max(PAUSE_MEANS * 1e-6 * mean_us);
        let expected = points.iter().map(|point| ended(point)).sum::<f64>() / seconds(&points) * silent_s;
        if answered && is_long && expected >= SILENT_LEAST {
            let text = format!(
                "no reply of the device arrived for {silent_s:.1} s, from {:.1} s of the run on, although robots waited for some; answers came later",
                first.at_s - first.seconds / 2.0
            );
            found.warn(PAUSE, text);
        }
    }
}

/// The intervals of a phase.
fn points<'a>(client: &'a SideFacts, phase: &PhaseFacts) -> Option<Vec<&'a SeriesPoint>> {
    let (begin_s, end_s) = (phase.begin_s?, phase.end_s?);
    let inside = |point: &&SeriesPoint| point.seconds > 0.0 && point.at_s >= begin_s && point.at_s <= end_s;
    Some(client.series.iter().filter(inside).collect())
}

/// The length of these intervals.
fn seconds(points: &[&SeriesPoint]) -> f64 {
    points.iter().map(|point| point.seconds).sum()
}

/// How many transactions ended in an interval.
fn ended(point: &SeriesPoint) -> f64 {
    point.get("baseline.rep.rate").unwrap_or(0.0) * point.seconds
}

/// Whether no transaction ended in an interval although some were waited for: robots that rest between sessions wait for nothing.
fn is_quiet(point: &SeriesPoint) -> bool {
    ended(point) == 0.0 && point.get("xact.level.mean").is_some_and(|level| level >= SILENT_LEVEL)
}

fn add(facts: &RunFacts, found: &mut Findings, text: String) {
    match &facts.origin_gone {
        Some(_) => found.invalid("unanswered", LimitingParty::Server, text),
        None => found.slow_as("unanswered", blame::UNANSWERED, text),
    }
}

/// After this time, in seconds, an answer is not to be expected any more: it is longer than that of any answered request.
fn expected_s(scope: &Scope) -> f64 {
    let block = &scope.block;
    let longest = block.classes.iter().filter_map(|class| class.rptm_us.max()).max().unwrap_or(0);
    let mean = block.mean_rptm_us().unwrap_or(0.0);
    // If few were answered, the longest of these is not long, so the mean counts as well.
    LEAST_AGE_S.max(1e-6 * (4.0 * mean).max(1.5 * longest as f64))
}

/// The share of their time that best-effort robots spent on anything but successful transactions, if it is too large. Robots with a
/// rate ask others meanwhile.
fn wasted(facts: &RunFacts, phase: &PhaseFacts, scope: &Scope) -> Option<f64> {
    let block = &scope.block;
    let mean_s = 1e-6 * block.mean_rptm_us().unwrap_or(0.0);
    // Transactions that began before the phase or end behind it matter in a short one.
    if facts.main_side().offered_rate().is_some() || phase.is_ramp() || scope.seconds < 10.0 * mean_s {
        return None;
    }
    let answers = block.classes.iter().map(|class| class.rptm_us.sum());
    let steps = block.auth_steps.iter().map(|step| step.rptm_us.sum());
    let answered_s = 1e-6 * answers.chain(steps).chain([block.dns.rptm_us.sum()]).sum::<f64>();
    let spent_s = block.xacts.integral - block.waiting.integral;
    let share = (spent_s - answered_s) / spent_s;
    (spent_s > 0.0 && share > WASTED_MAX).then_some(share)
}
