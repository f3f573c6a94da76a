//! The same seeds give the same requests: what robots ask for depends on nothing else, not on replies, not on
//! the clock, not on the ids that differ from run to run.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::sandbox::{Sandbox, free_port};

/// A tap in front of an origin server that notes the requests that pass. Every reply comes `delay` later than
/// it could.
fn tap(origin: u16, delay: Duration) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heads);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let noted = Arc::clone(&noted);
            std::thread::spawn(move || pass_on(client, origin, delay, &noted));
        }
    });
    (port, heads)
}

/// Passes one request and its reply on. A peer that goes away ends this, and is the client's affair.
fn pass_on(mut client: TcpStream, origin: u16, delay: Duration, noted: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    // The look before the test is no request of a robot.
    let head_text = String::from_utf8_lossy(&head).into_owned();
    if !head_text.contains("/polygraph-preflight/") {
        noted.lock().unwrap().push(head_text);
    }
    std::thread::sleep(delay);
    let mut server = TcpStream::connect(("127.0.0.1", origin)).ok()?;
    server.write_all(&head).ok()?;
    std::io::copy(&mut server, &mut client).ok().map(|_| ())
}

/// The requests of a client.
fn requests(seed: u64, delay: Duration) -> Vec<Vec<String>> {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --loops 1 --rep_sz exp:1KB");
    let (port, heads) = tap(server.port("listening at"), delay);
    let words = format!(
        "client --origin 127.0.0.1:{port} --robots 7 --loops 2 --req_rate 150/sec --dhr 55p --settle_time 500ms \
         --local_rng_seed {seed} --goal 4s"
    );
    let done = sandbox.polygraph(&words);
    assert_eq!(done.code(), Some(0), "{done:?}");
    sequences(&heads.lock().unwrap())
}

/// For each world (one per event loop) kinds and names of the objects in the order in which they were asked for. World ids
/// are unique to a run and left out.
fn sequences(heads: &[String]) -> Vec<Vec<String>> {
    // Transaction ids are handed out in the order of the requests, whatever order they arrive in.
    let mut worlds: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for head in heads {
        let url = head.split(' ').nth(1).unwrap();
        let (_, path) = url.split_once("/w").unwrap();
        let (world, object) = path.split_once('/').unwrap();
        let mark = head.lines().find_map(|line| line.strip_prefix("X-Xact: ")).unwrap();
        let id = mark.split(' ').nth(1).unwrap();
        worlds.entry(world.to_owned()).or_default().push((id.to_owned(), object.to_owned()));
    }
    let mut sequences: Vec<Vec<String>> = worlds
        .into_values()
        .map(|mut world| {
            world.sort();
            world.into_iter().map(|(_, object)| object).collect()
        })
        .collect();
    sequences.sort();
    sequences
}

#[test]
fn equal_seeds_give_equal_requests_whatever_the_replies() {
    let at_once = requests(7, Duration::ZERO);
    let late = requests(7, Duration::from_millis(80));
    let other = requests(8, Duration::ZERO);
    are_equal(&at_once, &late);
    let n = at_once[0].len().min(other[0].len());
    assert!(at_once[0][..n] != other[0][..n], "another seed must give other requests");
}

/// Checks that both are the same requests.
#[track_caller]
fn are_equal(one: &[Vec<String>], other: &[Vec<String>]) {
    assert_eq!((one.len(), other.len()), (2, 2), "a world for each loop");
    for (a, b) in one.iter().zip(other) {
        // The clock ends the runs, so the last few requests may be missing in one of them.
        let n = a.len().min(b.len());
        assert!(n > 100 && a.len().abs_diff(b.len()) < 20, "{} and {} requests", a.len(), b.len());
        let differs = (0..n).find(|&i| a[i] != b[i]).map(|i| (i, &a[i], &b[i]));
        assert_eq!(differs, None, "request number, and the objects asked for");
        let distinct: std::collections::HashSet<&String> = a.iter().collect();
        assert!(distinct.len() < a.len(), "no object was asked for twice");
    }
}

/// The requests of a schedule that ends by time, with factors that change, and a working set that freezes by time.
fn scheduled(delay: Duration) -> Vec<Vec<String>> {
    let port = free_port();
    let workload = "
        Content C = { kind = \"c\"; size = exp(1KB); cachable = 80%; };
        Server S = { kind = \"s\"; contents = [ C ]; addresses = ['127.0.0.1:PORT']; };
        Robot R = { kind = \"r\"; origins = S.addresses; addresses = ['127.0.0.1' ** 8]; req_rate = 30/sec; recurrence = 70%;
            req_types = [ \"Ims304\": 10%, \"Reload\": 10%, \"Basic\" ];
            pop_model = { pop_distr = popUnif(); hot_set_frac = 10%; hot_set_prob = 30%; bhr_discrimination = 50%; }; };
        Phase rise = { name = \"rise\"; goal.duration = 1500msec; load_factor_beg = 0.3; load_factor_end = 1.0;
            recur_factor_beg = 0.2; recur_factor_end = 1.0; special_msg_factor_beg = 0.2; };
        Phase top = { name = \"top\"; goal.duration = 1sec; special_msg_factor_beg = 1.0; };
        Phase fall = { name = \"fall\"; goal.duration = 1500msec; populus_factor_end = 0.4; };
        working_set_length(1200msec);
        schedule(rise, top, fall);
        use(S, R);";
    let sandbox = Sandbox::new();
    sandbox.write("phases.pg", &workload.replace("PORT", &port.to_string()));
    let (tap, heads) = tap(port, delay);
    // Whether the machine is too busy for a verdict does not matter here.
    let done = sandbox.polygraph(&format!("run --config phases.pg --proxy 127.0.0.1:{tap} --loops 2"));
    assert!(done.out.contains("fall"), "{done:?}");
    sequences(&heads.lock().unwrap())
}

#[test]
fn schedules_that_end_by_time_ask_for_the_same_whatever_the_replies() {
    are_equal(&scheduled(Duration::ZERO), &scheduled(Duration::from_millis(120)));
}
