//! What one side alone says at its end: figures, what it knows of the verdict, and what to do next.

use std::fmt::Write as _;
use std::path::Path;

use polygraph_report::text::{bytes, ms, number};
use polygraph_report::{fold_files, summary_text};
use polygraph_stats::{Block, Interval, Record, Side};

/// The statistics of a side so far, whether there is a log or not.
#[derive(Debug, Default)]
pub struct Ending {
    total: Option<Interval>,
    seconds: f64,
}

impl Ending {
    /// Takes note of a record.
    pub fn see(&mut self, record: &Record) {
        if let Record::Interval(interval) = record {
            self.seconds += interval.seconds();
            match &mut self.total {
                Some(total) => total.append(interval),
                None => self.total = Some((**interval).clone()),
            }
        }
    }

    /// The summary of robots. With a log there is a verdict, as far as robots can know.
    pub fn of_client(&self, log: Option<&Path>) -> String {
        let facts = log.and_then(|log| fold_files(&[log.to_owned()]).ok());
        let (Some(log), Some(facts)) = (log, facts) else {
            let next = "--log FILE on both sides keeps the statistics; polygraph report CLIENT.log SERVER.log makes a verdict of them";
            return format!("\n{}{}", self.figures(Side::Client), row("next", next));
        };
        let next = format!(
            "polygraph report {} SERVER.log, with the server's log, for the whole verdict and all figures",
            log.display()
        );
        format!(
            "\nas far as the robots know:\n{}{}",
            summary_text(&facts, &[("log", log)]),
            row("next", &next)
        )
    }

    /// The summary of servers, which cannot judge a device.
    pub fn of_server(&self, log: Option<&Path>) -> String {
        let next = match log {
            Some(log) => format!("polygraph report CLIENT.log {}, with the client's log, makes a verdict", log.display()),
            None => "--log FILE on both sides keeps the statistics; polygraph report CLIENT.log SERVER.log makes a verdict of them".into(),
        };
        format!("\n{}{}", self.figures(Side::Server), row("next", &next))
    }

    fn figures(&self, side: Side) -> String {
        let Some(Interval { block, .. }) = &self.total else {
            let nothing = match side {
                Side::Client => "no request was sent",
                Side::Server => "no request came: does the device, or the client, know this address?",
            };
            return row("requests", nothing);
        };
        let mut out = row("requests", &requests(block, self.seconds));
        out += &row("errors", &errors(block));
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
    format!("{good} well done in {} s, {} a second", number(Some(seconds), 0), number(rate, 1))
}

/// How many failed, and of what most.
fn errors(block: &Block) -> String {
    let failed = block.failed_count();
    let all = failed + block.ok_count();
    let share = (all > 0).then(|| failed as f64 * 100.0 / all as f64);
    let mut text = format!("{failed} of {all} transactions, {} %", number(share, 2));
    let worst = block.errors.iter().filter(|(kind, _)| kind.fails()).max_by_key(|(_, count)| *count);
    if let Some((kind, count)) = worst {
        let _ = write!(text, "; {count} times: {}", kind.text());
    }
    text
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<14} {text}\n")
}
