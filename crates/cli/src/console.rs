//! What is printed: console lines of a run, progress, errors. Results go to standard output, the rest to
//! standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where printing happens")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use polygraph_stats::{EndReason, Header, Interval, Record, Side};

use crate::{Failure, exit};

/// Prints a result.
pub fn print(text: &str) {
    // A reader that went away (`lx ... | head`) is no error of ours.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints a remark.
pub fn note(text: &str) {
    eprintln!("{text}");
}

/// Prints a warning.
pub fn warn(text: &str) {
    eprintln!("warning: {text}");
}

/// Prints why a command could not be carried out.
pub fn failure(failure: &Failure) -> ExitCode {
    eprintln!("error: {:#}", failure.error);
    ExitCode::from(failure.code)
}

/// Prints help, version, or what is wrong with a command line.
pub fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK })
}

/// Console lines in the form of generation 1.x: absolute time, `i-` (interval) or `p-` (phase) and the
/// phase's name, replies so far, replies per second, hit ratio in percent, errors, and on `i-` lines open
/// sockets.
#[derive(Debug)]
pub struct Classic {
    verbosity: u8,
    replies: u64,
    phase: Option<PhaseSoFar>,
}

#[derive(Debug, Default)]
struct PhaseSoFar {
    seconds: f64,
    replies: u64,
    hits: u64,
    errors: u64,
}

impl Classic {
    /// A console at a verbosity level.
    pub fn new(verbosity: u8) -> Classic {
        Classic { verbosity, replies: 0, phase: None }
    }

    /// Shows a record if the verbosity asks for it.
    pub fn show(&mut self, header: &Header, record: &Record) {
        match record {
            Record::PhaseBegin { .. } => self.phase = Some(PhaseSoFar::default()),
            Record::Interval(interval) => self.interval(header, interval),
            Record::PhaseEnd { at_ns, phase, .. } => self.phase_end(header, *at_ns, *phase),
            Record::Comment { text, level, .. } if *level <= self.verbosity => println!("{text}"),
            Record::ErrorSample { kind, detail, .. } if self.verbosity >= 1 => {
                println!("error: ({}) {}: {detail}", kind.number(), kind.text());
            }
            Record::End { reason, unfinished, .. } => {
                println!("shutdown reason: {}", reason_text(reason));
                if *unfinished > 0 && self.verbosity >= 1 {
                    println!("{unfinished} transactions were not finished");
                }
            }
            _ => {}
        }
    }

    fn interval(&mut self, header: &Header, interval: &Interval) {
        let block = &interval.block;
        let ok = block.ok_count();
        self.replies += ok;
        if let Some(phase) = &mut self.phase {
            phase.seconds += interval.seconds();
            phase.replies += ok;
            phase.hits += block.class(polygraph_stats::Class::Hit).size.count();
            phase.errors += block.failed_count();
        }
        if self.verbosity >= 2 {
            let line = line(
                header,
                interval.end_ns,
                'i',
                interval.phase,
                self.replies,
                ok as f64 / interval.seconds(),
                percent(block.hit_ratio()),
                block.failed_count(),
            );
            println!("{line} {:>5}", block.conns.last);
        }
    }

    fn phase_end(&mut self, header: &Header, at_ns: u64, index: u32) {
        let Some(phase) = self.phase.take().filter(|_| self.verbosity >= 1) else { return };
        let hit_ratio = (phase.replies > 0).then(|| phase.hits as f64 / phase.replies as f64);
        let rate = if phase.seconds > 0.0 { phase.replies as f64 / phase.seconds } else { 0.0 };
        println!(
            "{}",
            line(header, at_ns, 'p', index, self.replies, rate, percent(hit_ratio), phase.errors)
        );
    }
}

/// The columns that interval and phase lines share.
#[expect(clippy::too_many_arguments, reason = "one for each column")]
fn line(
    header: &Header,
    at_ns: u64,
    kind: char,
    phase: u32,
    replies: u64,
    rate: f64,
    hits: f64,
    errors: u64,
) -> String {
    let unix = header.start_unix_ns + at_ns;
    let name = header.phases.get(phase as usize).map_or("?", |phase| phase.name.as_str());
    format!(
        "{}.{:06} {:<7} {replies:>7} {rate:>8.2} {hits:>6.2} {errors:>3}",
        unix / 1_000_000_000,
        unix / 1000 % 1_000_000,
        format!("{kind}-{name}"),
    )
}

/// Percent, or -1 where undefined, as the classic console has it.
fn percent(ratio: Option<f64>) -> f64 {
    ratio.map_or(-1.0, |ratio| ratio * 100.0)
}

/// The reason of a shutdown in words.
pub fn reason_text(reason: &EndReason) -> String {
    match reason {
        EndReason::Finished => "all phases met their goals".into(),
        EndReason::ErrorGoal { phase } => {
            format!("too many transactions failed: the error goal of phase {phase} was reached")
        }
        EndReason::Interrupted => "stopped by a signal".into(),
        EndReason::Idle => "no traffic for the idle time-out".into(),
        EndReason::Fatal(why) => format!("fatal: {why}"),
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
        let in_place = std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        Progress { total_s, in_place, last_shown_s: f64::NEG_INFINITY }
    }

    /// Shows a record of the client's log.
    pub fn show(&mut self, header: &Header, record: &Record) {
        if header.side != Side::Client {
            return;
        }
        match record {
            Record::Interval(interval) => self.interval(header, interval),
            Record::End { .. } if self.in_place => eprint!("\r\x1b[K"),
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
        if self.in_place {
            eprint!("\r{text}\x1b[K");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }
}
