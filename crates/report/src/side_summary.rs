//! The summary of a process with only one side: figures, the verdict as far as this side can judge, and the next step.

use std::fmt::Write as _;
use std::path::Path;

use polygraph_stats::{Block, Interval, Record, Side};

use crate::fold::fold_files;
use crate::summary::summary_text;
use crate::text::{bytes, duration, ms, number, times};

/// What to do to get a verdict.
const KEEP_LOGS: &str =
    "use --log FILE on both sides, then `polygraph report CLIENT.log SERVER.log` for a verdict";

/// The statistics of a side so far, collected without a log.
#[derive(Debug, Default)]
pub struct SideSummary {
    total: Option<Interval>,
    seconds: f64,
}

impl SideSummary {
    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        if let Record::Interval(interval) = record {
            self.seconds += interval.seconds();
            match &mut self.total {
                Some(total) => total.append(interval),
                None => self.total = Some((**interval).clone()),
            }
        }
    }

    /// The summary of the client side. With a log it includes a verdict as far as the client side can judge.
    pub fn of_client(&self, log: Option<&Path>) -> String {
        let facts = log.and_then(|log| fold_files(&[log.to_owned()]).ok());
        let (Some(log), Some(facts)) = (log, facts) else {
            return format!("\n{}{}", self.figures(Side::Client), row("next", KEEP_LOGS));
        };
        let next = format!(
            "`polygraph report {} SERVER.log` with the server's log for the complete verdict and all figures",
            log.display()
        );
        format!(
            "\nJudged by the client side alone:\n{}{}",
            summary_text(&facts, &[("log", log)]),
            row("next", &next)
        )
    }

    /// The summary of the server side, which has no verdict.
    pub fn of_server(&self, log: Option<&Path>) -> String {
        let next = match log {
            Some(log) => {
                format!("`polygraph report CLIENT.log {}` with the client's log for a verdict", log.display())
            }
            None => KEEP_LOGS.to_owned(),
        };
        format!("\n{}{}", self.figures(Side::Server), row("next", &next))
    }

    fn figures(&self, side: Side) -> String {
        let Some(Interval { block, .. }) = &self.total else {
            let nothing = match side {
                Side::Client => "no request was sent",
                Side::Server => "no request arrived: check that the device or the client uses this address",
            };
            return row("requests", nothing);
        };
        let mut out = row("requests", &requests(block, self.seconds));
        out += &row("errors", &errors(block));
        let refused = block.tls.refusal_count() + block.tls.refused_handshakes;
        if refused > 0 {
            out += &row("certificates", &format!("{refused} bad ones refused, as they must be"));
        }
        out += &row("response time", &format!("mean {}", ms(block.mean_rptm_us().map(|us| us / 1000.0))));
        if side == Side::Client {
            let percent = |ratio: Option<f64>| number(ratio.map(|ratio| ratio * 100.0), 2);
            out += &row("hit ratio", &format!("{} % of the documents", percent(block.hit_ratio())));
        }
        out + &row(
            "traffic",
            &format!("{} read, {} written", bytes(Some(block.reads.sum())), bytes(Some(block.writes.sum()))),
        )
    }
}

fn requests(block: &Block, seconds: f64) -> String {
    let good = block.ok_count();
    let rate = (seconds > 0.0).then(|| good as f64 / seconds);
    format!("{good} succeeded in {}, {} per second", duration(seconds.round()), number(rate, 1))
}

/// The number of failed transactions, and the most frequent error.
fn errors(block: &Block) -> String {
    let failed = block.failed_count();
    let all = failed + block.ok_count();
    let share = (all > 0).then(|| failed as f64 * 100.0 / all as f64);
    let mut text = format!("{failed} of {all} transactions, {} %", number(share, 2));
    let worst = block.errors.iter().filter(|(kind, _)| kind.fails()).max_by_key(|(_, count)| *count);
    if let Some((kind, count)) = worst {
        let _ = write!(text, "; {}: {}", times(count), kind.text());
    }
    text
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<14} {text}\n")
}
