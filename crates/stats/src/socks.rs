//! Statistics of connections through SOCKS proxies.

use serde::{Deserialize, Serialize};

use crate::counts::{Breakdown, CountAndBytes};
use crate::fold::fold_fields;
use crate::histogram::CoarseHistogram;

/// Connections through SOCKS proxies, and the transactions on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SocksStats {
    /// Time in microseconds until a proxy had opened a connection, from the first byte of the dialogue with it to the last.
    pub opened_us: CoarseHistogram,
    /// Opened connections for which the proxy demanded name and password.
    pub with_password: u64,
    /// Connections that the proxy did not open.
    pub refused: u64,
    /// Successful transactions; their response time includes the set-up of a connection, if they needed one.
    pub transactions: Breakdown,
    /// Those that were hits.
    pub hits: CountAndBytes,
}

fold_fields! {
    SocksStats { opened_us, with_password, refused, transactions, hits }
}
