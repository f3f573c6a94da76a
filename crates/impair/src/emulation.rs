//! What is emulated: for which packets, and what happens to them in each direction.

use std::fmt::{self, Display};

use polygraph_netsetup::IpPrefix;
use serde::{Deserialize, Serialize};

use crate::pipe::Pipe;

/// A direction, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Packets to the matched networks.
    In,
    /// Packets from the matched networks.
    Out,
}

impl Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Direction::In => "in",
            Direction::Out => "out",
        })
    }
}

/// An emulated path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emulation {
    /// The networks on this side of the path: packets to them come in, packets from them go out.
    pub networks: Vec<IpPrefix>,
    /// The networks at the other end; none for all.
    pub peers: Vec<IpPrefix>,
    /// What happens to packets that come in.
    pub inbound: Option<Pipe>,
    /// What happens to packets that go out.
    pub outbound: Option<Pipe>,
    /// Draws of delays and losses follow from it; `None` for other draws each time.
    pub seed: Option<u64>,
}

impl Emulation {
    /// The pipes that do something.
    pub fn pipes(&self) -> impl Iterator<Item = (Direction, &Pipe)> {
        let both = [(Direction::In, &self.inbound), (Direction::Out, &self.outbound)];
        both.into_iter().filter_map(|(direction, pipe)| {
            let pipe = pipe.as_ref().filter(|pipe| !pipe.is_idle())?;
            Some((direction, pipe))
        })
    }

    /// The pipe of a direction, if it does something.
    pub fn pipe(&self, direction: Direction) -> Option<&Pipe> {
        self.pipes().find(|(known, _)| *known == direction).map(|(_, pipe)| pipe)
    }

    /// Sources and destinations of the packets of a direction, one pair for each rule. `None` stands for any address.
    pub fn pairs(&self, direction: Direction) -> Vec<(Option<IpPrefix>, Option<IpPrefix>)> {
        let mut pairs = Vec::new();
        for &network in &self.networks {
            let peers =
                self.peers.iter().copied().filter(|peer| peer.address.is_ipv6() == network.address.is_ipv6());
            let peers: Vec<Option<IpPrefix>> =
                if self.peers.is_empty() { vec![None] } else { peers.map(Some).collect() };
            pairs.extend(peers.into_iter().map(|peer| match direction {
                Direction::In => (peer, Some(network)),
                Direction::Out => (Some(network), peer),
            }));
        }
        pairs
    }
}

impl Display for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |networks: &[IpPrefix]| networks.iter().map(IpPrefix::to_string).collect::<Vec<_>>().join(", ");
        f.write_str(&list(&self.networks))?;
        if !self.peers.is_empty() {
            write!(f, " with {}", list(&self.peers))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_pair_networks_of_one_family() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpPrefix>>();
        let mut emulation = Emulation {
            networks: list(&["10.16.0.0/16", "2001:db8::/32"]),
            peers: vec![],
            inbound: None,
            outbound: Some(Pipe { loss: 0.1, ..Pipe::default() }),
            seed: None,
        };
        assert_eq!(emulation.to_string(), "10.16.0.0/16, 2001:db8::/32");
        assert_eq!(emulation.pairs(Direction::In).len(), 2);
        assert_eq!(emulation.pairs(Direction::In)[0], (None, Some(emulation.networks[0])));
        emulation.peers = list(&["10.17.0.0/16", "10.18.0.0/16"]);
        let pairs = emulation.pairs(Direction::Out);
        assert_eq!(pairs[1], (Some(emulation.networks[0]), Some(emulation.peers[1])));
        assert_eq!(pairs.len(), 2);
        assert_eq!(emulation.pipes().map(|(direction, _)| direction).collect::<Vec<_>>(), [Direction::Out]);
        assert!(emulation.pipe(Direction::In).is_none());
    }
}
