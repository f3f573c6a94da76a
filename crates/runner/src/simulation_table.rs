//! The table that a simulation prints, and the part of the manifest about its device.

use std::fmt::Write as _;

use polygraph_link::{Nanos, SECOND};
use polygraph_report::figures::find;
use polygraph_report::text;
use polygraph_report::{RunFacts, Scope};
use polygraph_sim::device::Snapshot;
use polygraph_stats::Record;
use serde_json::json;

/// Headings of the columns after the phase, with the names of their figures.
const COLUMNS: [(&str, &str); 7] = [
    ("req/s", "req_rate"),
    ("rep/s", "ok_xact.rate"),
    ("offered", "req_dhr"),
    ("DHR %", "rep_dhr"),
    ("offered", "req_bhr"),
    ("BHR %", "rep_bhr"),
    ("ms", "resp_tm_mean"),
];

/// Names and figures of the phases that the client side measured.
pub fn measured_phases(facts: &RunFacts) -> impl Iterator<Item = (&str, &Scope)> {
    let phases = facts.client.iter().flat_map(|side| &side.phases);
    phases.filter_map(|phase| Some((phase.name.as_str(), phase.scope.as_ref()?)))
}

/// A figure of a phase; `None` if it is undefined.
pub fn figure(name: &str, scope: &Scope) -> Option<f64> {
    find(name).and_then(|figure| figure.of(scope))
}

fn cell(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

/// The line of the table for a record of the client side, if it tells about the working set.
pub fn working_set_line(record: &Record) -> Option<String> {
    match record {
        Record::Comment { at_ns, text, .. } if text.starts_with("working set") => {
            Some(format!("after {}: {text}", span(Nanos::new(*at_ns))))
        }
        _ => None,
    }
}

/// The phases of a simulation, the lines about its working set, and the state of the cache at the end.
pub fn table(facts: &RunFacts, working_set: &[String], device: Option<&Snapshot>) -> String {
    let mut out = format!("\n{:<10} {:>9}", "phase", "minutes");
    for (name, _) in COLUMNS {
        let _ = write!(out, " {name:>8}");
    }
    out.push('\n');
    for (name, scope) in measured_phases(facts) {
        let _ = write!(out, "{name:<10} {:>9.1}", scope.seconds / 60.0);
        for (_, name) in COLUMNS {
            let _ = write!(out, " {:>8}", cell(figure(name, scope)));
        }
        out.push('\n');
    }
    out.push('\n');
    for line in working_set {
        let _ = writeln!(out, "{line}");
    }
    if let Some(figures) = device {
        let _ = writeln!(out, "{}", cache(figures));
    }
    out
}

/// The state of the cache at the end.
fn cache(figures: &Snapshot) -> String {
    let full = match figures.full_at {
        Some(at) => format!("full after {}, {} evicted", span(at), text::counted(figures.evicted, "object")),
        None => "never full".to_owned(),
    };
    let (objects, size) = (text::counted(figures.store_objects, "object"), figures.store_bytes as f64);
    format!("cache: {full}; at the end {objects}, {}", text::bytes(Some(size)))
}

/// Hours, minutes and seconds.
fn span(time: Nanos) -> String {
    let seconds = time / SECOND;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The part of the manifest about a simulated device.
pub fn device_manifest(figures: &Snapshot) -> serde_json::Value {
    json!({
        "requests": figures.requests,
        "hits": figures.hits,
        "validated": figures.validated,
        "origin_errors": figures.origin_errors,
        "objects": figures.store_objects,
        "bytes": figures.store_bytes,
        "evicted": figures.evicted,
        "full_after_s": figures.full_at.map(|at| at.as_f64() / SECOND.as_f64()),
    })
}
