//! Whether the digests of right bodies were right, too.

use polygraph_stats::ErrorKind;

use super::Findings;
use crate::facts::RunFacts;
use crate::text;

pub(super) const DIGESTS: &str = "digests";

/// The content is right, so this is no wrong content; but clients that check the digest reject it. Servers of the test send right ones.
pub(super) fn digests(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.client.as_ref().and_then(|side| side.total.as_ref()) else { return };
    let (wrong, checked) = (total.block.errors[ErrorKind::WrongDigest], total.block.verified.digests);
    if wrong == 0 {
        return;
    }
    let share = text::percent(wrong as f64 / checked.max(wrong) as f64, 2);
    let sender = if facts.tested.is_device() { "the device" } else { "the server" };
    let text = format!(
        "Content-MD5 of {wrong} of {checked} replies ({share}) is not the digest of their bodies, which are right: {sender} changes the \
         coding of bodies (gzip) and leaves the digest of the other coding, or replaces the field. Clients that check it reject these \
         replies; let {sender} remove the field, or leave bodies as they are"
    );
    found.warn(DIGESTS, text);
}
