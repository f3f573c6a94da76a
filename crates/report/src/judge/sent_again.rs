//! Whether connections that robots used again were still open.

use super::Findings;
use crate::facts::RunFacts;

/// Largest share of requests that may meet a closed connection.
pub(super) const SENT_AGAIN_MAX: f64 = 0.01;

/// A peer that closes idle connections now and then meets a request with it (RFC 9112, section 9.5). If that happens often, its
/// clients have to send many requests twice, or fail if these change something.
pub(super) fn sent_again(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let block = &headline.scope.block;
    // What a peer of many streams says it did not process was announced, and has its own figures.
    let told = block.streams.unprocessed + block.streams.refused + block.streams.misdirected;
    let met = block.retried.saturating_sub(told) as f64;
    let ended = headline.scope.ended_count() as f64;
    if met <= SENT_AGAIN_MAX * ended {
        return;
    }
    let peer = if facts.tested.is_device() { "the device" } else { "the servers" };
    let text = format!(
        "{met:.0} requests of {ended:.0} transactions met a connection that {peer} closed without a reply, and were sent again: connections \
         stay open for a shorter time there than robots keep them, or are closed while requests wait"
    );
    found.warn("sent again", text);
}
