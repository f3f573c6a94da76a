//! What carries out an emulation on this host.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::emulator::Queues;
use crate::firewall::Firewall;
use crate::netem_host::NetemSetup;

/// What emulates a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// The kernel.
    Netem(NetemSetup),
    /// A process that holds packets.
    Nfqueue {
        /// Its id.
        pid: i32,
        /// The queues that it reads.
        queues: Queues,
        /// The socket at which it tells its status.
        control: PathBuf,
        /// Who sends packets into the queues.
        firewall: Firewall,
    },
}
