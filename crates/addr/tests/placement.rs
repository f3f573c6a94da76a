//! Agents on machines, as `pgl2ips` shows them.

use polygraph_addr::{AddrRange, AgentGroup, Placement, PlacementScope, SidePlan, expand};

fn group(kind: &str, addresses: &str) -> AgentGroup {
    let addresses = expand(&AddrRange::parse_list(addresses).unwrap(), 10_000).unwrap();
    AgentGroup { kind: kind.to_owned(), addresses }
}

fn side(hosts: &str, groups: &[AgentGroup]) -> SidePlan {
    SidePlan { hosts: group("", hosts).addresses, groups: groups.to_vec(), aliases: Vec::new() }
}

/// Four robots on two addresses of each of two clients; a server on each of two machines.
fn example() -> Placement {
    let robots = group("R", "lo0::10.1.0.1-2/22 lo0::10.1.4.1-2/22 lo0::10.1.0.1-2/22 lo0::10.1.4.1-2/22");
    let clients = side("172.16.0.61-62", &[robots]);
    let servers =
        side("172.16.0.191-192:80", &[group("S.a", "172.16.0.191:80"), group("S.b", "172.16.0.192:80")]);
    Placement::new(clients, servers).unwrap()
}

#[test]
fn texts() {
    #[track_caller]
    fn check(host: Option<&str>, agent: Option<&str>, text: &str) {
        assert_eq!(
            example().text(PlacementScope { host, agent }).unwrap_or_else(|error| error.to_string()),
            text
        );
    }
    check(
        None,
        None,
        "scope: host=any agent=any\n\n\
         polyclt1: host=172.16.0.61 ips=10.1.0.1-2 agents=4\n\
         polyclt2: host=172.16.0.62 ips=10.1.4.1-2 agents=4\n\
         polysrv1: host=172.16.0.191 ips=172.16.0.191 agents=1\n\
         polysrv2: host=172.16.0.192 ips=172.16.0.192 agents=1\n\
         robot1: kind=R ips=10.1.0.1-2,10.1.4.1-2 agents=8\n\
         server1: kind=S.a ips=172.16.0.191 agents=1\n\
         server2: kind=S.b ips=172.16.0.192 agents=1\n",
    );
    check(
        Some("172.16.0.62"),
        None,
        "scope: host=172.16.0.62 agent=any\n\n\
         polyclt2: host=172.16.0.62 ips=10.1.4.1-2 agents=4\n\
         robot1: kind=R ips=10.1.4.1-2 agents=4\n",
    );
    check(
        None,
        Some("S.b"),
        "scope: host=any agent=S.b\n\n\
         polysrv1: host=172.16.0.191 ips= agents=0\n\
         polysrv2: host=172.16.0.192 ips=172.16.0.192 agents=1\n\
         server2: kind=S.b ips=172.16.0.192 agents=1\n",
    );
    check(
        Some("polyclt3"),
        None,
        "there is no host 'polyclt3'; hosts are polyclt1, polyclt2, polysrv1, polysrv2",
    );
    check(None, Some("robot2"), "there is no agent 'robot2'; agents are robot1, server1, server2");
}

#[test]
fn variables() {
    #[track_caller]
    fn check(name: &str, value: &str) {
        let found = example().variable(PlacementScope::default(), name);
        assert_eq!(found.unwrap_or_else(|error| error.to_string()), value);
    }
    check("polyclt2.host", "172.16.0.62");
    check("polyclt2.ips", "10.1.4.1-2");
    check("polyclt1.agents", "4");
    check("172.16.0.191.agents", "1");
    check("robot1.kind", "R");
    check("S.a.ips", "172.16.0.191");
    check("server2.agents", "1");
    let none = "write HOST.host, HOST.ips, HOST.agents or AGENT.kind, AGENT.ips, AGENT.agents";
    check("robot1.host", &format!("there is no variable 'robot1.host'; {none}"));
    check("robot7.ips", &format!("there is no variable 'robot7.ips'; {none}"));
}

#[test]
fn addresses_must_divide_evenly() {
    let error =
        Placement::new(side("1.0.0.1-2", &[group("R", "10.0.0.1-3")]), SidePlan::default()).unwrap_err();
    assert_eq!(error.to_string(), "3 addresses of robots do not divide evenly among 2 hosts of client_side");
    let listed = SidePlan {
        aliases: group("", "10.0.0.1-4").addresses,
        ..side("1.0.0.1-2", &[group("R", "10.0.0.1-3")])
    };
    let listed = Placement::new(listed, SidePlan::default()).unwrap();
    assert_eq!(listed.variable(PlacementScope::default(), "polyclt2.ips").as_deref(), Ok("10.0.0.3"));
    let without_hosts = Placement::new(side("", &[group("R", "10.0.0.1-3")]), SidePlan::default()).unwrap();
    assert_eq!(
        without_hosts.text(PlacementScope::default()).unwrap(),
        "scope: host=any agent=any\n\nrobot1: kind=R ips=10.0.0.1-3 agents=3\n"
    );
}
