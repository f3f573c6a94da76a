//! What a simulation says of a test, as tables.

use std::fmt::Write as _;
use std::path::Path;

use polygraph_link::SECOND;
use polygraph_report::figures::find;
use polygraph_report::{Log, Scope};
use polygraph_sim::device::Figures;
use polygraph_stats::Record;
use serde_json::json;

use crate::Failure;

/// Name and unit of the columns behind the phase, with the figures that they show.
const COLUMNS: [(&str, &str); 7] = [
    ("req/s", "req_rate"),
    ("rep/s", "rep_rate"),
    ("offered", "req_dhr"),
    ("DHR %", "rep_dhr"),
    ("offered", "req_bhr"),
    ("BHR %", "rep_bhr"),
    ("ms", "resp_tm_mean"),
];

/// The phases of the client's log in `directory`, and what is known of the cache.
///
/// # Errors
/// If the log cannot be read.
pub fn table(directory: &Path, device: Option<&Figures>) -> Result<String, Failure> {
    let log = Log::open(&directory.join("client.log")).map_err(Failure::data)?;
    let mut out = format!("\n{:<10} {:>9}", "phase", "minutes");
    for (name, _) in COLUMNS {
        let _ = write!(out, " {name:>8}");
    }
    out.push('\n');
    for (number, plan) in log.log.header.phases.iter().enumerate() {
        let of_phase = log.log.intervals().filter(|interval| interval.phase as usize == number);
        let scope = Scope::of_intervals(of_phase);
        if scope.seconds == 0.0 {
            continue;
        }
        let _ = write!(out, "{:<10} {:>9.1}", plan.name, scope.seconds / 60.0);
        for (_, figure) in COLUMNS {
            let value = find(figure).and_then(|figure| figure.of(&scope));
            let _ = write!(out, " {:>8}", value.map_or("-".into(), |value| format!("{value:.2}")));
        }
        out.push('\n');
    }
    out.push('\n');
    for record in &log.log.records {
        if let Record::Comment { at_ns, text, .. } = record {
            let _ = writeln!(out, "after {}: {text}", span(*at_ns));
        }
    }
    if let Some(figures) = device {
        let _ = writeln!(out, "{}", cache(figures));
    }
    Ok(out)
}

/// The state of the cache at the end.
fn cache(figures: &Figures) -> String {
    let full = match figures.full_at {
        Some(at) => format!("full after {}, {} objects pushed out", span(at), figures.evicted),
        None => "never full".to_owned(),
    };
    let megabytes = figures.bytes as f64 / 1024.0 / 1024.0;
    format!("cache: {full}; at the end {} objects, {megabytes:.0} MB", figures.objects)
}

/// Hours, minutes and seconds.
fn span(ns: u64) -> String {
    let seconds = ns / SECOND;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// What the manifest says of a simulated device.
pub fn manifest_of(figures: &Figures) -> serde_json::Value {
    json!({
        "requests": figures.requests,
        "hits": figures.hits,
        "validated": figures.validated,
        "origin_errors": figures.origin_errors,
        "objects": figures.objects,
        "bytes": figures.bytes,
        "evicted": figures.evicted,
        "full_after_s": figures.full_at.map(|at| at as f64 / SECOND as f64),
    })
}
