//! Everything that is printed. Results go to standard output, messages and progress to standard error.

mod classic_console;
pub mod colors;
mod progress;
mod run_console;

use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use polygraph_runner::{Failure, FailureKind, Notice};
use serde_json::Value;

use crate::exit;

pub use self::classic_console::ClassicConsole;
pub use self::progress::Progress;
pub use self::run_console::RunConsole;

// The macros of the standard library panic when a pipe is closed (`polygraph run | head -1`), which must not end a
// test.

/// Prints a line to standard output.
macro_rules! print_out {
    ($($arg:tt)*) => {{
        let _ = writeln!(std::io::stdout().lock(), $($arg)*);
    }};
}

/// Prints a line to standard error.
macro_rules! print_err {
    ($($arg:tt)*) => {{
        let _ = writeln!(std::io::stderr().lock(), $($arg)*);
    }};
}

/// Prints text to standard error.
macro_rules! write_err {
    ($($arg:tt)*) => {{
        let _ = write!(std::io::stderr().lock(), $($arg)*);
    }};
}

use {print_err, print_out, write_err};

/// Prints a result.
pub fn print(text: &str) {
    // A closed pipe (`lx ... | head`) is not an error.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// The version of what commands print as JSON (docs/json.md). It is incremented when a field changes its meaning or goes
/// away; new fields do not change it.
pub const JSON_SCHEMA: u32 = 1;

/// Prints an object as JSON with the version of its schema.
pub fn print_json(object: &Value) {
    print(&json_text(object));
}

/// Prints a result as JSON or as text.
pub fn print_either(as_json: bool, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
    print(&if as_json { json_text(&json()) } else { text() });
}

/// An object as JSON with the version of its schema, `schema`.
pub fn json_text(object: &Value) -> String {
    let mut object = object.clone();
    object["schema"] = JSON_SCHEMA.into();
    format!("{object:#}\n")
}

/// Prints a result that `write` produces piece by piece.
///
/// # Errors
/// If `write` fails, for example because the reader is gone.
pub fn print_with<T>(write: impl FnOnce(&mut dyn Write) -> std::io::Result<T>) -> std::io::Result<T> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let done = write(&mut out)?;
    out.flush()?;
    Ok(done)
}

/// Prints a result; false if the reader is gone.
pub fn try_print(text: &str) -> bool {
    std::io::stdout().lock().write_all(text.as_bytes()).is_ok()
}

/// Whether only results, warnings and errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Prints only results, warnings and errors from now on.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only results, warnings and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a message.
pub fn note(text: &str) {
    if !is_quiet() {
        print_err!("{text}");
    }
}

/// Prints formatted text to standard error.
pub fn note_raw(text: &str) {
    write_err!("{text}");
}

/// Prints a warning.
pub fn warn(text: &str) {
    print_err!("warning: {text}");
}

/// Prints a message of the runner.
pub fn notify(notice: Notice) {
    match notice {
        Notice::Note(text) => note(&text),
        Notice::Warning(text) => warn(&text),
    }
}

/// Prints why a command could not be carried out.
pub fn failure(failure: &Failure) -> ExitCode {
    if let Some(summary) = &failure.summary {
        print(summary);
    }
    let mut text = String::new();
    for cause in failure.error.chain().map(|cause| cause.to_string()) {
        // Many messages already contain their cause.
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    match failure.kind {
        FailureKind::Verdict => print(&format!("{text}\n")),
        _ => print_err!("error: {text}"),
    }
    exit::of_failure(failure)
}

/// Prints help, the version, or what is wrong with the command line `words`.
pub fn usage(error: &clap::Error, words: &[String]) -> ExitCode {
    let _ = error.print();
    let is_workload = words.iter().any(|word| word == "--config" || word.starts_with("--config="));
    if error.kind() == clap::error::ErrorKind::ArgumentConflict && is_workload {
        let hint = "to change what a workload file describes, use --set NAME=VALUE, where NAME is a variable or field of the file \
            (for example --set R.req_rate=10/sec for a robot R), or --scale for its load as a whole; `polygraph check FILE` shows both";
        print_err!("\nhint: {hint}");
    }
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK })
}

/// Columns of the terminal that standard error or output goes to; 100 without a terminal.
pub fn columns() -> usize {
    let of = |file: rustix::fd::BorrowedFd<'_>| rustix::termios::tcgetwinsize(file).ok();
    let size = of(std::io::stderr().as_fd()).or_else(|| of(std::io::stdout().as_fd()));
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(100)
}
