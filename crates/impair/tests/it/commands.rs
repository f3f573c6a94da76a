//! Whether `tc` and `nft` understand the commands, also on kernels that lack what they ask for. Needs root.

use std::process::{Command, Output};

use polygraph_impair::emulator::Queues;
use polygraph_impair::firewall::{Firewall, rules};
use polygraph_impair::netem::{self, NetemInterface};
use polygraph_impair::{Emulation, NamedPipe, Pipe, QueueLimit};
use polygraph_traffic::Distr;

/// A network namespace with an interface. It is removed when this is dropped.
struct Host(String);

impl Host {
    fn new(program: &str) -> Host {
        let host = Host(format!("pg{}{program}", std::process::id()));
        let add = run(&["ip", "netns", "add", &host.0]);
        assert!(add.status.success(), "this test needs root and iproute2: {add:?}");
        let link = host.run("ip link add eth0 type veth peer name eth1");
        assert!(link.status.success(), "{link:?}");
        host
    }

    fn run(&self, command: &str) -> Output {
        self.run_words(&command.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn run_words(&self, words: &[String]) -> Output {
        let mut all = vec!["ip", "netns", "exec", &self.0];
        all.extend(words.iter().map(String::as_str));
        run(&all)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        run(&["ip", "netns", "del", &self.0]);
    }
}

fn run(words: &[&str]) -> Output {
    Command::new(words[0])
        .args(&words[1..])
        .env("LC_ALL", "C")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", words[0]))
}

fn emulations() -> Vec<Emulation> {
    let random = |delay, jitter| Pipe { delay, jitter, loss: 0.123_456_7, ..Pipe::default() };
    let unif = Distr::Unif { min: 0.0, max: 0.01 };
    let mut pipes: Vec<Pipe> = NamedPipe::ALL.into_iter().map(|(_, name)| name.pipe()).collect();
    pipes.push(random(Distr::Const(0.04), Some(unif.clone())));
    pipes.push(random(Distr::Norm { mean: 0.1, sd: 0.03 }, None));
    pipes.push(Pipe { delay: unif, reorder: true, ..Pipe::default() });
    pipes.push(Pipe { bandwidth: Some(1e10), queue: QueueLimit::Bytes(64 << 10), ..Pipe::default() });
    let networks = ["10.16.0.0/16", "2001:db8::/32"].map(|text| text.parse().unwrap());
    let peers = ["10.17.0.0/16", "10.18.0.7/32", "2001:db9::/48"].map(|text| text.parse().unwrap());
    let emulation = |pipe: &Pipe, peers: &[_]| Emulation {
        networks: networks.to_vec(),
        peers: peers.to_vec(),
        inbound: Some(pipe.clone()),
        outbound: Some(pipe.clone()),
        seed: None,
    };
    pipes.iter().flat_map(|pipe| [emulation(pipe, &[]), emulation(pipe, &peers)]).collect()
}

#[test]
fn tc_understands_all_commands() {
    let host = Host::new("tc");
    let interface =
        NetemInterface { name: "eth0".to_owned(), intermediate: Some("ifb7".to_owned()), outbound: true };
    // It ends with status 1 if it does not understand a command, and with 2 if the kernel refuses what it says.
    assert_eq!(host.run("tc qdisc add dev eth0 root netem dely 1ms").status.code(), Some(1));
    for emulation in emulations() {
        let steps = netem::steps(&emulation, &interface).unwrap();
        assert!(steps.iter().any(|step| step.command[0] == "tc"));
        let commands: Vec<&Vec<String>> = steps.iter().map(|step| &step.command).collect();
        let undo = steps.iter().rev().map(|step| &step.undo).filter(|undo| !undo.is_empty());
        for command in commands.into_iter().chain(undo) {
            let output = host.run_words(command);
            let is_understood = match command[0].as_str() {
                "tc" => matches!(output.status.code(), Some(0 | 2)),
                // The device is a part of every kernel with netem, and of some others.
                _ => true,
            };
            assert!(is_understood, "{command:?}: {output:?}");
        }
    }
}

#[test]
fn nft_understands_all_rules() {
    let host = Host::new("nft");
    let script = |text: &str| host.run_words(&["nft", "-c", text].map(str::to_owned));
    let error = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error(&script("table inet x {\nchain y {\nqueu num 1\n}\n}\n")).contains("syntax error"));
    for emulation in emulations() {
        let steps = Firewall::Nft.steps(&rules(&emulation, &Queues::example(&emulation)));
        for step in steps {
            let output =
                host.run_words(&[&step.command[..1], &["-c".to_owned()], &step.command[1..]].concat());
            // Of a kernel without queues for nft, the answer is that something is not there.
            let text = error(&output);
            let is_understood = output.status.success() || text.contains("No such file or directory");
            assert!(is_understood && !text.contains("syntax error"), "{:?}: {output:?}", step.command);
        }
    }
}
