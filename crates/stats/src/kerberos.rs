//! Statistics of tickets that robots get from a key distribution centre (KDC).

use serde::{Deserialize, Serialize};

use crate::fold::fold_fields;
use crate::histogram::CoarseHistogram;

/// Exchanges of robots with a KDC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KerberosStats {
    /// Time in microseconds of successful logins: all messages until a robot has a ticket-granting ticket.
    pub login_us: CoarseHistogram,
    /// Time in microseconds of successful requests for the ticket of a service.
    pub ticket_us: CoarseHistogram,
    /// Logins and requests that gave no ticket.
    pub failed: u64,
    /// Messages that were sent again over TCP, because the reply did not fit a datagram.
    pub too_big: u64,
}

fold_fields! {
    KerberosStats { login_us, ticket_us, failed, too_big }
}
