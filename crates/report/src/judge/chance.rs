//! How far chance alone may move a count.

use crate::facts::{Headline, RunFacts};
use crate::scope::Scope;

/// Number of standard deviations of a normal variable that count as random variation.
const SIGMAS: f64 = 3.0;

/// How far a number of starts with this variance and this batch size may be from its mean by chance. Beyond this distance,
/// Bernstein's inequality, with the batch as the largest step, limits the probability to `exp(-SIGMAS^2 / 2)`. For many batches
/// this is `SIGMAS` standard deviations; a sum of few large batches varies more (S. Boucheron, G. Lugosi, P. Massart,
/// *Concentration Inequalities*, 2013, section 2.8).
pub(super) fn allowance(variance: f64, batch: f64) -> f64 {
    let squared = SIGMAS * SIGMAS;
    let step = squared * batch / 6.0;
    step + (step * step + squared * variance).sqrt()
}

/// The variance of the number of starts in a given time, as a multiple of that of a Poisson count: 1, unless pages
/// make transactions come in batches. For batches of random size B at random times it is E(B^2) / E(B). Robots skip a launch for
/// every embedded object, so in the long run it is less.
///
/// A short phase whose few pages happen to be small has few transactions, and also an estimate that is too low. The whole run
/// has more pages, so the larger of the two estimates counts.
pub(super) fn batches(facts: &RunFacts, headline: &Headline) -> f64 {
    let run = facts.main_side().total.as_ref();
    run.into_iter().chain([&headline.scope]).map(batches_in).fold(1.0, f64::max)
}

/// The estimate from one part of a run.
fn batches_in(scope: &Scope) -> f64 {
    let parts = &scope.block.pages.parts;
    let (Some(mean), pages) = (parts.mean(), parts.count() as f64) else { return 1.0 };
    let in_pages = pages * mean;
    let squares = pages * (mean.powi(2) + parts.std_dev().unwrap_or(0.0).powi(2));
    let singles = (scope.ended_count() as f64 - in_pages).max(0.0);
    ((singles + squares) / (singles + in_pages)).max(1.0)
}
