//! `polygraph extras`: man pages and completions of shells, made from the definitions of the options.

use std::path::PathBuf;

use clap::Parser;

use crate::exit::Done;

/// Options of `extras`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "`make install` and packages do this. After `cargo install`:\n  polygraph extras ~/.local"
)]
pub struct Args {
    /// The directory with bin/ and share/, for example /usr/local or ~/.local
    pub prefix: PathBuf,
    /// Print the paths of the files, and write nothing
    #[arg(long)]
    pub list: bool,
}

/// Writes the files.
#[cfg(feature = "manual")]
pub fn run(args: &Args) -> Done {
    use clap::CommandFactory as _;
    use polygraph_runner::{Failure, make_directory, write_file};

    use crate::legacy::programs;
    use crate::{extras, output};

    let program = crate::help::dress(crate::Cli::command());
    for file in extras::files(&program, &programs::CLASSIC).map_err(Failure::setup)? {
        let path = args.prefix.join(&file.path);
        output::print(&format!("{}\n", path.display()));
        if !args.list {
            make_directory(path.parent().unwrap_or(&args.prefix))?;
            write_file(&path, &file.text)?;
        }
    }
    Ok(std::process::ExitCode::SUCCESS)
}

/// Says how to get a program with this command.
#[cfg(not(feature = "manual"))]
pub fn run(_: &Args) -> Done {
    Err(polygraph_runner::Failure::setup(anyhow::anyhow!(
        "this program was built without man pages and completions: build it with `--features manual`, as `make install` does"
    )))
}
