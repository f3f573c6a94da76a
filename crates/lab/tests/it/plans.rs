//! Plans as the scripts that the dry run prints.

use polygraph_lab::UpPlan;
use polygraph_plan::BenchNeeds;

use crate::files::{SMALL, host, lab};

fn script(text: &str, needs: Option<&BenchNeeds>) -> String {
    UpPlan::new(&lab(text, needs).unwrap(), "polygraph").script()
}

#[test]
fn a_small_lab() {
    let expected = "\
#!/bin/sh
set -e
ip netns add pglab-small-switch
ip netns add pglab-small-clt1
ip netns add pglab-small-srv1
# switches
ip -n pglab-small-switch -batch - <<'END'
link set lo up
link add br-lan type bridge stp_state 0 forward_delay 0 mcast_snooping 0
link set br-lan up
END
# clt1: link to lan
ip link add eth0 netns pglab-small-clt1 type veth peer name clt1 netns pglab-small-switch
# clt1: ports
ip -n pglab-small-switch -batch - <<'END'
link set clt1 master br-lan up
END
# clt1: addresses
ip -n pglab-small-clt1 -batch - <<'END'
link set lo up
link set eth0 up
addr add 10.55.0.1/24 dev eth0
END
# srv1: link to lan
ip link add eth0 netns pglab-small-srv1 type veth peer name srv1 netns pglab-small-switch
# srv1: ports
ip -n pglab-small-switch -batch - <<'END'
link set srv1 master br-lan up
END
# srv1: addresses
ip -n pglab-small-srv1 -batch - <<'END'
link set lo up
link set eth0 up
addr add 10.55.0.2/24 dev eth0
END
";
    assert_eq!(script(SMALL, None), expected);
}

/// Asserts that a plan has these lines in this order.
fn assert_lines(script: &str, lines: &[&str]) {
    let mut rest = script.lines();
    for line in lines {
        assert!(rest.any(|found| found == *line), "no `{line}` at its place in\n{script}");
    }
}

#[test]
fn routed_agents_with_delay_rate_and_router() {
    let text = r#"
[networks.a]
subnet = "172.16.1.0/24"
rate = "100mbit"
mtu = 9000
[networks.b]
subnet = "172.16.2.0/24"
[clients]
addresses = "172.16.1.61-62"
delay = "40ms"
loss = "0.05%"
match = "10.101.0.0/16"
[servers]
addresses = "172.16.2.191"
[router]
addresses = "172.16.1.254,172.16.2.254"
"#;
    let needs = BenchNeeds {
        clients: vec![host(None, "lo0::10.101.0-3.1-250/22"), host(None, "lo0::10.101.4-7.1-250/22")],
        servers: vec![host(None, "172.16.2.191:80")],
        device: None,
    };
    let script = script(text, Some(&needs));
    assert_lines(
        &script,
        &[
            "link set br-a mtu 9000 up",
            "link set br-b up",
            "# clt1: rate of the link",
            "tc -n pglab-small-clt1 qdisc add dev eth0 root tbf rate 100mbit burst 50000 latency 50ms",
            "tc -n pglab-small-switch qdisc add dev clt1 root tbf rate 100mbit burst 50000 latency 50ms",
            "ip link add eth1 netns pglab-small-router type veth peer name rt-b netns pglab-small-switch",
            "ip netns exec pglab-small-router sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
            "# clt1: addresses of agents",
            "route add local 10.101.0.0/22 dev lo",
            "# clt2: addresses of agents",
            "route add local 10.101.4.0/22 dev lo",
            "# clt1: routes",
            "route add 172.16.2.0/24 via 172.16.1.254",
            "route add 10.101.4.0/22 via 172.16.1.62",
            "# srv1: routes",
            "route add 172.16.1.0/24 via 172.16.2.254",
            "route add 10.101.0.0/22 via 172.16.2.254",
            "# router: routes",
            "route add 10.101.0.0/22 via 172.16.1.61",
            "route add 10.101.4.0/22 via 172.16.1.62",
            "# clt1: delay and loss",
            "ip netns exec pglab-small-clt1 polygraph net wan --delay 40ms --loss 0.05% --match 10.101.0.0/16",
        ],
    );
}

#[test]
fn aliases_are_added_in_one_batch() {
    let needs = BenchNeeds {
        clients: vec![host(None, "10.55.0.100-101,10.66.0.4-5")],
        servers: vec![host(None, "10.55.0.2:80")],
        device: None,
    };
    assert_lines(
        &script(SMALL, Some(&needs)),
        &[
            "# clt1: addresses of agents",
            "ip -n pglab-small-clt1 -batch - <<'END'",
            "addr add 10.55.0.100/32 dev eth0",
            "addr add 10.55.0.101/32 dev eth0",
            "addr add 10.66.0.4/32 dev eth0",
            // Those that are in no network of the lab are reached through the host.
            "# srv1: routes",
            "route add 10.66.0.4/31 via 10.55.0.1",
        ],
    );
    let six = BenchNeeds { clients: vec![host(None, "[fd00:55::1-2]")], ..needs };
    assert!(lab(SMALL, Some(&six)).unwrap_err().contains("give both the same family"));
    let text = SMALL.replace("10.55.0.0/24", "fd00:55::/64").replace("10.55.0.", "fd00:55::f");
    let text =
        text.replace("\"fd00:55::f1\"", "\"[fd00:55::f1]\"").replace("\"fd00:55::f2\"", "\"[fd00:55::f2]\"");
    let six = BenchNeeds { servers: vec![host(None, "[fd00:55::f2]:80")], ..six };
    assert_lines(
        &script(&text, Some(&six)),
        &["addr add fd00:55::f1/64 dev eth0 nodad", "addr add fd00:55::1/128 dev eth0 nodad"],
    );
}

#[test]
fn many_addresses_need_a_larger_table_of_neighbours() {
    let text = SMALL.replace("10.55.0.0/24", "10.55.0.0/16");
    let needs = BenchNeeds {
        clients: vec![host(None, "10.55.1-4.1-250")],
        servers: vec![host(None, "10.55.0.2:80")],
        device: None,
    };
    assert_lines(
        &script(&text, Some(&needs)),
        &[
            "sysctl -q -w net.ipv4.neigh.default.gc_thresh3=4008",
            "sysctl -q -w net.ipv4.neigh.default.gc_thresh2=2004",
        ],
    );
    assert!(!script(SMALL, None).contains("neigh"));
}

#[test]
fn a_bare_lab_has_hosts_only() {
    let file = polygraph_lab::LabFile::parse(
        &SMALL.replace("[clients]", "[clients]\ndelay = \"40ms\""),
        std::path::Path::new("/labs/small.toml"),
    );
    let needs = BenchNeeds {
        clients: vec![host(None, "lo0::10.101.0-3.1-250/22")],
        servers: vec![host(None, "10.55.0.2:80")],
        device: None,
    };
    let lab = polygraph_lab::Lab::new(&file.unwrap(), "small", Some(&needs), true).unwrap();
    let script = UpPlan::new(&lab, "polygraph").script();
    for word in ["10.101", "wan"] {
        assert!(!script.contains(word), "{word} in\n{script}");
    }
}
