//! The console of one side, as the original prints it.

use std::io::Write;

use polygraph_report::Scope;
use polygraph_report::console::{ConsoleForm, ConsoleLine, ConsoleSpan, stamp};
use polygraph_report::lr::end_reason;
use polygraph_stats::{Header, Interval, Record};
use polygraph_text::counted;

use super::print_out;

/// The console of one side, as the original prints it. Statistics lines have the form of generation 1.x if options describe
/// the test, and that of generation 4, with a time stamp before every line, if a workload file does.
#[derive(Debug)]
pub struct ClassicConsole {
    verbosity: u8,
    form: ConsoleForm,
    ok_so_far: u64,
    /// The intervals of the current phase so far, as one.
    phase: Option<Interval>,
}

impl ClassicConsole {
    /// A console with a verbosity level, for a test from a workload file.
    pub fn new(verbosity: u8) -> ClassicConsole {
        ClassicConsole { verbosity, form: ConsoleForm::V4, ok_so_far: 0, phase: None }
    }

    /// If `yes`, the console of a test that options describe.
    #[must_use]
    pub fn of_options(self, yes: bool) -> ClassicConsole {
        let form = if yes { ConsoleForm::V1 } else { self.form };
        ClassicConsole { form, ..self }
    }

    /// The time stamp before a message.
    fn stamp(&self, at_ns: u64) -> String {
        match self.form {
            ConsoleForm::V1 => String::new(),
            ConsoleForm::V4 => stamp(at_ns as f64 * 1e-9),
        }
    }

    /// Shows a record if the verbosity level includes it.
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
                text.lines().for_each(|line| print_out!("{}{line}", self.stamp(*at_ns)));
            }
            Record::ErrorSample { at_ns, kind, detail, .. } if self.verbosity >= 1 => {
                print_out!("{}error: ({}) {}: {detail}", self.stamp(*at_ns), kind.number(), kind.text());
            }
            Record::End { reason, unfinished, .. } => {
                print_out!("shutdown reason: {}", end_reason(reason));
                if *unfinished > 0 && self.verbosity >= 1 {
                    print_out!("{} did not finish", counted(*unfinished, "transaction"));
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
        print_out!("{}", line.text(self.form));
    }
}
