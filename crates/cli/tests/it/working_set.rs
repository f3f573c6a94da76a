//! Tests that go on with the objects of others.

use std::collections::HashSet;
use std::path::Path;

use polygraph_traffic::store::WorkingSet;
use rustix::process::Signal;

use crate::sandbox::{Done, Sandbox, free_port};

fn read(path: &Path) -> WorkingSet {
    WorkingSet::from_bytes(&std::fs::read(path).unwrap()).unwrap()
}

/// Ids of all galaxies, none of which may have two owners.
fn galaxies(set: &WorkingSet) -> HashSet<polygraph_traffic::UniqId> {
    let all: Vec<_> =
        set.shares.iter().flat_map(|share| &share.galaxies).map(|(_, galaxy)| galaxy.id).collect();
    let distinct: HashSet<_> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len());
    distinct
}

fn objects(set: &WorkingSet) -> u64 {
    let galaxies = set.shares.iter().flat_map(|share| &share.galaxies);
    galaxies.flat_map(|(_, galaxy)| &galaxy.worlds).map(|world| world.size()).sum()
}

/// A short run through a proxy with its own directory for results, and what its client log says.
fn run(sandbox: &Sandbox, name: &str, words: &str) -> (Done, std::collections::HashMap<String, f64>) {
    let words = format!("run --runs {name} --xact_think none --cool_phase none --rep_sz exp:1KB {words}");
    let done = sandbox.polygraph(&words);
    assert!(sandbox.path().join(name).is_dir(), "{done:?}");
    let (figures, _) = sandbox.lx("", sandbox.result_in(name).join("client.log"));
    (done, figures)
}

#[test]
fn a_later_test_repeats_what_an_earlier_one_left_in_the_cache() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let proxy = proxy.port("proxy at");
    let common =
        format!("--proxy 127.0.0.1:{proxy} --origin_port {} --robots 9 --req_rate 200/sec", free_port());

    let fill = format!("{common} --loops 3 --dhr 0p --goal 4s --store_working_set set --local_rng_seed 5");
    let (first, figures) = run(&sandbox, "first", &fill);
    assert_eq!((figures["errors.count"], figures["hit.rptm.count"]), (0.0, 0.0), "{first:?}");
    let stored = read(&sandbox.path().join("set"));
    // Every loop has a galaxy, and every request was for a new object.
    let (count, filled) = (galaxies(&stored).len(), objects(&stored));
    assert_eq!((count, stored.shares.len(), stored.local_seed.0), (3, 3, 5));
    assert!((figures["rep.rptm.count"] - filled as f64).abs() <= 2.0, "{filled}: {first:?}");
    assert!(std::fs::read_dir(sandbox.path()).unwrap().all(|entry| {
        let name = entry.unwrap().file_name();
        !name.to_string_lossy().starts_with("set.")
    }));

    // All requests are repeats, so without the set the first one would have nothing to repeat; more, fewer, and other
    // kinds of loops must all know what is in the cache.
    for (name, loops) in
        [("same", "--loops 3"), ("fewer", "--loops 1"), ("more", "--loops 5"), ("else", "--workers 2")]
    {
        let words = format!(
            "{common} {loops} --dhr 80p --goal 2s --load_working_set set --store_working_set {name}.set"
        );
        let (done, figures) = run(&sandbox, name, &words);
        assert_eq!(figures["errors.count"], 0.0, "{name}: {done:?}");
        assert!(done.err.contains("using the seeds of the working set: global 1, local 5"), "{done:?}");
        let hits = figures["hit.rptm.count"];
        assert!(hits > 200.0, "{name}: {hits} hits: {done:?}");
        assert_eq!(figures["hit.ratio.obj"], figures["offered.hit.ratio.obj"], "{name}: {done:?}");
        let later = read(&sandbox.path().join(format!("{name}.set")));
        assert!(galaxies(&later).is_superset(&galaxies(&stored)), "{name}");
        assert_eq!(objects(&later), filled, "{name}: nothing new was asked for");
        assert_eq!(later.fill().count, stored.fill().count, "{name}");
        assert!(later.shares.len() >= 3, "{name}: sources of ids are not forgotten");
    }
}

#[test]
fn the_set_is_stored_when_the_user_stops_the_run() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:1KB");
    let port = server.port("listening at");
    for (name, loops) in [("threads", "--loops 2"), ("processes", "--workers 2")] {
        let words = format!(
            "client --origin 127.0.0.1:{port} --robots 4 --req_rate 200/sec {loops} --verb_lvl 2 \
             --store_working_set {name} --unique_world no --local_rng_seed 3"
        );
        let mut client = sandbox.start(&words);
        client.wait_for("i-meas");
        client.wait_for("i-meas");
        client.signal(Signal::INT);
        let done = client.finish();
        assert_eq!(done.code(), Some(130), "{done:?}");
        let set = read(&sandbox.path().join(name));
        assert!(objects(&set) > 10, "{name}: {}", objects(&set));
        // Repeatable ids come from the seed.
        assert!(galaxies(&set).iter().all(|id| id.time == 3), "{name}: {:?}", galaxies(&set));

        // A later test goes on with them, and with its ids, so that none comes twice.
        let words = format!("{words} --load_working_set {name} --dhr 0p --goal 50");
        let done = sandbox.polygraph(&words);
        assert_eq!(done.code(), Some(0), "{done:?}");
        let later = read(&sandbox.path().join(name));
        assert_eq!(galaxies(&later), galaxies(&set), "{name}");
        assert!(objects(&later) > objects(&set), "{name}");
        let next = |set: &WorkingSet| set.shares[0].ids.clone().fresh();
        assert!(next(&later).counter > next(&set).counter, "{name}");
    }
}

#[test]
fn a_frozen_set_stays_frozen() {
    let sandbox = Sandbox::new();
    let workload = |limit: &str| {
        format!(
            "Content C = {{ size = exp(1KB); cachable = 100%; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{}']; }};
             Robot R = {{ origins = S.addresses; recurrence = 50%; req_rate = 100/sec; addresses = ['127.0.0.1'];
                 pop_model.pop_distr = popUnif(); }};
             Phase p = {{ name = \"p\"; goal.duration = 3sec; }};
             schedule(p);
             {limit}
             use(S, R);",
            free_port()
        )
    };
    let text = workload("working_set_length(1sec);");
    sandbox.write("frozen.pg", &text);
    sandbox.write("later.pg", &text.replace("working_set_length(1sec);", ""));
    let first = sandbox.polygraph("run --no-proxy --config frozen.pg --store_working_set set");
    assert_ne!(first.code(), Some(2), "{first:?}");
    let window = |set: &WorkingSet| set.shares[0].galaxies[0].1.worlds[0].facts().window;
    let stored = read(&sandbox.path().join("set"));
    assert!(stored.is_frozen() && window(&stored) < Some(objects(&stored)), "{:?}", window(&stored));
    let later =
        sandbox.polygraph("run --no-proxy --config later.pg --load_working_set set --store_working_set set");
    assert_ne!(later.code(), Some(2), "{later:?}");
    let then = read(&sandbox.path().join("set"));
    assert_eq!(window(&then), window(&stored));
    assert!(objects(&then) > objects(&stored));
}

#[test]
fn sets_that_cannot_be_used_say_why() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:1KB");
    let port = server.port("listening at");
    let client = format!("client --origin 127.0.0.1:{port} --goal 20");
    let done = sandbox.polygraph(&format!("{client} --store_working_set set"));
    assert_eq!(done.code(), Some(0), "{done:?}");
    sandbox.write("text", "not a working set");
    let whole = std::fs::read(sandbox.path().join("set")).unwrap();
    std::fs::write(sandbox.path().join("cut"), &whole[..whole.len() - 1]).unwrap();
    std::fs::create_dir(sandbox.path().join("folder")).unwrap();
    for (words, code, text) in [
        (
            format!("{client} --load_working_set missing"),
            4,
            "cannot load the working set missing: No such file",
        ),
        (format!("{client} --load_working_set text"), 4, "this is not a polygraph working set"),
        (format!("{client} --load_working_set cut"), 4, "is truncated"),
        (
            format!("{client} --rep_sz exp:2KB --load_working_set set"),
            2,
            "content type cachable had other settings",
        ),
        (
            "client --origin 127.0.0.1:1 --goal 1 --load_working_set set".to_owned(),
            2,
            "but none of the servers of this test",
        ),
        (format!("{client} --store_working_set none/set"), 3, "cannot store the working set in none/set"),
        (format!("{client} --store_working_set folder"), 3, "cannot store the working set in folder"),
    ] {
        let done = sandbox.polygraph(&words);
        assert!(done.code() == Some(code) && done.err.contains(text), "{words}: {done:?}");
    }
    assert_eq!(std::fs::read(sandbox.path().join("set")).unwrap(), whole);
}
