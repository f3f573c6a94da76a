//! `polygraph import`: published results.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polygraph_bakeoff::published;
use polygraph_runner::{Failure, make_directory};
use polygraph_text::counted;

use super::bakeoff::{BAKEOFFS, IMPORTED};
use crate::exit::Done;
use crate::options::files::published_results;
use crate::output;

/// Options of `import`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "The results of the bake-off of 1999 are built in:\n  polygraph import bakeoff-1\n  polygraph bakeoff report --out bakeoff.html"
)]
pub struct Args {
    /// Results as CSV, or the name of built-in ones. NAME-products.csv and NAME-equipment.csv in the same directory are read,
    /// too
    #[arg(value_name = "NAME.csv", value_parser = published_results)]
    file: PathBuf,
    /// Directory of results
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Reads published results and stores them for reports.
pub fn run(args: Args) -> Done {
    let entries = published::read(&args.file).map_err(Failure::data)?;
    if entries.is_empty() {
        return Err(Failure::data(anyhow::anyhow!("{} contains no results", args.file.display())));
    }
    let name = args.file.file_stem().unwrap_or_default();
    let place = args.runs.join(BAKEOFFS).join(IMPORTED).join(name);
    make_directory(&place)?;
    let files = published::files(&args.file);
    for file in &files {
        let to = place.join(file.file_name().unwrap_or_default());
        polygraph_assets::copy(file, &to)
            .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", to.display())))?;
    }
    let points: usize = entries.iter().map(|entry| entry.points.len()).sum();
    let devices = counted(entries.len() as u64, "device");
    output::note(&format!("{devices} with {}", counted(points as u64, "result")));
    for (index, kind) in ["products (prices, claims)", "equipment (price lists)"].into_iter().enumerate() {
        let part = ["-products.csv", "-equipment.csv"][index];
        if !files.iter().any(|file| file.to_string_lossy().ends_with(part)) {
            output::note(&format!(
                "without {kind}: there is no {}{part} in the same directory",
                name.to_string_lossy()
            ));
        }
    }
    output::note("next: `polygraph bakeoff report --out bakeoff.html`");
    Ok(ExitCode::SUCCESS)
}
