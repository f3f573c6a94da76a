//! `polygraph workloads`: the workloads, devices, bake-off plans, labs and results that are built into the program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args as ClapArgs, Parser, Subcommand};
use polygraph_assets::{Asset, Entry, EntryKind, SCHEME, all, entries, find};
use polygraph_runner::{Failure, make_directory};
use serde_json::{Value, json};

use crate::exit::Done;
use crate::output;

/// Options of `workloads`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "The name of a built-in workload stands for its file: `polygraph run polymix-4 ...`. If there is also a file with this \
        name in the working directory, write builtin:polymix-4 or ./polymix-4.pg.\n\
        Examples:\n  \
        polygraph workloads show polymix-1\n  \
        polygraph workloads copy polymix-4 .          # workloads/polymix-4.pg and what it includes\n  \
        polygraph workloads copy labs/webaxe-4 .      # a workload has the same name\n  \
        polygraph workloads copy --all /tmp/standard"
)]
pub struct Args {
    #[command(subcommand)]
    command: WorkloadsCommand,
}

#[derive(Subcommand, Debug)]
enum WorkloadsCommand {
    /// List everything that is built in: workloads, devices, bake-off plans, labs, published results
    List(ListArgs),
    /// Print a built-in file
    Show(ShowArgs),
    /// Copy built-in files to a directory, to read or change them
    Copy(CopyArgs),
}

/// Options of `workloads list`.
#[derive(ClapArgs, Debug)]
#[command(rename_all = "snake_case")]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `workloads show`.
#[derive(ClapArgs, Debug)]
#[command(rename_all = "snake_case")]
struct ShowArgs {
    /// A name, for example polymix-4 or devices/squid, or the path of one file, for example workloads/include/benches.pg
    name: String,
}

/// Options of `workloads copy`.
#[derive(ClapArgs, Debug)]
#[command(rename_all = "snake_case")]
struct CopyArgs {
    /// Names, and behind them the directory. Files keep their places below it, because they refer to each other
    #[arg(value_name = "NAME... DIR", required = true, num_args = 1..)]
    words: Vec<String>,
    /// Copy everything; then there is only the directory
    #[arg(long)]
    all: bool,
    /// Replace files that differ
    #[arg(long)]
    force: bool,
}

/// Carries out the subcommand.
pub fn run(args: &Args) -> Done {
    match &args.command {
        WorkloadsCommand::List(args) => {
            list(args.json);
            Ok(ExitCode::SUCCESS)
        }
        WorkloadsCommand::Show(args) => show(&args.name),
        WorkloadsCommand::Copy(args) => copy(args),
    }
}

fn list(json: bool) {
    if json {
        let of_entry = |entry: &Entry| {
            let files: Vec<&str> = entry.files().iter().map(|asset| asset.path).collect();
            json!({
                "kind": entry.kind.directory(),
                "name": entry.name,
                "summary": entry.summary(),
                "files": files,
            })
        };
        let found: Vec<Value> = entries().iter().map(of_entry).collect();
        output::print_json(&json!({ "entries": found }));
        return;
    }
    let mut text = String::new();
    for kind in EntryKind::ALL {
        let _ = writeln!(text, "{}{}:", if text.is_empty() { "" } else { "\n" }, kind.directory());
        for entry in entries().into_iter().filter(|entry| entry.kind == kind) {
            let _ = writeln!(text, "  {:<24} {}", entry.name, entry.summary());
        }
    }
    output::print(&text);
}

fn show(name: &str) -> Done {
    let plain = name.strip_prefix(SCHEME).unwrap_or(name);
    if let Some(asset) = all().iter().find(|asset| asset.path == plain) {
        output::print(asset.text);
        return Ok(ExitCode::SUCCESS);
    }
    let entry = named(plain)?;
    // A device is a directory. The parts of all others are shown one by one.
    let files = entry.files();
    let shown = if entry.kind == EntryKind::Device { &files[..] } else { &files[..1] };
    let mut text = String::new();
    for asset in shown {
        if shown.len() > 1 {
            let _ = writeln!(text, "{}==> {} <==", if text.is_empty() { "" } else { "\n" }, asset.path);
        }
        text.push_str(asset.text);
    }
    output::print(&text);
    if shown.len() < files.len() {
        let rest: Vec<&str> = files[shown.len()..].iter().map(|asset| asset.path).collect();
        output::note(&format!("it refers to: {}", rest.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a name stands for.
fn named(name: &str) -> Result<Entry, Failure> {
    let name = name.strip_prefix(SCHEME).unwrap_or(name);
    let found: Vec<Entry> = EntryKind::ALL.into_iter().filter_map(|kind| find(kind, name)).collect();
    match &found[..] {
        [entry] => Ok(*entry),
        [] => Err(Failure::usage(format!(
            "nothing built in is called `{name}`; `polygraph workloads list` shows the names"
        ))),
        several => {
            let kinds: Vec<&str> = several.iter().map(|entry| entry.kind.word()).collect();
            let names: Vec<String> =
                several.iter().map(|entry| format!("`{}/{}`", entry.kind.directory(), entry.name)).collect();
            Err(Failure::usage(format!(
                "`{name}` is a {}: write {}",
                kinds.join(" and a "),
                names.join(" or ")
            )))
        }
    }
}

fn copy(args: &CopyArgs) -> Done {
    let (directory, files) = match (&args.words[..], args.all) {
        ([directory], true) => (directory, all().iter().collect()),
        ([names @ .., directory], false) if !names.is_empty() => {
            let mut files: Vec<&Asset> = Vec::new();
            for name in names {
                files.extend(named(name)?.files());
            }
            files.sort_by_key(|asset| asset.path);
            files.dedup();
            (directory, files)
        }
        (_, true) => return Err(Failure::usage("--all copies everything: leave out the names")),
        (_, false) => {
            return Err(Failure::usage(
                "say where to copy to: `polygraph workloads copy NAME DIR`, where DIR may be `.`",
            ));
        }
    };
    let directory = Path::new(directory);
    let places: Vec<PathBuf> = files.iter().map(|asset| directory.join(asset.path)).collect();
    if !args.force {
        let differs = |(asset, place): &(&&Asset, &PathBuf)| {
            fs::symlink_metadata(place).is_ok()
                && fs::read(place).ok().as_deref() != Some(asset.text.as_bytes())
        };
        if let Some((_, place)) = files.iter().zip(&places).find(differs) {
            return Err(Failure::setup(anyhow::anyhow!(
                "{} exists and differs: nothing was copied; --force replaces it",
                place.display()
            )));
        }
    }
    let mut text = String::new();
    for (asset, place) in files.iter().zip(&places) {
        make_directory(place.parent().unwrap_or(directory))?;
        fs::write(place, asset.text)
            .map_err(|error| Failure::setup(anyhow::anyhow!("cannot write {}: {error}", place.display())))?;
        let _ = writeln!(text, "{}", place.display());
    }
    output::print(&text);
    Ok(ExitCode::SUCCESS)
}
