//! Whether the device lets replies be stored, and copies be used, as the servers said.

use polygraph_stats::{Class, ErrorKind};

use super::Findings;
use super::replies::WRONG_MAX;
use crate::facts::RunFacts;

pub(super) const FRESHNESS: &str = "freshness";
pub(super) const STORABLE: &str = "storable";

/// Those who run a site may change the freshness of its pages; but then hits are not comparable with those of other devices.
pub(super) fn freshness(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|_| facts.tested.is_device()) else { return };
    let block = &headline.scope.block;
    let count = |class| block.class(class).size.count();
    let (changed, of) = (block.errors[ErrorKind::FreshnessChanged], count(Class::Miss) + count(Class::Hit));
    if changed as f64 > WRONG_MAX * of as f64 {
        let text = format!(
            "the device changed or removed what servers say of the freshness (Expires, max-age, Last-Modified) of {changed} of {of} replies \
             that may be stored: copies of these are hits for another time than the servers wanted, and a copy that is too old may pass for a \
             fresh one"
        );
        found.warn(FRESHNESS, text);
    }
}

/// A private reply that others get is worse than a lost hit, and the owner of a site may still want it so.
pub(super) fn storable(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|_| facts.tested.is_device()) else { return };
    let block = &headline.scope.block;
    let count = |class| block.class(class).size.count();
    let (storable, of) =
        (block.errors[ErrorKind::MadeStorable], count(Class::Miss) + count(Class::Uncachable));
    if storable as f64 > WRONG_MAX * of as f64 {
        let text = format!(
            "{storable} of {of} replies are of those that servers forbid to store (Cache-Control), but arrived without that: the device \
             changed or removed the field, and whoever stores them may give private replies to others"
        );
        found.warn(STORABLE, text);
    }
}
