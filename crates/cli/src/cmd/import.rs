//! `polygraph import`: published results.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polygraph_bakeoff::published;

use crate::cmd::bakeoff::{BAKEOFFS, IMPORTED, make};
use crate::{Done, Failure, console};

/// Options of `import`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "The results of the bake-off of 1999 are in data/:\n  polygraph import data/bakeoff-1.csv\n  polygraph bakeoff report --out bakeoff.html"
)]
pub struct Args {
    /// Results as CSV; NAME-products.csv and NAME-equipment.csv are read too if they lie beside
    #[arg(value_name = "NAME.csv")]
    file: PathBuf,
    /// Where results are
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Reads published results and keeps them for reports.
pub fn run(args: Args) -> Done {
    let entries = published::read(&args.file).map_err(Failure::data)?;
    if entries.is_empty() {
        return Err(Failure::data(anyhow::anyhow!("{}: there are no results in it", args.file.display())));
    }
    let name = args.file.file_stem().unwrap_or_default();
    let place = args.runs.join(BAKEOFFS).join(IMPORTED).join(name);
    make(&place)?;
    let files = published::files(&args.file);
    for file in &files {
        let to = place.join(file.file_name().unwrap_or_default());
        std::fs::copy(file, &to)
            .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", to.display())))?;
    }
    let points: usize = entries.iter().map(|entry| entry.points.len()).sum();
    console::note(&format!("{} devices with {points} results", entries.len()));
    for (index, kind) in ["products (prices, claims)", "equipment (price lists)"].into_iter().enumerate() {
        let part = ["-products.csv", "-equipment.csv"][index];
        if !files.iter().any(|file| file.to_string_lossy().ends_with(part)) {
            console::note(&format!("without {kind}: there is no {}{part} beside it", name.to_string_lossy()));
        }
    }
    console::note("next: polygraph bakeoff report --out bakeoff.html");
    Ok(ExitCode::SUCCESS)
}
