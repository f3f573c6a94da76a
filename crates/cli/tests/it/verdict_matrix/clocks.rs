//! Two hosts whose clocks differ. Both are this one: the device makes replies those of a server with another clock, and so are the times
//! of the server's log made.

use std::time::Duration;

use polygraph_stats::record::environment::HOST;
use polygraph_stats::{LogWriter, ReadLog, Record};
use polygraph_wire::date;
use rustix::process::Signal;

use super::device::Reply;
use super::{Deed, Device, Got, Row, Want};
use crate::sandbox::Sandbox;

/// By how many seconds the clock of the server's host is ahead, or behind.
const APART_S: i64 = 40;

/// The reply of a server whose clock is so many seconds ahead.
fn dated(reply: Reply, ahead_s: i64) -> Vec<u8> {
    let date = reply.head.lines().find_map(|line| date::parse(line.strip_prefix("Date: ")?.as_bytes()));
    let date = date.map(|date| date::format(date.saturating_add_signed(ahead_s)));
    reply.with("Date", date.as_deref()).bytes()
}

/// Makes the log of a process that of a process on another host, whose clock is so many seconds ahead.
fn move_to_another_host(sandbox: &Sandbox, log: &str, ahead_s: i64) {
    let path = sandbox.path().join(log);
    let ReadLog { mut header, records, .. } = ReadLog::open(&path).unwrap();
    header.start_unix_ns = header.start_unix_ns.saturating_add_signed(ahead_s * 1_000_000_000);
    header.environment.retain(|(name, _)| name != HOST);
    header.environment.push((HOST.to_owned(), "another".to_owned()));
    let mut log = LogWriter::create(&path).unwrap();
    log.write(&Record::Header(Box::new(header))).unwrap();
    records.iter().for_each(|record| log.write(record).unwrap());
}

/// Server, device and client; when it has measured for a second, the server gets the signal, and goes on after 1.6 s if it was
/// suspended.
fn measure(sandbox: &Sandbox, deed: Deed, ahead_s: i64, signal: Option<Signal>) -> Got {
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --rep_sz exp:2KB --log srv.log --loops 1");
    let origin = server.port("listening at");
    let device = Device::start(deed);
    let mut client = sandbox.start(&format!(
        "client --origin 127.0.0.1:{origin} --proxy 127.0.0.1:{} --rep_sz exp:2KB --req_rate 100/sec --robots 10 --preflight no \
         --xact_lifetime 1s --goal 8s --cool_phase none --verb_lvl 2 --log clt.log --loops 1",
        device.port()
    ));
    client.wait_for("i-meas");
    signal.iter().for_each(|signal| server.signal(*signal));
    if signal == Some(Signal::STOP) {
        std::thread::sleep(Duration::from_millis(1600));
        server.signal(Signal::CONT);
    }
    let done = client.finish();
    match signal {
        Some(Signal::KILL) => server.finish(),
        _ => server.stop(),
    };
    move_to_another_host(sandbox, "srv.log", ahead_s);
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

const AHEAD: Deed = Deed::Relay(|reply, _| dated(reply, APART_S));
const BEHIND: Deed = Deed::Relay(|reply, _| dated(reply, -APART_S));
const FORBIDDEN: Deed =
    Deed::Say(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
const BROKEN: Deed = Deed::Relay(|reply, _| {
    let half = reply.head.len() + reply.body.len() / 2;
    dated(reply, APART_S)[..half].to_vec()
});

/// Hosts whose clocks differ.
pub fn apart() -> Vec<Row> {
    let group = "two hosts, the servers' clock";
    let stalled = Want::invalid("server", "stalls").warning("clock").code(0);
    let killed = Want::invalid("server", "interrupted").warning("clock").code(0);
    vec![
        Row::new(group, "is 40 s ahead", Want::VALID.warning("clock"), |sandbox| {
            measure(sandbox, AHEAD, APART_S, None)
        }),
        Row::new(group, "is 40 s behind", Want::VALID.warning("clock"), |sandbox| {
            measure(sandbox, BEHIND, -APART_S, None)
        }),
        Row::new(group, "is 40 s ahead; the server is killed", killed, |sandbox| {
            measure(sandbox, AHEAD, APART_S, Some(Signal::KILL))
        }),
        Row::new(group, "is 40 s behind; the server is killed", killed, |sandbox| {
            measure(sandbox, BEHIND, -APART_S, Some(Signal::KILL))
        }),
        Row::new(group, "is 40 s ahead; the server is suspended for 1.6 s", stalled, |sandbox| {
            measure(sandbox, AHEAD, APART_S, Some(Signal::STOP))
        }),
        Row::new(
            group,
            "is 40 s ahead; the device cuts replies",
            Want::failed("errors", "the device sent broken messages").code(0),
            |sandbox| measure(sandbox, BROKEN, APART_S, None),
        ),
        Row::new(
            group,
            "is 40 s behind; the device answers everything with 403",
            Want::failed("errors", "the device answered with errors").code(0),
            |sandbox| measure(sandbox, FORBIDDEN, -APART_S, None),
        ),
    ]
}
