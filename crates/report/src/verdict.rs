//! Can the run be trusted, and did the device hold? All rules, in one place.
//!
//! | rule | looks at | says |
//! |---|---|---|
//! | `interrupted` | a client was stopped, died, or its log is damaged or was not closed; a server's log ends before the primary phase | INVALID |
//! | `phase` | the primary phase was cut short, or nothing was measured in it | INVALID |
//! | `gaps` | more than [`LOST_MAX`] of the primary phase (and more than [`LOST_LEAST_S`]) have no statistics: the bench was stuck | INVALID |
//! | `saturated` | the busiest event loop, either side, was at work for more than [`BUSY_MAX`] of the primary phase | INVALID |
//! | `late` | 99 % of the starts were not within [`LATE_LEAST_MS`] or [`LATE_SHARE`] of the mean response time, whichever is longer | INVALID |
//! | `clock` | the time-of-day clock was set by more than [`CLOCK_STEP_MAX_MS`] | INVALID |
//! | `samples` | fewer than [`SAMPLES_MIN`] transactions ended in the primary phase (below [`SAMPLES_FEW`]: warning) | INVALID |
//! | `offered` | robots started fewer transactions than planned, and not because connections were at their limit | INVALID |
//! | `resources` | more than [`RESOURCES_MAX`] of the transactions failed for want of ports or descriptors, or by the local system | INVALID |
//! | `errors` | more than [`ERRORS_MAX`] of the transactions failed | FAILED |
//! | `error goal` | the run ended because too many transactions failed | FAILED |
//! | `following` | in the second half of the primary phase fewer transactions ended than began, by more than [`GAP_MAX`] | FAILED |
//! | `growing` | concurrent transactions grew all through the primary phase | FAILED |
//! | `content` | wrong, altered or leaked content, or a coding that was not accepted: a single reply in the whole run | FAILED |
//! | `correctness` | stale, foreign, truncated, misdirected replies, hits against the rules of caching: more than [`WRONG_MAX`] of the transactions; fewer, and hits that were not offered: warning | FAILED |
//! | `one side` | no client logs; no server logs: warning | INVALID |
//!
//! # Precedence
//! Evidence against the device is of two kinds. What the device *said* (statuses, broken messages, wrong
//! objects, resets) does not depend on the speed of the bench. What it was *too slow* for (time-outs, refused
//! connections, connections at their limit, transactions piling up) may be the doing of a bench that no longer
//! reads its sockets. So: if the bench was saturated or stuck, evidence of the second kind only becomes a warning.
//!
//! After that FAILED wins over INVALID. Late starts, clock steps, an interrupted or short run spoil the
//! figures, but they do not excuse the device: starts that were late were still made, and what was
//! counted before the end was counted. In particular an error goal ends a run before its primary phase is over;
//! that is the device's failure, not the bench's.
//!
//! Growth is judged on transactions, not on open connections: pools of idle persistent connections may well
//! grow all the time without harm.

use polygraph_stats::error::Nature;
use polygraph_stats::{EndReason, ErrorKind, Side};

use crate::correctness;
use crate::figures::error_count;
use crate::fold::{Headline, PhaseEnd, RunFacts, SideFacts};
use crate::scope::Scope;
use crate::text;

/// Share of the primary phase that the busiest event loop may be at work.
pub const BUSY_MAX: f64 = 0.90;
/// Share of the primary phase that may be without statistics.
pub const LOST_MAX: f64 = 0.02;
/// Seconds of the primary phase that may be without statistics, however short it is: an interval and a half.
pub const LOST_LEAST_S: f64 = 1.5;
/// Lateness in milliseconds that is always allowed for 99 % of the starts.
pub const LATE_LEAST_MS: f64 = 10.0;
/// Lateness that is allowed as a share of the mean response time.
pub const LATE_SHARE: f64 = 0.05;
/// Step of the time-of-day clock in milliseconds that is allowed.
pub const CLOCK_STEP_MAX_MS: f64 = 100.0;
/// Fewer ended transactions in the primary phase say nothing.
pub const SAMPLES_MIN: u64 = 100;
/// Fewer ended transactions in the primary phase say little.
pub const SAMPLES_FEW: u64 = 1000;
/// Share of failed transactions that is allowed in the primary phase (the rule of the 1999 bake-off).
pub const ERRORS_MAX: f64 = 0.03;
/// Share of transactions that may fail for want of local resources.
pub const RESOURCES_MAX: f64 = 0.001;
/// Share by which the measured rate may stay below the offered rate.
pub const GAP_MAX: f64 = 0.03;
/// Share of wrong replies that is allowed in the primary phase.
pub const WRONG_MAX: f64 = 0.001;
/// Seconds from the start of a run in which levels rise to where they belong; growth in them means nothing.
const SETTLING_S: f64 = 5.0;
/// Parts that a phase is cut into to see whether a level grows in each.
const GROWTH_PARTS: usize = 5;
/// Random variation is allowed up to this many standard deviations.
const SIGMAS: f64 = 3.0;

/// What a run is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The figures can be trusted, and the device held.
    Valid,
    /// The bench did not do its part; the figures say nothing about the device.
    #[default]
    Invalid,
    /// The device did not hold.
    Failed,
}

impl Outcome {
    /// `VALID`, `INVALID` or `FAILED`.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Valid => "VALID",
            Outcome::Invalid => "INVALID",
            Outcome::Failed => "FAILED",
        }
    }

    /// What the word means.
    pub fn meaning(self) -> &'static str {
        match self {
            Outcome::Valid => "the device held and the bench did its part",
            Outcome::Invalid => "the bench did not do its part: do not use these figures",
            Outcome::Failed => "the device did not hold",
        }
    }
}

/// What a finding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The device failed.
    Failed,
    /// The bench failed.
    Invalid,
    /// To be known when the figures are read.
    Warning,
}

impl Weight {
    /// A word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Failed => "failed",
            Weight::Invalid => "invalid",
            Weight::Warning => "warning",
        }
    }
}

/// A rule that had something to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// What follows.
    pub weight: Weight,
    /// The reason, a sentence with its numbers.
    pub text: String,
    /// The evidence is worthless if the bench was saturated.
    needs_quick_bench: bool,
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What the run is worth.
    pub outcome: Outcome,
    /// Reasons and warnings, the heaviest first.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// The findings of that weight.
    pub fn of_weight(&self, weight: Weight) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.weight == weight)
    }
}

/// Applies all rules.
pub fn judge(facts: &RunFacts) -> Verdict {
    let mut found = Findings::default();
    found.logs(facts);
    found.phase(facts);
    found.content(facts);
    let side = facts.main_side();
    if let Some(headline) = &facts.headline {
        let scope = &headline.scope;
        found.saturated(facts, headline);
        found.late(scope);
        found.samples(headline);
        found.offered(side, headline);
        found.resources(scope);
        found.errors(headline);
        found.following(side, headline);
        found.growing(side, headline);
        found.correctness(facts, headline);
    }
    found.clock(facts);
    found.error_goal(facts);
    found.into_verdict()
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, rule: &'static str, weight: Weight, text: String) {
        self.0.push(Finding { rule, weight, text, needs_quick_bench: false });
    }

    /// Evidence that counts only against a device in front of a bench that was quick enough.
    fn add_slow_device(&mut self, rule: &'static str, text: String) {
        self.0.push(Finding { rule, weight: Weight::Failed, text, needs_quick_bench: true });
    }

    fn into_verdict(self) -> Verdict {
        let mut findings = self.0;
        if findings.iter().any(|finding| ["saturated", "gaps"].contains(&finding.rule)) {
            for finding in findings.iter_mut().filter(|finding| finding.needs_quick_bench) {
                finding.weight = Weight::Warning;
                finding.text.push_str(" (perhaps the bench's doing, for it was not quick enough itself)");
            }
        }
        findings.sort_by_key(|finding| finding.weight);
        let outcome = match findings.first().map(|finding| finding.weight) {
            Some(Weight::Failed) => Outcome::Failed,
            Some(Weight::Invalid) => Outcome::Invalid,
            Some(Weight::Warning) | None => Outcome::Valid,
        };
        Verdict { outcome, findings }
    }

    fn logs(&mut self, facts: &RunFacts) {
        for process in facts.client.iter().flat_map(|side| &side.processes) {
            for missing in &process.missing {
                self.add("interrupted", Weight::Invalid, format!("the record is incomplete: {missing}"));
            }
            match &process.end {
                Some(EndReason::Interrupted) => {
                    let text = format!("the client was interrupted {:.1} s into the run", process.last_s);
                    self.add("interrupted", Weight::Invalid, text);
                }
                Some(EndReason::Fatal(why)) => {
                    self.add("interrupted", Weight::Invalid, format!("the client could not go on: {why}"));
                }
                Some(EndReason::Idle) => {
                    let text = "the client gave up because no traffic was left".to_owned();
                    self.add("interrupted", Weight::Invalid, text);
                }
                Some(EndReason::Finished | EndReason::ErrorGoal { .. }) | None => {}
            }
        }
        self.server_logs(facts);
        match (&facts.client, &facts.server) {
            (Some(_), None) => {
                self.add("one side", Weight::Warning, "no server log: only the client side is shown".into());
            }
            (None, Some(_)) => {
                let text = "no client log: what the device did for its clients is unknown".to_owned();
                self.add("one side", Weight::Invalid, text);
            }
            _ => {}
        }
    }

    /// Servers are stopped by a signal or an idle time-out when the robots are done; what counts is that they
    /// lived as long as the primary phase.
    fn server_logs(&mut self, facts: &RunFacts) {
        let needed_s = facts.headline.as_ref().map_or(0.0, |headline| headline.end_s);
        for process in facts.server.iter().flat_map(|side| &side.processes) {
            // Half a second of slack: clocks of hosts and ends of intervals never agree to the last digit.
            let lived = process.last_s + 0.5 >= needed_s;
            for missing in &process.missing {
                let weight = if lived { Weight::Warning } else { Weight::Invalid };
                self.add("interrupted", weight, format!("the record is incomplete: {missing}"));
            }
            if let Some(EndReason::Fatal(why)) = &process.end {
                self.add("interrupted", Weight::Invalid, format!("the server could not go on: {why}"));
            }
        }
    }

    fn phase(&mut self, facts: &RunFacts) {
        let phases = &facts.main_side().phases;
        let mut primary = phases.iter().filter(|phase| phase.primary).peekable();
        if primary.peek().is_none() {
            let text = "the workload has no primary phase to take results from".to_owned();
            return self.add("phase", Weight::Warning, text);
        }
        for phase in primary {
            let name = &phase.name;
            let measured = phase.scope.as_ref().map_or(0.0, |scope| scope.seconds);
            let goal = phase.goal_duration_s.map(|s| format!(" of {s:.1} s")).unwrap_or_default();
            if phase.lost_s > LOST_LEAST_S.max(LOST_MAX * (measured + phase.lost_s)) {
                let text = format!(
                    "the bench was stuck: {:.1} s of the primary phase {name} have no statistics",
                    phase.lost_s
                );
                self.add("gaps", Weight::Invalid, text);
            }
            match phase.end {
                PhaseEnd::Complete => {}
                PhaseEnd::CutShort | PhaseEnd::Unended => {
                    let text =
                        format!("the primary phase {name} was cut short: {measured:.1} s{goal} measured");
                    self.add("phase", Weight::Invalid, text);
                }
                PhaseEnd::NotReached => {
                    self.add("phase", Weight::Invalid, format!("the primary phase {name} was never reached"));
                }
            }
        }
    }

    fn saturated(&mut self, facts: &RunFacts, headline: &Headline) {
        let client = facts.client.as_ref().map(|_| ("client", headline.scope.busiest_share));
        let server = facts.server.as_ref().map(|side| ("server", busiest_during(side, headline)));
        for (who, share) in client.into_iter().chain(server) {
            if let Some(share) = share.filter(|&share| share > BUSY_MAX) {
                self.add(
                    "saturated",
                    Weight::Invalid,
                    format!(
                        "the load generator was saturated: the busiest {who} loop was at work {:.0} % of the time, \
                         {:.0} % are allowed",
                        100.0 * share,
                        100.0 * BUSY_MAX
                    ),
                );
            }
        }
    }

    fn late(&mut self, scope: &Scope) {
        let Some(late_ms) = scope.block.late_us.quantile(0.99).map(|us| us as f64 * 1e-3) else { return };
        let mean_ms = scope.all.rptm_us.mean().map_or(0.0, |us| us * 1e-3);
        let allowed_ms = LATE_LEAST_MS.max(LATE_SHARE * mean_ms);
        if late_ms > allowed_ms {
            let text = format!(
                "requests started late: 1 % of them by more than {late_ms:.1} ms, {allowed_ms:.1} ms are allowed"
            );
            self.add("late", Weight::Invalid, text);
        }
    }

    fn clock(&mut self, facts: &RunFacts) {
        for side in facts.sides() {
            let step_ms = side.total.as_ref().map_or(0.0, |total| total.clock_step_ns as f64 * 1e-6);
            if step_ms.abs() > CLOCK_STEP_MAX_MS {
                let text = format!(
                    "the clock of the {} host was set by {step_ms:.0} ms during the run",
                    side.side.name()
                );
                self.add("clock", Weight::Invalid, text);
            }
        }
    }

    fn samples(&mut self, headline: &Headline) {
        let (ended, phase) = (headline.scope.ended_count(), &headline.phase);
        let text = format!("only {ended} transactions ended in phase {phase}");
        if ended < SAMPLES_MIN {
            self.add("samples", Weight::Invalid, format!("{text}, {SAMPLES_MIN} are the least"));
        } else if ended < SAMPLES_FEW {
            self.add(
                "samples",
                Weight::Warning,
                format!("{text}: means are rough, high percentiles are chance"),
            );
        }
    }

    /// A planned rate that was not offered. Starts come at random, so the allowance is at least three standard
    /// deviations of their number. What robots could not start because connections were at their limit is
    /// the device's doing.
    fn offered(&mut self, side: &SideFacts, headline: &Headline) {
        let (Some(planned), true) = (side.offered_rate(), headline.primary) else { return };
        let scope = &headline.scope;
        let expected = planned * scope.seconds;
        let started = scope.block.xacts.entered as f64;
        let gap = expected - started;
        if expected <= 0.0 || gap <= expected * GAP_MAX.max(SIGMAS * (batches(scope) / expected).sqrt()) {
            return;
        }
        let text = format!(
            "{:.2} transactions per second were to be started, {:.2} were ({:.1} % fewer)",
            planned,
            started / scope.seconds,
            100.0 * gap / expected
        );
        if error_count(&scope.block, ErrorKind::TooManyOpen) >= 0.5 * gap {
            self.add_slow_device("following", format!("{text}, since connections were at their limit"));
        } else {
            self.add("offered", Weight::Invalid, format!("the bench did not offer the planned load: {text}"));
        }
    }

    fn resources(&mut self, scope: &Scope) {
        let failed = failed_by(scope, Blame::Bench);
        if failed > RESOURCES_MAX * scope.ended_count() as f64 {
            let text = format!(
                "{failed:.0} transactions failed for want of local ports, descriptors or by other faults of the \
                 local system"
            );
            self.add("resources", Weight::Invalid, text);
        }
    }

    fn errors(&mut self, headline: &Headline) {
        let scope = &headline.scope;
        let ended = scope.ended_count() as f64;
        let said = failed_by(scope, Blame::Device);
        let both = said + failed_by(scope, Blame::Slow);
        if both <= ERRORS_MAX * ended {
            return;
        }
        let text = format!(
            "{:.2} % of the transactions failed in phase {} ({both:.0} of {ended:.0}), {:.0} % are allowed",
            100.0 * both / ended,
            headline.phase,
            100.0 * ERRORS_MAX
        );
        if said > ERRORS_MAX * ended {
            self.add("errors", Weight::Failed, text);
        } else {
            self.add_slow_device("errors", text);
        }
    }

    fn error_goal(&mut self, facts: &RunFacts) {
        let Some(client) = &facts.client else { return };
        for process in &client.processes {
            let Some(EndReason::ErrorGoal { phase }) = &process.end else { continue };
            let text = format!("the run was given up in phase {phase}: too many transactions failed");
            let independent =
                client.phase(phase).and_then(|phase| phase.scope.as_ref()).is_some_and(|scope| {
                    failed_by(scope, Blame::Device) > ERRORS_MAX * scope.ended_count() as f64
                });
            if independent {
                self.add("error goal", Weight::Failed, text);
            } else {
                self.add_slow_device("error goal", text);
            }
        }
    }

    /// Transactions that began and those that ended differ by the growth of the level. Only the second half of
    /// the phase counts, or a phase without warm-up would fail while its level rises to where it belongs. A
    /// steady level of mean L varies like the number of starts, hence the allowance of three times sqrt(2 L), and
    /// more where they come in batches.
    fn following(&mut self, side: &SideFacts, headline: &Headline) {
        let middle = (headline.begin_s + headline.end_s) / 2.0;
        if !headline.primary || middle < SETTLING_S {
            return;
        }
        let half: Vec<_> =
            side.series.iter().filter(|point| point.at_s >= middle && point.at_s <= headline.end_s).collect();
        let total = |figure: &str| {
            half.iter().filter_map(|point| Some(point.get(figure)? * point.seconds)).sum::<f64>()
        };
        let (begun, ended) = (total("baseline.req.rate"), total("baseline.rep.rate"));
        let level = total("xact.level.mean") / half.iter().map(|point| point.seconds).sum::<f64>().max(1.0);
        let random = SIGMAS * (2.0 * level * batches(&headline.scope)).sqrt();
        if begun - ended > (begun * GAP_MAX).max(random) && begun > 0.0 {
            let text = format!(
                "the device cannot follow: in the second half of phase {} {begun:.0} transactions began and {ended:.0} \
                 ended, {:.1} % fewer",
                headline.phase,
                100.0 * (begun - ended) / begun
            );
            self.add_slow_device("following", text);
        }
    }

    fn growing(&mut self, side: &SideFacts, headline: &Headline) {
        let levels: Vec<f64> = side
            .series
            .iter()
            .filter(|point| point.at_s >= headline.begin_s.max(SETTLING_S) && point.at_s <= headline.end_s)
            .filter_map(|point| point.get("xact.level.mean"))
            .collect();
        if !headline.primary || levels.len() < 2 * GROWTH_PARTS {
            return;
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let parts: Vec<f64> = (0..GROWTH_PARTS)
            .map(|i| mean(&levels[part(levels.len(), i)..part(levels.len(), i + 1)]))
            .collect();
        let (first, last) = (parts[0], parts[GROWTH_PARTS - 1]);
        let grown = last - first;
        // A level that merely settles grows less and less: its last step is then a small part of the whole.
        let settling = last - parts[GROWTH_PARTS - 2] < 0.1 * grown;
        let in_each = parts.windows(2).all(|pair| pair[1] > pair[0]);
        let random = SIGMAS * (2.0 * last * batches(&headline.scope)).sqrt();
        if in_each && !settling && grown > 0.5 * first && grown > random {
            let text = format!(
                "concurrent transactions grew all through phase {}, from {first:.0} to {last:.0}",
                headline.phase
            );
            self.add_slow_device("growing", text);
        }
    }

    /// Content that is not what the server made for the request: once is too often, whenever it was.
    fn content(&mut self, facts: &RunFacts) {
        for finding in correctness::of_run(facts).findings {
            if finding.kind.nature() == Nature::Content {
                let whom = match finding.side {
                    Side::Client => "robots",
                    Side::Server => "servers",
                };
                let times = text::times(finding.count);
                let text = format!("wrong content delivered to {whom} {times}: {}", finding.kind.text());
                self.add("content", Weight::Failed, text);
            }
        }
    }

    fn correctness(&mut self, facts: &RunFacts, headline: &Headline) {
        let server = facts.client.as_ref().and(facts.server.as_ref()).and_then(|side| side.total.as_ref());
        for scope in std::iter::once(&headline.scope).chain(server) {
            let ended = scope.ended_count() as f64;
            let wrong = |kind: ErrorKind| correctness::concerns(kind) && kind.nature() != Nature::Content;
            for (kind, count) in scope.block.errors.iter().filter(|(kind, _)| wrong(*kind)) {
                let text = format!("{}: {count} of {ended:.0} transactions", kind.text());
                let few = count as f64 <= WRONG_MAX * ended;
                match kind {
                    _ if few => self.add("correctness", Weight::Warning, text),
                    // Nobody can be blamed for a hit on what others had asked for.
                    ErrorKind::FalseHit => self.add("correctness", Weight::Warning, text),
                    // A bench that does not read may be why a message was cut.
                    ErrorKind::BodyShort => self.add_slow_device("correctness", text),
                    _ => self.add("correctness", Weight::Failed, text),
                }
            }
        }
    }
}

/// The variance of the number of starts in a given time, as a multiple of that of a Poisson count: 1, unless pages
/// make transactions come in batches. If batches of random size B come at random it is E(B^2) / E(B). Robots leave
/// out a request for every embedded object, so in the long run it is less.
fn batches(scope: &Scope) -> f64 {
    let parts = &scope.block.pages.parts;
    let (Some(mean), pages) = (parts.mean(), parts.count() as f64) else { return 1.0 };
    let in_pages = pages * mean;
    let squares = pages * (mean.powi(2) + parts.std_dev().unwrap_or(0.0).powi(2));
    let singles = (scope.ended_count() as f64 - in_pages).max(0.0);
    ((singles + squares) / (singles + in_pages)).max(1.0)
}

/// First index of part `i` of `n` things.
fn part(n: usize, i: usize) -> usize {
    n * i / GROWTH_PARTS
}

/// Share of the time that the busiest loop of a side was at work during the headline phases, whatever phases
/// that side has itself.
fn busiest_during(side: &SideFacts, headline: &Headline) -> Option<f64> {
    let shares: Vec<(f64, f64)> = side
        .series
        .iter()
        .filter(|point| point.at_s >= headline.begin_s && point.at_s <= headline.end_s)
        .filter_map(|point| Some((point.get("cpu.busiest.share")? / 100.0, point.seconds)))
        .collect();
    let seconds: f64 = shares.iter().map(|(_, seconds)| seconds).sum();
    (seconds > 0.0).then(|| shares.iter().map(|(share, seconds)| share * seconds).sum::<f64>() / seconds)
}

/// Who is to blame for a failed transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blame {
    /// The device, by what it said.
    Device,
    /// The device if the bench was quick enough.
    Slow,
    /// The bench.
    Bench,
}

fn blame(kind: ErrorKind) -> Blame {
    match kind.nature() {
        Nature::Content | Nature::Caching | Nature::Message | Nature::Access => Blame::Device,
        Nature::Slow => Blame::Slow,
        Nature::Bench => Blame::Bench,
    }
}

/// Failed transactions by who is to blame.
fn failed_by(scope: &Scope, who: Blame) -> f64 {
    ErrorKind::all()
        .filter(|kind| kind.fails() && blame(*kind) == who)
        .map(|kind| error_count(&scope.block, kind))
        .sum()
}

#[cfg(test)]
mod tests;
