//! The commands that make a lab, as data.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::file::AgentPlaces;
use crate::file::bits_per_second;
use crate::layout::{Lab, LabHost, LabNetwork, LabRole};

/// The name of the namespace that holds the switches.
const SWITCH: &str = "switch";
/// How many neighbours the kernel remembers without further ado; half of its default limit.
const FEW_NEIGHBOURS: usize = 512;

/// What has to be done to make a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpPlan {
    /// The network namespaces.
    pub namespaces: Vec<String>,
    /// The size that the kernel's table of neighbours needs, which all namespaces share; `None`: its default is enough.
    pub neighbours: Option<usize>,
    /// The commands in the namespaces, in order.
    pub steps: Vec<PlanStep>,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// What it does.
    pub what: String,
    /// Its words.
    pub command: Vec<String>,
    /// Its standard input.
    pub input: String,
}

impl UpPlan {
    /// The commands for a lab. `program` is this program, which makes delay and loss.
    pub fn new(lab: &Lab, program: &str) -> UpPlan {
        let mut plan = UpPlan { neighbours: neighbours(lab), ..UpPlan::default() };
        let switch = lab.namespace(SWITCH);
        plan.namespaces = [switch.clone()]
            .into_iter()
            .chain(lab.hosts.iter().map(|host| lab.namespace(&host.name)))
            .collect();
        plan.switches(lab, &switch);
        for host in &lab.hosts {
            plan.host(lab, host, &switch);
        }
        if lab.bare {
            return plan;
        }
        for host in &lab.hosts {
            plan.agents(lab, host);
        }
        for host in &lab.hosts {
            plan.batch(lab, host, "routes", &routes(lab, host));
        }
        for host in lab.hosts.iter().filter(|host| !host.wan.is_empty()) {
            let words =
                ["ip", "netns", "exec", &lab.namespace(&host.name), program, "net", "wan"].map(str::to_owned);
            let command = words.into_iter().chain(host.wan.iter().cloned()).collect();
            plan.steps.push(PlanStep {
                what: format!("{}: delay and loss", host.name),
                command,
                input: String::new(),
            });
        }
        plan
    }

    /// The plan as a shell script.
    pub fn script(&self) -> String {
        let mut text = "#!/bin/sh\nset -e\n".to_owned();
        for namespace in &self.namespaces {
            let _ = writeln!(text, "ip netns add {namespace}");
        }
        if let Some(size) = self.neighbours {
            let _ = writeln!(text, "# a larger table of neighbours, for the addresses of all agents");
            for (name, _) in NEIGHBOUR_LIMITS {
                let _ = writeln!(
                    text,
                    "sysctl -q -w net.ipv4.neigh.default.{name}={}",
                    neighbour_limit(name, size)
                );
            }
        }
        for step in &self.steps {
            let _ = writeln!(text, "# {}", step.what);
            let words: Vec<String> = step.command.iter().map(|word| quoted(word)).collect();
            text += &words.join(" ");
            if !step.input.is_empty() {
                let _ = write!(text, " <<'END'\n{}END", step.input);
            }
            text.push('\n');
        }
        text
    }

    fn step(&mut self, what: String, command: &[&str], input: String) {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        self.steps.push(PlanStep { what, command, input });
    }

    /// The lines for `ip -batch` in the namespace of a host.
    fn batch(&mut self, lab: &Lab, host: &LabHost, what: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let namespace = lab.namespace(&host.name);
        self.step(format!("{}: {what}", host.name), &["ip", "-n", &namespace, "-batch", "-"], input);
    }

    fn switches(&mut self, lab: &Lab, switch: &str) {
        let mut lines = vec!["link set lo up\n".to_owned()];
        for network in &lab.networks {
            let bridge = bridge(network);
            let options = "stp_state 0 forward_delay 0 mcast_snooping 0";
            lines.push(format!(
                "link add {bridge} type bridge {options}\nlink set {bridge}{} up\n",
                mtu(network)
            ));
        }
        self.step("switches".to_owned(), &["ip", "-n", switch, "-batch", "-"], lines.concat());
    }

    /// The links and own addresses of a host.
    fn host(&mut self, lab: &Lab, host: &LabHost, switch: &str) {
        let namespace = lab.namespace(&host.name);
        let mut own = vec!["link set lo up".to_owned()];
        let mut ports = String::new();
        for (number, ip) in host.addresses.iter().enumerate() {
            let Some(network) = lab.network(*ip) else { continue };
            let (port, eth) = (port(host, network), format!("eth{number}"));
            let link = [
                "ip", "link", "add", &eth, "netns", &namespace, "type", "veth", "peer", "name", &port,
                "netns", switch,
            ];
            self.step(format!("{}: link to {}", host.name, network.name), &link, String::new());
            let _ = writeln!(ports, "link set {port} master {}{} up", bridge(network), mtu(network));
            own.push(format!("link set {eth}{} up", mtu(network)));
            own.push(format!("addr add {ip}/{} dev {eth}{}", network.subnet.length, nodad(*ip)));
        }
        self.step(format!("{}: ports", host.name), &["ip", "-n", switch, "-batch", "-"], ports);
        self.batch(lab, host, "addresses", &own);
        for (number, ip) in host.addresses.iter().enumerate() {
            let Some((network, rate)) =
                lab.network(*ip).and_then(|network| Some((network, network.rate.as_ref()?)))
            else {
                continue;
            };
            let (port, eth) = (port(host, network), format!("eth{number}"));
            for (namespace, device) in [(namespace.as_str(), eth.as_str()), (switch, port.as_str())] {
                let burst = burst(rate).to_string();
                let shaper = [
                    "tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
                    "burst", &burst, "latency", "50ms",
                ];
                self.step(format!("{}: rate of the link", host.name), &shaper, String::new());
            }
        }
        if host.role == LabRole::Router {
            let forward = [
                "ip",
                "netns",
                "exec",
                &namespace,
                "sysctl",
                "-q",
                "-w",
                "net.ipv4.ip_forward=1",
                "net.ipv6.conf.all.forwarding=1",
            ];
            self.step("router: forwarding".to_owned(), &forward, String::new());
        }
    }

    /// The addresses of a host's agents.
    fn agents(&mut self, lab: &Lab, host: &LabHost) {
        let lines: Vec<String> = match host.places {
            AgentPlaces::None => Vec::new(),
            AgentPlaces::Anyip => {
                host.routed.iter().map(|prefix| format!("route add local {prefix} dev lo")).collect()
            }
            AgentPlaces::Aliases => {
                let length = |ip: &IpAddr| if ip.is_ipv4() { 32 } else { 128 };
                host.agents
                    .iter()
                    .map(|ip| format!("addr add {ip}/{} dev eth0{}", length(ip), nodad(*ip)))
                    .collect()
            }
        };
        self.batch(lab, host, "addresses of agents", &lines);
    }
}

/// The limits of the kernel's table of neighbours, with their defaults.
pub(crate) const NEIGHBOUR_LIMITS: [(&str, usize); 2] = [("gc_thresh3", 1024), ("gc_thresh2", 512)];

/// The value of a limit for a table of this size: the last limit is the hard one.
pub(crate) fn neighbour_limit(name: &str, size: usize) -> usize {
    if name == "gc_thresh3" { size * 2 } else { size }
}

/// The neighbours that all hosts together may know, if these are many.
fn neighbours(lab: &Lab) -> Option<usize> {
    let on_links = |host: &&LabHost| host.places == AgentPlaces::Aliases;
    let aliases: usize = lab.hosts.iter().filter(on_links).map(|host| host.agents.len()).sum();
    // Each host may talk to all others.
    let size = (aliases + lab.hosts.len()) * lab.hosts.len();
    (size > FEW_NEIGHBOURS && aliases > 0).then_some(size)
}

/// Routes of a host: to the agents behind other hosts, and to other networks.
fn routes(lab: &Lab, host: &LabHost) -> Vec<String> {
    let router = lab.with_role(LabRole::Router).next().filter(|router| router.name != host.name);
    let near = |ip: IpAddr| {
        lab.network(ip).is_some_and(|network| host.addresses.iter().any(|own| network.subnet.contains(*own)))
    };
    let gateway = router.and_then(|router| router.addresses.iter().copied().find(|ip| near(*ip)));
    let mut lines = Vec::new();
    if let Some(gateway) = gateway {
        for network in lab.networks.iter().filter(|network| !near(network.subnet.address)) {
            if network.subnet.address.is_ipv4() == gateway.is_ipv4() {
                lines.push(format!("route add {} via {gateway}", network.subnet));
            }
        }
    }
    for other in lab.hosts.iter().filter(|other| other.name != host.name && other.places != AgentPlaces::None)
    {
        let via = other.addresses.iter().copied().find(|ip| near(*ip)).or(gateway);
        lines.extend(
            via.iter().flat_map(|via| {
                other.routed.iter().map(move |prefix| format!("route add {prefix} via {via}"))
            }),
        );
    }
    lines
}

/// How many bytes a link takes at once: what it carries in 4 ms, and some full packets at least.
fn burst(rate: &str) -> u64 {
    bits_per_second(rate).map_or(0, |bits| bits / 8 / 250).max(16_384)
}

fn bridge(network: &LabNetwork) -> String {
    format!("br-{}", network.name)
}

/// The name of the port to which a host is connected.
fn port(host: &LabHost, network: &LabNetwork) -> String {
    match host.role {
        LabRole::Router => format!("rt-{}", network.name),
        _ => host.name.clone(),
    }
}

fn mtu(network: &LabNetwork) -> String {
    network.mtu.map_or_else(String::new, |mtu| format!(" mtu {mtu}"))
}

/// New IPv6 addresses are used at once, because nobody else has them here.
fn nodad(ip: IpAddr) -> &'static str {
    if ip.is_ipv6() { " nodad" } else { "" }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    match word.chars().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
