//! `lx`, `lr` and `report`: from logs to what people read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use polygraph_report::console::Form;
use polygraph_report::lx::{LxOptions, LxSide, list_figures, lx_json};
use polygraph_report::run_dir::logs_in;
use polygraph_report::{Log, lr as lr_text, lx as lx_text, write_report};

use crate::expect::Expectations;
use crate::options::yes_no;
use crate::{Done, Failure, console};

/// Options of `lx`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  lx --phase meas --objects all --prn_names yes run.log\n  \
        lx --objects hit.rptm,miss.rptm --json clt1.log clt2.log\n  lx --list"
)]
pub struct LxArgs {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Phases, separated by commas; by default all that were measured
    #[arg(long, visible_alias = "phase", value_name = "NAMES", value_delimiter = ',')]
    phases: Vec<String>,
    /// Figures or whole first parts of their dotted names, separated by commas; `all` for all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    objects: Vec<String>,
    /// Logs to use: clt, srv or all
    #[arg(long, value_name = "SIDE", default_value = "all", value_parser = str::parse::<LxSide>)]
    side: LxSide,
    /// Print names before values
    #[arg(long, value_name = "YES|NO", default_value = "yes", value_parser = yes_no, action = clap::ArgAction::Set)]
    prn_names: bool,
    /// Print JSON; undefined values are null
    #[arg(long)]
    json: bool,
    /// List the figures with units and definitions
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    expectations: Expectations,
    /// Logs of one run
    #[arg(required_unless_present = "list")]
    logs: Vec<PathBuf>,
}

/// Prints statistics of logs.
pub fn lx(args: LxArgs) -> Done {
    if args.list {
        console::print(&list_figures(&args.objects).map_err(Failure::data)?);
        return Ok(ExitCode::SUCCESS);
    }
    let logs = open(&args.logs)?;
    let options = LxOptions {
        phases: args.phases,
        objects: args.objects,
        side: args.side,
        values_only: !args.prn_names,
    };
    let text = if args.json { lx_json(&logs, &options) } else { lx_text(&logs, &options) };
    let done = output(args.out.as_deref(), &text.map_err(Failure::data)?)?;
    let met = args.expectations.check(&polygraph_report::fold(&logs).map_err(Failure::data)?);
    console::note_raw(&met.text());
    Ok(met.failure().unwrap_or(done))
}

/// Options of `lr`.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case", after_help = "Example:\n  lr run.log | less")]
pub struct LrArgs {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print statistics lines in the form of generation 1.x: absolute time, no response time
    #[arg(long)]
    classic: bool,
    /// Logs
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Prints logs as text.
pub fn lr(args: LrArgs) -> Done {
    let logs = open(&args.logs)?;
    let mut options = polygraph_report::lr::LrOptions::default();
    if args.classic {
        options.form = Form::V1;
    }
    output(args.out.as_deref(), &lr_text(&logs, options))
}

/// Options of `report`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  polygraph report runs/try-2026-11-21T10-00-00\n  polygraph report --out r.html client.log server.log"
)]
pub struct ReportArgs {
    /// The report; by default report.html in the result directory, or here
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    expectations: Expectations,
    /// A result directory, or logs of one run
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Writes an HTML report.
pub fn report(args: ReportArgs) -> Done {
    let (paths, default) = match &args.logs[..] {
        [one] if one.is_dir() => (logs_in(one).map_err(Failure::data)?, one.join("report.html")),
        logs => (logs.to_vec(), PathBuf::from("report.html")),
    };
    let out = args.out.unwrap_or(default);
    let facts = write_report(&paths, &out).map_err(Failure::data)?;
    console::note(&format!("report: {}", out.display()));
    let met = args.expectations.check(&facts);
    console::print(&met.text());
    Ok(met.failure().unwrap_or(ExitCode::SUCCESS))
}

/// Opens logs and says what is missing in them.
pub fn open(paths: &[PathBuf]) -> Result<Vec<Log>, Failure> {
    let logs: Vec<Log> =
        paths.iter().map(|path| Log::open(path)).collect::<Result<_, _>>().map_err(Failure::data)?;
    logs.iter().flat_map(|log| &log.log.missing).for_each(|missing| console::warn(missing));
    Ok(logs)
}

fn output(to: Option<&Path>, text: &str) -> Done {
    match to {
        None => console::print(text),
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))?,
    }
    Ok(ExitCode::SUCCESS)
}
