//! What chance alone may do.

use crate::scope::Scope;

/// Random variation is allowed up to this many standard deviations.
pub(super) const SIGMAS: f64 = 3.0;

/// The variance of the number of starts in a given time, as a multiple of that of a Poisson count: 1, unless pages
/// make transactions come in batches. If batches of random size B come at random it is E(B^2) / E(B). Robots leave
/// out a request for every embedded object, so in the long run it is less.
pub(super) fn batches(scope: &Scope) -> f64 {
    let parts = &scope.block.pages.parts;
    let (Some(mean), pages) = (parts.mean(), parts.count() as f64) else { return 1.0 };
    let in_pages = pages * mean;
    let squares = pages * (mean.powi(2) + parts.std_dev().unwrap_or(0.0).powi(2));
    let singles = (scope.ended_count() as f64 - in_pages).max(0.0);
    ((singles + squares) / (singles + in_pages)).max(1.0)
}
