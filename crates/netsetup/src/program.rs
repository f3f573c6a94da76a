//! Runs programs of the system, such as `ip` and `iptables`.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// Programs and the Debian packages that contain them.
const PACKAGES: [(&str, &str); 9] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("iptables", "iptables"),
    ("iptables-legacy", "iptables"),
    ("ip6tables", "iptables"),
    ("ip6tables-legacy", "iptables"),
    ("ethtool", "ethtool"),
    ("nft", "nftables"),
    ("ping", "iputils-ping"),
];

/// Runs a program and returns its standard output.
///
/// # Errors
/// If the program is not installed, cannot be started, or ends with a status other than 0.
pub fn run_program<W: AsRef<str>>(words: &[W]) -> Result<String> {
    run_program_with_input(words, "")
}

/// Runs a program with a text as its standard input, and returns its standard output.
///
/// # Errors
/// If the program is not installed, cannot be started, or ends with a status other than 0.
pub fn run_program_with_input<W: AsRef<str>>(words: &[W], input: &str) -> Result<String> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let command = words.join(" ");
    let Some((program, args)) = words.split_first() else {
        return Err(Error::Program { command, message: "no program is named".to_owned() });
    };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing {
            program: (*program).to_owned(),
            package: PACKAGES
                .iter()
                .find(|(name, _)| name == program)
                .map_or("of that name", |(_, package)| package),
        },
        _ => Error::Program { command: command.clone(), message: error.to_string() },
    };
    let mut child = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // The input is short or the program reads all of it before it prints. A program that does not read it says why.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let printed = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let message = if printed.is_empty() { output.status.to_string() } else { printed };
    Err(Error::Program { command, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_input_and_failures_of_programs() {
        let _alone = crate::one_test_at_a_time();
        assert_eq!(run_program(&["echo", "one", "two"]).unwrap(), "one two\n");
        assert_eq!(run_program_with_input(&["cat"], "lines\n").unwrap(), "lines\n");
        let error = run_program(&["sh", "-c", "echo broken >&2; exit 3"]).unwrap_err().to_string();
        assert!(error.ends_with("failed: broken"), "{error}");
        let error = run_program(&["no-such-program-here"]).unwrap_err().to_string();
        assert!(error.contains("not installed"), "{error}");
    }
}
