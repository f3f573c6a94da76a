//! Who is to blame for a failed transaction.

use polygraph_stats::ErrorKind;
use polygraph_stats::error::Nature;

use crate::figures::error_count;
use crate::scope::Scope;

/// Largest share of transactions that may fail in the primary phase (the rule of the 1999 bake-off).
pub(crate) const ERRORS_MAX: f64 = 0.03;

/// Who is to blame for a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The device, because of what it sent.
    Device,
    /// The device, if the bench was fast enough.
    Slow,
    /// The name server.
    Names,
    /// The key distribution centre.
    Tickets,
    /// The network.
    Network,
    /// The bench.
    Bench,
}

impl Blame {
    const ALL: [Blame; 6] =
        [Blame::Device, Blame::Slow, Blame::Names, Blame::Tickets, Blame::Network, Blame::Bench];
}

fn blame(kind: ErrorKind) -> Blame {
    match kind.nature() {
        Nature::Content | Nature::Caching | Nature::Message | Nature::Access => Blame::Device,
        Nature::Slow => Blame::Slow,
        Nature::Names => Blame::Names,
        Nature::Tickets => Blame::Tickets,
        Nature::Network => Blame::Network,
        Nature::Bench => Blame::Bench,
    }
}

/// Failed transactions by who is to blame.
pub(super) fn failed_by(scope: &Scope, who: Blame) -> f64 {
    failing(scope).filter(|(kind, _)| blame(*kind) == who).map(|(_, count)| count).sum()
}

/// Failures of other kinds than this one for which the device is to blame because of what it sent.
pub(super) fn failed_otherwise(scope: &Scope, than: ErrorKind) -> f64 {
    let others = failing(scope).filter(|(kind, _)| *kind != than && blame(*kind) == Blame::Device);
    others.map(|(_, count)| count).sum()
}

/// Who is to blame for most of the failed transactions; `None` if none failed.
pub(super) fn most_to_blame(scope: &Scope) -> Option<Blame> {
    let counts = Blame::ALL.map(|who| (who, failed_by(scope, who)));
    let most = counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.filter(|(_, count)| *count > 0.0).map(|(who, _)| who)
}

fn failing(scope: &Scope) -> impl Iterator<Item = (ErrorKind, f64)> + '_ {
    ErrorKind::all().filter(|kind| kind.fails()).map(|kind| (kind, error_count(&scope.block, kind)))
}

/// The most frequent failure for which a device is responsible; `None` if there is none.
pub(super) fn most(scope: &Scope) -> Option<ErrorKind> {
    let blamed = failing(scope).filter(|(kind, _)| matches!(blame(*kind), Blame::Device | Blame::Slow));
    let most = blamed.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, count)| *count > 0.0);
    most.map(|(kind, _)| kind)
}

/// What the device did to cause these failures, in a few words that follow `the device`.
pub(super) fn deed(scope: &Scope) -> &'static str {
    use ErrorKind as K;
    let nothing_came = scope.block.ok_count() == 0;
    let Some(kind) = most(scope) else { return OVERLOADED };
    match (kind, kind.nature()) {
        (K::ConnectFailed, _) if nothing_came => "was unreachable",
        (K::ConnectFailed, _) => "refused connections",
        (_, Nature::Slow) if nothing_came => "did not answer",
        (_, Nature::Slow) => OVERLOADED,
        (K::NoReply | K::Reset, _) => "dropped connections",
        (K::BadStatus, _) | (_, Nature::Access) => "answered with errors",
        (K::UnmarkedRedirect, _) => "redirected robots elsewhere",
        (_, Nature::Content) => WRONG_CONTENT,
        (_, Nature::Caching) => BROKE_CACHING,
        _ => BROKEN_MESSAGES,
    }
}

pub(super) use crate::verdict::OVERLOADED;
/// What a device did that delivered bodies other than those of the servers.
pub(super) const WRONG_CONTENT: &str = "delivered wrong content";
/// What a device did that answered with copies that it must not use.
pub(super) const BROKE_CACHING: &str = "broke the rules of caching";
/// What a device did that left requests without an answer.
pub(super) const UNANSWERED: &str = "did not answer all requests";
/// What a device did that sent malformed messages.
pub(super) const BROKEN_MESSAGES: &str = "sent broken messages";
/// What a device did whose replies lack what robots need to verify them.
pub(super) const UNVERIFIABLE: &str = "delivered replies that robots cannot verify";
/// What a device did that made up replies of its own.
pub(super) const OWN_REPLIES: &str = "answered in place of the servers";
