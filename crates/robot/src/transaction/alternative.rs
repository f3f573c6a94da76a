//! Requests to alternative services: robots that follow `Alt-Svc` send requests over HTTP/3 to where an origin says that it speaks it,
//! until that is out of date or fails (RFC 7838, section 2).

use polygraph_link::Link;
use polygraph_stats::ErrorKind;
use polygraph_stats::error::Nature;

use crate::connections::alternatives::usable;
use crate::connections::hop::Hop;
use crate::connections::layers::host_of;
use crate::exchange::reply::ReplyMeta;
use crate::failure::TransactionFailure;
use crate::group::RobotGroup;
use crate::record;

impl<L: Link> RobotGroup<L> {
    /// Where a request to `hop` goes: to an alternative, if the robot knows one.
    pub(super) fn alternative_to(&self, robot: usize, hop: Hop) -> Hop {
        let cx = self.context.of(robot);
        // HTTP/3 has no form of HTTP/1.0.
        if !cx.profile().follow_alt_svc || hop.server.is_none() || cx.http_minor() == 0 {
            return hop;
        }
        let hop = hop.of_origin();
        let found = self.rare(robot).alternatives.find(hop, cx.now());
        let Some((port, is_first)) = found else { return hop };
        if is_first {
            record::alternative(cx);
        }
        Hop { alternative: Some(port), ..hop }
    }

    /// Remembers the alternative that a reply over `hop` announces, if it announces one.
    pub(super) fn learn_alternative(&self, robot: usize, hop: Hop, reply: &ReplyMeta) {
        let cx = self.context.of(robot);
        let Some(server) = hop.server.filter(|_| cx.profile().follow_alt_svc) else { return };
        let Some(value) = reply.rare.as_deref().and_then(|rare| rare.alt_svc.as_deref()) else { return };
        let (hop, now) = (hop.of_origin(), cx.now());
        let authority = cx.authority(server);
        let known = &mut self.rare(robot).alternatives;
        match usable(value, hop.address.ip(), host_of(&authority)) {
            Ok(announced) => known.learn(hop, announced, now),
            Err(why) => {
                if known.give_up(hop, now) {
                    record::broken_alternative(cx, || why);
                }
            }
        }
    }

    /// Leaves the alternative of `hop` alone for a while, because of `failure`. Returns where to go instead.
    pub(super) fn leave_alternative(&self, robot: usize, hop: Hop, failure: &TransactionFailure) -> Hop {
        let cx = self.context.of(robot);
        // The transactions that fail together with the first one tell nothing new.
        if self.rare(robot).alternatives.give_up(hop.of_origin(), cx.now()) {
            record::broken_alternative(cx, || format!("{hop}: {}", failure.violation.detail));
        }
        hop.of_origin()
    }

    /// Leaves the alternative of `hop` alone for a while, because it does not serve the origin (status 421; RFC 7838, section 6).
    /// Returns where to go instead.
    pub(super) fn forget_alternative(&self, robot: usize, hop: Hop) -> Hop {
        let now = self.context.now();
        self.rare(robot).alternatives.give_up(hop.of_origin(), now);
        hop.of_origin()
    }

    /// A transaction over `hop` has failed. If QUIC is the reason, later ones do not use the alternative.
    pub(super) fn note_failure(&self, robot: usize, hop: Hop, failure: &TransactionFailure) {
        use ErrorKind::{ConnectionError, QuicError, QuicNoAnswer, QuicSilent};
        let kind = failure.violation.kind;
        if hop.alternative.is_some()
            && matches!(kind, QuicError | QuicNoAnswer | QuicSilent | ConnectionError)
        {
            self.leave_alternative(robot, hop, failure);
        }
    }
}

/// Whether a connection to `hop` could not be opened because of the alternative: not because the robot waited for its turn, or because
/// the bench has no room for it.
pub fn is_unusable(hop: Hop, failure: &TransactionFailure) -> bool {
    let begun = failure.started.is_some();
    hop.alternative.is_some() && begun && failure.violation.kind.nature() != Nature::Bench
}
