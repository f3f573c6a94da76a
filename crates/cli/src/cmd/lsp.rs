//! `polygraph lsp`: the language server.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use polygraph_runner::environment::WorkloadLoader;

/// Options of `lsp`.
#[derive(Debug, Parser)]
#[command(rename_all = "snake_case")]
pub struct Args {
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long, value_name = "DIRS", value_delimiter = ':')]
    cfg_dirs: Vec<String>,
}

/// Serves an editor until it disconnects.
///
/// # Errors
/// If standard input or output fails.
pub fn run(args: Args) -> io::Result<ExitCode> {
    let stdin = io::stdin().lock();
    let stdout = io::stdout().lock();
    let clean = polygraph_pgl::lsp::serve(stdin, stdout, &WorkloadLoader, args.cfg_dirs)?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
