//! The progress line of a run.

use std::io::{IsTerminal, Write};

use polygraph_report::console::stamp;
use polygraph_stats::{Header, Interval, Record, Side};

use super::{columns, is_quiet, print_err, write_err};

/// The progress line of a run: current figures, and the time until the run ends. On a terminal the line is rewritten in place;
/// elsewhere a new line appears every ten seconds.
#[derive(Debug)]
pub struct Progress {
    total_s: Option<f64>,
    in_place: bool,
    last_shown_s: f64,
    /// Failed transactions so far.
    failed: u64,
}

impl Progress {
    /// Progress of a run that takes `total_s` seconds, if that is known.
    pub fn new(total_s: Option<f64>) -> Progress {
        let in_place =
            std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        Progress { total_s, in_place, last_shown_s: f64::NEG_INFINITY, failed: 0 }
    }

    /// Shows a line. On a terminal, the next line replaces it.
    pub fn line(&mut self, text: &str) {
        if is_quiet() {
            return;
        }
        if self.in_place {
            // The part of a line that is wider than the terminal would not be replaced.
            let fitting: String = text.chars().take(columns().saturating_sub(1)).collect();
            write_err!("\r{fitting}\x1b[K");
            let _ = std::io::stderr().flush();
        } else {
            print_err!("{text}");
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.in_place && !is_quiet() {
            write_err!("\r\x1b[K");
        }
    }

    /// Removes the line if something else may be shown for a record.
    pub fn clear_for(&mut self, record: &Record) {
        if !matches!(record, Record::Interval(_)) {
            self.clear();
        }
    }

    /// Shows a record of the client's log.
    pub fn show(&mut self, header: &Header, record: &Record) {
        if header.side != Side::Client {
            return;
        }
        match record {
            Record::Interval(interval) => self.interval(header, interval),
            Record::Comment { at_ns, level: 0, text } => {
                self.clear();
                print_err!("{}{text}", stamp(*at_ns as f64 * 1e-9));
            }
            Record::End { .. } => self.clear(),
            _ => {}
        }
    }

    fn interval(&mut self, header: &Header, interval: &Interval) {
        self.failed += interval.block.failed_count();
        let now_s = interval.end_ns as f64 * 1e-9;
        if !self.in_place && now_s < self.last_shown_s + 10.0 {
            return;
        }
        self.last_shown_s = now_s;
        let block = &interval.block;
        let progress = LiveFigures {
            phase: header.phases.get(interval.phase as usize).map_or("?", |phase| phase.name.as_str()),
            clock: match self.total_s {
                Some(total) => format!("{} left", short_time((total - now_s).max(0.0))),
                None => format!("{} elapsed", short_time(now_s)),
            },
            rate: block.ok_count() as f64 / interval.seconds(),
            rptm_ms: block.mean_rptm_us().map(|us| us / 1000.0),
            hits: block.hit_ratio(),
            failed: self.failed,
            open: block.conns.last,
        };
        // A file has no width.
        let width = if self.in_place { columns().saturating_sub(1) } else { usize::MAX };
        self.line(&progress.line(width));
    }
}

/// The figures of the progress line.
struct LiveFigures<'a> {
    phase: &'a str,
    clock: String,
    rate: f64,
    rptm_ms: Option<f64>,
    hits: Option<f64>,
    failed: u64,
    open: u64,
}

impl LiveFigures<'_> {
    /// The most detailed form that fits. All forms have all figures, except the number of open connections.
    fn line(&self, width: usize) -> String {
        let LiveFigures { phase, clock, rate, failed, open, .. } = self;
        let rptm = polygraph_report::text::ms(self.rptm_ms);
        let hits = polygraph_report::text::number(self.hits.map(|ratio| ratio * 100.0), 1);
        let tight = |text: &str| text.replace(' ', "");
        let middle = format!(
            "{clock:>9}  {phase:<5} {rate:>7.1}/s  resp {rptm:>8}  hits {hits:>5} %  errors {failed}"
        );
        let forms = [
            format!(
                "{clock:>9}  {phase:<5} {rate:>7.1} replies/s  response {rptm:>8}  hits {hits:>5} %  errors {failed}  open {open}"
            ),
            middle,
            format!("{} {phase} {rate:.1}/s {} hits {hits}% err {failed}", tight(clock), tight(&rptm)),
            format!(
                "{} {phase} {rate:.0}/s {} {hits}% e{failed}",
                tight(clock.split(' ').next().unwrap_or("")),
                tight(&rptm)
            ),
        ];
        let fits = |line: &&String| line.chars().count() <= width;
        let shortest = forms.iter().min_by_key(|line| line.chars().count());
        let line = forms.iter().find(fits).or(shortest).cloned().unwrap_or_default();
        line.chars().take(width).collect()
    }
}

/// A short form of a time: `42 s`, `3:05 min`, `1:30 h`.
fn short_time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..=99 => format!("{whole} s"),
        100..=5999 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_line_fits_and_has_everything() {
        let figures = LiveFigures {
            phase: "meas",
            clock: "59:59 min left".into(),
            rate: 12_345.6,
            rptm_ms: Some(1453.2),
            hits: Some(0.551),
            failed: 1234,
            open: 60_000,
        };
        for width in [200, 100, 80, 60, 50, 40] {
            let line = figures.line(width);
            assert!(line.chars().count() <= width, "{width}: {line}");
            for part in ["meas", "59:59", "1234", "55.1", "/s"] {
                assert!(line.contains(part), "{part} at {width}: {line}");
            }
        }
        assert!(figures.line(200).contains("open 60000") && figures.line(10).chars().count() <= 10);
        let idle = LiveFigures { rptm_ms: None, hits: None, ..figures };
        assert!(idle.line(80).contains('–'), "{}", idle.line(80));
    }

    #[test]
    fn times_are_short() {
        for (seconds, text) in
            [(0.4, "0 s"), (99.0, "99 s"), (185.0, "3:05 min"), (5400.0, "90:00 min"), (6000.0, "1:40 h")]
        {
            assert_eq!(short_time(seconds), text);
        }
    }
}
