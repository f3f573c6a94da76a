//! `polygraph lab up`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use polygraph_lab::{Lab, LabDirectory, UpPlan, bring_up};
use polygraph_netsetup::Ledger;
use polygraph_runner::Failure;

use super::status::hosts_text;
use super::target::{LabWorkloadOptions, describe};
use super::{failure, require_root};
use crate::exit::Done;
use crate::options::files::lab_file;
use crate::output;

/// Options of `lab up`.
#[derive(Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  polygraph lab up two-hosts\n  \
        polygraph lab up webaxe-4 --dry_run\n  \
        polygraph lab up polymix-3 --set TheBench.peak_req_rate=20/sec --bare"
)]
pub struct UpArgs {
    /// Lab file (docs/lab.md), or the name of a built-in lab
    #[arg(value_name = "LAB.toml", value_parser = lab_file)]
    file: PathBuf,
    /// Name of the lab. Default: that of the file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Make hosts with their own addresses only. The addresses of agents, routes, delay and loss are left to other commands
    #[arg(long)]
    bare: bool,
    /// Print what would be done as a shell script, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    workload: LabWorkloadOptions,
}

/// Makes a lab.
pub fn run(args: &UpArgs) -> Done {
    let lab = describe(&args.file, args.name.as_deref(), &args.workload, args.bare)?;
    if args.dry_run {
        output::print(&UpPlan::new(&lab, "polygraph").script());
        return Ok(ExitCode::SUCCESS);
    }
    up(&lab)?;
    output::print(&hosts_text(&lab));
    Ok(ExitCode::SUCCESS)
}

/// Makes a lab that stays.
///
/// # Errors
/// If the lab cannot be made.
pub fn up(lab: &Lab) -> Result<(), Failure> {
    require_root()?;
    let program = program()?.display().to_string();
    let ledger = Ledger::of_system().map_err(Failure::setup)?;
    bring_up(lab, &UpPlan::new(lab, &program), &LabDirectory::of_system(), &ledger).map_err(failure)
}

/// The file of this program.
///
/// # Errors
/// If it cannot be found.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::setup(anyhow::anyhow!("cannot find the program file: {e}")))
}
