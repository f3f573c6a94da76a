//! `polygraph peak`: the highest rate that a device sustains.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Command, CommandFactory, Parser};
use jiff::Timestamp;
use polygraph_plan::peak::{Search, SearchStep, TrialReason, Vote};
use polygraph_plan::{Goal, values};
use polygraph_report::judge::LEAST_TRANSACTIONS;
use polygraph_report::peak::{RateJudgement, RateMeasurement};
use polygraph_report::{Extras, html, text};
use polygraph_runner::peak::{
    SearchRun, SearchState, conclusion, default_goal, heading, long_enough, next_step, page, rate_text,
    shown, status_of, step_line,
};
use polygraph_runner::prediction::PredictionModel;
use polygraph_runner::result::{check_empty, result_directory};
use polygraph_runner::{Expectations, Failure, make_directory, write_file};
use polygraph_traffic::Distr;
use serde_json::json;

use super::run::RunOptions;
use crate::exit::{self, Done};
use crate::legacy::command_line;
use crate::options::common::command_line as own_command_line;
use crate::options::criteria::CriteriaOptions;
use crate::options::values::{Optional, whole};
use crate::output;

/// The placeholder for the rate in values of `--set`.
const RATE: &str = "{rate}";

/// Options of `peak`: those of a run, and those of the search.
#[derive(Parser, Debug)]
#[command(
    name = "peak",
    rename_all = "snake_case",
    mut_group("target", |group| group.arg("resume")),
    mut_arg("req_rate", |arg| arg.help("First rate, unless --from says otherwise")),
    mut_arg("goal", |arg| arg.help("Length of each run. Default: 1min; see `run`")),
    mut_arg("json", |arg| {
        arg.help("Print the result as JSON: the peak, how the search ended, and the runs").help_heading("Search")
    }),
    after_help = "Takes the options of `run`, except conditions (--expect). Each step is a run with its own result directory. Examples:\n  \
        polygraph peak --device squid --device_opt mem=1GB\n  \
        polygraph peak --proxy 127.0.0.1:3128 --from 200/sec --most 5000/sec --goal 5min\n  \
        polygraph peak --device squid --config polymix-1 --scale 1/30 --set ReqRate={rate}\n  \
        polygraph peak --resume runs/peak-2026-11-21T10-00-00"
)]
pub struct Args {
    /// Resume the search in this directory after its last complete run
    #[arg(long, value_name = "DIR", exclusive = true)]
    resume: Option<PathBuf>,
    /// Directory of the search, which must be new or empty. Default: a new directory in --runs
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    search: SearchOptions,
    #[command(flatten)]
    criteria: CriteriaOptions,
    #[command(flatten, next_help_heading = "Each run")]
    run: RunOptions,
}

/// Options of the search.
#[derive(clap::Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Search")]
struct SearchOptions {
    /// First rate, which the device should sustain easily: its run is the low load with which other runs are compared.
    /// Default: --req_rate
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    from: Option<f64>,
    /// Highest rate to try
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    most: Option<f64>,
    /// Maximum distance between the highest sustained rate and the lowest failed rate
    #[arg(long, value_name = "SHARE", default_value = "2p", value_parser = precision)]
    precision: f64,
    /// Number of repeats of the highest sustained rate; the lowest failed rate is repeated once
    #[arg(long, value_name = "N", default_value = "2", value_parser = whole(0..=20_usize))]
    confirm: usize,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value = "60", value_parser = whole(1..=1000_usize))]
    max_runs: usize,
    /// Pause between runs for a device that keeps running. After a failed run, the pause is longer by the longest response time
    /// of that run
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pause: f64,
}

fn precision(text: &str) -> Result<f64, String> {
    let share = values::share(text)?;
    if (0.001..=0.5).contains(&share) {
        Ok(share)
    } else {
        Err(format!("`{text}` is not a precision: write a share from 0.1p to 50p"))
    }
}

/// A search on this machine.
struct PeakSearch {
    args: Args,
    directory: PathBuf,
    state: SearchState,
}

/// Starts a search, or resumes one.
pub fn run(args: Args) -> Done {
    let mut search = match &args.resume {
        Some(directory) => PeakSearch::resume(directory)?,
        None => PeakSearch::start(args)?,
    };
    let report = search.directory.join("report.html");
    let finding = loop {
        match search.state.next() {
            SearchStep::Done(finding) => break finding,
            SearchStep::Run(rate, why) => {
                let Some(step) = search.step(rate, why).inspect_err(|_| search.remove_if_empty())? else {
                    return Ok(search.interrupted());
                };
                search.state.steps.push(step);
                search.state.save(&search.directory)?;
                // The report shows the runs so far if the search breaks off.
                write_file(&report, page::html(&search.state))?;
                search.show(&step_line(&search.state, search.state.steps.len()));
                let is_last = matches!(search.state.next(), SearchStep::Done(_));
                if !is_last && !search.pause()? {
                    return Ok(search.interrupted());
                }
            }
        }
    };
    // The search may have been complete before; another version of the program would describe it otherwise.
    search.state.save(&search.directory)?;
    write_file(&report, page::html(&search.state))?;
    let code = ExitCode::from(if finding.held.is_some() { exit::OK } else { exit::FAILED });
    if search.args.run.json {
        output::print_json(&json!({
            "peak_rate": finding.held,
            "status": status_of(&finding).word(),
            "conclusion": conclusion(&search.state, &finding),
            "runs": search.state.steps,
            "report": report,
            "directory": search.directory,
        }));
        return Ok(code);
    }
    let mut out = format!("{}\n", conclusion(&search.state, &finding));
    if let Some(next) = next_step(&finding) {
        out += &format!("{:<14} {next}\n", "next");
    }
    out += &format!("{:<14} {}\n{:<14} {}\n", "report", report.display(), "runs", search.directory.display());
    output::print(&out);
    Ok(code)
}

impl PeakSearch {
    /// Shows a line of the table of runs, which is not a result if the result is JSON.
    fn show(&self, line: &str) {
        if self.args.run.json {
            output::note(line.trim_end());
        } else {
            output::print(line);
        }
    }

    /// A new search in a new directory.
    fn start(args: Args) -> Result<PeakSearch, Failure> {
        let Args { run, search, .. } = &args;
        let settings = &run.bench.workload.source.settings;
        if run.bench.workload.config.is_some() && !settings.iter().any(|(_, value)| value.contains(RATE)) {
            return Err(Failure::usage(format!(
                "name the rate of the workload: --set NAME={RATE}, for example --set ReqRate={RATE}"
            )));
        }
        let Some(first) = search.from.or(run.bench.robots.req_rate.and_then(|rate| rate.0)) else {
            return Err(Failure::usage("robots without a rate have no peak: add --from or --req_rate"));
        };
        if search.most.is_some_and(|most| most < first) {
            return Err(Failure::usage("--most is below the first rate"));
        }
        let label = &run.bench.common.label;
        let label = if label.is_empty() { "peak" } else { label };
        let directory = match &args.out {
            Some(directory) => {
                check_empty(directory)?;
                make_directory(directory)?;
                directory.clone()
            }
            None => result_directory(&run.bench.runs, label)?,
        };
        let state = SearchState {
            version: polygraph_stats::version().to_owned(),
            begin_s: Some(Timestamp::now().as_second()),
            command: own_command_line(),
            directory: std::env::current_dir().map_err(Failure::setup)?,
            search: Search {
                first,
                most: search.most,
                precision: search.precision,
                confirm: search.confirm,
                runs: search.max_runs,
            },
            criteria: args.criteria.clone().into(),
            steps: Vec::new(),
        };
        state.save(&directory)?;
        let search = PeakSearch { args, directory, state };
        search.show(&heading());
        Ok(search)
    }

    /// A search that another process started.
    fn resume(directory: &Path) -> Result<PeakSearch, Failure> {
        let directory = directory.canonicalize().map_err(|e| {
            Failure::data(anyhow::anyhow!("there is no search in {}: {e}", directory.display()))
        })?;
        let state = SearchState::load(&directory)?;
        // Relative paths on the command line start there.
        std::env::set_current_dir(&state.directory).map_err(|e| {
            Failure::setup(anyhow::anyhow!(
                "cannot change to {}, where the search started: {e}",
                state.directory.display()
            ))
        })?;
        let program = Command::new("polygraph").subcommand(Args::command());
        let (words, _) = command_line::modernize(state.command.clone(), &program);
        let args = Args::try_parse_from(&words[1..]).map_err(|e| {
            Failure::data(anyhow::anyhow!("the command line of the search cannot be read: {e}"))
        })?;
        let search = PeakSearch { args, directory, state };
        search.show(&heading());
        (1..=search.state.steps.len()).for_each(|number| search.show(&step_line(&search.state, number)));
        Ok(search)
    }

    /// One run; `None` if the user stopped it.
    fn step(&self, rate: f64, why: TrialReason) -> Result<Option<SearchRun>, Failure> {
        let PeakSearch { state, .. } = self;
        let number = state.steps.len() + 1;
        let remaining = state.remaining_s().map_or_else(String::new, |seconds| {
            let runs = state.search.remaining(&state.trials());
            let runs = text::counted(runs as u64, "run");
            format!(", about {runs} and {} to go", text::duration(seconds.round()))
        });
        output::note(&format!("step {number}: {}/s, {}{remaining}", shown(rate), why.word()));
        let mut run = self.args.run.clone();
        let note = self.prepare(&mut run, number, rate);
        if let Some(note) = note.filter(|_| state.steps.last().is_none_or(|step| step.rate != rate)) {
            output::note(&note);
        }
        let start = Instant::now();
        let result = run.measure(None, Expectations::default())?;
        if result.interrupted {
            return Ok(None);
        }
        let (vote, reasons) = match state.criteria.judge(&result.facts, state.low()) {
            RateJudgement::Held => (Vote::Held, Vec::new()),
            RateJudgement::Failed(reasons) => (Vote::Failed, reasons),
            RateJudgement::Void(reasons) => (Vote::Void, reasons),
            RateJudgement::TooShort(reasons) => return Err(self.too_short(rate, &reasons)),
        };
        let name =
            result.directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        Ok(Some(SearchRun {
            what: html::title(&result.facts, &Extras::of_run(&result.directory)),
            rate,
            why: why.word().to_owned(),
            vote,
            reasons,
            measured: RateMeasurement::of(&result.facts),
            seconds: start.elapsed().as_secs_f64(),
            directory: name,
        }))
    }

    /// Makes `run` the run with this number and rate: a result directory in that of the search, and other random
    /// choices than the runs before, because an identical run would show nothing new. In a workload, the rate replaces [`RATE`] in the values of
    /// `--set`. Returns a note if the run is longer than the user's goal.
    fn prepare(&self, run: &mut RunOptions, number: usize, rate: f64) -> Option<String> {
        let bench = &mut run.bench;
        bench.runs.clone_from(&self.directory);
        bench.common.label = format!("step-{number:02}");
        run.predict = PredictionModel::Off;
        if number > 1 {
            // The device has answered in an earlier run. Whether it is still busy shows in this run.
            bench.preflight.preflight = Optional(None);
        }
        bench.common.local_rng_seed = bench.common.local_rng_seed.wrapping_add(number as u64 - 1);
        if bench.workload.config.is_some() {
            let text = rate_text(rate);
            let settings = bench.workload.source.settings.iter_mut();
            settings.for_each(|(_, value)| *value = value.replace(RATE, &text));
            return None;
        }
        bench.robots.req_rate = Some(Optional(Some(rate)));
        let goal = bench.common.goal.unwrap_or_else(default_goal);
        let think = bench.xact_think.0.as_ref().map_or(0.0, Distr::mean);
        let enough = long_enough(goal, rate, think);
        bench.common.goal = Some(enough);
        (enough != goal).then(|| lengthened(&goal, &enough, rate, think))
    }

    /// Waits until the device has recovered, unless it stopped with the run. Returns false if the user stops the search.
    fn pause(&self) -> Result<bool, Failure> {
        if self.args.run.device.is_given() {
            return Ok(true);
        }
        let last = self.state.steps.last();
        let slowest_ms = last.filter(|step| step.vote != Vote::Held).and_then(|step| step.measured.max_ms);
        let pause = Duration::from_secs_f64(self.args.search.pause + slowest_ms.unwrap_or(0.0) / 1000.0);
        let start = Instant::now();
        polygraph_engine::signals::wait(Some(pause)).map_err(Failure::setup)?;
        Ok(start.elapsed() >= pause)
    }

    /// Removes the directory of a search without runs.
    fn remove_if_empty(&self) {
        if self.state.steps.is_empty() && self.args.resume.is_none() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }

    fn interrupted(&self) -> ExitCode {
        output::note(&format!("stopped; resume with: polygraph peak --resume {}", self.directory.display()));
        ExitCode::from(exit::INTERRUPTED)
    }

    /// Explains why a search ends when a run is too short: repeats would be too short as well, and runs at lower rates even
    /// more so.
    fn too_short(&self, rate: f64, reasons: &[String]) -> Failure {
        let longer = match self.args.run.bench.workload.config {
            Some(_) => "make its phases longer (--scale), or start with a higher rate (--from)",
            None => "make runs longer (--goal), or start with a higher rate (--from)",
        };
        Failure::usage(format!(
            "the run at {}/s is too short for a result: {}; {longer}",
            shown(rate),
            reasons.join("; ")
        ))
    }
}

/// Says that a goal is too short for a verdict, and what replaces it. `think` is the mean think time of the servers in seconds.
fn lengthened(goal: &Goal, enough: &Goal, rate: f64, think: f64) -> String {
    let (was, is) = match (goal.duration, enough.duration) {
        (Some(was), Some(is)) if was < is => (text::duration(was), text::duration(is)),
        _ => {
            let count = |goal: &Goal| text::counted(goal.xactions.unwrap_or(0), "transaction");
            (count(goal), count(enough))
        }
    };
    let why = if *enough == long_enough(*goal, rate, 0.0) {
        format!(
            "a verdict needs {LEAST_TRANSACTIONS} measured transactions, and {was} at {}/s yields fewer",
            text::short(Some(rate))
        )
    } else {
        format!("with a think time of {} (--xact_think), {was} is mostly warm-up", text::duration(think))
    };
    format!("--goal is too short: {why}; this run continues for {is}")
}
