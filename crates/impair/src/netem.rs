//! The commands that make the kernel delay packets: netem as the queue of an interface for packets that go out, and
//! behind an intermediate device (`ifb`) for packets that come in.

use polygraph_netsetup::IpPrefix;
use polygraph_traffic::Distr;
use serde::{Deserialize, Serialize};

use crate::emulation::{Direction, Emulation};
use crate::error::WanError;
use crate::firewall::{Step, words};
use crate::pipe::{Pipe, QueueLimit};

/// The handle of our queue of an interface.
const ROOT: &str = "7400:";
/// The class of packets that are emulated; the other three are the usual ones.
const CLASS: &str = "7400:4";
/// The handle of netem.
const NETEM: &str = "7401:";
/// The handle of the queue inside netem.
const INNER: &str = "7402:";
/// How many packets netem may hold.
const MAX_HELD: f64 = 100_000.0;
/// The usual length of packets of bulk flows, in bytes.
const USUAL_PACKET: f64 = 1500.0;

/// An interface whose packets netem delays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetemInterface {
    /// The interface.
    pub name: String,
    /// The intermediate device for packets that come in.
    pub intermediate: Option<String>,
    /// Whether packets that go out are delayed.
    pub outbound: bool,
}

impl NetemInterface {
    /// The devices with a netem, with the direction of their packets.
    pub fn devices(&self) -> impl Iterator<Item = (Direction, &str)> {
        let outbound = self.outbound.then_some((Direction::Out, self.name.as_str()));
        let inbound = self.intermediate.as_deref().map(|device| (Direction::In, device));
        inbound.into_iter().chain(outbound)
    }
}

/// Whether a queue in the list of `tc` is the netem of an emulation.
pub fn is_ours(kind: &str, handle: &str) -> bool {
    kind == "netem" && handle == NETEM
}

/// The commands for one interface. A step without an undo command disappears with one before it.
///
/// # Errors
/// If netem cannot do what the emulation asks for.
pub fn steps(emulation: &Emulation, interface: &NetemInterface) -> Result<Vec<Step>, WanError> {
    let mut steps = Vec::new();
    let device = &interface.name;
    if let Some(pipe) = emulation.pipe(Direction::Out) {
        steps.push(step(
            format!("queue of {device}"),
            // The map of priorities is the usual one: no packet gets to the fourth class by itself.
            format!("tc qdisc add dev {device} root handle {ROOT} prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
            &format!("tc qdisc del dev {device} root handle {ROOT} prio"),
        ));
        steps.extend(netem(device, &format!("parent {CLASS}"), pipe)?);
        steps.extend(filters(emulation, Direction::Out, device, ROOT, &format!("flowid {CLASS}")));
    }
    if let (Some(pipe), Some(intermediate)) = (emulation.pipe(Direction::In), &interface.intermediate) {
        steps.push(step(
            format!("device {intermediate}"),
            format!("ip link add {intermediate} type ifb"),
            &format!("ip link del {intermediate}"),
        ));
        steps.push(step(String::new(), format!("ip link set {intermediate} up"), ""));
        steps.extend(netem(intermediate, "root", pipe)?);
        steps.push(step(
            format!("queue of {device} for packets that come in"),
            format!("tc qdisc add dev {device} ingress"),
            &format!("tc qdisc del dev {device} ingress"),
        ));
        let action = format!("action mirred egress redirect dev {intermediate}");
        steps.extend(filters(emulation, Direction::In, device, "ffff:", &action));
    }
    Ok(steps)
}

fn step(what: String, command: String, undo: &str) -> Step {
    Step { what, command: words(&command), undo: words(undo) }
}

/// A netem, and the queue inside it.
fn netem(device: &str, place: &str, pipe: &Pipe) -> Result<Vec<Step>, WanError> {
    let options = netem_options(pipe)?;
    let command = format!("tc qdisc add dev {device} {place} handle {NETEM} netem {options}");
    let undo = match place {
        "root" => format!("tc qdisc del dev {device} root handle {NETEM} netem"),
        // It disappears with the queue that contains it.
        _ => String::new(),
    };
    let mut steps = vec![step(format!("netem of {device}"), command, &undo)];
    if !pipe.has_constant_delay() && !pipe.reorder {
        // The queue that netem has by itself sorts packets by the time at which they are due.
        let limit = MAX_HELD;
        let inner = format!("tc qdisc add dev {device} parent {NETEM}1 handle {INNER} pfifo limit {limit}");
        steps.push(step(String::new(), inner, ""));
    }
    Ok(steps)
}

/// The options of a netem.
fn netem_options(pipe: &Pipe) -> Result<String, WanError> {
    let (mean, spread, distribution) = delay(pipe)?;
    let us = |seconds: f64| format!("{}us", (seconds * 1e6).round());
    let mut options = format!("limit {}", limit(pipe, mean));
    if mean > 0.0 || spread > 0.0 {
        options += &format!(" delay {}", us(mean));
    }
    if spread > 0.0 {
        options += &format!(" {}{distribution}", us(spread));
    }
    if pipe.loss > 0.0 {
        options += &format!(" loss {}%", (pipe.loss * 1e8).round() / 1e6);
    }
    if let Some(bandwidth) = pipe.bandwidth {
        options += &format!(" rate {}bit", bandwidth.round());
    }
    Ok(options)
}

/// How many packets fit into a netem: those that wait for transmission and those on their way.
fn limit(pipe: &Pipe, delay: f64) -> f64 {
    let Some(bandwidth) = pipe.bandwidth else { return MAX_HELD };
    let waiting = match pipe.queue {
        QueueLimit::Packets(count) => f64::from(count),
        QueueLimit::Bytes(count) => count as f64 / USUAL_PACKET,
    };
    (waiting + bandwidth * delay / 8.0 / USUAL_PACKET).ceil().clamp(1.0, MAX_HELD)
}

/// Mean and spread of the delay in seconds, and the distribution as netem names it.
fn delay(pipe: &Pipe) -> Result<(f64, f64, &'static str), WanError> {
    let zero = Distr::Const(0.0);
    let parts = [&pipe.delay, pipe.jitter.as_ref().unwrap_or(&zero)];
    let base: f64 = parts.iter().map(|part| if let Distr::Const(value) = part { *value } else { 0.0 }).sum();
    let mut spread = parts.iter().filter(|part| !matches!(part, Distr::Const(_)));
    let Some(first) = spread.next() else { return Ok((base, 0.0, "")) };
    let refuse = |reason: &str| {
        Err(WanError::NoNetem {
            reason: format!("{reason}; use `--backend nfqueue`, which holds packets in user space"),
        })
    };
    if spread.next().is_some() {
        return refuse("it draws one random time for each packet, and both delay and jitter are random");
    }
    match **first {
        Distr::Norm { mean, sd } => Ok((base + mean, sd, " distribution normal")),
        Distr::Unif { min, max } => Ok((base + (min + max) / 2.0, (max - min) / 2.0, "")),
        _ => refuse("its delays are constant, uniform or normal"),
    }
}

/// The filters that find the packets of a direction.
fn filters(
    emulation: &Emulation,
    direction: Direction,
    device: &str,
    parent: &str,
    action: &str,
) -> Vec<Step> {
    let pairs = emulation.pairs(direction).into_iter();
    pairs
        .map(|(source, destination)| {
            let ipv6 = source.or(destination).is_some_and(|network| network.address.is_ipv6());
            // Filters of different protocols need different priorities.
            let (protocol, word, priority) = if ipv6 { ("ipv6", "ip6", 2) } else { ("ip", "ip", 1) };
            let part = |name: &str, network: Option<IpPrefix>| {
                network.map(|network| format!(" match {word} {name} {network}")).unwrap_or_default()
            };
            let matches = part("src", source) + &part("dst", destination);
            step(
                String::new(),
                format!("tc filter add dev {device} parent {parent} protocol {protocol} prio {priority} u32{matches} {action}"),
                "",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::NamedPipe;

    fn options(pipe: &Pipe) -> String {
        netem_options(pipe).unwrap()
    }

    #[test]
    fn options_of_pipes() {
        let plain = Pipe { delay: Distr::Const(0.04), loss: 0.0005, ..Pipe::default() };
        assert_eq!(options(&plain), "limit 100000 delay 40000us loss 0.05%");
        assert_eq!(
            options(&NamedPipe::ModemIn.pipe()),
            "limit 51 delay 50000us 5000us distribution normal loss 0.1% rate 55000bit"
        );
        assert_eq!(options(&NamedPipe::FastEthernet.pipe()), "limit 50 rate 94000000bit");
        let jitter = Pipe { jitter: Some(Distr::Unif { min: 0.0, max: 0.01 }), ..plain.clone() };
        assert_eq!(options(&jitter), "limit 100000 delay 45000us 5000us loss 0.05%");
        let error = |pipe: &Pipe| netem_options(pipe).unwrap_err().to_string();
        let exp = Pipe { jitter: Some(Distr::Exp { mean: 0.01 }), ..plain.clone() };
        assert!(error(&exp).contains("constant, uniform or normal"));
        let both = Pipe { delay: Distr::Norm { mean: 0.1, sd: 0.01 }, ..jitter };
        assert!(error(&both).contains("one random time"));
    }

    #[test]
    fn commands_for_both_directions() {
        let pipe = Pipe { delay: Distr::Const(0.04), loss: 0.0005, ..Pipe::default() };
        let emulation = Emulation {
            networks: vec!["10.16.0.0/16".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
            peers: vec![],
            inbound: Some(pipe.clone()),
            outbound: Some(Pipe { jitter: Some(Distr::Unif { min: 0.0, max: 0.002 }), ..pipe }),
            seed: None,
        };
        let interface =
            NetemInterface { name: "eth0".to_owned(), intermediate: Some("ifb9".to_owned()), outbound: true };
        let steps = steps(&emulation, &interface).unwrap();
        let lines: Vec<String> = steps.iter().map(|step| step.command.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "tc qdisc add dev eth0 root handle 7400: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
                "tc qdisc add dev eth0 parent 7400:4 handle 7401: netem limit 100000 delay 41000us 1000us loss 0.05%",
                "tc qdisc add dev eth0 parent 7401:1 handle 7402: pfifo limit 100000",
                "tc filter add dev eth0 parent 7400: protocol ip prio 1 u32 match ip src 10.16.0.0/16 flowid 7400:4",
                "tc filter add dev eth0 parent 7400: protocol ipv6 prio 2 u32 match ip6 src 2001:db8::/32 flowid 7400:4",
                "ip link add ifb9 type ifb",
                "ip link set ifb9 up",
                "tc qdisc add dev ifb9 root handle 7401: netem limit 100000 delay 40000us loss 0.05%",
                "tc qdisc add dev eth0 ingress",
                "tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dst 10.16.0.0/16 action mirred egress redirect dev ifb9",
                "tc filter add dev eth0 parent ffff: protocol ipv6 prio 2 u32 match ip6 dst 2001:db8::/32 action mirred egress redirect dev ifb9",
            ]
        );
        let undo: Vec<String> =
            steps.iter().map(|step| step.undo.join(" ")).filter(|undo| !undo.is_empty()).collect();
        assert_eq!(
            undo,
            [
                "tc qdisc del dev eth0 root handle 7400: prio",
                "ip link del ifb9",
                "tc qdisc del dev ifb9 root handle 7401: netem",
                "tc qdisc del dev eth0 ingress",
            ]
        );
        let devices: Vec<_> = interface.devices().collect();
        assert_eq!(devices, [(Direction::In, "ifb9"), (Direction::Out, "eth0")]);
    }
}
