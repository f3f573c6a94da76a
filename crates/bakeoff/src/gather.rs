//! Collects the data of a report from the series and imports on disk.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use polygraph_report::popularity::Curve;
use polygraph_report::text;

use crate::charts::Popularity;
use crate::entry::{Attempt, AttemptStatus, Comment, Participant, Price, PrintedNumber, RatePoint};
use crate::figures::MainFigures;
use crate::journal::{self, BakeoffProgress, CacheFill, DeviceProgress, EndedRun, Fullness, JournalError};
use crate::order::{self, BakeoffStep};
use crate::page::{self, BakeoffReport, ReportEvent};
use crate::plan::{BakeoffPlan, Contestant, PlanError, ReportedRun};
use crate::published::{self, ImportError};
use crate::series::{JOURNAL, PLAN, child, fill};

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// A kept plan cannot be used.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An import cannot be used.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A source of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultSource {
    /// An imported file.
    Imported {
        /// Name of the file without extension.
        name: String,
        /// The file of results.
        file: PathBuf,
    },
    /// A series, complete or not.
    Series {
        /// The name of its plan.
        name: String,
        /// Its directory.
        directory: PathBuf,
    },
}

impl ResultSource {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            ResultSource::Imported { name, .. } | ResultSource::Series { name, .. } => name,
        }
    }
}

/// All sources in a directory of bake-offs by name, imports (in the directory `imports`) first.
pub fn sources(place: &Path, imported: &str) -> Vec<ResultSource> {
    let directories = |place: &Path| {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        let mut found: Vec<(String, PathBuf)> = entries
            .filter(|entry| entry.path().is_dir())
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
            .collect();
        found.sort();
        found
    };
    let imports = directories(&place.join(imported)).into_iter().map(|(name, path)| {
        let file = path.join(format!("{name}.csv"));
        (file.is_file(), ResultSource::Imported { name, file })
    });
    let series =
        directories(place).into_iter().filter(|(name, _)| name != imported).map(|(name, directory)| {
            (
                directory.join(JOURNAL).is_file() && directory.join(PLAN).is_file(),
                ResultSource::Series { name, directory },
            )
        });
    imports.chain(series).filter(|(usable, _)| *usable).map(|(_, source)| source).collect()
}

/// Copies the plan of a series, with the files that it names, to the results.
///
/// # Errors
/// If a file cannot be written.
pub fn keep_plan(path: &Path, plan: &BakeoffPlan, directory: &Path) -> io::Result<()> {
    polygraph_assets::copy(path, &directory.join(PLAN))?;
    let files = plan.devices.iter().flat_map(|device| {
        let files = [("referee", &device.referee_comments), ("participant", &device.comments)];
        files.map(|(who, file)| (comment_file(directory, &device.name, who), file))
    });
    for (kept, file) in files {
        match file {
            Some(file) => polygraph_assets::copy(file, &kept)?,
            None if kept.exists() => fs::remove_file(kept)?,
            None => {}
        }
    }
    Ok(())
}

fn comment_file(directory: &Path, device: &str, who: &str) -> PathBuf {
    directory.join(format!("{device}.{who}.txt"))
}

/// All devices of the sources.
///
/// # Errors
/// If a source cannot be read.
pub fn entries(sources: &[ResultSource]) -> Result<Vec<Participant>, GatherError> {
    Ok(report(sources, None)?.entries)
}

/// The report of the sources.
///
/// # Errors
/// If a source cannot be read.
pub fn page(sources: &[ResultSource], title: Option<&str>) -> Result<String, GatherError> {
    Ok(page::html(&report(sources, title)?))
}

fn report(sources: &[ResultSource], title: Option<&str>) -> Result<BakeoffReport, GatherError> {
    let mut report = BakeoffReport::default();
    for source in sources {
        match source {
            ResultSource::Imported { name, file } => {
                let entries = published::read(file)?;
                report
                    .events
                    .push(ReportEvent { title: format!("Published: {name}"), ..ReportEvent::default() });
                report.entries.extend(entries);
            }
            ResultSource::Series { name, directory } => {
                let text = read(&directory.join(PLAN))?;
                let plan = BakeoffPlan::parse(&text, &format!("{name}/{PLAN}"), directory)?;
                let log = journal::read(&directory.join(JOURNAL))?;
                let progress = BakeoffProgress::of(&log);
                report.events.push(event(&plan, &progress, &log));
                let entries = plan.devices.iter().map(|device| entry(&plan, device, &progress, directory));
                report.entries.extend(entries);
                if report.popularity.is_none() {
                    report.popularity = popularity(&plan, &progress, directory);
                }
            }
        }
    }
    let own = report.events.iter().find(|event| event.own).or(report.events.first());
    report.title = title.map_or_else(
        || own.map_or_else(|| "Bake-off".to_owned(), |event| event.title.clone()),
        str::to_owned,
    );
    Ok(report)
}

/// The popularity of objects in the first run with readable logs.
fn popularity(plan: &BakeoffPlan, progress: &BakeoffProgress, directory: &Path) -> Option<Popularity> {
    let devices = plan.devices.iter().filter_map(|device| progress.devices.get(&device.name));
    devices.flat_map(|standing| &standing.ended).find_map(|ended| {
        let facts = child::read(&directory.join(&ended.run)).ok()?;
        let name = format!("this workload at {}/s", ended.rate);
        Some(Popularity { name, curve: Curve::of_run(&facts)? })
    })
}

fn read(path: &Path) -> Result<String, GatherError> {
    fs::read_to_string(path).map_err(|source| GatherError::Io { path: path.to_owned(), source })
}

fn event(plan: &BakeoffPlan, progress: &BakeoffProgress, log: &[journal::JournalEntry]) -> ReportEvent {
    let day = |entry: Option<&journal::JournalEntry>| {
        entry.map_or_else(String::new, |entry| text::time_of_day(entry.unix_s * 1_000_000_000))
    };
    let left = order::remaining(plan, progress).len();
    ReportEvent {
        title: plan.title.clone(),
        own: true,
        when: format!("{} to {}", day(log.first()), day(log.last())),
        unfinished: (left > 0)
            .then(|| format!("The series is not complete: {} left.", text::counted(left as u64, "step"))),
        deviations: plan.deviations(),
    }
}

/// The participant for a device of a series.
fn entry(
    plan: &BakeoffPlan,
    device: &Contestant,
    progress: &BakeoffProgress,
    directory: &Path,
) -> Participant {
    let nobody = DeviceProgress::default();
    let standing = progress.devices.get(&device.name).unwrap_or(&nobody);
    let claimed = order::claim(device, standing);
    let mut rates: Vec<f64> = standing.ended.iter().map(|ended| ended.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let mut points = Vec::new();
    let mut reported = Vec::new();
    for rate in rates {
        let mut runs: Vec<(&EndedRun, RatePoint)> =
            standing.at(rate).map(|ended| (ended, point(ended, directory))).collect();
        let Some(chosen) = pick(&runs, plan.rules.report) else { continue };
        let (ended, point) = runs.swap_remove(chosen);
        reported.push(ended.run.clone());
        points.push(point);
    }
    let mut facts = standing.facts.clone();
    facts.extend(device.facts.clone());
    facts.extend(options(device));
    Participant {
        name: device.title.clone(),
        vendor: device.vendor.clone(),
        source: plan.title.clone(),
        own: true,
        price: Price { lines: device.prices.clone(), ..Price::default() },
        claimed: Some(claimed),
        first_claim: (claimed > device.claimed).then_some(device.claimed),
        attempts: standing.ended.iter().map(|ended| attempt(ended, &reported)).collect(),
        checks: checks(progress, standing),
        remarks: remarks(standing),
        comments: comments(device, directory),
        points,
        facts,
        ..Participant::default()
    }
}

/// The run that is reported for a rate: a passed run if there is one, otherwise the last run.
fn pick(runs: &[(&EndedRun, RatePoint)], rule: ReportedRun) -> Option<usize> {
    let of = |status| runs.iter().enumerate().filter(move |(_, (ended, _))| ended.status == status);
    let mean = |point: &RatePoint| point.mean_s.map_or(f64::MAX, |mean| mean.value);
    let mut passed = of(AttemptStatus::Passed);
    let chosen = match rule {
        ReportedRun::First => passed.next(),
        ReportedRun::Last => passed.next_back(),
        ReportedRun::Fastest => passed.min_by(|(_, (_, a)), (_, (_, b))| mean(a).total_cmp(&mean(b))),
    };
    // A failed run is more informative than an invalid one.
    chosen
        .or_else(|| of(AttemptStatus::Failed).next_back())
        .or_else(|| of(AttemptStatus::Invalid).next_back())
        .map(|(index, _)| index)
}

fn attempt(ended: &EndedRun, reported: &[String]) -> Attempt {
    Attempt {
        rate: ended.rate,
        number: ended.attempt,
        status: ended.status,
        reason: ended.reason.clone(),
        run: ended.run.clone(),
        reported: reported.contains(&ended.run),
    }
}

/// The figures of a run, from its logs, or those noted at its end if the logs can no longer be read.
fn point(ended: &EndedRun, directory: &Path) -> RatePoint {
    let mut point = RatePoint::new(ended.rate, ended.status);
    point.note.clone_from(&ended.reason);
    let figures = match child::read(&directory.join(&ended.run)) {
        Ok(facts) => Some(MainFigures::of(&facts)),
        Err(problem) => {
            let noted = if ended.figures.is_some() {
                "; the figures are those noted at the end of the run"
            } else {
                ""
            };
            point.note = format!("{}; its logs cannot be read ({problem}){noted}", point.note);
            ended.figures.clone()
        }
    };
    let Some(figures) = figures else { return point };
    point.mean_s = figures.mean_s.map(|value| PrintedNumber::new(value, 3));
    point.median_s = figures.median_s;
    point.p75_s = figures.p75_s;
    point.hit_pct = figures.hit_pct.map(|value| PrintedNumber::new(value, 1));
    point.error_pct = figures.error_pct;
    point.curve = figures
        .percentiles_s
        .iter()
        .zip(1..)
        .map(|(time, percent)| (*time, f64::from(percent) * 0.01))
        .collect();
    let count = Some(figures.transactions).filter(|count| *count > 0);
    point.cpu_ms = ended.cpu_s.zip(count).map(|(cpu, count)| 1e3 * cpu / count as f64);
    point
}

fn checks(progress: &BakeoffProgress, standing: &DeviceProgress) -> Vec<(String, String)> {
    let mut checks = Vec::new();
    if let Some((mbit_s, seconds)) = progress.network {
        let rate = text::number(Some(mbit_s), 0);
        let length = text::duration(seconds);
        checks.push(("network throughput".into(), format!("{rate} Mbit/s, one stream over {length}")));
    }
    let stood = progress.no_proxy.iter().filter(|(_, _, status, _)| *status == AttemptStatus::Passed);
    if let Some(top) = stood.map(|(rate, ..)| *rate).reduce(f64::max) {
        checks.push(("no-proxy run".into(), format!("at least {top} requests per second")));
    }
    checks.extend(standing.checks.clone());
    let fills: Vec<String> = standing.fills.iter().map(filling).collect();
    if !fills.is_empty() {
        checks.push(("cache fill".into(), fills.join("; then, after a restart: ")));
    }
    checks
}

fn filling(fill: &CacheFill) -> String {
    let sent =
        format!("{} in {}", text::bytes(Some(fill.bytes as f64)), text::duration(fill.seconds.round()));
    let share = fill.growth.map(|growth| 100.0 * growth as f64 / fill.last.max(1) as f64);
    match (fill.fullness, share) {
        (Fullness::Observed, Some(share)) => format!("{sent}: full, {}", fill::grown(share)),
        (Fullness::Growing, _) => format!("{sent}: not known to be full, because it was still growing"),
        _ => format!("{sent}, twice its size; the space that it occupies cannot be observed from here"),
    }
}

/// Remarks that the rules require.
fn remarks(standing: &DeviceProgress) -> Vec<String> {
    let mut remarks = Vec::new();
    if standing.fills.iter().any(|fill| fill.fullness == Fullness::Growing) {
        remarks.push("The cache was not known to be full when the runs began.".to_owned());
    }
    if standing.fills.len() > 1 {
        let times = standing.fills.len() - 1;
        remarks.push(format!(
            "The device was restarted and filled again {} during the series.",
            text::times(times as u64)
        ));
    }
    let failed = standing.ended.iter().filter(|ended| ended.status == AttemptStatus::Failed);
    remarks.extend(failed.map(|ended| {
        format!("{} requests per second, run {}: failed. {}.", ended.rate, ended.attempt, ended.reason)
    }));
    remarks
}

fn options(device: &Contestant) -> Vec<(String, String)> {
    let crate::plan::DeviceLocation::Device { options, .. } = &device.target else { return Vec::new() };
    let all: Vec<String> = options.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if all.is_empty() { Vec::new() } else { vec![("options".into(), all.join(" "))] }
}

fn comments(device: &Contestant, directory: &Path) -> Vec<Comment> {
    [("Comments of the referees", "referee"), ("Comments of the participant", "participant")]
        .into_iter()
        .filter_map(|(heading, who)| {
            let text = fs::read_to_string(comment_file(directory, &device.name, who)).ok()?;
            Some(Comment { heading: heading.to_owned(), text: text.trim().to_owned() })
        })
        .filter(|comment| !comment.text.is_empty())
        .collect()
}

/// The steps of a plan in order, and their estimated time.
///
/// # Errors
/// If the journal exists but cannot be read.
pub fn outlook(plan: &BakeoffPlan, directory: &Path) -> Result<String, GatherError> {
    let path = directory.join(JOURNAL);
    let progress =
        if path.is_file() { BakeoffProgress::of(&journal::read(&path)?) } else { BakeoffProgress::default() };
    let steps = order::remaining(plan, &progress);
    let mut out = String::new();
    let mut device_before = None;
    for step in &steps {
        let _ = match step {
            BakeoffStep::Network => writeln!(out, "measure the network's throughput"),
            BakeoffStep::NoProxy => {
                writeln!(out, "run without a proxy at {} requests per second", plan.top_rate())
            }
            BakeoffStep::Run { device, rate, attempt } => {
                if device_before.replace(*device) != Some(*device) {
                    let _ = writeln!(out, "start and fill {}", plan.devices[*device].name);
                }
                writeln!(
                    out,
                    "pause, then {} at {rate} requests per second, run {attempt}",
                    plan.devices[*device].name
                )
            }
        };
    }
    let seconds = order::duration_s(plan, &progress, &steps, None);
    let count = text::counted(steps.len() as u64, "step");
    let _ = writeln!(out, "{count}, about {}", text::duration(seconds.round()));
    for deviation in plan.deviations() {
        let _ = writeln!(out, "difference from 1999: {deviation}");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(status: AttemptStatus, mean: f64) -> (EndedRun, RatePoint) {
        let ended = EndedRun {
            rate: 1.0,
            attempt: 1,
            run: String::new(),
            status,
            reason: String::new(),
            cpu_s: None,
            figures: None,
        };
        (ended, RatePoint { mean_s: Some(PrintedNumber::new(mean, 1)), ..RatePoint::new(1.0, status) })
    }

    #[test]
    fn figures_survive_their_logs() {
        let figures = MainFigures {
            mean_s: Some(1.5),
            percentiles_s: (1..=99).map(f64::from).collect(),
            transactions: 200,
            ..MainFigures::default()
        };
        let (mut ended, _) = run(AttemptStatus::Passed, 0.0);
        ended.cpu_s = Some(0.5);
        ended.figures = Some(figures);
        let point = point(&ended, Path::new("/no/such/place"));
        assert_eq!((point.mean_s, point.cpu_ms), (Some(PrintedNumber::new(1.5, 3)), Some(2.5)));
        assert_eq!((point.curve.len(), point.curve[49]), (99, (50.0, 0.5)));
        assert!(
            point.note.contains("cannot be read") && point.note.ends_with("noted at the end of the run"),
            "{}",
            point.note
        );
    }

    #[test]
    fn which_run_is_reported() {
        use AttemptStatus::{Failed, Invalid, Passed};
        for (runs, rule, expected) in [
            (vec![], ReportedRun::First, None),
            (vec![run(Passed, 3.0), run(Passed, 1.0), run(Passed, 2.0)], ReportedRun::Fastest, Some(1)),
            (vec![run(Passed, 3.0), run(Passed, 1.0), run(Failed, 0.5)], ReportedRun::Last, Some(1)),
            (vec![run(Failed, 0.1), run(Passed, 1.0), run(Passed, 0.5)], ReportedRun::First, Some(1)),
            (vec![run(Failed, 3.0), run(Invalid, 1.0)], ReportedRun::Fastest, Some(0)),
            (vec![run(Invalid, 3.0), run(Invalid, 1.0)], ReportedRun::Fastest, Some(1)),
        ] {
            let runs: Vec<(&EndedRun, RatePoint)> =
                runs.iter().map(|(ended, point)| (ended, point.clone())).collect();
            assert_eq!(pick(&runs, rule), expected, "{rule:?} {runs:?}");
        }
    }
}
