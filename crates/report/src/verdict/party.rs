//! Who can be the limit of a run.

/// Who was the limit of a run that is not VALID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
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

impl Party {
    /// Name for people and for machines.
    pub fn name(self) -> &'static str {
        match self {
            Party::Device => "device",
            Party::Client => "client",
            Party::Server => "server",
            Party::NameServer => "name server",
            Party::Host => "host",
            Party::Network => "network",
            Party::Test => "test",
        }
    }

    /// What an INVALID run suffered from, found by `rule`; `device` tells whether there was one.
    pub(super) fn limit(self, rule: &str, device: bool) -> String {
        let who = match self {
            Party::Device => return "the device was the limit".to_owned(),
            Party::Test if device => return "the test does not say enough about the device".to_owned(),
            Party::Test => return "the test does not say enough".to_owned(),
            Party::Client => "the client of the bench",
            Party::Server => "the origin server of the bench",
            Party::NameServer => "the name server",
            Party::Host => "a host of the bench",
            Party::Network => "the network",
        };
        match rule {
            "interrupted" => format!("{who} ended before the test did"),
            "stalls" | "gaps" => format!("{who} stood still"),
            _ => format!("{who}{} was the limit", if device { ", not the device," } else { "" }),
        }
    }
}
