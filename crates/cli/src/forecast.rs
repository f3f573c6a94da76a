//! What a simulation says of a test, as tables: alone, and beside what was measured.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use polygraph_link::{SECOND, nanos};
use polygraph_plan::{Test, values};
use polygraph_report::figures::find;
use polygraph_report::prediction::{MeasuredAndPredicted, PredictedPhase, RunPrediction};
use polygraph_report::{RunFacts, Scope};
use polygraph_sim::device::{Figures, Model};
use polygraph_stats::{EndReason, LogReader, NextRecord, Record, Side};
use serde_json::json;

use crate::options::CommonOptions;
use crate::simulation::{Identities, Setup, Simulation, describe};
use crate::working_set::Files;
use crate::{Failure, jobs};

/// Name and unit of the columns behind the phase, with the figures that they show.
const COLUMNS: [(&str, &str); 7] = [
    ("req/s", "req_rate"),
    ("rep/s", "ok_xact.rate"),
    ("offered", "req_dhr"),
    ("DHR %", "rep_dhr"),
    ("offered", "req_bhr"),
    ("BHR %", "rep_bhr"),
    ("ms", "resp_tm_mean"),
];

/// Longer tests are not simulated beside a run, which should end when it is over: some seconds are acceptable.
const MOST_TRANSACTIONS: u64 = 300_000;

/// A simulation that takes so many times as long as the run, in its own time, does not come to the same end: it has a phase whose goal it
/// cannot reach.
const PATIENCE: f64 = 3.0;

/// The phases of the robots that counted anything.
fn phases(facts: &RunFacts) -> impl Iterator<Item = (&str, &Scope)> {
    let phases = facts.client.iter().flat_map(|side| &side.phases);
    phases.filter_map(|phase| Some((phase.name.as_str(), phase.scope.as_ref()?)))
}

fn figure(name: &str, scope: &Scope) -> Option<f64> {
    find(name).and_then(|figure| figure.of(scope))
}

fn cell(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

/// The phases of a simulation, what its client's log says of the working set, and what is known of the cache.
///
/// # Errors
/// If the log cannot be read.
pub fn table(facts: &RunFacts, log: &Path, device: Option<&Figures>) -> Result<String, Failure> {
    let mut out = format!("\n{:<10} {:>9}", "phase", "minutes");
    for (name, _) in COLUMNS {
        let _ = write!(out, " {name:>8}");
    }
    out.push('\n');
    for (name, scope) in phases(facts) {
        let _ = write!(out, "{name:<10} {:>9.1}", scope.seconds / 60.0);
        for (_, name) in COLUMNS {
            let _ = write!(out, " {:>8}", cell(figure(name, scope)));
        }
        out.push('\n');
    }
    out.push('\n');
    let mut records = LogReader::open(log).map_err(Failure::data)?;
    loop {
        match records.next_record() {
            NextRecord::Record(record) => {
                if let Record::Comment { at_ns, text, .. } = *record
                    && text.starts_with("working set")
                {
                    let _ = writeln!(out, "after {}: {text}", span(at_ns));
                }
            }
            NextRecord::Unknown => {}
            NextRecord::End | NextRecord::Damaged { .. } => break,
        }
    }
    if let Some(figures) = device {
        let _ = writeln!(out, "{}", cache(figures));
    }
    Ok(out)
}

/// Which model stands for the device when a run is predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forecast {
    /// None: nothing is predicted.
    No,
    /// What is known of the device is enough.
    Auto,
    /// This one, or none at all.
    With(Option<Model>),
}

/// Reads `auto`, `no` or a model.
///
/// # Errors
/// If it is none of these.
pub fn forecast(text: &str) -> Result<Forecast, String> {
    match text {
        "auto" => Ok(Forecast::Auto),
        "no" => Ok(Forecast::No),
        _ if values::is_none(text) => Ok(Forecast::With(None)),
        _ => crate::simulation::device(text).map(|model| Forecast::With(model.0)),
    }
}

/// What a run is predicted from.
#[derive(Debug)]
pub struct Predicting<'a> {
    /// The test as it was run.
    pub test: Test,
    /// Where its servers were.
    pub places: Vec<SocketAddr>,
    /// Options of both sides.
    pub common: &'a CommonOptions,
    /// Its identities.
    pub identities: Identities,
    /// The device.
    pub device: Option<Model>,
    /// Time of day at the start, in seconds since 1970.
    pub epoch: u64,
    /// What robots put up with.
    pub tolerance: polygraph_robot::Tolerance,
    /// What servers put up with.
    pub server_tolerance: jobs::Tolerance,
    /// What the test went on with.
    pub working_set: &'a Files,
}

/// A phase as it was predicted.
struct Expected {
    phase: usize,
    rep_rate: Option<f64>,
    dhr: Option<f64>,
}

impl Predicting<'_> {
    /// Predicted figures beside those of the run that ended so; or why there are none.
    pub fn beside(self, facts: &RunFacts, reason: &EndReason) -> RunPrediction {
        let device = self.device;
        let expected = match self.obstacle(facts, reason) {
            None => self.simulate(facts).map_err(|failure| failure.to_string()),
            Some(why) => Err(why),
        };
        let expected = match expected {
            Ok(expected) => expected,
            Err(left_out) => return RunPrediction::LeftOut { left_out },
        };
        let plans = facts.client.iter().flat_map(|side| &side.header().phases);
        let plans: Vec<&str> = plans.map(|plan| plan.name.as_str()).collect();
        let phase = |(name, scope): (&str, &Scope)| {
            let number = plans.iter().position(|plan| *plan == name)?;
            let expected = expected.iter().find(|it| it.phase == number)?;
            Some(PredictedPhase {
                phase: name.to_owned(),
                rep_rate: MeasuredAndPredicted {
                    measured: figure("ok_xact.rate", scope),
                    predicted: expected.rep_rate,
                },
                dhr: MeasuredAndPredicted { measured: figure("rep_dhr", scope), predicted: expected.dhr },
            })
        };
        RunPrediction::Made {
            device: device.as_ref().map_or("no device".into(), describe),
            phases: phases(facts).filter_map(phase).collect(),
        }
    }

    /// Why the run cannot be predicted.
    fn obstacle(&self, facts: &RunFacts, reason: &EndReason) -> Option<String> {
        let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
        let begun = total.map_or(0, |total| total.block.xacts.entered);
        if *reason != EndReason::Finished {
            Some("the run did not go through all its phases".into())
        } else if begun > MOST_TRANSACTIONS {
            Some(format!("{begun} transactions take too long to simulate here; polygraph simulate does"))
        } else if self.test.full_rate().is_none() {
            Some("how fast best-effort robots are depends on everything else".into())
        } else {
            None
        }
    }

    fn simulate(self, facts: &RunFacts) -> Result<Vec<Expected>, Failure> {
        let ends = facts.client.iter().flat_map(|side| &side.phases).filter_map(|phase| phase.end_s);
        let measured_s = ends.fold(0.0, f64::max);
        let common = CommonOptions {
            // A phase is one interval.
            stats_cycle: 1e9,
            loops: Some(self.identities.robots.len() as u32),
            ..self.common.clone()
        };
        let setup = Setup {
            test: self.test,
            places: Some(self.places),
            common: &common,
            device: self.device,
            delay: 0,
            tolerance: self.tolerance,
            server_tolerance: self.server_tolerance,
            working_set: self.working_set,
            identities: Some(self.identities),
            epoch: self.epoch,
        };
        let mut phases = Vec::new();
        let (outcome, _) =
            Simulation::new(setup, None)?.run(Some(nanos(PATIENCE * measured_s)), |header, record| {
                if let (Side::Client, Record::Interval(interval)) = (header.side, record) {
                    let scope = Scope::of_intervals([&**interval]);
                    phases.push(Expected {
                        phase: interval.phase as usize,
                        rep_rate: figure("ok_xact.rate", &scope),
                        dhr: figure("rep_dhr", &scope),
                    });
                }
            })?;
        match outcome.reason {
            EndReason::Fatal(why) => Err(Failure::data(anyhow::Error::msg(why))),
            _ => Ok(phases),
        }
    }
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
