//! The rules that send packets into queues, for the firewalls that Linux has had.

use polygraph_netsetup::{Changes, IpPrefix, Ledger, Result as NetResult, run_program};
use serde::{Deserialize, Serialize};

use crate::emulation::{Direction, Emulation};
use crate::emulator::Queues;
use crate::raw_sender::PASSED;

/// Before the rules of the user, which see each packet once, after its time in the pipe.
const PRIORITY: i32 = -150;

/// A program that sets rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Firewall {
    /// The program `nft`.
    Nft,
    /// The program `iptables`, on whatever it rests.
    Iptables,
    /// The program `iptables-legacy`.
    IptablesLegacy,
}

/// Where the kernel asks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    Input,
    Forward,
    Output,
}

impl Hook {
    fn chain(self) -> &'static str {
        match self {
            Hook::Input => "INPUT",
            Hook::Forward => "FORWARD",
            Hook::Output => "OUTPUT",
        }
    }
}

/// A rule that sends packets into a queue. If nobody reads the queue, they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRule {
    hook: Hook,
    source: Option<IpPrefix>,
    destination: Option<IpPrefix>,
    queue: u16,
}

impl QueueRule {
    fn is_ipv6(&self) -> bool {
        self.source.or(self.destination).is_some_and(|network| network.address.is_ipv6())
    }

    fn what(&self) -> String {
        let name =
            |network: Option<IpPrefix>| network.map_or("any".to_owned(), |network| network.to_string());
        let (from, to) = (name(self.source), name(self.destination));
        format!("firewall rule: {} from {from} to {to} waits in queue {}", self.hook.chain(), self.queue)
    }
}

/// A command that changes something, and the one that undoes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is changed, for people.
    pub what: String,
    /// The command line.
    pub command: Vec<String>,
    /// The command line that undoes it.
    pub undo: Vec<String>,
}

impl Step {
    /// Does the step, and records how to undo it.
    ///
    /// # Errors
    /// If the step cannot be recorded, or if the command fails.
    pub fn make(&self, changes: &mut Changes) -> NetResult<()> {
        let words = |words: &[String]| -> Vec<String> { words.to_vec() };
        let (command, undo) = (words(&self.command), words(&self.undo));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let undo: Vec<&str> = undo.iter().map(String::as_str).collect();
        changes.run(&self.what, &command, &undo)
    }
}

/// Words of a command line that are separated by blanks.
pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The rules of an emulation.
pub fn rules(emulation: &Emulation, queues: &Queues) -> Vec<QueueRule> {
    let places = [
        (Direction::In, Hook::Input, queues.inbound),
        (Direction::Out, Hook::Output, queues.local_out),
        (Direction::In, Hook::Forward, queues.inbound),
        (Direction::Out, Hook::Forward, queues.forwarded_out),
    ];
    let mut rules = Vec::new();
    for (direction, hook, queue) in places {
        let Some(queue) = queue else { continue };
        for (source, destination) in emulation.pairs(direction) {
            rules.push(QueueRule { hook, source, destination, queue });
        }
    }
    rules
}

impl Firewall {
    /// All of them, the newest first.
    pub const ALL: [Firewall; 3] = [Firewall::Nft, Firewall::Iptables, Firewall::IptablesLegacy];

    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Firewall::Nft => "nft",
            Firewall::Iptables => "iptables",
            Firewall::IptablesLegacy => "iptables-legacy",
        }
    }

    fn program_for(self, ipv6: bool) -> &'static str {
        match (self, ipv6) {
            (Firewall::Iptables, true) => "ip6tables",
            (Firewall::IptablesLegacy, true) => "ip6tables-legacy",
            _ => self.program(),
        }
    }

    /// The commands that set rules. No packet that a rule concerns passes while others are still missing, except
    /// undelayed.
    pub fn steps(self, rules: &[QueueRule]) -> Vec<Step> {
        match self {
            Firewall::Nft => nft(rules),
            _ => rules.iter().map(|rule| self.iptables(rule)).collect(),
        }
    }

    fn iptables(self, rule: &QueueRule) -> Step {
        let program = self.program_for(rule.is_ipv6());
        let mut matches = String::new();
        if let Some(source) = rule.source {
            matches += &format!(" -s {source}");
        }
        if let Some(destination) = rule.destination {
            matches += &format!(" -d {destination}");
        }
        if rule.hook == Hook::Output {
            matches += &format!(" -m mark ! --mark {PASSED:#x}/{PASSED:#x}");
        }
        let line = |action: &str| {
            let (chain, queue) = (rule.hook.chain(), rule.queue);
            words(&format!(
                "{program} -w 10 -t mangle {action} {chain}{matches} -j NFQUEUE --queue-num {queue} --queue-bypass"
            ))
        };
        Step { what: rule.what(), command: line("-A"), undo: line("-D") }
    }

    /// Tries whether the kernel takes rules from this program, and leaves none behind.
    ///
    /// # Errors
    /// If it does not, or if the program is not installed.
    pub fn probe(self, ledger: &Ledger, ipv6: bool) -> NetResult<()> {
        let program = self.program_for(ipv6);
        if self == Firewall::Nft {
            // The kernel checks the rules and throws them away.
            let script = nft_script("polygraph_probe", &[probe_rule(ipv6)]);
            return run_program(&["nft", "-c", &script]).map(drop);
        }
        let mut changes = ledger.begin("probe of the firewall")?;
        let chain = format!("polygraph-{}", rustix::process::getpid().as_raw_nonzero());
        let table = format!("{program} -w 10 -t mangle");
        let step = |command: String, undo: String| Step {
            what: format!("empty chain {chain} of {program}"),
            command: words(&command),
            undo: words(&undo),
        };
        let created = step(format!("{table} -N {chain}"), format!("{table} -X {chain}"));
        created.make(&mut changes)?;
        let target = "-j NFQUEUE --queue-num 0 --queue-bypass";
        let rule = format!("{chain} -m mark ! --mark {PASSED:#x}/{PASSED:#x} {target}");
        step(format!("{table} -A {rule}"), format!("{table} -D {rule}")).make(&mut changes)
    }
}

fn probe_rule(ipv6: bool) -> QueueRule {
    let any = if ipv6 { "::1/128" } else { "127.0.0.1/32" };
    QueueRule { hook: Hook::Output, source: any.parse().ok(), destination: None, queue: 0 }
}

/// All rules in a separate table, which appears and disappears as a whole.
fn nft(rules: &[QueueRule]) -> Vec<Step> {
    let Some(first) = rules.first() else { return Vec::new() };
    let table = format!("polygraph_wan_{}", first.queue);
    let what = format!("firewall table {table}: {} rules for queues", rules.len());
    let command = vec!["nft".to_owned(), nft_script(&table, rules)];
    vec![Step { what, command, undo: words(&format!("nft delete table inet {table}")) }]
}

fn nft_script(table: &str, rules: &[QueueRule]) -> String {
    let mut script = format!("table inet {table} {{\n");
    for hook in [Hook::Input, Hook::Forward, Hook::Output] {
        let name = hook.chain().to_lowercase();
        let mut lines = String::new();
        for rule in rules.iter().filter(|rule| rule.hook == hook) {
            let family = if rule.is_ipv6() { "ip6" } else { "ip" };
            if let Some(source) = rule.source {
                lines += &format!("{family} saddr {source} ");
            }
            if let Some(destination) = rule.destination {
                lines += &format!("{family} daddr {destination} ");
            }
            if hook == Hook::Output {
                lines += &format!("meta mark and {PASSED:#x} == 0 ");
            }
            lines += &format!("queue num {} bypass\n", rule.queue);
        }
        if !lines.is_empty() {
            script += &format!("chain {name} {{\ntype filter hook {name} priority {PRIORITY};\n{lines}}}\n");
        }
    }
    script + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::Pipe;

    fn example(networks: &[&str]) -> Vec<QueueRule> {
        let pipe = Some(Pipe { loss: 0.1, ..Pipe::default() });
        let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
        let emulation =
            Emulation { networks, peers: vec![], inbound: pipe.clone(), outbound: pipe, seed: None };
        rules(&emulation, &Queues { inbound: Some(7400), forwarded_out: Some(7401), local_out: Some(7402) })
    }

    #[test]
    fn rules_of_iptables() {
        let steps = Firewall::IptablesLegacy.steps(&example(&["10.16.0.0/16"]));
        let lines: Vec<String> = steps.iter().map(|step| step.command.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "iptables-legacy -w 10 -t mangle -A INPUT -d 10.16.0.0/16 -j NFQUEUE --queue-num 7400 --queue-bypass",
                "iptables-legacy -w 10 -t mangle -A OUTPUT -s 10.16.0.0/16 -m mark ! --mark 0x20000000/0x20000000 -j NFQUEUE --queue-num 7402 --queue-bypass",
                "iptables-legacy -w 10 -t mangle -A FORWARD -d 10.16.0.0/16 -j NFQUEUE --queue-num 7400 --queue-bypass",
                "iptables-legacy -w 10 -t mangle -A FORWARD -s 10.16.0.0/16 -j NFQUEUE --queue-num 7401 --queue-bypass",
            ]
        );
        for step in &steps {
            assert_eq!(step.undo.join(" "), step.command.join(" ").replace(" -A ", " -D "));
        }
        let steps = Firewall::Iptables.steps(&example(&["2001:db8::/32"]));
        assert!(steps.iter().all(|step| step.command[0] == "ip6tables"));
    }

    #[test]
    fn rules_of_nft() {
        let [step] =
            <[Step; 1]>::try_from(Firewall::Nft.steps(&example(&["10.16.0.0/16", "2001:db8::/32"]))).unwrap();
        assert_eq!(step.undo.join(" "), "nft delete table inet polygraph_wan_7400");
        let expected = "table inet polygraph_wan_7400 {
chain input {
type filter hook input priority -150;
ip daddr 10.16.0.0/16 queue num 7400 bypass
ip6 daddr 2001:db8::/32 queue num 7400 bypass
}
chain forward {
type filter hook forward priority -150;
ip daddr 10.16.0.0/16 queue num 7400 bypass
ip6 daddr 2001:db8::/32 queue num 7400 bypass
ip saddr 10.16.0.0/16 queue num 7401 bypass
ip6 saddr 2001:db8::/32 queue num 7401 bypass
}
chain output {
type filter hook output priority -150;
ip saddr 10.16.0.0/16 meta mark and 0x20000000 == 0 queue num 7402 bypass
ip6 saddr 2001:db8::/32 meta mark and 0x20000000 == 0 queue num 7402 bypass
}
}
";
        assert_eq!(step.command[1], expected);
    }
}
