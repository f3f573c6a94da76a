//! `lx`, `ltrace`, `lr`, `cmp-lx` and `report`: figures, text and reports from logs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use polygraph_plan::values;
use polygraph_report::cmp_lx::{CmpScope, cmp_lx as cmp_lx_text};
use polygraph_report::console::ConsoleForm;
use polygraph_report::headline_spread::spread;
use polygraph_report::html::ReportError;
use polygraph_report::lr::LrOptions;
use polygraph_report::ltrace::{TraceOptions, ltrace as ltrace_text};
use polygraph_report::lx::{LxOptions, LxSide, extract, list_absent, list_figures, list_json};
use polygraph_report::popularity::Curve;
use polygraph_report::run_dir::{RunError, logs_in};
use polygraph_report::{Extras, RunFacts, lr as lr_text, write_report_with, write_whole_with};
use polygraph_runner::expectations::ExpectationResults;
use polygraph_runner::{Expectations, Failure, write_file};
use polygraph_stats::LogFile;
use polygraph_stats::log::LogError;

use crate::exit::{self, Done};
use crate::options::ExpectOptions;
use crate::options::values::yes_no;
use crate::output;

/// Output formats of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LxFormat {
    /// One `name: value` per line; lists over several lines
    #[default]
    Text,
    /// One `name,unit,value` per line with all digits; no lists
    Csv,
    /// One object; undefined values are null
    Json,
}

/// Options of `lx`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  lx --phase meas --objects all --prn_names yes run.log\n  \
        lx --objects hit.rptm,miss.rptm --format csv clt1.log clt2.log\n  \
        lx --objects errors.tbl,baseline.rptm.hist run.log\n  lx runs/try-2026-11-21T10-00-00\n  lx --list --objects rep"
)]
pub struct LxArgs {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Phases, separated by commas. Default: all measured phases
    #[arg(long, visible_alias = "phase", value_name = "NAMES", value_delimiter = ',')]
    phases: Vec<String>,
    /// Figures, separated by commas: names, first parts of dotted names, short names such as `dhr` and `rptm.p95`, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    objects: Vec<String>,
    /// Logs to use: clt (client), srv (server) or all
    #[arg(long, value_name = "SIDE", default_value = "all", value_parser = str::parse::<LxSide>)]
    side: LxSide,
    /// Print names before values
    #[arg(long, value_name = "YES|NO", default_value = "yes", value_parser = yes_no, action = clap::ArgAction::Set)]
    prn_names: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: LxFormat,
    /// Same as --format json
    #[arg(long)]
    json: bool,
    /// List all figures with their units and definitions
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    expectations: ExpectOptions,
    /// With --list: also list the original's figures that do not exist here, and say why
    #[arg(long, requires = "list")]
    all: bool,
    /// Result directory, or logs of one run; `-` is standard input
    #[arg(required_unless_present = "list")]
    logs: Vec<PathBuf>,
}

/// Prints statistics of logs.
pub fn lx(args: LxArgs) -> Done {
    if args.list {
        return list(&args);
    }
    let logs = open(&args.logs)?;
    let options = LxOptions {
        phases: args.phases,
        objects: args.objects,
        side: args.side,
        values_only: !args.prn_names,
    };
    let found = extract(&logs, &options).map_err(Failure::data)?;
    found.facts.missing().for_each(output::warn);
    found.mixed().for_each(output::warn);
    found.unknown.iter().for_each(|unknown| output::warn(&unknown.to_string()));
    let text = match args.format {
        _ if args.json => output::json_text(&found.json()),
        LxFormat::Json => output::json_text(&found.json()),
        LxFormat::Csv => found.csv(),
        LxFormat::Text => found.text(options.values_only),
    };
    let done = write_or_print(args.out.as_deref(), &text)?;
    let met = check(args.expectations, &found.facts)?;
    output::note_raw(&met.text());
    Ok(if met.all_met() { done } else { ExitCode::from(exit::EXPECTATION) })
}

/// Prints the table of figures.
fn list(args: &LxArgs) -> Done {
    let form = if args.json { LxFormat::Json } else { args.format };
    let mut text = match form {
        LxFormat::Text => list_figures(&args.objects).map_err(Failure::data)?,
        LxFormat::Json => {
            let figures = list_json(&args.objects, args.all).map_err(Failure::data)?;
            output::json_text(&serde_json::json!({ "figures": figures }))
        }
        LxFormat::Csv => {
            return Err(Failure::usage("--list has no CSV format: use text or --json"));
        }
    };
    if args.all && form == LxFormat::Text {
        text.push_str(&list_absent());
    }
    write_or_print(args.out.as_deref(), &text)
}

/// Options of `ltrace`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Objects other than figures: time (the middle of the window), interval.start, interval.end, interval.entries and \
        name (of the phase).\n\nExamples:\n  \
        ltrace --objects time,rep_rate,baseline.rptm.mean --win_len 10s --time_unit 1min clt.log\n  \
        ltrace --objects name,hit.ratio --format csv clt1.log clt2.log"
)]
pub struct LtraceArgs {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Figures, separated by commas: names, first parts of dotted names, or short names such as `dhr` and `rptm.p95`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    objects: Vec<String>,
    /// Logs to use: clt (client), srv (server) or all
    #[arg(long, value_name = "SIDE", default_value = "all", value_parser = str::parse::<LxSide>)]
    side: LxSide,
    /// Length of the window
    #[arg(long, value_name = "TIME", default_value = "60sec", value_parser = positive_time)]
    win_len: f64,
    /// Count times from the first interval, in this unit. Default: seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    time_unit: Option<f64>,
    /// Treat all logs as if they started at the same time
    #[arg(long, value_name = "YES|NO", default_value = "no", value_parser = yes_no, action = clap::ArgAction::Set)]
    sync_times: bool,
    /// Move the window by one interval instead of by its length
    #[arg(long, value_name = "YES|NO", default_value = "no", value_parser = yes_no, action = clap::ArgAction::Set)]
    smooth_slide: bool,
    /// Output format: text or csv
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "csv"])]
    format: String,
    /// Result directory, or logs of one run; `-` is standard input
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

fn positive_time(text: &str) -> Result<f64, String> {
    values::time(text).map_err(|e| e.to_string()).and_then(|seconds| {
        match seconds > 0.0 && seconds.is_finite() {
            true => Ok(seconds),
            false => Err(format!("`{text}` is not a positive time")),
        }
    })
}

/// Prints figures over time.
pub fn ltrace(args: LtraceArgs) -> Done {
    if args.objects.iter().any(|object| object.eq_ignore_ascii_case("all")) {
        return Err(Failure::usage("a table of all figures is too wide: name some figures with --objects"));
    }
    let mut logs = Vec::new();
    for path in &with_directories(&args.logs).map_err(Failure::data)? {
        match open_one(path) {
            Ok(log) => logs.push(log),
            Err(error) => output::warn(&format!("{error}; skipping this log")),
        }
    }
    if logs.is_empty() {
        return Err(Failure::data(anyhow::anyhow!("none of the logs can be read")));
    }
    let options = TraceOptions {
        objects: args.objects,
        side: args.side,
        window_s: args.win_len,
        time_unit_s: args.time_unit,
        sync_times: args.sync_times,
        smooth_slide: args.smooth_slide,
        csv: args.format == "csv",
    };
    let trace = ltrace_text(&logs, &options).map_err(Failure::data)?;
    trace.missing.iter().chain(&trace.mixed).for_each(|warning| output::warn(warning));
    trace.unknown.iter().for_each(|unknown| output::warn(&unknown.to_string()));
    write_or_print(args.out.as_deref(), &trace.text)
}

/// Options of `lr`.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case", after_help = "Example:\n  lr run.log | less")]
pub struct LrArgs {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print statistics lines in the format of generation 1.x: absolute times, no response times
    #[arg(long)]
    classic: bool,
    /// Show only messages up to this level
    #[arg(long, value_name = "LEVEL", default_value = "255")]
    verb_lvl: u8,
    /// Print only the hits, misses and errors of each phase
    #[arg(long)]
    phase: bool,
    /// Result directories or logs; `-` is standard input
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Prints logs as text.
pub fn lr(args: LrArgs) -> Done {
    let logs = open(&args.logs)?;
    let options = LrOptions {
        form: if args.classic { ConsoleForm::V1 } else { ConsoleForm::V4 },
        verbosity: args.verb_lvl,
        phases: args.phase,
    };
    let missing = match &args.out {
        Some(path) => write_whole_with(path, |out| lr_text(&logs, options, out))
            .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))?,
        // A closed pipe is not an error.
        None => output::print_with(|out| lr_text(&logs, options, out)).unwrap_or_default(),
    };
    missing.iter().for_each(|missing| output::warn(missing));
    Ok(ExitCode::SUCCESS)
}

/// Options of `cmp-lx`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Exit code 1 if anything differs.\n\nExample:\n  lx clt1.log > 1.lx; lx clt2.log > 2.lx; cmp-lx 1.lx 2.lx"
)]
pub struct CmpLxArgs {
    /// Numbers differ if their distance is at least this percentage of the smaller number; changes are printed in percent of
    /// the first one
    #[arg(long, value_name = "PERCENT", default_value = "10")]
    precision: f64,
    /// Figures to compare: important (without rare classes, extremes, deviations and sums) or all
    #[arg(long, value_name = "SCOPE", default_value = "important", value_parser = str::parse::<CmpScope>)]
    scope: CmpScope,
    /// Output of lx
    one: PathBuf,
    /// Another output of lx
    two: PathBuf,
}

/// Prints what differs between two outputs of `lx`.
pub fn cmp_lx(args: CmpLxArgs) -> Done {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|e| Failure::data(anyhow::anyhow!("cannot read {}: {e}", path.display())))
    };
    let found = cmp_lx_text(&read(&args.one)?, &read(&args.two)?, args.precision, args.scope);
    output::print(&found.text);
    Ok(ExitCode::from(if found.count > 0 { exit::FAILED } else { exit::OK }))
}

/// Options of `report`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  polygraph report runs/try-2026-11-21T10-00-00\n  polygraph report --out r.html client.log server.log"
)]
pub struct ReportArgs {
    /// File for the report. Default: report.html in the result directory, or in the current directory
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also show the popularity of the URLs in this file: one URL per line, or an access log
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print the verdict as JSON. The report is written as well
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    expectations: ExpectOptions,
    /// Result directory, or logs of one run
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Writes an HTML report, and prints the verdict.
pub fn report(args: ReportArgs) -> Done {
    let (paths, default) = match &args.logs[..] {
        [one] if one.is_dir() => (logs_in(one).map_err(Failure::data)?, one.join("report.html")),
        logs => (logs.to_vec(), PathBuf::from("report.html")),
    };
    let out = args.out.unwrap_or(default);
    let mut extras = match &args.logs[..] {
        [one] if one.is_dir() => Extras::of_run(one),
        _ => Extras::default(),
    };
    if let Some(trace) = &args.trace {
        let curve = Curve::of_trace(trace)
            .map_err(|e| Failure::data(anyhow::anyhow!("cannot read {}: {e}", trace.display())))?
            .ok_or_else(|| Failure::data(anyhow::anyhow!("there are no URLs in {}", trace.display())))?;
        let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy().into_owned();
        extras.trace = Some((name, curve));
    }
    let facts = write_report_with(&paths, &out, &extras).map_err(|error| match error {
        ReportError::Write { .. } => {
            Failure::setup(anyhow::anyhow!("{error}; --out FILE writes the report elsewhere"))
        }
        error => Failure::data(error),
    })?;
    output::note(&format!("report: {}", out.display()));
    let met = check(args.expectations, &facts)?;
    let servers = spread(&facts);
    match args.json {
        true => {
            let mut found = facts.verdict.json();
            if let Some(servers) = servers {
                found["servers"] = servers.json();
            }
            output::print_json(&found);
        }
        false => {
            let servers = servers.map_or_else(String::new, |servers| servers.table());
            output::print(&(facts.verdict.text() + &servers + &met.text()));
        }
    }
    Ok(ExitCode::from(if met.all_met() { exit::OK } else { exit::EXPECTATION }))
}

/// Checks expectations, and writes the JUnit file.
fn check(options: ExpectOptions, facts: &RunFacts) -> Result<ExpectationResults, Failure> {
    let expectations = Expectations::from(options);
    let met = expectations.check(facts);
    expectations.publish(facts, &met)?;
    Ok(met)
}

/// Opens logs.
pub fn open(paths: &[PathBuf]) -> Result<Vec<LogFile>, Failure> {
    let paths = with_directories(paths).map_err(Failure::data)?;
    paths.iter().map(|path| open_one(path)).collect::<Result<_, _>>().map_err(Failure::data)
}

/// Paths with result directories replaced by their logs.
fn with_directories(paths: &[PathBuf]) -> Result<Vec<PathBuf>, RunError> {
    let logs = |path: &PathBuf| if path.is_dir() { logs_in(path) } else { Ok(vec![path.clone()]) };
    paths.iter().map(logs).collect::<Result<Vec<_>, _>>().map(|all| all.concat())
}

/// Opens a log, or copies it from standard input if the path is `-`.
fn open_one(path: &Path) -> Result<LogFile, LogError> {
    match path.as_os_str() == "-" {
        true => LogFile::copy(std::io::stdin().lock(), "standard input"),
        false => LogFile::open(path),
    }
}

/// Writes text to a file, or prints it.
fn write_or_print(to: Option<&Path>, text: &str) -> Done {
    match to {
        None => output::print(text),
        Some(path) => write_file(path, text)?,
    }
    Ok(ExitCode::SUCCESS)
}
