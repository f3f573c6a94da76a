//! Whether robots could tell that good replies are what the servers sent.

use polygraph_stats::{Block, Class, ErrorKind, VerificationStats};

use super::blame::UNVERIFIABLE;
use super::{Findings, LimitingParty};
use crate::facts::RunFacts;
use crate::scope::Scope;

/// Largest share of replies that may remain unverified: the same as for failures, because a reply that nobody could check is
/// worth no more than a failed one.
pub(super) const UNVERIFIED_MAX: f64 = super::blame::ERRORS_MAX;

pub(super) fn verified(facts: &RunFacts, found: &mut Findings) {
    let Some(client) = &facts.client else { return };
    let all = Scope::sequential(client.phases.iter().filter_map(|phase| phase.evidence()));
    if let Some(block) = all.as_ref().map(|scope| &scope.block) {
        // That certificates were refused is verified, and these transactions have no content.
        let refused = block.tls.refusal_count();
        let (own, good) = (ours(block), block.ok_count() - refused);
        let seen = block.verified.replies + block.verified.marked;
        if own == 0 && good > 0 {
            let text =
                format!("none of {good} replies was verified: robots requested no objects of the servers");
            return found.invalid("unverified", LimitingParty::Test, text);
        }
        if 2 * own < good {
            let text = format!(
                "only {own} of {good} replies are of objects of the servers, which robots can verify"
            );
            found.warn("unverified", text);
        }
        if own > 0 && seen == 0 {
            let text =
                format!("none of {own} replies was verified: nothing shows that they come from the servers");
            // Replies that are cut, or refuse passwords that are wrong on purpose.
            let [cut, refused] =
                [Class::Abort, Class::Authenticating].map(|class| block.class(class).size.count());
            let text = match refused {
                0 => text,
                _ => format!(
                    "{text}; {refused} refuse credentials that robots spoiled on purpose (`auth_error`)"
                ),
            };
            return blame(facts, found, cut + refused == own, text);
        }
        if own > 0 && block.verified.replies == 0 {
            found.warn("unverified", without_bodies(block, own));
        }
    }
    let Some(headline) = &facts.headline else { return };
    let counted = headline.evidence().block.verified;
    let unseen = counted.due.saturating_sub(counted.replies);
    if unseen as f64 > UNVERIFIED_MAX * counted.due as f64 {
        let text = format!(
            "{unseen} of {} replies in phase {} could not be verified, because they {}; the limit is {:.0} %",
            counted.due,
            headline.phase,
            reason(&headline.evidence().block),
            100.0 * UNVERIFIED_MAX
        );
        blame(facts, found, false, text);
    }
}

/// What robots know of `own` good replies if they verified no body.
fn without_bodies(block: &Block, own: u64) -> String {
    let VerificationStats { due, marked, .. } = block.verified;
    let seen = format!("robots recognized {marked} replies by their marks");
    match (due, own.saturating_sub(marked)) {
        (0, 0) => format!("no body was verified, because no reply of the workload has one: {seen}"),
        (0, others) => format!(
            "no body was verified: {seen}, and {others} replies cannot be verified, because they were cut short on purpose, refuse credentials, \
             redirect, or are a part of a compressed object"
        ),
        _ => format!("none of {due} bodies could be verified, because they {}; {seen}", reason(block)),
    }
}

/// Why bodies could not be verified, after a word for them.
fn reason(block: &Block) -> &'static str {
    if 2 * block.errors[ErrorKind::OtherContents] > block.verified.due {
        return "are of other contents than robots have";
    }
    "have no transaction id (X-Xact) or no known size"
}

/// Good transactions with objects of our servers that must arrive.
fn ours(block: &Block) -> u64 {
    block.ok_count().saturating_sub(block.foreign_count() + block.tls.refusal_count())
}

/// If the user lets robots accept foreign messages, the test did not test the device. Otherwise the device is to blame.
fn blame(facts: &RunFacts, found: &mut Findings, by_plan: bool, text: String) {
    let accepting = facts.client.iter().flat_map(|side| &side.processes).any(|process| {
        let mut settings = process.header.settings.iter();
        settings.any(|(name, value)| name == "accepts foreign messages" && value == "yes")
    });
    match by_plan || accepting {
        true if accepting => {
            let text = format!("{text}; robots were configured to accept foreign messages");
            found.invalid("unverified", LimitingParty::Test, text);
        }
        true => found.invalid("unverified", LimitingParty::Test, text),
        false => found.failed_as("unverified", UNVERIFIABLE, text),
    }
}
