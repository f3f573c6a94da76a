//! `export`: logs as tables for other programs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polygraph_export::{Format, export};
use polygraph_report::run_dir::logs_in;
use polygraph_runner::Failure;
use polygraph_text::counted;

use super::logs::open;
use crate::exit::Done;
use crate::output;

/// Options of `export`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Tables: runs, settings, phases, intervals, figures, histograms, errors, error_samples, xacts, messages. The file \
        schema.json describes their columns.\n\nExamples:\n  polygraph export runs/try-2026-11-21T10-00-00\n  \
        polygraph export --format csv --out tables client.log server.log\n  \
        duckdb -c \"SELECT phase, sum(hit_size_count) FROM 'tables/intervals.parquet' GROUP BY phase\""
)]
pub struct Args {
    /// Directory for the tables. Default: `export` in the result directory, or in the current directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// File format: parquet, csv or jsonl. Default: parquet, or csv if this program was built without Parquet
    #[arg(long, value_name = "FORMAT", value_parser = str::parse::<Format>)]
    format: Option<Format>,
    /// Result directory, or logs of one run
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Writes the tables.
pub fn run(args: Args) -> Done {
    let (paths, default) = match &args.logs[..] {
        [one] if one.is_dir() => (logs_in(one).map_err(Failure::data)?, one.join("export")),
        logs => (logs.to_vec(), PathBuf::from("export")),
    };
    let folder = args.out.unwrap_or(default);
    let done =
        export(&open(&paths)?, &folder, args.format.unwrap_or_else(Format::best)).map_err(Failure::setup)?;
    done.missing.iter().chain(&done.mixed).for_each(|warning| output::warn(warning));
    let (tables, rows) = (counted(done.tables as u64, "table"), counted(done.rows as u64, "row"));
    output::note(&format!("{tables} with {rows}: {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}
