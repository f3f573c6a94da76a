//! `polygraph net ping`: echo times between many addresses.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use polygraph_netcheck::ping::{PairTimes, PingPlan, measure};
use polygraph_plan::values::share;
use polygraph_runner::Failure;
use serde_json::{Value, json};

use super::{bench_addresses, check_failure, counted};
use crate::exit::{Done, FAILED};
use crate::options::values::{AddressList, duration, whole};
use crate::output;

/// Larger matrices are not drawn.
const COLUMNS: usize = 8;
const ROWS: usize = 64;
/// Pairs that are listed one by one; of more, only those that fail.
const LISTED: usize = 64;

/// Options of `net ping`.
#[derive(clap::Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  \
        polygraph net ping --to 10.16.129-130.1-4\n  \
        polygraph net ping --from 10.16.1-2.1 --to 10.16.129-130.1 --count 20\n  \
        polygraph net ping --from 10.16.1.1 --to 10.16.129.1 --min_rtt 78ms --max_rtt 82ms   the delay of PolyMix-3\n\n\
        Every source asks every target of its family. A pair fails if no echo comes back, or if it misses a condition; then \
        the exit code is 1."
)]
pub struct Args {
    /// Addresses of this host, as ranges. Default: the one from which routes lead to each target
    #[arg(long, value_name = "RANGES", value_parser = bench_addresses)]
    from: Option<AddressList>,
    /// Addresses that are to answer, as ranges
    #[arg(long, value_name = "RANGES", value_parser = bench_addresses)]
    to: AddressList,
    /// Requests for each pair
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole(1..=1_000_000_u32))]
    count: u32,
    /// Time between two requests of a pair
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration)]
    interval: Duration,
    /// How long a reply may take
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    timeout: Duration,
    /// Bytes of data in a request
    #[arg(long, value_name = "BYTES", default_value = "56", value_parser = whole(16..=65_000_usize))]
    size: usize,
    /// Most requests per second, for all pairs together
    #[arg(long, value_name = "N", default_value = "2000", value_parser = whole(1..=1_000_000_u32))]
    rate: u32,
    /// A pair fails if a larger share of its requests is lost. Default: only if all are
    #[arg(long, value_name = "SHARE", value_parser = share)]
    max_loss: Option<f64>,
    /// A pair fails if its mean round-trip time is shorter
    #[arg(long, value_name = "TIME", value_parser = duration)]
    min_rtt: Option<Duration>,
    /// A pair fails if its mean round-trip time is longer
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_rtt: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// What is wrong with a pair, if anything.
    fn fault(&self, pair: &PairTimes) -> Option<String> {
        let Some(mean) = pair.mean() else {
            return Some(pair.obstacle.clone().unwrap_or_else(|| "no answer".to_owned()));
        };
        if self.max_loss.is_some_and(|most| pair.loss() > most) {
            return Some("too many echoes are lost".to_owned());
        }
        if self.min_rtt.is_some_and(|least| mean < least) {
            return Some("the round-trip time is too short".to_owned());
        }
        (self.max_rtt.is_some_and(|most| mean > most)).then(|| "the round-trip time is too long".to_owned())
    }
}

/// Measures and prints the matrix.
pub fn run(args: &Args) -> Done {
    if args.min_rtt.zip(args.max_rtt).is_some_and(|(least, most)| least > most) {
        return Err(Failure::usage("--min_rtt is longer than --max_rtt, so no pair can meet both"));
    }
    let pairs = measure(&PingPlan {
        sources: args.from.clone().map(|list| list.0).unwrap_or_default(),
        targets: args.to.0.clone(),
        count: args.count,
        interval: args.interval,
        timeout: args.timeout,
        size: args.size,
        rate: args.rate.into(),
    })
    .map_err(check_failure)?;
    let faults: Vec<Option<String>> = pairs.iter().map(|pair| args.fault(pair)).collect();
    output::print_either(args.json, || json_of(&pairs, &faults), || text_of(&pairs, &faults));
    Ok(if faults.iter().all(Option::is_none) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn source(pair: &PairTimes) -> String {
    pair.source.map_or_else(|| "this host".to_owned(), |ip| ip.to_string())
}

fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

fn text_of(pairs: &[PairTimes], faults: &[Option<String>]) -> String {
    let mut text = matrix(pairs);
    let shown = |fault: &Option<String>| pairs.len() <= LISTED || fault.is_some();
    let rows: Vec<_> = pairs.iter().zip(faults).filter(|(_, fault)| shown(fault)).take(LISTED).collect();
    if !rows.is_empty() {
        let wide = |name: &dyn Fn(&PairTimes) -> String| {
            rows.iter().map(|(pair, _)| name(pair).len()).max().unwrap_or(0).max(6)
        };
        let (from, to) = (wide(&source), wide(&|pair| pair.target.to_string()));
        let _ = writeln!(
            text,
            "{:from$}  {:to$}  {:>6}  {:>8}  {:>9}  {:>9}  {:>9}",
            "from", "to", "sent", "lost", "min ms", "mean ms", "max ms"
        );
        for (pair, fault) in rows {
            let (min, mean, max) = match pair.mean() {
                Some(mean) => (ms(pair.min), ms(mean), ms(pair.max)),
                None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
            };
            let lost = format!("{:.2} %", pair.loss() * 100.0);
            let (source, target) = (source(pair), pair.target.to_string());
            let fault = fault.as_ref().map(|why| format!("  FAILS: {why}")).unwrap_or_default();
            let repeated = match pair.duplicates {
                0 => String::new(),
                count => format!("  came twice: {count}"),
            };
            let _ = writeln!(
                text,
                "{source:from$}  {target:to$}  {:>6}  {lost:>8}  {min:>9}  {mean:>9}  {max:>9}{fault}{repeated}",
                pair.sent
            );
        }
    }
    let failed = faults.iter().flatten().count();
    let means: Vec<f64> =
        pairs.iter().filter_map(PairTimes::mean).map(|mean| mean.as_secs_f64() * 1e3).collect();
    let (sent, received) = pairs
        .iter()
        .fold((0_u64, 0_u64), |sum, pair| (sum.0 + u64::from(pair.sent), sum.1 + u64::from(pair.received)));
    let (pairs, requests) = (counted(pairs.len() as u64, "pair"), counted(sent, "request"));
    let _ = write!(text, "{pairs}, {failed} fail; {requests}, {} lost", sent - received);
    if !means.is_empty() {
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let min = means.iter().copied().fold(f64::INFINITY, f64::min);
        let max = means.iter().copied().fold(0.0, f64::max);
        let _ = write!(
            text,
            "; mean round-trip times of pairs: {min:.3} to {max:.3} ms, {mean:.3} ms on average"
        );
    }
    text.push('\n');
    text
}

/// Sources as rows, targets as columns, and mean times in ms, unless that is too large or a single pair.
fn matrix(pairs: &[PairTimes]) -> String {
    let rows: Vec<Option<IpAddr>> =
        pairs.iter().map(|pair| pair.source).collect::<BTreeSet<_>>().into_iter().collect();
    let columns: Vec<IpAddr> =
        pairs.iter().map(|pair| pair.target).collect::<BTreeSet<_>>().into_iter().collect();
    if pairs.len() < 2 || rows.len() > ROWS || columns.len() > COLUMNS {
        return String::new();
    }
    let left = rows.iter().map(|ip| ip.map_or(9, |ip| ip.to_string().len())).max().unwrap_or(0);
    let wide = columns.iter().map(|ip| ip.to_string().len()).max().unwrap_or(0).max(9);
    let mut text = format!("mean round-trip times in ms\n{:left$}", "");
    for column in &columns {
        let _ = write!(text, "  {:>wide$}", column.to_string());
    }
    for row in rows {
        let _ = write!(text, "\n{:left$}", row.map_or_else(|| "this host".to_owned(), |ip| ip.to_string()));
        for column in &columns {
            let pair = pairs.iter().find(|pair| pair.source == row && pair.target == *column);
            let cell = match pair.map(PairTimes::mean) {
                None => String::new(),
                Some(None) => "none".to_owned(),
                Some(Some(mean)) => ms(mean),
            };
            let _ = write!(text, "  {cell:>wide$}");
        }
    }
    text + "\n\n"
}

fn json_of(pairs: &[PairTimes], faults: &[Option<String>]) -> Value {
    let of_pair = |(pair, fault): (&PairTimes, &Option<String>)| {
        let seconds = |time: Duration| pair.mean().map(|_| time.as_secs_f64());
        json!({
            "from": pair.source.map(|ip| ip.to_string()),
            "to": pair.target.to_string(),
            "sent": pair.sent,
            "received": pair.received,
            "duplicates": pair.duplicates,
            "loss": pair.loss(),
            "min_s": seconds(pair.min),
            "mean_s": pair.mean().map(|mean| mean.as_secs_f64()),
            "max_s": seconds(pair.max),
            "fault": fault,
        })
    };
    let failed = faults.iter().flatten().count();
    json!({ "pairs": pairs.iter().zip(faults).map(of_pair).collect::<Vec<_>>(), "failed": failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: u8, target: u8, replies: &[u64]) -> PairTimes {
        let mut pair = PairTimes::new(Some([10, 0, 0, source].into()), [10, 0, 1, target].into());
        pair.sent = 4;
        replies.iter().for_each(|ms| pair.book(Duration::from_millis(*ms)));
        pair
    }

    #[test]
    fn a_matrix_and_its_pairs() {
        let pairs = [pair(1, 1, &[1, 3, 2, 2]), pair(1, 2, &[]), pair(2, 1, &[80, 80]), pair(2, 2, &[1])];
        let faults = [None, Some("no answer".to_owned()), None, None];
        let text = text_of(&pairs, &faults);
        for line in [
            "           10.0.1.1   10.0.1.2",
            "10.0.0.1      2.000       none",
            "10.0.0.2     80.000      1.000",
            "10.0.0.1  10.0.1.1       4    0.00 %      1.000      2.000      3.000",
            "10.0.0.1  10.0.1.2       4  100.00 %          -          -          -  FAILS: no answer",
            "4 pairs, 1 fail; 16 requests, 9 lost; mean round-trip times of pairs: 1.000 to 80.000 ms, 27.667 ms on average",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(matrix(&pairs[..1]).is_empty());
    }
}
