//! Netem on this host: whether the kernel has it, which interfaces are meant, what it has counted.

use std::net::IpAddr;

use polygraph_netsetup::{Changes, Ledger, run_program};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::emulation::{Direction, Emulation};
use crate::error::WanError;
use crate::firewall::{Step, words};
use crate::netem::{self, NetemInterface};
use crate::status::{PipeStatus, Status};

/// Queues that interfaces have by themselves, which come back when ours is removed.
const USUAL_QUEUES: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "fq_codel", "fq", "pfifo"];
/// What network cards and the kernel do with several packets at once, by the names of `ethtool`.
const OFFLOADS: [(&str, &str); 3] = [
    ("tso", "tcp-segmentation-offload"),
    ("gso", "generic-segmentation-offload"),
    ("gro", "generic-receive-offload"),
];

/// An emulation by netem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetemSetup {
    /// The interfaces.
    pub interfaces: Vec<NetemInterface>,
}

fn unusable(reason: String) -> WanError {
    WanError::NoNetem { reason }
}

/// Tries netem on a device that exists for this purpose only.
///
/// # Errors
/// If the kernel does not have it, or not the devices that packets that come in need.
pub fn probe(ledger: &Ledger) -> Result<(), WanError> {
    let device = format!("pgprobe{}", rustix::process::getpid().as_raw_nonzero());
    let mut changes = ledger.begin("probe of netem")?;
    let link = Step {
        what: format!("device {device}"),
        command: words(&format!("ip link add {device} type ifb")),
        undo: words(&format!("ip link del {device}")),
    };
    link.make(&mut changes).map_err(|error| unusable(format!("this kernel has no ifb devices ({error})")))?;
    let netem = format!("tc qdisc add dev {device} root netem delay 1ms");
    run_program(&words(&netem))
        .map_err(|error| unusable(format!("this kernel does not have it ({error})")))?;
    Ok(())
}

/// The interfaces that an emulation concerns: the named ones, or those with addresses of its networks.
///
/// # Errors
/// If there are none, or if an interface is the loopback or has a queue that someone else has set up.
pub fn interfaces(emulation: &Emulation, named: &[String]) -> Result<NetemSetup, WanError> {
    let mut names = named.to_vec();
    if names.is_empty() {
        let list: Value =
            serde_json::from_str(&run_program(&["ip", "-j", "address", "show"])?).unwrap_or_default();
        names = interfaces_with(&list, emulation);
    }
    if names.is_empty() {
        return Err(unusable(
            "no interface has an address of the matched networks: name the interface with --interface"
                .to_owned(),
        ));
    }
    let mut interfaces = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        if name == "lo" {
            return Err(unusable(
                "packets of the loopback interface do not come in and go out once".to_owned(),
            ));
        }
        let queues = run_program(&["tc", "qdisc", "show", "dev", &name])?;
        if let Some(queue) = foreign_queue(&queues) {
            return Err(unusable(format!(
                "the interface {name} has the queue `{queue}` already: remove it with `tc qdisc del dev {name} root`"
            )));
        }
        let pid = rustix::process::getpid().as_raw_nonzero();
        interfaces.push(NetemInterface {
            name,
            intermediate: emulation.pipe(Direction::In).map(|_| format!("pgwan{pid}n{number}")),
            outbound: emulation.pipe(Direction::Out).is_some(),
        });
    }
    Ok(NetemSetup { interfaces })
}

/// The interfaces in the list of `ip -j address` that have an address of the matched networks.
fn interfaces_with(list: &Value, emulation: &Emulation) -> Vec<String> {
    let entries = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let has_match = |entry: &&Value| {
        let addresses = entry["addr_info"].as_array().map(Vec::as_slice).unwrap_or_default();
        addresses.iter().any(|address| {
            let address: Option<IpAddr> = address["local"].as_str().and_then(|text| text.parse().ok());
            address.is_some_and(|address| emulation.networks.iter().any(|network| network.contains(address)))
        })
    };
    entries.iter().filter(has_match).filter_map(|entry| entry["ifname"].as_str().map(str::to_owned)).collect()
}

/// The first queue in the list of `tc` that an interface does not have by itself.
fn foreign_queue(list: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let kind = line.split_whitespace().nth(1)?;
        (!USUAL_QUEUES.contains(&kind)).then(|| line.trim().to_owned())
    })
}

/// The commands for all interfaces.
///
/// # Errors
/// If netem cannot do what the emulation asks for.
pub fn steps(emulation: &Emulation, setup: &NetemSetup) -> Result<Vec<Step>, WanError> {
    let mut steps = Vec::new();
    for interface in &setup.interfaces {
        steps.extend(netem::steps(emulation, interface)?);
    }
    Ok(steps)
}

/// Sets everything up.
///
/// # Errors
/// If a command fails; what was made until then is in `changes`.
pub fn start(emulation: &Emulation, setup: &NetemSetup, changes: &mut Changes) -> Result<(), WanError> {
    let steps = steps(emulation, setup)?;
    let needs_single_packets = emulation.pipes().any(|(_, pipe)| pipe.loss > 0.0 || pipe.bandwidth.is_some());
    for interface in setup.interfaces.iter().filter(|_| needs_single_packets) {
        // Loss and bandwidth concern packets as they are on the wire. An interface without offloads has none to stop.
        let features = run_program(&["ethtool", "-k", &interface.name]).unwrap_or_default();
        for step in offload_steps(&interface.name, &features) {
            step.make(changes)?;
        }
    }
    for step in &steps {
        match step.undo.is_empty() {
            true => drop(run_program(&step.command)?),
            false => step.make(changes)?,
        }
    }
    Ok(())
}

/// The commands that make an interface handle packets one by one. `features` is what `ethtool -k` prints.
fn offload_steps(device: &str, features: &str) -> Vec<Step> {
    let is_on = |feature: &str| {
        features.lines().any(|line| {
            line.trim().strip_prefix(feature).and_then(|rest| rest.strip_prefix(": ")) == Some("on")
        })
    };
    let steps = OFFLOADS.iter().filter(|(_, feature)| is_on(feature)).map(|(name, feature)| Step {
        what: format!("{feature} of {device}"),
        command: words(&format!("ethtool -K {device} {name} off")),
        undo: words(&format!("ethtool -K {device} {name} on")),
    });
    steps.collect()
}

/// What netem has counted.
///
/// # Errors
/// If `tc` fails, or if its queues are gone.
pub fn status(setup: &NetemSetup) -> Result<Status, WanError> {
    let mut status = Status::default();
    for interface in &setup.interfaces {
        for (direction, device) in interface.devices() {
            let text = run_program(&["tc", "-s", "-j", "qdisc", "show", "dev", device])?;
            let pipe = counters(&text, direction).ok_or_else(|| {
                unusable(format!("its queue is no longer on {device}, so packets pass without delay"))
            })?;
            match status.pipes.iter_mut().find(|known| known.direction == direction) {
                Some(known) => {
                    known.packets += pipe.packets;
                    known.delivered += pipe.delivered;
                    known.lost += pipe.lost;
                    known.held += pipe.held;
                }
                None => status.pipes.push(pipe),
            }
        }
    }
    Ok(status)
}

/// The counters of our netem in the list of `tc -s -j qdisc`.
fn counters(text: &str, direction: Direction) -> Option<PipeStatus> {
    let list: Value = serde_json::from_str(text).ok()?;
    let is_ours = |entry: &&Value| {
        entry["kind"]
            .as_str()
            .zip(entry["handle"].as_str())
            .is_some_and(|(kind, handle)| netem::is_ours(kind, handle))
    };
    let entry = list.as_array()?.iter().find(is_ours)?;
    let number = |name: &str| entry[name].as_u64().unwrap_or(0);
    let (delivered, lost, held) = (number("packets"), number("drops"), number("qlen"));
    Some(PipeStatus {
        direction,
        packets: delivered.saturating_add(lost).saturating_add(held),
        delivered,
        lost,
        overflowed: None,
        held,
        missed: 0,
        excess: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::Pipe;

    #[test]
    fn interfaces_of_addresses() {
        let emulation = Emulation {
            networks: vec!["10.16.0.0/16".parse().unwrap()],
            peers: vec![],
            inbound: Some(Pipe::default()),
            outbound: None,
            seed: None,
        };
        let list = serde_json::json!([
            {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
            {"ifname": "eth0", "addr_info": [{"local": "fe80::1"}, {"local": "10.16.1.1"}]},
            {"ifname": "eth1", "addr_info": []},
            {"ifname": "eth2"},
            7
        ]);
        assert_eq!(interfaces_with(&list, &emulation), ["eth0"]);
        assert!(interfaces_with(&Value::Null, &emulation).is_empty());
    }

    #[test]
    fn queues_of_others_are_noticed() {
        assert_eq!(foreign_queue("qdisc mq 0: root\nqdisc fq_codel 0: parent :1 limit 10240p\n"), None);
        assert_eq!(foreign_queue(""), None);
        let tbf = "qdisc tbf 8001: root refcnt 2 rate 1Mbit";
        assert_eq!(foreign_queue(tbf), Some(tbf.to_owned()));
    }

    #[test]
    fn offloads_that_are_on_are_switched_off() {
        let features = "Features for eth0:\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\ngeneric-segmentation-offload: on\ngeneric-receive-offload: off [fixed]\n";
        let lines: Vec<String> =
            offload_steps("eth0", features).iter().map(|step| step.command.join(" ")).collect();
        assert_eq!(lines, ["ethtool -K eth0 tso off", "ethtool -K eth0 gso off"]);
    }

    #[test]
    fn counters_of_tc() {
        let text = r#"[{"kind":"prio","handle":"7400:","packets":9},
            {"kind":"netem","handle":"7401:","parent":"7400:4","packets":990,"drops":7,"qlen":3,"backlog":4500}]"#;
        let status = counters(text, Direction::Out).unwrap();
        assert_eq!((status.packets, status.delivered, status.lost, status.held), (1000, 990, 7, 3));
        assert!(counters("[]", Direction::Out).is_none() && counters("x", Direction::Out).is_none());
    }
}
