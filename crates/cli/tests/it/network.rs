//! Two hosts as network namespaces with a cable between them, for tests of the network. Needs root.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::RwLockReadGuard;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sandbox::{Done, PATIENCE, Running, Sandbox, few_neighbours};

/// Two connected namespaces. They are removed when this is dropped.
pub struct TwoHosts {
    names: [String; 2],
    _neighbours: RwLockReadGuard<'static, ()>,
}

/// The addresses of the hosts, one line each: IPv4, IPv6.
pub const ADDRESSES: [[&str; 2]; 2] = [["10.77.0.1", "fd77::1"], ["10.77.0.2", "fd77::2"]];

fn ip(words: &str) {
    let output = Command::new("ip")
        .args(words.split_whitespace())
        .output()
        .expect("`ip` is installed (package iproute2)");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`ip {words}` failed; tests of the network need root: {error}");
}

impl TwoHosts {
    pub fn new() -> TwoHosts {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let names = ["a", "b"].map(|side| format!("pg{id}-{number}{side}"));
        let hosts = TwoHosts { names, _neighbours: few_neighbours() };
        hosts.names.iter().for_each(|name| ip(&format!("netns add {name}")));
        let [a, b] = &hosts.names;
        ip(&format!("link add cable netns {a} type veth peer name cable netns {b}"));
        for (name, addresses) in hosts.names.iter().zip(ADDRESSES) {
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {name} address add {}/24 dev cable", addresses[0]));
            // Without `nodad` the address could not be used for a second.
            ip(&format!("-n {name} address add {}/64 dev cable nodad", addresses[1]));
            ip(&format!("-n {name} link set cable up"));
        }
        hosts.wait_until_connected();
        hosts
    }

    /// Waits until packets arrive in both directions. The kernel notices in its own time that a new cable is plugged in,
    /// and drops packets until then.
    fn wait_until_connected(&self) {
        let deadline = Instant::now() + PATIENCE;
        for family in [0, 1] {
            let socket = |host: usize| {
                let address: IpAddr = ADDRESSES[host][family].parse().unwrap();
                let socket = self.on(host, || UdpSocket::bind((address, 0))).unwrap();
                socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                socket
            };
            let sockets = [socket(0), socket(1)];
            for [from, to] in [[0, 1], [1, 0]] {
                let to = &sockets[to];
                while sockets[from].send_to(&[0], to.local_addr().unwrap()).is_err()
                    || to.recv(&mut [0]).is_err()
                {
                    assert!(Instant::now() < deadline, "no packet arrives at {to:?}");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    /// The name of the namespace of a host.
    pub fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// Runs `ip` on a host.
    pub fn ip(&self, host: usize, words: &str) {
        ip(&format!("-n {} {words}", self.names[host]));
    }

    /// Limits what a host sends, in Mbit/s.
    pub fn limit(&self, host: usize, mbit: u32) {
        let words = format!(
            "-n {} qdisc add dev cable root tbf rate {mbit}mbit burst 64kb latency 50ms",
            self.names[host]
        );
        let status = Command::new("tc")
            .args(words.split_whitespace())
            .status()
            .expect("`tc` is installed (package iproute2)");
        assert!(status.success(), "`tc {words}` failed");
    }

    /// Starts `polygraph` on a host.
    pub fn start(&self, host: usize, sandbox: &Sandbox, words: &str) -> Running {
        let program = env!("CARGO_BIN_EXE_polygraph");
        sandbox.start_program("ip", &format!("netns exec {} {program} {words}", self.names[host]))
    }

    /// Runs a program of the folder on a host to its end.
    pub fn run(&self, host: usize, sandbox: &Sandbox, words: &str) -> Done {
        sandbox.start_program("ip", &format!("netns exec {} {words}", self.names[host])).finish()
    }

    /// Runs `polygraph` on a host to its end.
    pub fn polygraph(&self, host: usize, sandbox: &Sandbox, words: &str) -> Done {
        self.start(host, sandbox, words).finish()
    }

    /// Waits until a port of a host has so many connections.
    pub fn wait_for_connections(&self, host: usize, port: u16, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        let words = ["netns", "exec", &self.names[host], "ss", "-Htn", "state", "established"];
        loop {
            let output = Command::new("ip")
                .args(words)
                .arg(format!("sport = :{port}"))
                .output()
                .expect("`ss` is installed");
            if String::from_utf8_lossy(&output.stdout).lines().count() >= count {
                return;
            }
            assert!(Instant::now() < deadline, "no connections: {output:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Does work in a thread on a host. Sockets that it opens stay on that host.
    pub fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        let path = Path::new("/run/netns").join(&self.names[host]);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let namespace = std::fs::File::open(&path).unwrap();
                move_into_link_name_space(
                    std::os::fd::AsFd::as_fd(&namespace),
                    Some(LinkNameSpaceType::Network),
                )
                .unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}
