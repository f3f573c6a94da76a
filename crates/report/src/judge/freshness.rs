//! Whether the device lets copies be used for as long as the servers said.

use polygraph_stats::{Class, ErrorKind};

use super::Findings;
use super::replies::WRONG_MAX;
use crate::facts::RunFacts;

pub(super) const FRESHNESS: &str = "freshness";

/// Those who run a site may change the freshness of its pages; but then hits are not comparable with those of other devices.
pub(super) fn freshness(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|_| facts.tested.is_device()) else { return };
    let block = &headline.scope.block;
    let (changed, of) = (block.errors[ErrorKind::FreshnessChanged], block.class(Class::Miss).size.count());
    if changed as f64 > WRONG_MAX * of as f64 {
        let text = format!(
            "the device changed the freshness (Expires, max-age) of {changed} of {of} replies of servers that may be stored: copies of \
             these are hits for another time than the servers wanted"
        );
        found.warn(FRESHNESS, text);
    }
}
