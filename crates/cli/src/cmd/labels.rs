//! `label_results` and `make_report`: the two steps to a report in the original's documents. A label is a directory with a
//! list of logs; the report is written beside the list.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use polygraph_report::{Log, summary_text, write_report};
use polygraph_runner::Failure;
use polygraph_text::counted;

use crate::exit::Done;
use crate::output;

/// The directory of labels, the same as that of the original.
const DIRECTORY: &str = "/tmp/polyrep";
/// The file with the list of logs of a label.
const LIST: &str = "logs.txt";

/// Options of `label_results`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example:\n  label_results mytest1 clt.*.log srv.*.log\n  make_report mytest1"
)]
pub struct LabelArgs {
    /// Directory of labels
    #[arg(long, value_name = "DIR", default_value = DIRECTORY)]
    dir: PathBuf,
    /// Name of the test
    #[arg(value_parser = label)]
    label: String,
    /// All logs of the test, from clients and servers
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// Options of `make_report`.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case", after_help = "Example:\n  make_report mytest1")]
pub struct MakeArgs {
    /// Directory of labels
    #[arg(long, value_name = "DIR", default_value = DIRECTORY)]
    dir: PathBuf,
    /// Name of the test, as in label_results
    #[arg(value_parser = label)]
    label: String,
}

/// A label, which is also the name of a directory.
fn label(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('.') || text.contains(['/', '\0']) {
        return Err("a label cannot be empty, start with a dot or contain a slash".to_owned());
    }
    Ok(text.to_owned())
}

fn io(what: &str, path: &Path, error: std::io::Error) -> Failure {
    Failure::setup(anyhow::anyhow!("cannot {what} {}: {error}", path.display()))
}

/// Gives logs a name. The logs replace earlier ones with the same name.
pub fn label_results(args: LabelArgs) -> Done {
    let mut list = String::new();
    for log in &args.logs {
        // Other files are rejected here and not when the report is made.
        Log::header(log).map_err(Failure::data)?;
        let path = fs::canonicalize(log).map_err(|e| io("find", log, e))?;
        let path = path.to_str().filter(|path| !path.contains('\n')).ok_or_else(|| {
            Failure::data(anyhow::anyhow!(
                "the file name {} contains a line break or is not UTF-8",
                log.display()
            ))
        })?;
        list.push_str(path);
        list.push('\n');
    }
    let directory = args.dir.join(&args.label);
    fs::create_dir_all(&directory).map_err(|e| io("make", &directory, e))?;
    let path = directory.join(LIST);
    fs::write(&path, list).map_err(|e| io("write", &path, e))?;
    let logs = counted(args.logs.len() as u64, "log");
    output::note(&format!("{}: {logs}; next: `make_report {}`", args.label, args.label));
    Ok(ExitCode::SUCCESS)
}

/// Writes the report of labelled logs, and prints the summary of the test.
pub fn make_report(args: MakeArgs) -> Done {
    let directory = args.dir.join(&args.label);
    let list = fs::read_to_string(directory.join(LIST)).map_err(|_| {
        Failure::data(anyhow::anyhow!(
            "there is no label `{0}` in {1}: create it with `label_results {0} LOG ...`",
            args.label,
            args.dir.display()
        ))
    })?;
    let logs: Vec<PathBuf> = list.lines().map(PathBuf::from).collect();
    let out = directory.join("index.html");
    let facts = write_report(&logs, &out).map_err(Failure::data)?;
    output::print(&summary_text(&facts, &[("report", &out)]));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_names_of_directories() {
        assert!(label("mytest1").is_ok());
        for bad in ["", "..", ".x", "a/b"] {
            assert!(label(bad).is_err(), "{bad}");
        }
    }
}
