//! What can go wrong when an emulation is started or asked.

use std::io;

use polygraph_netsetup::Error as NetError;

/// Why an emulation does not work.
#[derive(Debug, thiserror::Error)]
pub enum WanError {
    /// A change to this host failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A file, a socket or a process of the emulation.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// This process does not have the rights of root that the request needs.
    #[error("{what} needs root: run the command with sudo")]
    NotRoot {
        /// What was asked for, and the capabilities that would do.
        what: String,
    },
    /// The process that holds packets did not start.
    #[error("the process that holds packets did not start: {reason}")]
    NotStarted {
        /// What it says, or where it may have said it.
        reason: String,
    },
    /// No program sets rules that send packets into queues.
    #[error(
        "no firewall of this host sends packets into queues, which user space needs to hold them: {reasons}; the kernel needs CONFIG_NETFILTER_NETLINK_QUEUE, and CONFIG_NFT_QUEUE or CONFIG_NETFILTER_XT_TARGET_NFQUEUE"
    )]
    NoFirewall {
        /// What each of them says.
        reasons: String,
    },
    /// Interfaces are named, and user space has to hold the packets.
    #[error(
        "only netem works on single interfaces{because}: without --interface, user space holds the packets of all interfaces"
    )]
    NoInterfaces {
        /// Why netem cannot be used, in parentheses after a blank; empty if it was not asked for.
        because: String,
    },
    /// The kernel cannot do this with netem.
    #[error("netem cannot be used: {reason}")]
    NoNetem {
        /// Why not, and what to do.
        reason: String,
    },
}

impl WanError {
    /// Something that was tried and failed.
    pub fn system(what: impl Into<String>, error: io::Error) -> WanError {
        WanError::System { what: what.into(), error }
    }

    /// A file or directory of the records, which only root may use.
    pub fn records(path: &str, error: io::Error) -> WanError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                WanError::NotRoot { what: format!("using the records of emulations ({path})") }
            }
            _ => WanError::system(path, error),
        }
    }
}
