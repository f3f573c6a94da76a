//! What is printed: console lines of a run, progress, errors. Results go to standard output, the rest to
//! standard error.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use polygraph_report::Scope;
use polygraph_report::console::{ConsoleForm, ConsoleLine, ConsoleSpan, stamp};
use polygraph_report::lr::end_reason;
use polygraph_stats::{Header, Interval, Record, Side};

use crate::{Failure, exit};

// The macros of the standard library panic when nobody reads any more (`polygraph run | head -1`), which is no reason to
// end a test.

/// A line to standard output.
macro_rules! say {
    ($($arg:tt)*) => {{
        let _ = writeln!(std::io::stdout().lock(), $($arg)*);
    }};
}

/// A line to standard error.
macro_rules! tell {
    ($($arg:tt)*) => {{
        let _ = writeln!(std::io::stderr().lock(), $($arg)*);
    }};
}

/// Text to standard error.
macro_rules! tell_raw {
    ($($arg:tt)*) => {{
        let _ = write!(std::io::stderr().lock(), $($arg)*);
    }};
}

/// Prints a result.
pub fn print(text: &str) {
    // A reader that went away (`lx ... | head`) is no error of ours.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints a remark.
pub fn note(text: &str) {
    tell!("{text}");
}

/// Prints text that is laid out already.
pub fn note_raw(text: &str) {
    tell_raw!("{text}");
}

/// Prints a warning.
pub fn warn(text: &str) {
    tell!("warning: {text}");
}

/// Prints why a command could not be carried out.
pub fn failure(failure: &Failure) -> ExitCode {
    let mut text = String::new();
    for cause in failure.error.chain().map(|cause| cause.to_string()) {
        // Messages that already name their cause need not name it twice.
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    match failure.verdict {
        true => print(&format!("{text}\n")),
        false => tell!("error: {text}"),
    }
    ExitCode::from(failure.code)
}

/// Prints help, version, or what is wrong with the command line `words`.
pub fn usage(error: &clap::Error, words: &[String]) -> ExitCode {
    let _ = error.print();
    let is_workload = words.iter().any(|word| word == "--config" || word.starts_with("--config="));
    if error.kind() == clap::error::ErrorKind::ArgumentConflict && is_workload {
        let hint = "what a workload file describes is changed with --set NAME=VALUE, for example --set ReqRate=100/sec; \
            polygraph check FILE shows what it would do";
        tell!("\nhint: {hint}");
    }
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK })
}

/// The console of one side alone, with statistics lines in the form of its generation: 1.x if options describe the
/// test, the later one, with a time stamp before every line, if a workload file does.
#[derive(Debug)]
pub struct Classic {
    verbosity: u8,
    form: ConsoleForm,
    ok_so_far: u64,
    /// The intervals of the current phase so far, as one.
    phase: Option<Interval>,
}

impl Classic {
    /// A console at a verbosity level, for a test that comes from a workload file.
    pub fn new(verbosity: u8) -> Classic {
        Classic { verbosity, form: ConsoleForm::V4, ok_so_far: 0, phase: None }
    }

    /// For a test that options describe, if `yes`.
    #[must_use]
    pub fn of_options(self, yes: bool) -> Classic {
        let form = if yes { ConsoleForm::V1 } else { self.form };
        Classic { form, ..self }
    }

    /// What stands before messages.
    fn stamp(&self, at_ns: u64) -> String {
        match self.form {
            ConsoleForm::V1 => String::new(),
            ConsoleForm::V4 => stamp(at_ns as f64 * 1e-9),
        }
    }

    /// Shows a record if the verbosity asks for it.
    pub fn show(&mut self, header: &Header, record: &Record) {
        match record {
            Record::Interval(interval) => {
                self.ok_so_far += interval.block.ok_count();
                if self.verbosity >= 2 {
                    let scope = Scope::of_intervals([&**interval]);
                    self.line(header, ConsoleSpan::Interval, interval.phase, interval.end_ns, &scope);
                }
                if self.verbosity >= 1 {
                    match self.phase.as_mut().filter(|phase| phase.phase == interval.phase) {
                        Some(phase) => phase.append(interval),
                        None => self.phase = Some((**interval).clone()),
                    }
                }
            }
            Record::PhaseEnd { at_ns, phase, .. } if self.verbosity >= 1 => {
                let intervals = self.phase.iter().filter(|interval| interval.phase == *phase);
                self.line(header, ConsoleSpan::Phase, *phase, *at_ns, &Scope::of_intervals(intervals));
            }
            Record::Comment { at_ns, text, level } if *level <= self.verbosity => {
                text.lines().for_each(|line| say!("{}{line}", self.stamp(*at_ns)));
            }
            Record::ErrorSample { at_ns, kind, detail, .. } if self.verbosity >= 1 => {
                say!("{}error: ({}) {}: {detail}", self.stamp(*at_ns), kind.number(), kind.text());
            }
            Record::End { reason, unfinished, .. } => {
                say!("shutdown reason: {}", end_reason(reason));
                if *unfinished > 0 && self.verbosity >= 1 {
                    say!("{unfinished} transactions were not finished");
                }
            }
            _ => {}
        }
    }

    fn line(&self, header: &Header, span: ConsoleSpan, phase: u32, at_ns: u64, scope: &Scope) {
        let line = ConsoleLine {
            span,
            phase: header.phases.get(phase as usize).map_or("?", |phase| phase.name.as_str()),
            at_s: at_ns as f64 * 1e-9,
            start_unix_ns: header.start_unix_ns,
            ok_so_far: self.ok_so_far,
            scope,
        };
        say!("{}", line.text(self.form));
    }
}

/// Why a server may not listen at its address, and what to do about it; empty if the error says it all.
pub fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need root, or CAP_NET_BIND_SERVICE: run it as root (sudo), or take a higher port"
        }
        std::io::ErrorKind::AddrInUse => "; another program uses it",
        std::io::ErrorKind::AddrNotAvailable => "; it is not an address of this host",
        _ => "",
    }
}

/// Columns of the terminal that standard error or output goes to, or 100 if there is none.
pub fn columns() -> usize {
    let of = |file: rustix::fd::BorrowedFd<'_>| rustix::termios::tcgetwinsize(file).ok();
    let size = of(std::io::stderr().as_fd()).or_else(|| of(std::io::stdout().as_fd()));
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(100)
}

/// A line that says how far a run is and when it will be over: rewritten in place on a terminal, a plain line
/// every ten seconds elsewhere.
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

    /// Shows a line that the next one replaces; elsewhere than on a terminal it stays.
    pub fn line(&mut self, text: &str) {
        if self.in_place {
            // A line that is wider than the terminal would go on in the next one, and stay there.
            let fitting: String = text.chars().take(columns().saturating_sub(1)).collect();
            tell_raw!("\r{fitting}\x1b[K");
            let _ = std::io::stderr().flush();
        } else {
            tell!("{text}");
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.in_place {
            tell_raw!("\r\x1b[K");
        }
    }

    /// Takes the line away if something else may be said of a record.
    pub fn give_way(&mut self, record: &Record) {
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
                tell!("{}{text}", stamp(*at_ns as f64 * 1e-9));
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
        let moment = Moment {
            phase: header.phases.get(interval.phase as usize).map_or("?", |phase| phase.name.as_str()),
            clock: match self.total_s {
                Some(total) => format!("{} left", short_time((total - now_s).max(0.0))),
                None => format!("{} gone", short_time(now_s)),
            },
            rate: block.ok_count() as f64 / interval.seconds(),
            rptm_ms: block.mean_rptm_us().map(|us| us / 1000.0),
            hits: block.hit_ratio(),
            failed: self.failed,
            open: block.conns.last,
        };
        // What stays in a file need not fit anywhere.
        let width = if self.in_place { columns().saturating_sub(1) } else { usize::MAX };
        self.line(&moment.line(width));
    }
}

/// What the live line shows.
struct Moment<'a> {
    phase: &'a str,
    clock: String,
    rate: f64,
    rptm_ms: Option<f64>,
    hits: Option<f64>,
    failed: u64,
    open: u64,
}

impl Moment<'_> {
    /// The most detailed form that fits. All of them have everything but the number of open connections.
    fn line(&self, width: usize) -> String {
        let Moment { phase, clock, rate, failed, open, .. } = self;
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

/// A time in a word or two: `42s`, `3:05min`, `1:30h`.
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
        let moment = Moment {
            phase: "meas",
            clock: "59:59 min left".into(),
            rate: 12_345.6,
            rptm_ms: Some(1453.2),
            hits: Some(0.551),
            failed: 1234,
            open: 60_000,
        };
        for width in [200, 100, 80, 60, 50, 40] {
            let line = moment.line(width);
            assert!(line.chars().count() <= width, "{width}: {line}");
            for part in ["meas", "59:59", "1234", "55.1", "/s"] {
                assert!(line.contains(part), "{part} at {width}: {line}");
            }
        }
        assert!(moment.line(200).contains("open 60000") && moment.line(10).chars().count() <= 10);
        let idle = Moment { rptm_ms: None, hits: None, ..moment };
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
