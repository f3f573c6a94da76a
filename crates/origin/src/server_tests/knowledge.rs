//! What servers know of robots, and tell other robots.

use super::*;

#[test]
fn known_objects_are_targets_of_redirects() {
    let mut config = persistent(classic(10.0));
    config.profiles[0].redirects = Some(Redirects { share: 1.0, popularity: PopModel::default() });
    let bench = Bench::new(config);
    let site_of = |bench: &Bench| {
        let client = bench.connect();
        client.send(get(""));
        bench.run(bench.link.now());
        (client.text(), client)
    };
    let (reply, client) = site_of(&bench);
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    bench.assert_errors(&[(ErrorKind::NoRedirect, 1)]);
    let world = "12345678.00abcdef:0000002a";
    client.send(get(&format!("X-Loc-World: {world} t3 -1/1 1\r\n")));
    bench.run(SECOND);
    client.take();
    client.send(get(""));
    bench.run(SECOND);
    let reply = client.text();
    let location = format!("http://www/w{world}/t03/_0000000000000001");
    assert!(reply.starts_with("HTTP/1.1 302 Found\r\n"), "{reply}");
    assert_eq!(field(&reply, "Location"), Some(location.as_str()));
    assert!(split(&reply).1.contains(&location));
    assert_eq!(field(&reply, "Content-Length"), Some(split(&reply).1.len().to_string().as_str()));
    bench.origin.set_special(0.0);
    client.send(get(""));
    bench.run(SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK"));
    client.close();
    bench.run(2 * SECOND);
    assert_eq!(bench.block().class(Class::RepToRedir).size.count(), 1);
}

#[test]
fn robots_hear_of_each_others_worlds() {
    let bench = Bench::new(OriginConfig { share_worlds: true, ..persistent(classic(10.0)) });
    let client = bench.connect();
    let say = |own: &str, quoted: &str| {
        let worlds = [("Loc", own), ("Rem", quoted)].map(|(name, world)| {
            if world.is_empty() { String::new() } else { format!("X-{name}-World: {world}\r\n") }
        });
        client.send(get(&worlds.concat()));
        bench.run(bench.link.now() + Nanos::new(1));
        field(&client.text(), "X-Rem-World").map(str::to_owned)
    };
    let (a, b) = ("00000001.00000001:00000002 t3 -1/10 5", "00000002.00000002:00000002 t3 -1/20 10");
    assert_eq!(say(a, ""), None);
    assert_eq!(say(b, b), Some(a.to_owned()));
    assert_eq!(say("", &b.replace("20", "19")), Some(b.to_owned()));
    assert_eq!(say("", &b.replace("00000002.", "00000003.")), None);
}

#[test]
fn clients_hear_how_far_the_slowest_of_them_is() {
    use polygraph_traffic::groups::PhaseStatus;
    let bench = Bench::new(persistent(classic(10.0)));
    let client = bench.connect();
    let group = |number: u32| UniqId { time: number, mix: 0, counter: 2 };
    let say = |number: u32, position: &str| {
        let xact = format!("X-Xact: {} 00000001.00000abc:00000004 0", group(number));
        client.send(get(&format!("{xact}\r\nX-Phase-Sync-Pos: {position}\r\n")));
        bench.run(bench.link.now() + SECOND);
        let reply = client.text();
        ["X-Phase-Sync-Pos", "X-Phase-Sync-Gone"].map(|name| field(&reply, name).map(str::to_owned))
    };
    let only = |position: &str| [Some(position.to_owned()), None];
    let standing = PhaseStatus { position: 9, least: 9, ..PhaseStatus::default() };
    bench.origin.set_phase_status(standing);
    assert_eq!(say(1, "5"), only("5"));
    assert_eq!(say(2, "4"), only("4"));
    // A request that was overtaken by a later one.
    assert_eq!(say(1, "3"), only("4"));
    assert_eq!(say(2, "6"), only("5"));
    bench.origin.set_phase_status(PhaseStatus { least: 2, gone: Some(group(3)), ..standing });
    assert_eq!(say(1, "6"), [Some("2".to_owned()), Some(group(3).to_string())]);
    assert_eq!(say(1, "six"), [None, None]);
    // Who does not say who it is does not take part.
    client.send(get("X-Phase-Sync-Pos: 1\r\n").replace("X-Xact:", "X-Other:"));
    bench.run(bench.link.now() + SECOND);
    assert_eq!(field(&client.text(), "X-Phase-Sync-Pos"), None);
    let heard: Vec<_> = bench.origin.clients().iter().map(|word| (word.group, word.position)).collect();
    assert_eq!(heard, [(group(1), 6), (group(2), 6)]);
}
