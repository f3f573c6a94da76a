//! What is printed: console lines of a run, progress, errors. Results go to standard output, the rest to
//! standard error.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use polygraph_report::Scope;
use polygraph_report::console::{Form, Line, Span, stamp};
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

/// Prints help, version, or what is wrong with a command line.
pub fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK })
}

/// The console of one side alone, with statistics lines in the form of its generation: 1.x if options describe the
/// test, the later one, with a time stamp before every line, if a workload file does.
#[derive(Debug)]
pub struct Classic {
    verbosity: u8,
    form: Form,
    ok_so_far: u64,
    /// The intervals of the current phase so far, as one.
    phase: Option<Interval>,
}

impl Classic {
    /// A console at a verbosity level, for a test that comes from a workload file.
    pub fn new(verbosity: u8) -> Classic {
        Classic { verbosity, form: Form::V4, ok_so_far: 0, phase: None }
    }

    /// For a test that options describe, if `yes`.
    #[must_use]
    pub fn of_options(self, yes: bool) -> Classic {
        let form = if yes { Form::V1 } else { self.form };
        Classic { form, ..self }
    }

    /// What stands before messages.
    fn stamp(&self, at_ns: u64) -> String {
        match self.form {
            Form::V1 => String::new(),
            Form::V4 => stamp(at_ns as f64 * 1e-9),
        }
    }

    /// Shows a record if the verbosity asks for it.
    pub fn show(&mut self, header: &Header, record: &Record) {
        match record {
            Record::Interval(interval) => {
                self.ok_so_far += interval.block.ok_count();
                if self.verbosity >= 2 {
                    let scope = Scope::of_intervals([&**interval]);
                    self.line(header, Span::Interval, interval.phase, interval.end_ns, &scope);
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
                self.line(header, Span::Phase, *phase, *at_ns, &Scope::of_intervals(intervals));
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

    fn line(&self, header: &Header, span: Span, phase: u32, at_ns: u64, scope: &Scope) {
        let line = Line {
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

/// A line that says how far a run is and when it will be over: rewritten in place on a terminal, a plain line
/// every ten seconds elsewhere.
#[derive(Debug)]
pub struct Progress {
    total_s: Option<f64>,
    in_place: bool,
    last_shown_s: f64,
}

impl Progress {
    /// Progress of a run that takes `total_s` seconds, if that is known.
    pub fn new(total_s: Option<f64>) -> Progress {
        let in_place =
            std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        Progress { total_s, in_place, last_shown_s: f64::NEG_INFINITY }
    }

    /// Shows a line that the next one replaces; elsewhere than on a terminal it stays.
    pub fn line(&mut self, text: &str) {
        if self.in_place {
            tell_raw!("\r{text}\x1b[K");
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
        let now_s = interval.end_ns as f64 * 1e-9;
        if !self.in_place && now_s < self.last_shown_s + 10.0 {
            return;
        }
        self.last_shown_s = now_s;
        let block = &interval.block;
        let phase = header.phases.get(interval.phase as usize).map_or("?", |phase| phase.name.as_str());
        let eta = match self.total_s {
            Some(total) => format!("{:>3.0} s left", (total - now_s).max(0.0)),
            None => format!("{now_s:.0} s"),
        };
        let rptm = block.mean_rptm_us().map_or_else(|| "-".into(), |us| format!("{:.0} ms", us / 1000.0));
        let dhr = block.hit_ratio().map_or_else(|| "-".into(), |ratio| format!("{:.1} %", ratio * 100.0));
        let text = format!(
            "{eta}  {phase:<5} {:>7.1} replies/s  response {rptm:>8}  hits {dhr:>7}  errors {}  open {}",
            block.ok_count() as f64 / interval.seconds(),
            block.failed_count(),
            block.conns.last,
        );
        self.line(&text);
    }
}
