//! Who can be the limit of a run.

/// Who was the limit of a run that is not VALID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitingParty {
    /// The device under test.
    Device,
    /// A client process: the robots of the bench.
    Client,
    /// A server process: the origin servers of the bench.
    Server,
    /// The name server that robots ask.
    NameServer,
    /// A host of the bench: its clock, ports, descriptors, memory or processors.
    Host,
    /// What connects client, device and servers.
    Network,
    /// The test as it was planned or carried out: too short, stopped by its user, or without content to verify.
    Test,
}

impl LimitingParty {
    /// Name for people and for machines.
    pub fn name(self) -> &'static str {
        match self {
            LimitingParty::Device => "device",
            LimitingParty::Client => "client",
            LimitingParty::Server => "server",
            LimitingParty::NameServer => "name server",
            LimitingParty::Host => "host",
            LimitingParty::Network => "network",
            LimitingParty::Test => "test",
        }
    }

    /// What an INVALID run suffered from, found by `rule`; `device` tells whether there was one.
    pub(super) fn limit(self, rule: &str, device: bool) -> String {
        let who = match self {
            LimitingParty::Device => return "the device was the limit".to_owned(),
            LimitingParty::Test if device => {
                return "the test does not say enough about the device".to_owned();
            }
            LimitingParty::Test => return "the test does not say enough".to_owned(),
            LimitingParty::Client => "the client of the bench",
            LimitingParty::Server => "the origin server of the bench",
            LimitingParty::NameServer => "the name server",
            LimitingParty::Host => "a host of the bench",
            LimitingParty::Network => "the network",
        };
        match rule {
            "interrupted" => format!("{who} ended before the test did"),
            "stalls" | "gaps" => format!("{who} stood still"),
            _ => format!("{who}{} was the limit", if device { ", not the device," } else { "" }),
        }
    }
}
