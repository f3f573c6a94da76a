//! The results of throughput tests as text and as JSON.

use std::fmt::Write as _;

use polygraph_netcheck::Error as CheckError;
use polygraph_netcheck::throughput::iperf3::{Iperf3Direction, Iperf3Result};
use polygraph_netcheck::throughput::{CpuUse, Received, Sent, ThroughputResult, ThroughputTest};
use serde_json::{Value, json};

use super::counted;

/// A result of one of the programs that measure.
pub enum Measured {
    /// The own measurement.
    Own(Box<ThroughputResult>),
    /// That of iperf3.
    Iperf3(Iperf3Result),
}

impl Measured {
    /// The rates of both directions in bits per second: sent, received.
    fn rates(&self) -> [Option<f64>; 2] {
        match self {
            Measured::Own(found) => [found.sent_rate(), found.received_rate()],
            Measured::Iperf3(found) => {
                [&found.sent, &found.received].map(|way| way.as_ref().map(|way| way.total))
            }
        }
    }

    /// What is wrong with the result, if a direction must carry a least rate in Mbit/s.
    pub fn faults(&self, host: &str, least: Option<f64>) -> Vec<String> {
        let mut faults = Vec::new();
        for (rate, way) in self.rates().into_iter().zip(["to", "from"]) {
            if let (Some(rate), Some(least)) = (rate, least)
                && rate < least * 1e6
            {
                faults.push(format!("{} Mbit/s {way} {host} are less than {least}", mbit(rate)));
            }
        }
        if let Measured::Own(found) = self
            && found.broken() > 0
        {
            let broken = counted(found.broken() as u64, "direction");
            faults.push(format!("{broken} of streams broke off or stood still"));
        }
        faults
    }
}

fn mbit(bits: f64) -> String {
    format!("{:.2}", bits / 1e6)
}

fn cell(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), mbit)
}

/// The result for people.
pub fn text_of(host: &str, test: &ThroughputTest, found: &Measured, faults: &[String]) -> String {
    let tool = match found {
        Measured::Own(_) => "own measurement".to_owned(),
        Measured::Iperf3(found) => found.version.clone(),
    };
    let (streams, seconds) = (test.streams, test.duration.as_secs_f64());
    let streams = counted(streams.into(), "stream");
    let mut text = format!("{host} ({}), {streams}, {seconds} s, {tool}\n", test.server);
    match found {
        Measured::Own(found) => own_text(&mut text, host, found),
        Measured::Iperf3(found) => iperf3_text(&mut text, host, found),
    }
    for fault in faults {
        let _ = writeln!(text, "FAILS: {fault}");
    }
    text
}

const HEAD: [&str; 5] = ["stream", "sent", "received", "resent", "resent by host"];

/// One line of the table: a name, both rates, and segments that each side sent again.
fn row(text: &mut String, name: &str, rates: [Option<f64>; 2], resent: [Option<u64>; 2], ends: &str) {
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let [sent, received] = rates.map(cell);
    let [here, there] = resent.map(count);
    let _ = writeln!(text, "{name:>6}  {sent:>10}  {received:>10}  {here:>8}  {there:>14}  {ends}");
}

fn head(text: &mut String) {
    let [stream, sent, received, resent, by_host] = HEAD;
    let _ = writeln!(text, "{stream:>6}  {sent:>10}  {received:>10}  {resent:>8}  {by_host:>14}  addresses");
}

fn own_text(text: &mut String, host: &str, found: &ThroughputResult) {
    head(text);
    let again = |sent: Option<&Sent>| sent.map(|sent| u64::from(sent.retransmissions));
    for (index, (from, to)) in found.ends.iter().enumerate() {
        let rates = [&found.server, &found.client].map(|side| side.received.get(index).map(Received::rate));
        let resent = [&found.client, &found.server].map(|side| again(side.sent.get(index)));
        row(text, &(index + 1).to_string(), rates, resent, &format!("{} {}", from.ip(), to.ip()));
    }
    let sum = |sent: &[Sent]| {
        (!sent.is_empty()).then(|| sent.iter().map(|sent| u64::from(sent.retransmissions)).sum())
    };
    let resent = [sum(&found.client.sent), sum(&found.server.sent)];
    row(text, "total", [found.sent_rate(), found.received_rate()], resent, "Mbit/s, segments");
    for (cpu, whose) in [(&found.client.cpu, "this host"), (&found.server.cpu, host)] {
        let _ = writeln!(text, "{}", cpu_text(cpu, whose));
    }
}

fn cpu_text(cpu: &CpuUse, whose: &str) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let limit = if cpu.is_limit() { "; this may be the limit, not the network" } else { "" };
    format!(
        "processors of {whose}: {} of {} in use, the busiest {}, the busiest thread of the test {}{limit}",
        percent(cpu.busy),
        cpu.processors,
        percent(cpu.busiest),
        percent(cpu.thread)
    )
}

fn iperf3_text(text: &mut String, host: &str, found: &Iperf3Result) {
    head(text);
    let ways = [&found.sent, &found.received];
    let streams = ways.iter().filter_map(|way| way.as_ref().map(|way| way.streams.len())).max().unwrap_or(0);
    for index in 0..streams {
        let rates = ways.map(|way| way.as_ref().and_then(|way| way.streams.get(index).copied()));
        row(text, &(index + 1).to_string(), rates, [None, None], "");
    }
    let total = |way: &Option<Iperf3Direction>| way.as_ref().map(|way| way.total);
    let resent = |way: &Option<Iperf3Direction>| way.as_ref().map(|way| way.retransmissions);
    row(text, "total", ways.map(total), ways.map(resent), "Mbit/s, segments");
    let [here, there] = found.cpu.map(|share| format!("{:.0} %", share * 100.0));
    let _ = writeln!(text, "iperf3 used {here} of a processor here and {there} at {host}");
}

/// The result for programs.
pub fn json_of(host: &str, test: &ThroughputTest, found: &Measured, faults: &[String]) -> Value {
    let [sent, received] = found.rates();
    let mut value = json!({
        "host": host,
        "server": test.server.to_string(),
        "seconds": test.duration.as_secs_f64(),
        "sent_bits_per_s": sent,
        "received_bits_per_s": received,
        "faults": faults,
    });
    let detail = match found {
        Measured::Own(found) => json!({
            "tool": "own",
            "streams": streams_of(found),
            "cpu": { "this_host": found.client.cpu, "host": found.server.cpu },
        }),
        Measured::Iperf3(found) => {
            let way = |way: &Option<Iperf3Direction>| {
                way.as_ref().map(|way| json!({ "streams_bits_per_s": way.streams, "retransmissions": way.retransmissions }))
            };
            json!({ "tool": found.version, "sent": way(&found.sent), "received": way(&found.received), "cpu": found.cpu })
        }
    };
    if let (Value::Object(value), Value::Object(detail)) = (&mut value, detail) {
        value.extend(detail);
    }
    value
}

/// A host whose test has no result, for programs.
pub fn json_of_failure(host: &str, test: &ThroughputTest, error: &CheckError) -> Value {
    json!({ "host": host, "server": test.server.to_string(), "faults": [error.to_string()] })
}

fn streams_of(found: &ThroughputResult) -> Vec<Value> {
    let stream = |(index, (from, to)): (usize, &(std::net::SocketAddr, std::net::SocketAddr))| {
        let rate = |received: &[Received]| received.get(index).map(Received::rate);
        json!({
            "from": from.to_string(),
            "to": to.to_string(),
            "sent_bits_per_s": rate(&found.server.received),
            "received_bits_per_s": rate(&found.client.received),
            "sent": found.client.sent.get(index),
            "sent_by_host": found.server.sent.get(index),
        })
    };
    found.ends.iter().enumerate().map(stream).collect()
}

#[cfg(test)]
mod tests {
    use polygraph_netcheck::throughput::SideResult;

    use super::*;

    #[test]
    fn a_table_of_streams() {
        let received = |bytes, complete| Received { bytes, first_s: 0.0, end_s: 10.0, complete };
        let sent = |retransmissions| Sent { retransmissions, ..Sent::default() };
        let end = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
        let busy = CpuUse { processors: 2, busy: 0.5, busiest: 0.96, thread: 0.4 };
        let found = ThroughputResult {
            ends: vec![end, end],
            client: SideResult { sent: vec![sent(3), sent(4)], cpu: busy, ..SideResult::default() },
            server: SideResult {
                received: vec![received(125_000_000, true), received(1_250_000, false)],
                ..SideResult::default()
            },
        };
        let test = ThroughputTest {
            server: end.1,
            sources: Vec::new(),
            streams: 2,
            duration: std::time::Duration::from_secs(10),
            direction: polygraph_netcheck::throughput::Direction::Send,
            patience: std::time::Duration::from_secs(1),
        };
        let found = Measured::Own(Box::new(found));
        let faults = found.faults("host", Some(200.0));
        let text = text_of("host", &test, &found, &faults);
        for line in [
            "host (10.0.0.2:5000), 2 streams, 10 s, own measurement",
            "     1      100.00           -         3               -  10.0.0.1 10.0.0.2",
            " total      101.00           -         7               -  Mbit/s, segments",
            "FAILS: 101.00 Mbit/s to host are less than 200",
            "FAILS: 1 direction of streams broke off or stood still",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            text.contains("the busiest 96 %, the busiest thread of the test 40 %; this may be the limit"),
            "{text}"
        );
        assert_eq!(json_of("host", &test, &found, &faults)["sent_bits_per_s"], 101e6);
    }
}
