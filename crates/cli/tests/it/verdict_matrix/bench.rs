//! Faults of the built-in proxy, processes that are stopped or killed, limits of the machine, name servers.

use std::time::Duration;

use rustix::process::Signal;

use super::{Got, Row, Want};
use crate::sandbox::{Running, Sandbox, free_port};

/// Options of a run of a few seconds.
pub const SHORT: &str = "--req_rate 150/sec --rep_sz exp:2KB --xact_think none --robots 10 --xact_lifetime 1s --goal 2.5s --cool_phase none \
    --predict no --loops 1";

/// Every fault of the built-in proxy, with the workload that looks for all of them.
pub fn faults() -> Vec<Row> {
    let caching = Want::failed("correctness", "the device broke the rules of caching");
    let content = Want::failed("content", "the device delivered wrong content");
    let broken = Want::failed("errors", "the device sent broken messages");
    let all = [
        ("stale", caching),
        ("swap-bodies", content),
        ("swap-replies", content),
        ("store-private", content),
        ("cut", broken),
        ("shorten", content),
        ("lengthen", content),
        ("overrun", broken),
        ("alter", content),
        ("forget-vary", content),
        ("strip-marks", Want::failed("correctness", "the device answered in place of the servers")),
        ("ignore-reload", caching),
        ("wrong-range", broken),
        ("shift-range", broken),
        ("false-304", caching),
        ("wrong-date", Want::failed("dates", "the device sent broken messages")),
    ];
    let row = |(fault, want): (&'static str, Want)| {
        Row::new("`polygraph proxy --fault`", fault, want, move |sandbox| {
            let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/correctness.pg");
            let text = std::fs::read_to_string(workload).unwrap();
            sandbox.write("correctness.pg", &text.replace("9090", &free_port().to_string()));
            let mut proxy = sandbox.start(&format!("proxy --port 0 --loops 1 --fault {fault}"));
            let port = proxy.port("proxy at");
            let done = sandbox.polygraph(&format!(
                "run --config correctness.pg --proxy 127.0.0.1:{port} --set phMeas.goal.duration=4sec --predict no --loops 1"
            ));
            Got::of_run(sandbox, &done)
        })
    };
    all.into_iter().map(row).collect()
}

/// Who is stopped or killed while it measures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Server,
    Device,
}

/// Server, proxy and client as processes of their own; after a second of measuring, the victim gets the signal. A stopped
/// process goes on after `stopped`, or is killed at the end.
fn measure(
    sandbox: &Sandbox,
    victim: Victim,
    signal: Signal,
    through_proxy: bool,
    stopped: Option<Duration>,
) -> Got {
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:2KB --log srv.log --loops 1");
    let origin = server.port("listening at");
    let mut device = sandbox.start("proxy --port 0 --loops 1");
    let port = device.port("proxy at");
    let proxy = if through_proxy { format!("--proxy 127.0.0.1:{port}") } else { String::new() };
    let mut client = sandbox.start(&format!(
        "client --origin 127.0.0.1:{origin} {proxy} --rep_sz exp:2KB --req_rate 150/sec --robots 10 --dhr 20p \
         --xact_lifetime 1s --goal 8s --verb_lvl 2 --log clt.log --loops 1"
    ));
    client.wait_for("p-warm");
    client.wait_for("i-meas");
    let hit: &Running = match victim {
        Victim::Client => &client,
        Victim::Server => &server,
        Victim::Device => &device,
    };
    hit.signal(signal);
    if let Some(stopped) = stopped {
        std::thread::sleep(stopped);
        hit.signal(Signal::CONT);
    }
    let done = client.finish();
    if victim != Victim::Server || stopped.is_some() {
        server.stop();
    }
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

/// Processes that die.
pub fn signals() -> Vec<Row> {
    let group = "two commands:";
    vec![
        Row::new(group, "the server is killed", Want::invalid("server", "interrupted").code(0), |sandbox| {
            measure(sandbox, Victim::Server, Signal::KILL, true, None)
        }),
        Row::new(
            group,
            "the server is stopped for good",
            Want::invalid("server", "interrupted").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::STOP, true, None),
        ),
        Row::new(
            group,
            "the server ends on Ctrl-C",
            Want::invalid("server", "interrupted").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::INT, true, None),
        ),
        Row::new(
            group,
            "the server is killed, there is no device",
            Want::invalid("server", "interrupted").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::KILL, false, None),
        ),
        Row::new(
            group,
            "the device is killed",
            Want::failed("errors", "the device refused connections").code(0),
            |sandbox| measure(sandbox, Victim::Device, Signal::KILL, true, None),
        ),
        Row::new(
            group,
            "the device is stopped for good",
            Want::failed("errors", "the device did not sustain the load").code(0),
            |sandbox| measure(sandbox, Victim::Device, Signal::STOP, true, None),
        ),
        Row::new(
            group,
            "the client ends on Ctrl-C",
            Want::invalid("test", "interrupted").code(130),
            |sandbox| measure(sandbox, Victim::Client, Signal::INT, true, None),
        ),
    ]
}

/// What the machine or the test lacks.
pub fn limits() -> Vec<Row> {
    let run = |sandbox: &Sandbox, words: &str| {
        let done = sandbox.polygraph(&format!("run {words}"));
        Got::of_run(sandbox, &done)
    };
    vec![
        Row::new("a run", "without a device", Want::VALID, move |sandbox| {
            run(sandbox, &format!("--no_proxy {SHORT}"))
        }),
        Row::new(
            "a run",
            "nobody listens at the proxy's address",
            Want::failed("errors", "the device was not there"),
            move |sandbox| {
                let port = free_port();
                run(sandbox, &format!("--proxy 127.0.0.1:{port} {SHORT}"))
            },
        ),
        Row::new("a run", "too short", Want::invalid("test", "samples"), move |sandbox| {
            run(sandbox, "--no_proxy --req_rate 20/sec --goal 2s --cool_phase none --predict no --loops 1")
        }),
        Row::new("a run", "too few local ports", Want::invalid("host", "resources"), move |sandbox| {
            let port = free_port();
            run(sandbox, &format!("--no_proxy {SHORT} --ports {port}:{}", port + 2))
        }),
        Row::new("a run", "stopped by Ctrl-C", Want::invalid("test", "interrupted").code(130), |sandbox| {
            let mut run = sandbox
                .start("run --no_proxy --req_rate 200/sec --goal 30s --verb_lvl 2 --loops 1 --predict no");
            run.wait_for("i-meas");
            run.signal(Signal::INT);
            let done = run.finish();
            Got::of_run(sandbox, &done)
        }),
        Row::new(
            "a run",
            "robots accept foreign messages, and get nothing else",
            Want::invalid("test", "unverified"),
            move |sandbox| {
                let device = super::Device::start(super::Deed::Say(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
                ));
                run(
                    sandbox,
                    &format!("--proxy 127.0.0.1:{} {SHORT} --accept_foreign_msgs yes", device.port()),
                )
            },
        ),
    ]
}

/// Name servers that are silent, dead or lie.
pub fn names() -> Vec<Row> {
    Vec::new()
}
