//! Faults of the built-in proxy, processes that are stopped or killed, limits of the machine, name servers.

use std::time::Duration;

use rustix::process::Signal;

use super::{Deed, Device, Got, Row, Want};
use crate::sandbox::{Running, Sandbox, free_port};

/// Options of a run of a few seconds.
pub const SHORT: &str = "--req_rate 150/sec --rep_sz exp:2KB --xact_think none --robots 10 --goal 2.5s --cool_phase none \
    --predict no --preflight no --loops 1";

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
        ("wrong-digest", Want::VALID.warning("digests")),
    ];
    let row = |(fault, want): (&'static str, Want)| {
        Row::new("`polygraph proxy --fault`", fault, want, move |sandbox| {
            let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/correctness.pg");
            let text = std::fs::read_to_string(workload).unwrap();
            sandbox.write("correctness.pg", &text.replace("9090", &free_port().to_string()));
            let mut proxy = sandbox.start(&format!("proxy --port 0 --loops 1 --fault {fault}"));
            let port = proxy.port("proxy at");
            // Objects expire after four seconds, so copies are seldom stale before.
            let seconds = if fault == "stale" { 12 } else { 4 };
            let done = sandbox.polygraph(&format!(
                "run --config correctness.pg --proxy 127.0.0.1:{port} --set phMeas.goal.duration={seconds}sec --preflight no --predict no \
                 --loops 1"
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

/// Server, proxy and client as separate processes; after a second of measuring, the victim gets the signal. A stopped
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
        "client --origin 127.0.0.1:{origin} {proxy} --rep_sz exp:2KB --req_rate 150/sec --robots 10 --dhr 20p --preflight no \
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

/// Server and client as separate processes, of which the victim may run for only half of the time, as with a quota of processor time.
fn measure_slices(sandbox: &Sandbox, victim: Victim) -> Got {
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:2KB --log srv.log --loops 1");
    let origin = server.port("listening at");
    let mut client = sandbox.start(&format!(
        "client --origin 127.0.0.1:{origin} --rep_sz exp:2KB --req_rate 150/sec --robots 10 --preflight no --goal 8s \
         --cool_phase none --verb_lvl 2 --log clt.log --loops 1"
    ));
    client.wait_for("i-meas");
    let hit = if victim == Victim::Client { &client } else { &server };
    for _ in 0..55 {
        hit.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(60));
        hit.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(60));
    }
    let done = client.finish();
    server.stop();
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

/// Server and client as separate processes, which do not tell each other sizes but in replies, and a device that halves the bodies
/// and hides their sizes.
fn measure_halves(sandbox: &Sandbox) -> Got {
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:2KB --log srv.log --loops 1");
    let origin = server.port("listening at");
    let device = Device::start(Deed::Relay(|reply, _| {
        let half = reply.body[..reply.body.len() / 2].to_vec();
        reply.body(half).with("X-Contents", None).bytes()
    }));
    let done = sandbox.polygraph(&format!(
        "client --origin 127.0.0.1:{origin} --proxy 127.0.0.1:{} --req_rate 150/sec --robots 10 --goal 3s --cool_phase none \
         --log clt.log --loops 1",
        device.port()
    ));
    server.stop();
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

/// A server that stands still behind a device that tells robots so.
fn measure_gateway(sandbox: &Sandbox) -> Got {
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:2KB --log srv.log --loops 1");
    let device = Device::start(Deed::Gateway);
    let mut client = sandbox.start(&format!(
        "client --origin 127.0.0.1:{} --proxy 127.0.0.1:{} --rep_sz exp:2KB --req_rate 50/sec --robots 10 --preflight no --goal 8s \
         --cool_phase none --verb_lvl 2 --log clt.log --loops 1",
        server.port("listening at"),
        device.port()
    ));
    client.wait_for("i-meas");
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1600));
    server.signal(Signal::CONT);
    let done = client.finish();
    server.stop();
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

/// Two servers behind a balancer, of which one is killed.
fn measure_failover(sandbox: &Sandbox) -> Got {
    let start = |log: &str| {
        sandbox.start(&format!("server --listen 127.0.0.1:0 --rep_sz exp:2KB --log {log} --loops 1"))
    };
    let (mut first, mut second) = (start("first.log"), start("second.log"));
    let ports = [first.port("listening at"), second.port("listening at")];
    let device = Device::start(Deed::Balance(ports));
    let client = format!(
        "client --origin 127.0.0.1:{} --proxy 127.0.0.1:{} --rep_sz exp:2KB --req_rate 50/sec --robots 10 --preflight no --goal 8s \
         --cool_phase none --verb_lvl 2 --log clt.log --loops 1",
        ports[0],
        device.port()
    );
    kill_one(sandbox, &client, [first, second])
}

/// Kills the first server when `client` measures.
fn kill_one(sandbox: &Sandbox, client: &str, [first, second]: [Running; 2]) -> Got {
    let mut client = sandbox.start(client);
    client.wait_for("i-meas");
    first.signal(Signal::KILL);
    let done = client.finish();
    second.stop();
    Got::of_logs(sandbox, "clt.log first.log second.log", &done)
}

/// The same with servers that agree about phases with the robots.
fn measure_failover_of_phases(sandbox: &Sandbox) -> Got {
    let ports = [free_port(), free_port()];
    let device = Device::start(Deed::Balance(ports));
    sandbox.write(
        "balanced.pg",
        &format!(
            "Content C = {{ size = exp(2KB); cachable = 0%; }};\n\
             Server S = {{ kind = \"S\"; contents = [C]; direct_access = contents;\n\
               addresses = ['127.0.0.1:{}', '127.0.0.1:{}']; }};\n\
             AddrMap M = {{ names = ['balanced.tst:80']; addresses = S.addresses; }};\n\
             Robot R = {{ kind = \"R\"; origins = M.names; recurrence = 0%; req_rate = 10/sec;\n\
               addresses = ['127.0.0.1' ** 5]; }};\n\
             Phase W = {{ name = \"warm\"; goal.duration = 2sec; }};\n\
             Phase P = {{ name = \"meas\"; goal.duration = 8sec; primary = yes; }};\n\
             schedule(W, P); use(S, M, R);\n",
            ports[0], ports[1]
        ),
    );
    let start = |log: &str, port: u16| {
        let words =
            format!("server --config balanced.pg --only_addrs 127.0.0.1:{port} --log {log} --loops 1");
        let mut server = sandbox.start(&words);
        server.wait_for("listening at");
        server
    };
    let (first, second) = (start("first.log", ports[0]), start("second.log", ports[1]));
    let client = format!(
        "client --config balanced.pg --proxy 127.0.0.1:{} --preflight no --verb_lvl 2 --log clt.log --loops 1",
        device.port()
    );
    kill_one(sandbox, &client, [first, second])
}

/// Longer than a process may stand still.
const FROZEN: Option<Duration> = Some(Duration::from_millis(1600));

/// Processes that die or stand still.
pub fn signals() -> Vec<Row> {
    let group = "two commands";
    vec![
        Row::new(
            group,
            "the server stops for 1.6 s, and the device tells robots so (504)",
            Want::invalid("server", "stalls").code(0),
            measure_gateway,
        ),
        Row::new(
            group,
            "one of two servers is killed, and a balancer takes the other",
            Want::VALID.warning("interrupted"),
            measure_failover,
        ),
        Row::new(
            group,
            "one of two servers of a workload file is killed, and a balancer takes the other",
            Want::VALID.warning("interrupted"),
            measure_failover_of_phases,
        ),
        Row::new(group, "the server is killed", Want::invalid("server", "interrupted").code(0), |sandbox| {
            measure(sandbox, Victim::Server, Signal::KILL, true, None)
        }),
        Row::new(
            group,
            "the server is suspended and never resumed",
            Want::invalid("server", "interrupted").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::STOP, true, None),
        ),
        Row::new(
            group,
            "the server is ended by Ctrl-C",
            Want::invalid("server", "interrupted").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::INT, true, None),
        ),
        Row::new(
            group,
            "the server is killed; there is no device",
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
            "the device is suspended and never resumed",
            Want::failed("errors", "the device did not sustain the load").code(0),
            |sandbox| measure(sandbox, Victim::Device, Signal::STOP, true, None),
        ),
        Row::new(
            group,
            "the server is suspended for 1.6 s",
            Want::invalid("server", "stalls").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::STOP, true, FROZEN),
        ),
        Row::new(
            group,
            "the client is suspended for 1.6 s",
            Want::invalid("client", "stalls").code(0),
            |sandbox| measure(sandbox, Victim::Client, Signal::STOP, true, FROZEN),
        ),
        Row::new(
            group,
            "the server is suspended for 5.5 % of the measured time",
            Want::invalid("server", "stalls").code(0),
            |sandbox| measure(sandbox, Victim::Server, Signal::STOP, true, Some(Duration::from_millis(440))),
        ),
        Row::new(
            group,
            "the client is suspended for 5.5 % of the measured time",
            Want::invalid("client", "stalls").code(0),
            |sandbox| measure(sandbox, Victim::Client, Signal::STOP, true, Some(Duration::from_millis(440))),
        ),
        Row::new(
            group,
            "the server is killed before the first request",
            Want::invalid("server", "interrupted").code(0),
            |sandbox| {
                let mut server = sandbox.start("server --listen 127.0.0.1:0 --log srv.log --loops 1");
                let origin = server.port("listening at");
                server.signal(Signal::KILL);
                server.finish();
                let mut device = sandbox.start("proxy --port 0 --loops 1");
                let done = sandbox.polygraph(&format!(
                    "client --origin 127.0.0.1:{origin} --proxy 127.0.0.1:{} --req_rate 150/sec --robots 10 --preflight no \
                     --goal 3s --log clt.log --loops 1",
                    device.port("proxy at")
                ));
                Got::of_logs(sandbox, "clt.log srv.log", &done)
            },
        ),
        Row::new(
            group,
            "the server runs for half of the time, in slices of 60 ms",
            Want::invalid("server", "stalls").code(0),
            |sandbox| measure_slices(sandbox, Victim::Server),
        ),
        Row::new(
            group,
            "the client runs for half of the time, in slices of 60 ms",
            Want::invalid("client", "stalls").or("late").code(0),
            |sandbox| measure_slices(sandbox, Victim::Client),
        ),
        Row::new(
            group,
            "the device halves bodies and hides their sizes (`X-Contents`)",
            Want::failed("unverified", "the device delivered replies that robots cannot verify").code(0),
            measure_halves,
        ),
        Row::new(
            group,
            "the client is killed",
            Want::invalid("client", "interrupted").code(super::KILLED),
            |sandbox| measure(sandbox, Victim::Client, Signal::KILL, true, None),
        ),
        Row::new(
            group,
            "the client is ended by Ctrl-C",
            Want::invalid("test", "interrupted").code(130),
            |sandbox| measure(sandbox, Victim::Client, Signal::INT, true, None),
        ),
    ]
}

/// A client without a server, whose log is all that is known.
pub fn client_alone() -> Vec<Row> {
    let run = |sandbox: &Sandbox, origin: u16, proxy: &str| {
        let words = format!(
            "client --origin 127.0.0.1:{origin} {proxy} --rep_sz exp:2KB --req_rate 150/sec --robots 10 --preflight no --goal 3s \
             --log clt.log --loops 1"
        );
        let done = sandbox.polygraph(&words);
        Got::of_logs(sandbox, "clt.log", &done)
    };
    let at_server = "the server at 127.0.0.1:";
    let group = "a client alone";
    vec![
        Row::new(
            group,
            "nothing listens at the server's address",
            Want { says: at_server, ..Want::invalid("server", "errors").code(0) },
            move |sandbox| run(sandbox, free_port(), ""),
        ),
        Row::new(
            group,
            "a server answers, and no device is named",
            Want { says: at_server, ..Want::VALID.warning("one side") },
            move |sandbox| {
                let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:2KB --loops 1");
                run(sandbox, server.port("listening at"), "")
            },
        ),
        Row::new(
            group,
            "nothing listens at the proxy's address",
            Want::failed("errors", "the device was unreachable").code(0),
            move |sandbox| run(sandbox, free_port(), &format!("--proxy 127.0.0.1:{}", free_port())),
        ),
    ]
}

/// Who has a short listen queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShortQueue {
    Device,
    Server,
}

/// Robots, a proxy and a server that thinks for a tenth of a second, so that requests come together, each on its own connection. On
/// a separate host, because the length of listen queues is a setting of the host.
fn queue(sandbox: &Sandbox, short: ShortQueue) -> Got {
    let program = env!("CARGO_BIN_EXE_polygraph");
    let (device, server) = if short == ShortQueue::Device { (16, 4096) } else { (4096, 16) };
    let each = "--rep_sz exp:2KB --pconn_use_lmt const:1 --loops 1";
    let script = format!(
        "set -e
        # Waits until something listens at the port, which is given as in the table of the system.
        listens() {{ for i in $(seq 200); do grep -q \":$1 .* 0A \" /proc/net/tcp && break; sleep 0.05; done; }}
        ip link set lo up
        echo {device} > /proc/sys/net/core/somaxconn
        {program} proxy --port 3128 --loops 1 & proxy=$!
        listens 0C38
        echo {server} > /proc/sys/net/core/somaxconn
        {program} server --listen 127.0.0.1:9090 --xact_think const:100ms {each} --log srv.log & server=$!
        listens 2382
        code=0
        {program} client --origin 127.0.0.1:9090 --proxy 127.0.0.1:3128 {each} --robots 400 --goal 4s --cool_phase none \
            --preflight no --log clt.log || code=$?
        kill -INT $server; wait $server || true
        kill -INT $proxy; wait $proxy || true
        exit $code\n"
    );
    sandbox.write("queue.sh", &script);
    let done = sandbox.start_program("unshare", "--net sh queue.sh").finish();
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

/// Connections that find a listen queue full.
pub fn queues() -> Vec<Row> {
    let group = "a short listen queue (`net.core.somaxconn`)";
    vec![
        Row::new(group, "of the server", Want::invalid("server", "listen queue").code(0), |sandbox| {
            queue(sandbox, ShortQueue::Server)
        }),
        Row::new(group, "of the device", Want::VALID.warning("connecting"), |sandbox| {
            queue(sandbox, ShortQueue::Device)
        }),
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
            "nothing listens at the proxy's address",
            Want::failed("errors", "the device was unreachable"),
            move |sandbox| {
                let port = free_port();
                run(sandbox, &format!("--proxy 127.0.0.1:{port} {SHORT}"))
            },
        ),
        Row::new(
            "a run",
            "nothing listens at the surrogate's address",
            Want::failed("errors", "the device was unreachable"),
            move |sandbox| {
                let port = free_port();
                run(sandbox, &format!("--surrogate 127.0.0.1:{port} {SHORT}"))
            },
        ),
        Row::new("a run", "too short", Want::invalid("test", "samples"), move |sandbox| {
            run(sandbox, "--no_proxy --req_rate 20/sec --goal 2s --cool_phase none --predict no --loops 1")
        }),
        Row::new("a run", "too few local ports", Want::invalid("host", "resources"), move |sandbox| {
            let port = free_port();
            let words = SHORT.replace("--xact_think none", "--xact_think 100ms");
            run(sandbox, &format!("--no_proxy {words} --ports {port}:{}", port + 2))
        }),
        Row::new(
            "a run",
            "too few descriptors (`ulimit -n 64`)",
            // Both sides share the descriptors: either may be the one that lacks them.
            Want::invalid("host", "resources").or("refused"),
            |sandbox| {
                let program = env!("CARGO_BIN_EXE_polygraph");
                let words = format!("run --no_proxy {SHORT} --xact_think 2s --robots 10");
                let words = words.replace("--xact_think none --robots 10 ", "");
                sandbox.write("limited.sh", &format!("ulimit -n 64\nexec {program} {words}\n"));
                let done = sandbox.start_program("/bin/sh", "limited.sh").finish();
                Got::of_run(sandbox, &done)
            },
        ),
        Row::new("a run", "no route to the proxy", Want::invalid("network", "network"), move |sandbox| {
            // Nothing is sent to a broadcast address: the system knows no way for a connection.
            run(sandbox, &format!("--proxy 255.255.255.255:80 {SHORT}"))
        }),
        Row::new(
            "a run",
            "fewer connections than the servers' think time needs; there is no device",
            Want::invalid("test", "errors"),
            move |sandbox| {
                let words = SHORT.replace("--xact_think none", "--xact_think 500ms");
                run(sandbox, &format!("--no_proxy {words} --open_conn_lmt 10"))
            },
        ),
        Row::new(
            "a run",
            "fewer connections than the servers' think time needs, through a proxy",
            Want::invalid("test", "errors"),
            |sandbox| thinking(sandbox, "--xact_think 500ms --open_conn_lmt 10"),
        ),
        Row::new(
            "a run",
            "robots give up before servers have ended thinking, through a proxy",
            Want::invalid("test", "errors"),
            |sandbox| thinking(sandbox, "--xact_think norm:600ms,100ms --xact_lifetime 400ms"),
        ),
        Row::new(
            "a run",
            "servers demand credentials that robots do not have, through a proxy",
            Want::invalid("test", "errors"),
            |sandbox| guarded(sandbox, "", "auth_schemes = [ \"basic\" ];", ""),
        ),
        Row::new(
            "a run",
            "the servers' certificate is for another name, in a tunnel through a proxy",
            Want::invalid("server", "errors"),
            |sandbox| {
                let mut proxy = sandbox.start("proxy --port 0 --loops 1");
                let words = refusing_words(sandbox, &mut proxy);
                Got::of_run(sandbox, &sandbox.polygraph(&words))
            },
        ),
        Row::new(
            "a run",
            "servers demand certificates that robots do not have, in a tunnel through a proxy",
            Want::invalid("test", "errors"),
            |sandbox| {
                sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
                let server = "root_certificate = \"certs/ca.pem\"; verify_peer_certificate = yes;";
                guarded(sandbox, "root_certificate = \"certs/ca.crt\";", "ssl_wraps = [ Srv ];", server)
            },
        ),
        Row::new(
            "a simulation",
            "neither robots nor servers nor the network need time",
            Want::invalid("test", "interrupted"),
            |sandbox| Got::of_run(sandbox, &sandbox.polygraph("simulate simple")),
        ),
        Row::new(
            "a simulation",
            "a phase is to fill the cache, and nothing may be stored",
            Want::invalid("test", "interrupted"),
            |sandbox| {
                sandbox.write("fill.pg", UNFILLABLE);
                Got::of_run(sandbox, &sandbox.polygraph("simulate fill.pg"))
            },
        ),
        Row::new(
            "a run",
            "robots request only foreign objects",
            Want::invalid("test", "unverified"),
            |sandbox| {
                let elsewhere = Device::start(Deed::Say(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
                ));
                sandbox.write("trace.urls", &format!("http://127.0.0.1:{}/\n", elsewhere.port()));
                configured(sandbox, FOREIGN)
            },
        ),
        Row::new("a run", "a load that grows as planned, and slow servers", Want::VALID, |sandbox| {
            configured(sandbox, RAMP)
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
            "robots accept foreign messages and receive nothing else",
            Want::invalid("test", "unverified"),
            move |sandbox| {
                let device = Device::start(Deed::Say(
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

/// A run through the built-in proxy whose servers think.
fn thinking(sandbox: &Sandbox, words: &str) -> Got {
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let port = proxy.port("proxy at");
    let short = SHORT.replace("--xact_think none", words);
    Got::of_run(sandbox, &sandbox.polygraph(&format!("run --proxy 127.0.0.1:{port} {short}")))
}

/// A run through the built-in proxy whose servers let only some robots in. The texts are fields of the robots' SslWrap, of the servers
/// and of their SslWrap.
fn guarded(sandbox: &Sandbox, robots: &str, servers: &str, wrap: &str) -> Got {
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let words = guarded_words(sandbox, &mut proxy, robots, servers, wrap);
    Got::of_run(sandbox, &sandbox.polygraph(&words))
}

/// The words of such a run.
fn guarded_words(sandbox: &Sandbox, proxy: &mut Running, robots: &str, servers: &str, wrap: &str) -> String {
    let workload = GUARDED.replace("PORT", &free_port().to_string()).replace("SERVERS", servers);
    sandbox.write("guarded.pg", &workload.replace("ROBOTS", robots).replace("WRAP", wrap));
    let port = proxy.port("proxy at");
    format!("run --config guarded.pg --proxy 127.0.0.1:{port} --predict no --preflight no --loops 1")
}

/// The words of a run whose robots refuse the certificate of the servers, in tunnels through this proxy.
pub fn refusing_words(sandbox: &Sandbox, proxy: &mut Running) -> String {
    sandbox.polygraph("certs --key_type ECDSA-P256 --name other.test");
    let (robots, server) = ("root_certificate = \"certs/ca.crt\";", "certificates = [ \"certs/all.pem\" ];");
    guarded_words(sandbox, proxy, robots, "ssl_wraps = [ Srv ];", server)
}

// Handshakes that fail are repeated with each request, and take their time in a build for tests.
const GUARDED: &str = "
    SslWrap Clt = { ROBOTS };
    SslWrap Srv = { WRAP };
    Content C = { size = const(2KB); cachable = 80%; };
    Server S = { contents = [ C ]; addresses = ['127.0.0.1:PORT']; SERVERS };
    Robot R = { origins = S.addresses; addresses = ['127.0.0.1' ** 10]; req_rate = 5/sec; ssl_wraps = [ Clt ]; };
    Phase meas = { name = \"meas\"; goal.duration = 5sec; primary = true; };
    schedule(meas);
    use(S, R);
";

/// A run of a workload without a device. SERVER stands for the address of the server.
fn configured(sandbox: &Sandbox, workload: &str) -> Got {
    sandbox.write("test.pg", &workload.replace("SERVER", &format!("127.0.0.1:{}", free_port())));
    let words = "run --config test.pg --no_proxy --predict no --preflight no --loops 1";
    Got::of_run(sandbox, &sandbox.polygraph(words))
}

/// A load that grows to the tenfold while each request takes a second.
const RAMP: &str = "
    Content C = { size = const(2KB); cachable = 80%; };
    Server S = { contents = [ C ]; addresses = ['SERVER']; xact_think = norm(1sec, 0.3sec); };
    Robot R = { origins = S.addresses; addresses = ['127.0.0.1' ** 10]; req_rate = 15/sec; };
    Phase warm = { name = \"warm\"; goal.duration = 6sec; load_factor_beg = 0.1; };
    Phase meas = { name = \"meas\"; goal.duration = 20sec; load_factor_end = 1.0; primary = true; };
    schedule(warm, meas);
    use(S, R);
";

/// Robots that ask other servers than those of the test.
const FOREIGN: &str = "
    Content C = { size = const(2KB); cachable = 80%; };
    Server S = { contents = [ C ]; addresses = ['SERVER']; };
    Robot R = { origins = S.addresses; interests = [ \"foreign\" ]; foreign_trace = \"trace.urls\";
        addresses = ['127.0.0.1' ** 10]; req_rate = 10/sec; };
    Phase meas = { name = \"meas\"; goal.duration = 3sec; primary = true; };
    schedule(meas);
    use(S, R);
";

/// A phase that only a fill can end.
const UNFILLABLE: &str = "
    Content C = { size = const(2KB); cachable = 0%; };
    Server S = { contents = [ C ]; addresses = ['10.0.0.1:80']; };
    Robot R = { origins = S.addresses; addresses = ['10.0.1.1-10']; req_rate = 5/sec; };
    Phase fill = { name = \"fill\"; goal.fill_size = 1MB; };
    schedule(fill);
    use(S, R);
";

/// Robots that look up the name of their server.
const NAMED: &str = "
    Content C = { size = const(2KB); cachable = 80%; };
    Server S = { contents = [ C ]; addresses = ['127.0.0.1:PORT']; };
    AddrMap M = { names = ['origin.bench.tst:PORT']; addresses = S.addresses; };
    Robot R = { origins = M.names; addresses = ['127.0.0.1-10']; req_rate = 15/sec; xact_lifetime = const(1sec);
        dns_resolver = { servers = ['127.0.0.1:1']; timeout = 200msec; }; };
    Phase run = { name = \"run\"; goal.duration = DURATION; goal.errors = 95%; };
    schedule(run);
    use(S, M, R);
";

/// The words of a run without a device whose robots ask the name server at `port`.
fn asking(sandbox: &Sandbox, workload: &str, port: u16, duration: &str) -> String {
    let text = workload.replace("PORT", &free_port().to_string()).replace("DURATION", duration);
    sandbox.write("named.pg", &text);
    format!(
        "run --no_proxy --config named.pg --dns 127.0.0.1:{port} --preflight no --predict no --loops 1 --verb_lvl 2"
    )
}

/// A run whose name server is `polygraph dns` with these words.
fn told_by(sandbox: &Sandbox, words: &str) -> Got {
    told(sandbox, NAMED, words)
}

fn told(sandbox: &Sandbox, workload: &str, words: &str) -> Got {
    let mut dns = sandbox.start(&format!("dns --listen 127.0.0.1:0 --verb_lvl 2 {words}"));
    let port = dns.port("Ctrl-C stops the server");
    let done = sandbox.polygraph(&asking(sandbox, workload, port, "2sec"));
    Got::of_run(sandbox, &done)
}

/// A run whose name server gets a signal when it measures.
fn struck(sandbox: &Sandbox, signal: Signal) -> Got {
    let mut dns = sandbox.start("dns --listen 127.0.0.1:0 --verb_lvl 2 --extra origin.bench.tst=127.0.0.1");
    let port = dns.port("Ctrl-C stops the server");
    let mut run = sandbox.start(&asking(sandbox, NAMED, port, "5sec"));
    run.wait_for("i-run");
    dns.signal(signal);
    let done = run.finish();
    Got::of_run(sandbox, &done)
}

/// Name servers that are silent, dead or lie.
pub fn names() -> Vec<Row> {
    let group = "the name server";
    let names = Want::invalid("name server", "names");
    vec![
        Row::new(group, "answers correctly", Want::VALID, |sandbox| {
            told_by(sandbox, "--extra origin.bench.tst=127.0.0.1")
        }),
        Row::new(group, "does not know the name", names, |sandbox| {
            told_by(sandbox, "--extra other.bench.tst=127.0.0.1")
        }),
        Row::new(group, "knows only other names", names, |sandbox| {
            told_by(sandbox, "--extra www.example.com=127.0.0.1")
        }),
        Row::new(group, "gives a wrong address", names, |sandbox| {
            told_by(sandbox, "--extra origin.bench.tst=127.66.66.66")
        }),
        Row::new(group, "gives a wrong address for one of two names", names, |sandbox| {
            let names =
                "names = ['origin.bench.tst:PORT', 'www.bench.tst:PORT']; addresses = S.addresses ** 2;";
            let workload =
                NAMED.replace("names = ['origin.bench.tst:PORT']; addresses = S.addresses;", names);
            let words = "--extra origin.bench.tst=127.0.0.1 --extra www.bench.tst=127.66.66.66";
            told(sandbox, &workload, words)
        }),
        Row::new(
            group,
            "gives the address of another server of the test",
            Want::invalid("name server", "misrouted"),
            |sandbox| {
                let workload = NAMED
                    .replace("addresses = ['127.0.0.1:PORT']", "addresses = ['127.0.0.1-2:PORT']")
                    .replace(
                        "names = ['origin.bench.tst:PORT']",
                        "names = ['origin.bench.tst:PORT', 'www.bench.tst:PORT']",
                    );
                let words = "--extra origin.bench.tst=127.0.0.1 --extra www.bench.tst=127.0.0.1";
                told(sandbox, &workload, words)
            },
        ),
        Row::new(group, "is not running", names, |sandbox| {
            let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let done = sandbox.polygraph(&asking(sandbox, NAMED, free, "2sec"));
            Got::of_run(sandbox, &done)
        }),
        Row::new(group, "never answers", names, |sandbox| {
            let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let done =
                sandbox.polygraph(&asking(sandbox, NAMED, silent.local_addr().unwrap().port(), "2sec"));
            Got::of_run(sandbox, &done)
        }),
        Row::new(group, "is killed", names, |sandbox| struck(sandbox, Signal::KILL)),
        Row::new(group, "is suspended", names, |sandbox| struck(sandbox, Signal::STOP)),
    ]
}
