//! `polygraph peak`: the highest rate at which a device holds.

mod criteria;
mod page;
mod state;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser};
use polygraph_plan::peak::{PeakResult, Search, SearchEnd, SearchStep, TrialReason, Vote};
use polygraph_plan::phases::WARM_SHARE;
use polygraph_plan::{Goal, values};
use polygraph_report::judge::LEAST_TRANSACTIONS;
use polygraph_report::peak::{RateJudgement, RateMeasurement};
use polygraph_report::{Extras, html, text};

use self::criteria::CriteriaOptions;
use self::state::{State, Step};
use crate::cmd::run;
use crate::options::whole;
use crate::result::result_directory;
use crate::{Done, Failure, console, exit, repair};

/// What stands for the rate in values of `--set`.
const RATE: &str = "{rate}";
/// Length of a run, if `--goal` does not say.
const LENGTH: f64 = 60.0;

/// Options of `peak`: those of a run, and how to search.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_group("target", |group| group.arg("resume")),
    mut_arg("req_rate", |arg| arg.help("The first rate, without --from")),
    mut_arg("goal", |arg| arg.help("Length of each run, default 1min; see `run`")),
    after_help = "Takes the options of `run`; each step is a run of its own, with its result directory. Examples:\n  \
        polygraph peak --device squid --device_opt mem=1GB\n  \
        polygraph peak --proxy 127.0.0.1:3128 --from 200/sec --most 5000/sec --goal 5min\n  \
        polygraph peak --device squid --config workloads/polymix-1.pg --scale 1/30 --set ReqRate={rate}\n  \
        polygraph peak --resume runs/peak-2026-11-21T10-00-00"
)]
pub struct PeakArgs {
    /// Go on with the search in this directory, from the last run that was complete
    #[arg(long, value_name = "DIR", exclusive = true)]
    resume: Option<PathBuf>,
    #[command(flatten)]
    search: SearchOptions,
    #[command(flatten)]
    criteria: CriteriaOptions,
    #[command(flatten, next_help_heading = "Each run")]
    run: run::Args,
}

/// How to search.
#[derive(clap::Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Search")]
struct SearchOptions {
    /// The first rate, one that the device holds easily: what it measures is the low load that others are compared
    /// with. Default: --req_rate
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    from: Option<f64>,
    /// The highest rate to try
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    most: Option<f64>,
    /// How near the rate that holds and the one that does not must be
    #[arg(long, value_name = "SHARE", default_value = "2p", value_parser = precision)]
    precision: f64,
    /// How often the highest rate that holds is repeated; the lowest that does not is repeated once
    #[arg(long, value_name = "N", default_value = "2", value_parser = whole(0..=20_usize))]
    confirm: usize,
    /// Runs at most
    #[arg(long, value_name = "N", default_value = "60", value_parser = whole(1..=1000_usize))]
    max_runs: usize,
    /// Let a device that lives longer than a run rest for so long between runs, and after one that failed for as long
    /// as its slowest reply took on top
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pause: f64,
}

fn precision(text: &str) -> Result<f64, String> {
    let share = values::share(text)?;
    if (0.001..=0.5).contains(&share) {
        Ok(share)
    } else {
        Err(format!("`{text}` is no precision: write a share from 0.1p to 50p"))
    }
}

/// Searches, or goes on to search.
pub fn run(args: PeakArgs) -> Done {
    let (args, directory, mut state) = match &args.resume {
        Some(directory) => resume(directory)?,
        None => begin(args)?,
    };
    let report = directory.join("report.html");
    let finding = loop {
        match state.next() {
            SearchStep::Done(finding) => {
                write(&report, &page::html(&state, Some(&finding)))?;
                break finding;
            }
            SearchStep::Run(rate, why) => {
                let step = step(&args, &directory, &state, rate, why).inspect_err(|_| {
                    if state.steps.is_empty() && args.resume.is_none() {
                        // A search without any run is none.
                        let _ = std::fs::remove_dir_all(&directory);
                    }
                })?;
                let step = match step {
                    Some(step) => step,
                    None => return Ok(interrupted(&directory)),
                };
                state.steps.push(step);
                state.save(&directory)?;
                // Half a curve is better than none.
                write(&report, &page::html(&state, None))?;
                console::print(&line(&state));
                let last = matches!(state.next(), SearchStep::Done(_));
                if !last && !rest(&args, &state)? {
                    return Ok(interrupted(&directory));
                }
            }
        }
    };
    console::print(&format!("{}\n", conclusion(&state, &finding)));
    if let Some(next) = next_step(&finding) {
        console::print(&format!("{:<14} {next}\n", "next"));
    }
    console::print(&format!("{:<14} {}\n", "report", report.display()));
    console::print(&format!("{:<14} {}\n", "runs", directory.display()));
    Ok(ExitCode::from(if finding.held.is_some() { exit::OK } else { exit::FAILED }))
}

/// A new search, with a directory of its own.
fn begin(args: PeakArgs) -> Result<(PeakArgs, PathBuf, State), Failure> {
    if args.run.is_workload() && !args.run.settings().any(|value| value.contains(RATE)) {
        return Err(Failure::usage(format!(
            "say which name of the workload is the rate: --set NAME={RATE}, for example --set ReqRate={RATE}"
        )));
    }
    let Some(first) = args.search.from.or(args.run.rate()) else {
        return Err(Failure::usage("robots without a rate have no peak: give --from or --req_rate"));
    };
    if args.search.most.is_some_and(|most| most < first) {
        return Err(Failure::usage("--most is below the first rate"));
    }
    let label = if args.run.label().is_empty() { "peak" } else { args.run.label() };
    let directory = result_directory(args.run.runs(), label)?;
    let state = State {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        directory: std::env::current_dir().map_err(Failure::setup)?,
        search: Search {
            first,
            most: args.search.most,
            precision: args.search.precision,
            confirm: args.search.confirm,
            runs: args.search.max_runs,
        },
        criteria: args.criteria.clone().into(),
        steps: Vec::new(),
    };
    state.save(&directory)?;
    console::print(&heading());
    Ok((args, directory, state))
}

/// The search that another process began.
fn resume(directory: &Path) -> Result<(PeakArgs, PathBuf, State), Failure> {
    let directory = directory
        .canonicalize()
        .map_err(|e| Failure::data(anyhow::anyhow!("there is no search in {}: {e}", directory.display())))?;
    let state = State::load(&directory)?;
    // Paths on the command line mean what they meant then.
    std::env::set_current_dir(&state.directory).map_err(|e| {
        Failure::setup(anyhow::anyhow!("cannot go to {}, where it began: {e}", state.directory.display()))
    })?;
    let (words, _) = repair::command_line(state.command.clone(), &crate::Cli::command());
    let args = PeakArgs::try_parse_from(&words[1..])
        .map_err(|e| Failure::data(anyhow::anyhow!("the search has a command line that is none: {e}")))?;
    console::print(&heading());
    (1..=state.steps.len()).for_each(|count| console::print(&line_of(&state, count)));
    Ok((args, directory, state))
}

/// One run; `None` if the user stopped it.
fn step(
    args: &PeakArgs,
    directory: &Path,
    state: &State,
    rate: f64,
    why: TrialReason,
) -> Result<Option<Step>, Failure> {
    let number = state.steps.len() + 1;
    let eta = state.remaining_s().map_or_else(String::new, |seconds| {
        let runs = state.search.remaining(&state.trials());
        let plural = if runs == 1 { "" } else { "s" };
        format!(", about {runs} run{plural} and {} to go", text::duration(seconds.round()))
    });
    console::note(&format!("step {number}: {}/s, {}{eta}", shown(rate), why.word()));
    let mut run = args.run.clone();
    run.aim(directory, number, rate, RATE);
    if let Some(note) = run.lengthened().filter(|_| state.steps.last().is_none_or(|step| step.rate != rate)) {
        console::note(&note);
    }
    let begin = Instant::now();
    let result = run::measure(run)?;
    if result.interrupted {
        return Ok(None);
    }
    let (vote, reasons) = match state.criteria.judge(&result.facts, state.low()) {
        RateJudgement::Held => (Vote::Held, Vec::new()),
        RateJudgement::Failed(reasons) => (Vote::Failed, reasons),
        RateJudgement::Void(reasons) => (Vote::Void, reasons),
        RateJudgement::TooShort(reasons) => return Err(too_short(args, rate, &reasons)),
    };
    let name = result.directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    Ok(Some(Step {
        what: html::title(&result.facts, &Extras::of_run(&result.directory)),
        rate,
        why: why.word().to_owned(),
        vote,
        reasons,
        measured: RateMeasurement::of(&result.facts),
        seconds: begin.elapsed().as_secs_f64(),
        directory: name,
    }))
}

/// Leaves the device alone for a while, unless it ended with the run; false if the user wants to stop.
fn rest(args: &PeakArgs, state: &State) -> Result<bool, Failure> {
    if args.run.starts_device() {
        return Ok(true);
    }
    let last = state.steps.last();
    let backlog = last.filter(|step| step.vote != Vote::Held).and_then(|step| step.measured.max_ms);
    let pause = Duration::from_secs_f64(args.search.pause + backlog.unwrap_or(0.0) / 1000.0);
    let begin = Instant::now();
    polygraph_engine::signals::wait(Some(pause)).map_err(Failure::setup)?;
    Ok(begin.elapsed() >= pause)
}

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    polygraph_report::write_whole(path, page)
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
}

fn interrupted(directory: &Path) -> ExitCode {
    console::note(&format!("stopped; go on with: polygraph peak --resume {}", directory.display()));
    ExitCode::from(exit::INTERRUPTED)
}

fn shown(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn heading() -> String {
    format!(
        "{:>4} {:<8} {:>10} {:<7} {:>10} {:>12} {:>12} {:>7} {:>7}\n",
        "step", "why", "rate/s", "device", "replies/s", "mean", "p95", "hits %", "errors %"
    )
}

fn line(state: &State) -> String {
    line_of(state, state.steps.len())
}

/// The line of one step, counted from 1.
fn line_of(state: &State, number: usize) -> String {
    let Some(step) = state.steps.get(number - 1) else { return String::new() };
    let run = &step.measured;
    let word = match step.vote {
        Vote::Held => "held",
        Vote::Failed => "failed",
        Vote::Void => "-",
    };
    let mut out = format!(
        "{number:>4} {:<8} {:>10} {word:<7} {:>10} {:>12} {:>12} {:>7} {:>7}\n",
        step.why,
        shown(step.rate),
        text::number(run.measured, 1),
        text::ms(run.mean_ms),
        text::ms(run.p95_ms),
        text::number(run.dhr, 1),
        text::number(run.errors, 2),
    );
    step.reasons.iter().for_each(|reason| out.push_str(&format!("     - {reason}\n")));
    out
}

/// The last line: the peak and its bracket.
fn conclusion(state: &State, finding: &PeakResult) -> String {
    let votes = |rate: f64, vote| {
        let (agreeing, counted) = state.votes(rate, vote);
        format!("{agreeing} of {counted} run{}", if counted == 1 { "" } else { "s" })
    };
    let held = finding.held.map(|rate| format!("holds at {}/s in {}", shown(rate), votes(rate, Vote::Held)));
    let failed = finding.failed.map(|rate| match state.votes(rate, Vote::Failed) {
        (_, 0) => format!("at {}/s the bench does not do its part", shown(rate)),
        _ => format!("fails at {}/s in {}", shown(rate), votes(rate, Vote::Failed)),
    });
    let peak = finding.held.map_or_else(|| "none".to_owned(), |rate| format!("{}/s", shown(rate)));
    let join = |parts: [Option<String>; 2]| parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match finding.end {
        SearchEnd::Found => format!("peak {peak}: {}", join([held, failed])),
        SearchEnd::Most => {
            format!("peak {peak} or more: {}, the highest rate that was to be tried", join([held, None]))
        }
        SearchEnd::BenchLimit => {
            let limit = finding.failed.map_or_else(String::new, shown);
            format!(
                "peak {peak} or more: {}; at {limit}/s the bench does not do its part",
                join([held, None])
            )
        }
        SearchEnd::Nothing => {
            let low = finding.failed.map_or_else(String::new, shown);
            format!("peak none: nothing holds down to {low}/s")
        }
        SearchEnd::OutOfRuns => {
            format!("peak {peak}, not narrowed down in {} runs: {}", state.steps.len(), join([held, failed]))
        }
    }
}

/// What to do about a search that did not find the peak.
pub fn next_step(finding: &PeakResult) -> Option<String> {
    let text = match finding.end {
        SearchEnd::Found => return None,
        SearchEnd::Most => "the peak is higher: raise --most, or leave it out",
        SearchEnd::BenchLimit if finding.held.is_some() => {
            "give the bench more processors than the device, or machines of its own; then the peak may be higher"
        }
        SearchEnd::BenchLimit => {
            "the bench cannot do even the lowest rate: see the report of a run, what held it up"
        }
        SearchEnd::Nothing => {
            "see the reasons above; begin lower with --from, or loosen what they name (--max_rptm, --max_errors ...)"
        }
        SearchEnd::OutOfRuns => {
            "allow more with --max_runs, or be content with less --precision; longer runs (--goal) disagree less"
        }
    };
    Some(text.to_owned())
}

/// Why a search ends whose runs are too short: repeating them would not help, and lower rates less so.
fn too_short(args: &PeakArgs, rate: f64, reasons: &[String]) -> Failure {
    let longer = if args.run.is_workload() {
        "make its phases longer (--scale), or begin with a higher rate (--from)"
    } else {
        "make runs longer (--goal), or begin with a higher rate (--from)"
    };
    Failure::usage(format!(
        "the run at {}/s is too short to say anything of the device: {}; {longer}",
        shown(rate),
        reasons.join("; ")
    ))
}

/// Makes a goal long enough for a run at `rate` to be judged; the share of its first part, in which nothing is measured,
/// included. Half as many transactions again as are needed: arrivals at random are too few once in a million times.
pub fn long_enough(goal: Goal, rate: f64) -> Goal {
    let least = LEAST_TRANSACTIONS as f64 * 1.5 / (1.0 - WARM_SHARE);
    Goal {
        duration: goal.duration.map(|seconds| seconds.max((least / rate).ceil())),
        xactions: goal.xactions.map(|count| count.max(least.ceil() as u64)),
        ..goal
    }
}

/// The goal of each run, if the command line has none.
pub fn goal() -> Goal {
    Goal { duration: Some(LENGTH), ..Goal::default() }
}

/// A rate as it is written on command lines and in workloads.
pub fn rate_text(rate: f64) -> String {
    format!("{}/sec", shown(rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_report::peak::{PeakCriteria, TimeLimit};

    fn state(steps: &[(f64, Vote)]) -> State {
        let step = |&(rate, vote): &(f64, Vote)| Step {
            what: String::new(),
            rate,
            why: "first".to_owned(),
            vote,
            reasons: Vec::new(),
            measured: RateMeasurement { mean_ms: Some(rate), ..RateMeasurement::default() },
            seconds: 10.0,
            directory: String::new(),
        };
        State {
            version: String::new(),
            command: Vec::new(),
            directory: PathBuf::new(),
            search: Search { first: 50.0, most: None, precision: 0.02, confirm: 0, runs: 60 },
            criteria: PeakCriteria {
                errors: 0.03,
                rate_gap: 0.03,
                mean: Some(TimeLimit { factor: 1.25, more_ms: 250.0 }),
                p95: None,
                dhr_gap: None,
            },
            steps: steps.iter().map(step).collect(),
        }
    }

    #[test]
    fn the_last_line_names_the_peak_and_its_bracket() {
        use Vote::{Failed, Held};
        let found = state(&[(99.0, Held), (100.5, Failed), (99.0, Held), (99.0, Failed)]);
        let finding = |end| PeakResult { end, held: Some(99.0), failed: Some(100.5) };
        for (finding, text) in [
            (
                finding(SearchEnd::Found),
                "peak 99/s: holds at 99/s in 2 of 3 runs, fails at 100.5/s in 1 of 1 run",
            ),
            (
                PeakResult { failed: None, ..finding(SearchEnd::Most) },
                "peak 99/s or more: holds at 99/s in 2 of 3 runs, the highest rate that was to be tried",
            ),
            (
                finding(SearchEnd::BenchLimit),
                "peak 99/s or more: holds at 99/s in 2 of 3 runs; at 100.5/s the bench does not do its part",
            ),
            (
                PeakResult { held: None, ..finding(SearchEnd::Nothing) },
                "peak none: nothing holds down to 100.5/s",
            ),
        ] {
            assert_eq!(conclusion(&found, &finding), text);
        }
    }

    #[test]
    fn runs_are_long_enough_to_be_judged() {
        let goal = Goal { duration: Some(5.0), errors: Some(0.3), ..Goal::default() };
        assert_eq!(long_enough(goal, 10.0), Goal { duration: Some(17.0), ..goal });
        assert_eq!(long_enough(goal, 1000.0), goal);
        let count = Goal { xactions: Some(50), ..Goal::default() };
        assert_eq!(long_enough(count, 10.0).xactions, Some(167));
        // Nine tenths of it are measured: 153 transactions, of which 100 are needed; 53 are more than four standard
        // deviations.
        assert!((17.0 * 10.0 * (1.0 - WARM_SHARE) - 100.0) / 153f64.sqrt() > 4.0);
    }

    #[test]
    fn a_search_that_found_no_peak_says_what_to_do() {
        let finding = |end, held| PeakResult { end, held, failed: None };
        assert_eq!(next_step(&finding(SearchEnd::Found, Some(1.0))), None);
        for (end, held, word) in [
            (SearchEnd::Most, Some(1.0), "--most"),
            (SearchEnd::BenchLimit, Some(1.0), "processors"),
            (SearchEnd::BenchLimit, None, "lowest rate"),
            (SearchEnd::Nothing, None, "--from"),
            (SearchEnd::OutOfRuns, Some(1.0), "--max_runs"),
        ] {
            assert!(next_step(&finding(end, held)).is_some_and(|text| text.contains(word)), "{end:?}");
        }
    }

    #[test]
    fn a_state_survives_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let before = state(&[(50.0, Vote::Held), (100.0, Vote::Void), (25.0, Vote::Held)]);
        before.save(directory.path()).unwrap();
        let after = State::load(directory.path()).unwrap();
        assert_eq!(
            (after.trials(), after.search, after.criteria),
            (before.trials(), before.search, before.criteria)
        );
        assert_eq!(after.low().and_then(|low| low.mean_ms), Some(25.0));
        // The void run, the bisection of a gap of a half to 2 %, and one doubling at 10 s each.
        assert_eq!(after.remaining_s(), Some(60.0));
        assert!(State::load(&directory.path().join("other")).is_err());
    }
}
