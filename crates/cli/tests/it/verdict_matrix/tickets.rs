//! KDCs that are silent, dead, refuse or have another time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;

use super::{Got, Row, Want};
use crate::kdc::{Kdc, wrap};
use crate::sandbox::{Sandbox, free_port};

/// Robots that need tickets for their server.
const WORKLOAD: &str = "
    Content C = { size = const(2KB); cachable = 80%; };
    WRAP
    Server S = { contents = [ C ]; addresses = ['127.0.0.1:PORT']; auth_schemes = [ \"negotiate\" ]; keytab = \"KEYTAB\"; };
    Robot R = { origins = S.addresses; addresses = ['127.0.0.1-10']; req_rate = 15/sec;
        credentials = [ \"USER:secret\" ]; kerberos_wrap = K; };
    Phase run = { name = \"run\"; goal.duration = DURATION; goal.errors = 95%; };
    schedule(run);
    use(S, R);
";

/// The words of a run without a device whose robots are this user and use the declaration `K`. The server has the keys of the KDC.
fn asking(sandbox: &Sandbox, kdc: &Kdc, declared: &str, user: &str, duration: &str) -> String {
    let text = WORKLOAD.replace("WRAP", declared).replace("PORT", &free_port().to_string());
    let text = text.replace("KEYTAB", &kdc.path("web.keytab")).replace("USER", user);
    sandbox.write("tickets.pg", &text.replace("DURATION", duration));
    "run --no_proxy --config tickets.pg --preflight no --predict no --loops 1 --verb_lvl 2".to_owned()
}

/// A run in which robots ask this KDC, as this user.
fn told_by(sandbox: &Sandbox, kdc: &Kdc, user: &str) -> Got {
    let done = sandbox.polygraph(&asking(sandbox, kdc, &kdc.wrap("servers", ""), user, "2sec"));
    Got::of_run(sandbox, &done)
}

/// A run in which robots ask at `port`, where something else is.
fn told_at(sandbox: &Sandbox, port: u16) -> Got {
    let kdc = Kdc::start(sandbox, 4096);
    let declared = wrap(port, "servers", "timeout = 200msec;");
    let done = sandbox.polygraph(&asking(sandbox, &kdc, &declared, "joe", "2sec"));
    Got::of_run(sandbox, &done)
}

/// A socket of each protocol at the same port.
fn sockets() -> (UdpSocket, TcpListener) {
    let both = |_| {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        Some((UdpSocket::bind(stream.local_addr().unwrap()).ok()?, stream))
    };
    (0..20).find_map(both).expect("a port of both protocols is free")
}

/// A run behind a proxy. The server has this keytab.
fn through(sandbox: &Sandbox, kdc: &Kdc, keytab: &str, altered: bool) -> Got {
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let mut port = proxy.port("proxy at");
    if altered {
        port = altering_tickets(port);
    }
    let words = asking(sandbox, kdc, &kdc.wrap("servers", ""), "joe", "2sec");
    let text = sandbox.read("tickets.pg").replace(&kdc.path("web.keytab"), keytab);
    sandbox.write("tickets.pg", &text);
    let done = sandbox.polygraph(&words.replace("--no_proxy", &format!("--proxy 127.0.0.1:{port}")));
    Got::of_run(sandbox, &done)
}

/// A way to `port` on which every second ticket is altered.
fn altering_tickets(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let tickets = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut back, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
            let tickets = Arc::clone(&tickets);
            std::thread::spawn(move || pass_on_altered(client, server, &tickets));
        }
    });
    own
}

/// Passes on lines until the end.
fn pass_on_altered(client: TcpStream, mut server: TcpStream, tickets: &AtomicUsize) {
    let (mut client, mut line) = (BufReader::new(client), Vec::new());
    while client.read_until(b'\n', &mut line).is_ok_and(|size| size > 0) {
        const FIELD: &[u8] = b"authorization: negotiate ";
        let is_ticket = line.len() > 200 && line[..FIELD.len()].eq_ignore_ascii_case(FIELD);
        if is_ticket && tickets.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            // The middle belongs to what only the servers can read.
            let middle = line.len() / 2;
            line[middle] = if line[middle] == b'A' { b'B' } else { b'A' };
        }
        if server.write_all(&line).is_err() {
            break;
        }
        line.clear();
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// A run whose KDC gets a signal when robots have their tickets.
fn struck(sandbox: &Sandbox, signal: Signal) -> Got {
    let kdc = Kdc::start(sandbox, 4096);
    let mut run = sandbox.start(&asking(sandbox, &kdc, &kdc.wrap("servers", ""), "joe", "5sec"));
    run.wait_for("i-run");
    kdc.program().signal(signal);
    let done = run.finish();
    Got::of_run(sandbox, &done)
}

pub fn tickets() -> Vec<Row> {
    let group = "the KDC";
    let tickets = Want::invalid("KDC", "tickets");
    let with_clock = |difference: &'static str| {
        move |sandbox: &Sandbox| told_by(sandbox, &Kdc::with_clock(sandbox, difference), "joe")
    };
    vec![
        Row::new(
            "a run",
            "the servers' keytab lacks the present key, behind a proxy",
            Want::invalid("test", "errors"),
            |sandbox| {
                let kdc = Kdc::start(sandbox, 4096);
                // Each such command makes another key.
                kdc.administer(&format!("ktadd -k {} HTTP/127.0.0.1", kdc.path("new.keytab")));
                through(sandbox, &kdc, &kdc.path("web.keytab"), false)
            },
        ),
        Row::new(
            "a run",
            "the servers' keytab has the key of another KDC, behind a proxy",
            Want::invalid("test", "errors"),
            |sandbox| {
                let (kdc, elsewhere) = (Kdc::start(sandbox, 4096), Sandbox::new());
                // The service has the same name and version of its key there.
                let other = Kdc::start(&elsewhere, 4096);
                through(sandbox, &kdc, &other.path("web.keytab"), false)
            },
        ),
        Row::new(
            "a device",
            "alters half of the tickets for servers",
            Want::failed("errors", ""),
            |sandbox| {
                let kdc = Kdc::start(sandbox, 4096);
                through(sandbox, &kdc, &kdc.path("web.keytab"), true)
            },
        ),
        Row::new(group, "gives tickets", Want::VALID, |sandbox| {
            told_by(sandbox, &Kdc::start(sandbox, 4096), "joe")
        }),
        Row::new(group, "has a clock that is two minutes ahead", Want::VALID, with_clock("+2m")),
        Row::new(group, "has a clock that is an hour ahead", tickets, with_clock("+1h")),
        Row::new(group, "has a clock that is an hour behind", tickets, with_clock("-1h")),
        Row::new(group, "does not know the user", tickets, |sandbox| {
            told_by(sandbox, &Kdc::start(sandbox, 4096), "nobody")
        }),
        Row::new(group, "knows another password", tickets, |sandbox| {
            told_by(sandbox, &Kdc::start(sandbox, 4096), "ann")
        }),
        Row::new(group, "has locked the user", tickets, |sandbox| {
            let kdc = Kdc::start(sandbox, 4096);
            kdc.administer("modprinc -allow_tix joe");
            told_by(sandbox, &kdc, "joe")
        }),
        Row::new(group, "does not know the service", tickets, |sandbox| {
            let kdc = Kdc::start(sandbox, 4096);
            kdc.administer("delprinc -force HTTP/127.0.0.1");
            told_by(sandbox, &kdc, "joe")
        }),
        Row::new(group, "is not running", tickets, |sandbox| told_at(sandbox, free_port())),
        Row::new(group, "never answers", tickets, |sandbox| {
            let (datagrams, _streams) = sockets();
            told_at(sandbox, datagrams.local_addr().unwrap().port())
        }),
        Row::new(group, "closes connections without an answer", tickets, |sandbox| {
            let (datagrams, streams) = sockets();
            std::thread::spawn(move || {
                // What is not read would make the end a reset.
                for mut stream in streams.incoming().flatten() {
                    let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
                }
            });
            told_at(sandbox, datagrams.local_addr().unwrap().port())
        }),
        Row::new(group, "answers with something else", tickets, |sandbox| {
            let (datagrams, _streams) = sockets();
            let port = datagrams.local_addr().unwrap().port();
            std::thread::spawn(move || {
                while let Ok((_, from)) = datagrams.recv_from(&mut [0; 4096]) {
                    let _ = datagrams.send_to(b"HTTP/1.1 200 OK\r\n\r\n", from);
                }
            });
            told_at(sandbox, port)
        }),
        Row::new(group, "is killed when the robots have their tickets", Want::VALID, |sandbox| {
            struck(sandbox, Signal::KILL)
        }),
    ]
}
