//! Decides whether the run can be trusted, and whether the device sustained the load. [`rules`] lists all rules; each
//! is a separate function. `docs/verdict.md` has the same table.
//!
//! # Precedence
//! Evidence against the device is of two kinds. What the device *said* (statuses, broken messages, wrong
//! objects, resets) does not depend on the speed of the bench. What it was *too slow* for (time-outs, refused
//! connections, connections at their limit, transactions piling up) may be caused by a bench that no longer reads its sockets. So
//! evidence of the second kind becomes a mere warning if the bench was saturated, stalled, answered late or did not accept connections, or if
//! others had the processors of the device's host. Answers that were late by a small part of the time that transactions took excuse nothing.
//! What the device says of its servers (502, 503, 504) is void if the servers were slow in one of these ways. If client and server disagree
//! about the contents, or others than the servers of the run answered, there is no evidence against the device. Old copies that it uses
//! while a server stands still are none either.
//!
//! What a device sends after its origin server has ended is no evidence against it either: only counts until then are, see
//! `RunFacts::origin_gone`. Where robots connect to the servers directly, there is no device: failures then count against the
//! servers.
//!
//! Each finding names the [`LimitingParty`] that was the limit; the verdict names that of its most severe finding.
//!
//! Then FAILED takes precedence over INVALID. Late starts, clock steps and an interrupted or short run spoil the figures but do
//! not excuse the device: late requests were still sent, and the counts before the end are correct. In particular, an error goal
//! ends a run before its primary phase is over; this is a failure of the device, not of the bench.

mod accepting;
mod blame;
mod chance;
mod contents;
mod digests;
mod disconnected;
mod ended;
mod explained;
mod foreign;
mod framing;
mod freshness;
mod generator;
mod kinds;
mod lateness;
mod logs;
mod outside;
mod overload;
mod replies;
mod roles;
mod routing;
mod rules;
mod sample;
mod sent_again;
mod stalls;
mod starved;
mod surplus;
mod throttled;
mod trend;
pub(crate) mod unanswered;
mod unasked;
mod unfinished;
mod unmarked;
mod unused;
mod uploads;
mod verified;

use polygraph_stats::{BinSet, ErrorKind};

use crate::facts::RunFacts;
use crate::mixed::MIXED;
use crate::verdict::{
    FindingSeverity, LimitingParty, Tested, Verdict, VerdictFinding, VerdictOutcome, VoidBy,
};

pub(crate) use blame::ERRORS_MAX;
pub use contents::MARK as CONTENTS_MARK;
pub(crate) use logs::answered_otherwise;
pub use rules::{Rule, all as rules};
pub use sample::MIN as LEAST_TRANSACTIONS;

/// The histograms whose bins rules look at.
pub(crate) const BINS: BinSet = BinSet::LATENESS;

/// Applies all rules.
pub fn judge(facts: &RunFacts) -> Verdict {
    let mut found = Findings { all: Vec::new(), tested: facts.tested.clone(), late_enough: false };
    rules().iter().for_each(|rule| rule.apply(facts, &mut found));
    found.into_verdict()
}

/// What the rules have found so far.
struct Findings {
    all: Vec<VerdictFinding>,
    /// What was tested, as far as is known.
    tested: Tested,
    /// Whether servers were so late that a device may have been slow because of them.
    late_enough: bool,
}

/// Rules that find the bench too slow: a slow device is no evidence then.
const SLOW_BENCH: [&str; 4] = ["saturated", "gaps", "stalls", throttled::THROTTLED];

/// If so large a share of the transactions failed for one reason, no other fault of the bench matters.
const NEARLY_ALL: f64 = 0.9;

/// Rules about failed transactions, for which a device is not responsible if its origin servers are not running.
const FAILURES: [&str; 6] =
    ["errors", "error goal", "following", "growing", unfinished::UNFINISHED, "unanswered"];

/// Whether nothing shows that the device failed, was too slow or restarted at some time, excused or not.
pub(crate) fn kept_up(facts: &RunFacts) -> bool {
    let told = |finding: &VerdictFinding| {
        FAILURES.contains(&finding.rule) || [ended::ENDED, unanswered::PAUSE].contains(&finding.rule)
    };
    // A device that restarts refuses connections for a moment.
    let total = facts.client.as_ref().and_then(|client| client.total.as_ref());
    let refused = total.is_some_and(|total| total.block.errors[ErrorKind::ConnectFailed] > 0);
    !refused && !facts.verdict.findings.iter().any(told)
}

impl Findings {
    /// Adds a note for readers of the figures, without effect on the outcome.
    fn warn(&mut self, rule: &'static str, text: String) {
        self.push(rule, FindingSeverity::Warning, None, text);
    }

    /// Adds a failure of the bench; `party` says which part of it.
    fn invalid(&mut self, rule: &'static str, party: LimitingParty, text: String) {
        self.push(rule, FindingSeverity::Invalid, Some(party), text);
    }

    /// Adds a failure of the device that does not depend on the speed of the bench; `deed` says what the device did, and follows
    /// `the device`. Where robots connect to the servers directly, the failure is that of the servers.
    fn failed_as(&mut self, rule: &'static str, deed: &'static str, text: String) {
        match self.tested.is_device() {
            true => self.push(rule, FindingSeverity::Failed, Some(LimitingParty::Device), text),
            false => self.push(
                rule,
                FindingSeverity::Invalid,
                Some(LimitingParty::Server),
                text.replace("the device", "the server"),
            ),
        }
        self.latest().deed = Some(deed);
    }

    /// Adds evidence that the device was too slow, which counts only if the bench was fast enough.
    fn add_slow_device(&mut self, rule: &'static str, text: String) {
        self.slow_as(rule, blame::OVERLOADED, text);
    }

    /// Like `add_slow_device`, for a device whose failure is not that it did not sustain the load.
    fn slow_as(&mut self, rule: &'static str, deed: &'static str, text: String) {
        self.failed_as(rule, deed, text);
        self.latest().void_by = VoidBy::SlowBench;
    }

    /// Adds failures that the device blamed on its servers, which counts against it only if these were fast enough. `late`: servers were
    /// late often enough, or for long enough, to be the cause.
    fn relayed_as(&mut self, rule: &'static str, deed: &'static str, text: String, late: bool) {
        self.failed_as(rule, deed, text);
        self.latest().void_by = if late { VoidBy::SlowServers } else { VoidBy::StoppedServers };
    }

    /// The finding that was added last.
    fn latest(&mut self) -> &mut VerdictFinding {
        self.all.last_mut().expect("a finding has just been added")
    }

    fn push(
        &mut self,
        rule: &'static str,
        weight: FindingSeverity,
        party: Option<LimitingParty>,
        text: String,
    ) {
        self.all.push(VerdictFinding {
            rule,
            weight,
            party,
            text,
            deed: None,
            void_by: VoidBy::Nothing,
            explains_all: false,
        });
    }

    /// Adds a failure of the bench, like `invalid`, which explains why `failed` of `ended` transactions failed.
    fn explain(
        &mut self,
        rule: &'static str,
        party: LimitingParty,
        text: String,
        (failed, ended): (f64, f64),
    ) {
        self.invalid(rule, party, text);
        self.latest().explains_all = failed >= NEARLY_ALL * ended;
    }

    /// Why the evidence is none against the device; `None` if nothing excuses it.
    fn excuse(&self, void_by: VoidBy) -> Option<&'static str> {
        let any_side = match void_by {
            VoidBy::Nothing => return None,
            VoidBy::StoppedServers | VoidBy::SlowServers => false,
            VoidBy::SlowBench => true,
        };
        let invalid = || self.all.iter().filter(|finding| finding.weight == FindingSeverity::Invalid);
        // What a host lacked, its servers lacked.
        let of_servers = |finding: &VerdictFinding| {
            matches!(finding.party, Some(LimitingParty::Server | LimitingParty::Host))
        };
        if invalid().any(|finding| SLOW_BENCH.contains(&finding.rule) && (any_side || of_servers(finding))) {
            return Some("the bench may be the cause: it was too slow itself");
        }
        if any_side && invalid().any(|finding| finding.rule == starved::STARVED) {
            return Some("others on its host may be the cause: it lacked a processor");
        }
        let of_server = |finding: &VerdictFinding| finding.party == Some(LimitingParty::Server);
        if (void_by == VoidBy::SlowServers || any_side && self.late_enough)
            && invalid().any(|finding| finding.rule == "late" && of_server(finding))
        {
            return Some("the bench may be the cause: its servers answered late");
        }
        // What a device says after a server has gone is not counted at all.
        let gone = |finding: &VerdictFinding| finding.rule == "interrupted" && of_server(finding);
        (any_side && invalid().any(gone)).then_some("a missing origin server may be the cause")
    }

    fn into_verdict(mut self) -> Verdict {
        self.excuse_for_contents();
        self.excuse_for_accepting();
        self.excuse_for_missing_server_log();
        let excuses: Vec<Option<&str>> =
            self.all.iter().map(|finding| self.excuse(finding.void_by)).collect();
        let Findings { all: mut findings, tested, .. } = self;
        for (finding, excuse) in findings.iter_mut().zip(excuses) {
            if let Some(excuse) = excuse {
                finding.weight = FindingSeverity::Warning;
                finding.text.push_str(&format!(" ({excuse})"));
            }
        }
        findings.sort_by_key(|finding| (finding.weight, finding.depth()));
        let outcome = match findings.first().map(|finding| finding.weight) {
            Some(FindingSeverity::Failed) => VerdictOutcome::Failed,
            Some(FindingSeverity::Invalid) => VerdictOutcome::Invalid,
            Some(FindingSeverity::Warning) | None => VerdictOutcome::Valid,
        };
        let limit =
            findings.first().filter(|_| outcome != VerdictOutcome::Valid).and_then(|finding| finding.party);
        Verdict { outcome, limit, tested, findings }
    }
}

impl VerdictFinding {
    /// How far a finding is from the cause: findings of equal weight are listed in this order, the cause first.
    fn depth(&self) -> u8 {
        match (self.weight, self.rule, self.party) {
            (FindingSeverity::Failed, "content" | ended::ENDED, _) => 0,
            (FindingSeverity::Invalid, ..) if self.explains_all => 0,
            // Suspect a server last if the logs cannot distinguish it from the device.
            (FindingSeverity::Invalid, _, Some(LimitingParty::Server)) if self.deed.is_some() => 5,
            (_, MIXED, _) => 0,
            // Somebody stopped the test, or it could not go on.
            (_, "interrupted", _) => 1,
            // A test that was cut short is a consequence of another fault; a disagreement of client and server is not.
            (_, rule, Some(LimitingParty::Test)) if rule != contents::CONTENTS => 6,
            (_, "origin" | "stalls" | throttled::THROTTLED | starved::STARVED, _) => 1,
            (_, "names" | "network" | foreign::FOREIGN | "resources" | accepting::REFUSED, _) => 2,
            (_, "gaps" | "saturated" | "clock" | accepting::LISTEN_QUEUE, _) => 3,
            _ => 4,
        }
    }
}

/// A value and the limit that it exceeds or keeps, as text: with so many decimals, at least `decimals` in the value, that they differ.
fn apart(value: f64, limit: f64, decimals: usize) -> (String, String) {
    let with = |decimals| (format!("{value:.decimals$}"), format!("{limit:.decimals$}"));
    let differ = |(value, limit): &(String, String)| value != limit;
    let (value, limit) = (decimals..decimals + 6).map(with).find(differ).unwrap_or_else(|| with(decimals));
    let round = limit.contains('.').then(|| limit.trim_end_matches('0').trim_end_matches('.').to_owned());
    (value, round.unwrap_or(limit))
}

#[cfg(test)]
mod tests;
