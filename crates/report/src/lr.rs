//! A log in readable form: a description of the run, then all records, then the missing parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use polygraph_stats::{EndReason, Header, Record, Xact};

use crate::console::{ConsoleForm, ConsoleLine, ConsoleSpan, stamp};
use crate::figures::value;
use crate::fold::fold_in_turn;
use crate::scope::{Scope, ScopeBuilder};
use crate::source::{LogSource, phase_name};
use crate::text::{bytes, counted, duration, time_of_day};

/// What [`lr`] shows.
#[derive(Clone, Copy, Debug)]
pub struct LrOptions {
    /// Format of statistics lines.
    pub form: ConsoleForm,
    /// Show comments up to this verbosity level.
    pub verbosity: u8,
    /// Show only hits, misses and errors of each phase, as generation 1.x did.
    pub phases: bool,
}

impl Default for LrOptions {
    fn default() -> Self {
        LrOptions { form: ConsoleForm::V4, verbosity: u8::MAX, phases: false }
    }
}

/// Dumps logs to `out`, each with its name on top if there are several. Returns what is missing in them, in sentences.
///
/// # Errors
/// If `out` cannot be written.
pub fn lr<S: LogSource>(logs: &[S], options: LrOptions, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut missing = Vec::new();
    for log in logs {
        if logs.len() > 1 {
            writeln!(out, "==> {} <==", log.name())?;
        }
        missing.extend(match options.phases {
            true => phases(out, log)?,
            false => dump(out, log, options)?,
        });
    }
    Ok(missing)
}

/// A line for each phase that counted something.
fn phases(out: &mut dyn Write, log: &impl LogSource) -> io::Result<Vec<String>> {
    let mut missing = Vec::new();
    for side in fold_in_turn(&[log], |_, _| {}) {
        for phase in side.phases {
            if let Some(scope) = &phase.scope {
                let count = |name| value(name, scope).unwrap_or(0.0);
                let (hits, misses, errors) =
                    (count("hit.size.count"), count("miss.size.count"), count("err_cnt"));
                writeln!(out, "{}: {hits} hits, {misses} misses, {errors} errors", phase.name)?;
            }
        }
        missing.extend(side.processes.into_iter().flat_map(|process| process.missing));
    }
    Ok(missing)
}

fn dump(out: &mut dyn Write, log: &impl LogSource, options: LrOptions) -> io::Result<Vec<String>> {
    let mut head = String::new();
    header(&mut head, log.header());
    writeln!(out, "{head}{}", ConsoleLine::header(options.form))?;
    let mut so_far = SoFar::default();
    let mut records = log.records();
    for record in &mut records {
        if let Some(text) = line(log.header(), record.into_owned(), &mut so_far, options) {
            writeln!(out, "{text}")?;
        }
    }
    for missing in records.missing() {
        writeln!(out, "missing: {missing}")?;
    }
    Ok(records.missing().to_owned())
}

/// What earlier records of a log have counted.
#[derive(Default)]
struct SoFar {
    ok: u64,
    /// Phases that have begun and not ended.
    phases: BTreeMap<u32, ScopeBuilder>,
}

fn header(out: &mut String, header: &Header) {
    let _ = writeln!(
        out,
        "{} log of {}, version {}, process {}, {}, started {}",
        header.side.name(),
        if header.workload.is_empty() { "an unnamed workload" } else { &header.workload },
        header.version,
        header.pid,
        counted(header.loops.into(), "event loop"),
        time_of_day(header.start_unix_ns)
    );
    if !header.label.is_empty() {
        let _ = writeln!(out, "label: {}", header.label);
    }
    let _ = writeln!(out, "command: {}", crate::text::command(&header.command));
    for (title, pairs) in [("settings", &header.settings), ("environment", &header.environment)] {
        let _ = writeln!(out, "{title}:");
        for (name, value) in pairs {
            let _ = writeln!(out, "  {name}: {value}");
        }
    }
    let _ = writeln!(out, "phases:");
    for plan in &header.phases {
        let goals: Vec<String> = [
            plan.duration_s.map(duration),
            plan.xactions.map(|count| counted(count, "transaction")),
            plan.fill_bytes.map(|size| format!("{} filled", bytes(Some(size as f64)))),
            plan.primary.then(|| "primary".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let _ = writeln!(
            out,
            "  {}: {}",
            plan.name,
            if goals.is_empty() { "no goal".into() } else { goals.join(", ") }
        );
    }
}

/// The line of a record; `None` for comments that are not to be shown.
fn line(header: &Header, record: Record, so_far: &mut SoFar, options: LrOptions) -> Option<String> {
    let statistics = |span, phase: u32, at_ns: u64, ok_so_far: u64, scope: &Scope| {
        ConsoleLine {
            span,
            phase: phase_name(header, phase),
            at_s: at_ns as f64 * 1e-9,
            start_unix_ns: header.start_unix_ns,
            ok_so_far,
            scope,
        }
        .text(options.form)
    };
    let said = |at_ns: u64, text: String| Some(stamp(at_ns as f64 * 1e-9) + &text);
    match record {
        Record::Header(_) => said(0, "a second header".into()),
        Record::PhaseBegin { at_ns, phase } => {
            said(at_ns, format!("phase {} begins", phase_name(header, phase)))
        }
        Record::Interval(interval) => {
            so_far.ok += interval.block.ok_count();
            so_far.phases.entry(interval.phase).or_default().add(&interval);
            let (phase, end_ns) = (interval.phase, interval.end_ns);
            let scope = Scope::of_interval(*interval);
            Some(statistics(ConsoleSpan::Interval, phase, end_ns, so_far.ok, &scope))
        }
        Record::PhaseEnd { at_ns, phase, complete } => {
            let scope = so_far.phases.remove(&phase).unwrap_or_default().scope();
            let cut = if complete { "" } else { " (cut short)" };
            Some(statistics(ConsoleSpan::Phase, phase, at_ns, so_far.ok, &scope) + cut)
        }
        Record::Comment { at_ns, level, text } => {
            (level <= options.verbosity).then(|| stamp(at_ns as f64 * 1e-9) + &text)
        }
        Record::ErrorSample { at_ns, kind, detail, facts } => {
            let mut text = format!("error: ({}) {}: {detail}", kind.number(), kind.text());
            for (name, value) in facts {
                let _ = write!(text, "\n        {name}: {value}");
            }
            said(at_ns, text)
        }
        Record::Xacts { sample, xacts } => {
            let lines: Vec<String> = xacts.iter().map(|xact| xact_line(&sample, xact)).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
        Record::Stall(stall) => {
            let loops = counted(stall.loops.into(), "loop");
            said(stall.begin_ns, format!("{loops} stalled for {:.3} s", stall.seconds()))
        }
        Record::End { at_ns, reason, unfinished } => {
            let unfinished = counted(unfinished, "transaction");
            said(at_ns, format!("end: {}; {unfinished} unfinished", end_reason(&reason)))
        }
    }
}

/// A transaction of a sample, as names and values.
fn xact_line(sample: &str, xact: &Xact) -> String {
    let mut line = stamp(xact.ended_ns as f64 * 1e-9);
    let _ = write!(
        line,
        "sample {sample}: xact={} conn={} start_ms={:.3} lifetime_ms={:.3}",
        if xact.id.is_empty() { "-" } else { &xact.id },
        xact.connection,
        (xact.ended_ns / 1000).saturating_sub(xact.lifetime_us) as f64 * 1e-3,
        xact.lifetime_us as f64 * 1e-3,
    );
    let numbers = [("robot", xact.robot), ("server", xact.server), ("ims", xact.ims)];
    if let Some(queued) = xact.queued_us {
        let _ = write!(line, " queue_ms={:.3}", queued as f64 * 1e-3);
    }
    let _ = write!(line, " size={} status={}", xact.size, xact.status);
    for (name, value) in numbers {
        if let Some(value) = value {
            let _ = write!(line, " {name}={value}");
        }
    }
    line + " object=" + &xact.object
}

/// Why a run ended, in words.
pub fn end_reason(reason: &EndReason) -> String {
    match reason {
        EndReason::Finished => "all phases met their goals".into(),
        EndReason::ErrorGoal { phase } => format!("too many transactions failed in phase {phase}"),
        EndReason::Interrupted => "interrupted".into(),
        EndReason::Idle => "no traffic for the idle time-out".into(),
        EndReason::Fatal { why, .. } => format!("fatal: {why}"),
        EndReason::NoEnd(why) => format!("the test would not end: {why}"),
    }
}
