//! `polygraph compare`: runs side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use polygraph_report::compare::{self, CompareOptions, Comparison, RunGroup};
use polygraph_report::run_dir::WholeRun;
use polygraph_report::threshold::{Condition, check_comparison};
use polygraph_report::{junit, names};
use polygraph_runner::{Failure, write_file};
use polygraph_stats::BinSet;

use crate::exit::{self, Done};
use crate::options::expect::compared;
use crate::output;

/// Options of `compare`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  \
        polygraph compare runs/before runs/after --out comparison.html\n  \
        polygraph compare old=runs/a1,runs/a2,runs/a3 new=runs/b1,runs/b2,runs/b3 --fail_on 'rptm.p95>+5%'\n  \
        polygraph compare linux/ufs=runs/1 linux/aufs=runs/2 bsd/ufs=runs/3 bsd/aufs=runs/4\n\
        docs/compare.md explains the method and the conditions."
)]
pub struct Args {
    /// Phases to compare one by one, separated by commas, or `all`. Default: the phases of the headline figures
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    phases: Vec<String>,
    /// Figures to compare, separated by commas: names, first parts of dotted names, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    objects: Vec<String>,
    /// Ignore relative differences that are smaller than this, except for conditions, which have their own bounds
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = polygraph_plan::values::share)]
    delta: f64,
    /// Confidence level of all intervals of the tables together, and of those of all conditions together
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = confidence)]
    confidence: f64,
    /// Show only figures that differ
    #[arg(long, conflicts_with = "full")]
    changed: bool,
    /// Exit with code 14 if a run meets this condition in comparison with the first run, or is FAILED and the first run is not;
    /// with code 16 if it seems to meet it, but the change may be noise; repeatable. Examples: 'rptm.p95>+5%', 'dhr<-1pt'
    #[arg(long, value_name = "CONDITION", value_parser = compared)]
    fail_on: Vec<Condition>,
    /// Compare even if workloads differ or a run is INVALID
    #[arg(long)]
    anyway: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["markdown", "changed"])]
    json: bool,
    /// Print Markdown, for a pull request: figures that differ, and how many do not
    #[arg(long)]
    markdown: bool,
    /// With --markdown, show also the figures that do not differ
    #[arg(long, requires = "markdown")]
    full: bool,
    /// Write conditions and figures as JUnit XML, which CI servers show as tests. Without conditions, a figure that is worse is a failure
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write an HTML page with charts to this file
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Runs to compare with the first one: result directories or logs. NAME=RUN names a run; RUN,RUN are repeats of the same
    /// run
    #[arg(value_name = "[NAME=]RUN[,RUN...]", required = true)]
    runs: Vec<String>,
}

fn confidence(text: &str) -> Result<f64, String> {
    match polygraph_plan::values::share(text)? {
        share if (0.5..1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a confidence level: write a share from 50% to less than 100%")),
    }
}

/// Compares runs.
pub fn run(args: Args) -> Done {
    let mut objects = args.objects.clone();
    let mut phases = args.phases.clone();
    demand(&args.fail_on, &mut objects, &mut phases)?;
    let groups = groups(&args.runs, compare::needed_bins(&objects).map_err(Failure::usage)?)?;
    let options = CompareOptions {
        phases,
        objects,
        delta: args.delta,
        confidence: args.confidence,
        asked: Condition::asked(&args.fail_on),
    };
    let comparison = compare::compare(&groups, options).map_err(Failure::usage)?;
    if comparison.refused() && !args.anyway {
        let why = compare::preface(&comparison);
        output::note_raw(&why);
        write_junit(&args, || junit::of_refusal(&why))?;
        output::note(
            "error: these runs are not comparable: repeat those that are INVALID, and run all with the same workload and options; or use \
             --anyway to compare them as they are",
        );
        return Ok(ExitCode::from(exit::NOT_COMPARABLE));
    }
    let checked = check_comparison(&comparison, &args.fail_on);
    // Who asks for no regression does not want a device that fails.
    let newly_failed = if args.fail_on.is_empty() { Vec::new() } else { comparison.newly_failed() };
    let some = |holds: Option<bool>| checked.iter().any(|checked| checked.holds == holds);
    let code = match some(Some(true)) || !newly_failed.is_empty() {
        true => exit::REGRESSION,
        false if some(None) => exit::UNDECIDED,
        false => exit::OK,
    };
    if let Some(path) = &args.out {
        write(path, &comparison)?;
    }
    write_junit(&args, || junit::of_comparison(&comparison, &checked))?;
    if args.json {
        let mut json = compare::json(&comparison);
        json["fail_on"] = checked.iter().map(|checked| checked.json()).collect();
        json["newly_failed"] = newly_failed.iter().map(|(name, _)| *name).collect();
        output::print_json(&json);
    } else {
        output::print(&match args.markdown {
            true => compare::markdown(&comparison, args.full),
            false => compare::text(&comparison, args.changed),
        });
        let bullet = if args.markdown { "- " } else { "" };
        for checked in &checked {
            let word = match checked.holds {
                Some(true) => "FAILED",
                Some(false) => "passed",
                None => "not decided",
            };
            output::print(&format!("{bullet}{word}: {} ({})\n", checked.condition, checked.found));
        }
        for (name, verdict) in &newly_failed {
            output::print(&format!(
                "{bullet}FAILED: the device did not fail in the first run, but in {name} ({verdict})\n"
            ));
        }
    }
    if let Some(path) = &args.out {
        output::note(&format!("page: {}", path.display()));
    }
    Ok(ExitCode::from(code))
}

/// Adds the figures and phases of conditions to those that are compared.
fn demand(
    conditions: &[Condition],
    objects: &mut Vec<String>,
    phases: &mut Vec<String>,
) -> Result<(), Failure> {
    let named: Vec<&String> = conditions.iter().filter_map(|condition| condition.phase.as_ref()).collect();
    if !named.is_empty() && named.len() < conditions.len() && phases.is_empty() {
        return Err(Failure::usage(
            "some conditions name a phase (@PHASE) and some do not: name the phase of all conditions, or of none",
        ));
    }
    for name in named {
        if !phases.contains(name) && !phases.iter().any(|phase| phase == "all") {
            phases.push(name.clone());
        }
    }
    if objects.is_empty() {
        objects.extend(compare::usual());
    }
    for condition in conditions {
        let known =
            |object: &String| names::find(object).is_ok_and(|figure| figure.is_same_as(condition.figure));
        if !objects.iter().any(known) {
            objects.push(condition.figure.name.clone());
        }
    }
    Ok(())
}

/// Reads arguments of the form `[NAME=]RUN[,RUN...]`, and the runs they name with these bins.
fn groups(texts: &[String], bins: BinSet) -> Result<Vec<RunGroup>, Failure> {
    let named: Vec<(Option<&str>, Vec<&Path>)> = texts.iter().map(|text| names(text)).collect();
    let paths: Vec<&Path> = named.iter().flat_map(|(_, paths)| paths).copied().collect();
    let mut runs = WholeRun::open_all(&paths, bins).map_err(Failure::data)?.into_iter();
    let group = |(name, paths): (Option<&str>, Vec<&Path>)| {
        let runs: Vec<WholeRun> = runs.by_ref().take(paths.len()).collect();
        let joined = || runs.iter().map(|run| run.name()).collect::<Vec<_>>().join("+");
        RunGroup { name: name.map_or_else(joined, str::to_owned), runs }
    };
    Ok(named.into_iter().map(group).collect())
}

/// The name and the paths in `[NAME=]RUN[,RUN...]`. If the whole text is an existing path, commas and `=` are part of it.
fn names(text: &str) -> (Option<&str>, Vec<&Path>) {
    let exists = |text: &str| Path::new(text).exists();
    let (name, paths) = match text.split_once('=') {
        Some((name, paths)) if !exists(text) && !name.is_empty() => (Some(name), paths),
        _ => (None, text),
    };
    let paths =
        if exists(paths) { vec![Path::new(paths)] } else { paths.split(',').map(Path::new).collect() };
    (name, paths)
}

/// Writes the file for CI servers, if there is to be one.
fn write_junit(args: &Args, xml: impl FnOnce() -> String) -> Result<(), Failure> {
    args.junit.as_deref().map_or(Ok(()), |path| write_file(path, xml()))
}

fn write(path: &Path, comparison: &Comparison<'_>) -> Result<(), Failure> {
    write_file(path, compare::page(comparison))
}
