//! Transactions with servers outside of the test.

use serde::{Deserialize, Serialize};

use crate::error::ErrorCounts;
use crate::fold::fold_fields;

/// Transactions with foreign URLs, whose servers nobody in the test knows. All other statistics include them;
/// [`Block::kinds`](crate::Block::kinds) has those that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignStats {
    /// Started transactions.
    pub started: u64,
    /// Those that failed, by class.
    pub failed: ErrorCounts,
}

fold_fields! {
    ForeignStats { started, failed }
}
