//! Whether messages said in two ways where they end.

use polygraph_stats::{ErrorKind, Side};

use super::Findings;
use crate::facts::{RunFacts, SideFacts};

pub(super) const FRAMING: &str = "framing";

/// Receivers that go by the length take the rest of the chunks for another message, in which an attacker can hide a request of his own, or
/// a reply for somebody else. Nobody of the test sends both fields.
pub(super) fn framing(facts: &RunFacts, found: &mut Findings) {
    facts.sides().for_each(|side| of_side(facts, side, found));
}

/// Messages that arrived at this side.
fn of_side(facts: &RunFacts, side: &SideFacts, found: &mut Findings) {
    let Some(total) = &side.total else { return };
    let (count, of) = (total.block.errors[ErrorKind::LengthIgnored], total.ended_count());
    if count == 0 {
        return;
    }
    let (messages, receivers, danger) = match side.side {
        Side::Client => ("replies", "robots", "a reply for somebody else"),
        Side::Server => ("requests", "servers", "a request of its own (request smuggling)"),
    };
    let sender = match side.side {
        _ if facts.tested.is_device() => "the device",
        Side::Client => "the server",
        Side::Server => "whoever sends them",
    };
    let text = format!(
        "{count} of {of} {messages} that {receivers} received have both Content-Length and Transfer-Encoding. Receivers that go by the length \
         take the rest of the body for another message, so an attacker can hide {danger} in it; {sender} has to leave out Content-Length \
         (RFC 9112, sections 6.2 and 6.3)"
    );
    found.warn(FRAMING, text);
}
