//! `lx`, `lr` and `report`: from logs to what people read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use polygraph_report::console::Form;
use polygraph_report::lx::{LxOptions, LxSide, list_figures, lx_json};
use polygraph_report::popularity::Curve;
use polygraph_report::{Extras, Log, lr as lr_text, lx as lx_text, write_report_with};

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
    output(args.out.as_deref(), &text.map_err(Failure::data)?)
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
    /// Show the popularity of the URLs of this trace beside that of the run: URLs, one a line, or an access log
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// A result directory, or logs of one run
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Writes an HTML report.
pub fn report(args: ReportArgs) -> Done {
    let (paths, default) = match &args.logs[..] {
        [one] if one.is_dir() => (logs_in(one)?, one.join("report.html")),
        logs => (logs.to_vec(), PathBuf::from("report.html")),
    };
    let out = args.out.unwrap_or(default);
    let mut extras = Extras::default();
    if let Some(trace) = &args.trace {
        let curve = Curve::of_trace(trace)
            .map_err(|e| Failure::data(anyhow::anyhow!("cannot read {}: {e}", trace.display())))?
            .ok_or_else(|| Failure::data(anyhow::anyhow!("there are no URLs in {}", trace.display())))?;
        let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy().into_owned();
        extras.trace = Some((name, curve));
    }
    write_report_with(&paths, &out, &extras).map_err(Failure::data)?;
    console::note(&format!("report: {}", out.display()));
    Ok(ExitCode::SUCCESS)
}

/// The logs in a result directory.
fn logs_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(directory)
        .map_err(|e| Failure::data(anyhow::anyhow!("cannot read {}: {e}", directory.display())))?;
    let mut logs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    logs.sort();
    if logs.is_empty() {
        return Err(Failure::data(anyhow::anyhow!("there are no logs in {}", directory.display())));
    }
    Ok(logs)
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
