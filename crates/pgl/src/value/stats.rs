//! Statistics as values in scripts.

use std::fmt::Debug;
use std::sync::Arc;

/// The members of a sample of statistics, computed when they are read.
pub trait Statistics: Debug + Send + Sync {
    /// The value of the member at `path`, such as `rep.rptm.mean`: times in seconds, sizes in bytes, ratios as
    /// shares (0 to 1); `None` if it is undefined, such as the mean of no values.
    fn member(&self, path: &str) -> Option<f64>;
}

/// A sample of statistics as a value. Two values are equal if they are the same sample.
#[derive(Debug, Clone)]
pub struct Stats(pub Arc<dyn Statistics>);

impl PartialEq for Stats {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
