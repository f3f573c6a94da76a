//! Who can be the limit of a run.

use polygraph_stats::Side;

use super::Tested;

/// Who was the limit of a run that is not VALID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitingParty {
    /// The device under test.
    Device,
    /// A client process: the robots of the bench.
    Client,
    /// A server process: the origin servers of the bench.
    Server,
    /// The name server that robots query.
    NameServer,
    /// The key distribution centre (KDC) that robots ask for tickets.
    Kdc,
    /// A server outside of the test, whose URLs the workload names.
    ForeignServer,
    /// A host of the bench: its clock, ports, descriptors, memory or processors.
    Host,
    /// The network between client, device and servers.
    Network,
    /// The test as it was planned or carried out: too short, stopped by its user, or without content to verify.
    Test,
}

impl From<Side> for LimitingParty {
    fn from(side: Side) -> LimitingParty {
        match side {
            Side::Client => LimitingParty::Client,
            Side::Server => LimitingParty::Server,
        }
    }
}

impl LimitingParty {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LimitingParty::Device => "device",
            LimitingParty::Client => "client",
            LimitingParty::Server => "server",
            LimitingParty::NameServer => "name server",
            LimitingParty::Kdc => "KDC",
            LimitingParty::ForeignServer => "foreign server",
            LimitingParty::Host => "host",
            LimitingParty::Network => "network",
            LimitingParty::Test => "test",
        }
    }

    /// Why a run in which this was tested is INVALID by this rule.
    pub(super) fn limit(self, rule: &str, tested: &Tested) -> String {
        let device = tested.is_device();
        let who = match self {
            LimitingParty::Device => return "the device was the limit".to_owned(),
            LimitingParty::Test if device => {
                return "the test cannot judge the device".to_owned();
            }
            LimitingParty::Test => return "the test is not conclusive".to_owned(),
            LimitingParty::Client => "the client of the bench",
            LimitingParty::Server => match tested {
                Tested::Servers(at) => &format!("the server at {at}"),
                Tested::Device | Tested::Bench => "the origin server of the bench",
            },
            LimitingParty::NameServer => "the name server",
            LimitingParty::Kdc => "the KDC",
            LimitingParty::ForeignServer => "a server outside of the test",
            LimitingParty::Host => "a host of the bench",
            LimitingParty::Network => "the network",
        };
        match rule {
            "interrupted" => format!("{who} ended before the test did"),
            "stalls" | "gaps" => format!("{who} stalled"),
            _ => format!("{who}{} was the limit", if device { ", not the device," } else { "" }),
        }
    }
}
