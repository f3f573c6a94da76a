//! `polygraph explain`: what a finding of the compiler means.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::exit;

/// Options of `explain`.
#[derive(Debug, Parser)]
pub struct Args {
    /// Identifier of the finding, for example E0402. Default: list all findings
    id: Option<String>,
}

/// Explains a finding, or lists all.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let Some(id) = &args.id else {
        for code in polygraph_pgl::Code::ALL {
            writeln!(out, "{}  {}", code.id(), code.title())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    match polygraph_pgl::explain(id) {
        Some(text) => {
            write!(out, "{text}")?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            writeln!(
                io::stderr(),
                "error: there is no finding {id} of `check`; `polygraph explain` lists all"
            )?;
            Ok(ExitCode::from(exit::USAGE))
        }
    }
}
