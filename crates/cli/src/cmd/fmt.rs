//! `polygraph fmt`: formats workload files.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Options of `fmt`.
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  polygraph fmt my.pg            format the file\n  polygraph fmt --check *.pg     list the files that are not formatted"
)]
pub struct Args {
    /// List the files that are not formatted, and exit with code 1 if there are any
    #[arg(long)]
    check: bool,
    /// Workload files; `-` formats standard input to standard output
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Formats files.
///
/// # Errors
/// If a file cannot be read or written.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for path in &args.files {
        let stdin = path.as_os_str() == "-";
        let text = read(path)?;
        let formatted = match polygraph_pgl::format::format_bytes(&text) {
            Ok(formatted) => formatted,
            Err(error) => {
                writeln!(io::stderr(), "polygraph: {}: {error}", path.display())?;
                code = ExitCode::FAILURE;
                continue;
            }
        };
        if args.check {
            if formatted != text {
                writeln!(io::stdout(), "{}", path.display())?;
                code = ExitCode::FAILURE;
            }
        } else if stdin {
            io::stdout().write_all(&formatted)?;
        } else if formatted != text {
            std::fs::write(path, formatted)?;
        }
    }
    Ok(code)
}

/// The text of a workload, limited to the size that the compiler accepts. `-` is standard input.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let limit = polygraph_pgl::Limits::default().source_bytes;
    let wrong = |kind, text: String| io::Error::new(kind, format!("{}: {text}", path.display()));
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let file = std::fs::File::open(path).map_err(|error| wrong(error.kind(), error.to_string()))?;
        // A device or a pipe may never end.
        if !file.metadata()?.is_file() {
            return Err(wrong(io::ErrorKind::InvalidInput, "not a regular file".into()));
        }
        Box::new(file)
    };
    let mut text = Vec::new();
    let got = input.take(limit as u64 + 1).read_to_end(&mut text);
    got.map_err(|error| wrong(error.kind(), error.to_string()))?;
    if text.len() > limit {
        return Err(wrong(
            io::ErrorKind::InvalidData,
            format!("longer than {limit} bytes, the maximum for a workload"),
        ));
    }
    Ok(text)
}
