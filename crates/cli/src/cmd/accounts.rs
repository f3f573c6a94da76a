//! `polygraph accounts`: the accounts that robots of a workload log in with, for the device's user database.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use polygraph_pgl::compile;
use polygraph_plan::accounts::{AccountFormat, Accounts};
use polygraph_runner::environment::WorkloadLoader;
use polygraph_text::counted;

use super::check::show_findings;
use crate::exit;
use crate::options::SourceOptions;
use crate::options::files::workload;

/// Options of `accounts`.
#[derive(Debug, Parser)]
#[command(
    rename_all = "snake_case",
    after_help = "\
Examples:
  polygraph accounts my.pg > passwd                 for Squid (basic_ncsa_auth) and nginx
  polygraph accounts my.pg --format ldif | ldapadd -x -D cn=admin,dc=polygraph,dc=test -W
  polygraph accounts my.pg --format plain --clear   user:password, for programs that hash it

Accounts from credentials() depend on the global seed, which must be that of the run. They differ from \
those of Web Polygraph 4."
)]
pub struct Args {
    /// Workload file, or the name of a built-in workload; `-` is standard input
    #[arg(value_name = "FILE|NAME", value_parser = workload)]
    file: String,
    /// Format of the list
    #[arg(long, value_enum, default_value_t = Format::Htpasswd)]
    format: Format,
    /// Print passwords in clear text: with `plain`, or with `ldif` for directories that hash passwords themselves
    #[arg(long)]
    clear: bool,
    /// Parent of the directory entries, for `ldif`
    #[arg(long, value_name = "DN", default_value = "ou=people,dc=polygraph,dc=test")]
    base: String,
    #[command(flatten)]
    source: SourceOptions,
    /// Random seed for everything that all processes of a test must agree on
    #[arg(long, value_name = "N", default_value_t = 1)]
    global_rng_seed: u64,
}

/// Format of the list of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `user:$apr1$...`, Apache's MD5 format, which Squid, nginx and Apache read
    Htpasswd,
    /// `inetOrgPerson` entries with `{SMD5}` passwords
    Ldif,
    /// One user per line
    Plain,
}

/// Prints the accounts of a workload.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let form = match (args.format, args.clear) {
        (Format::Htpasswd, true) => {
            let text = "htpasswd has no clear-text passwords: use --format plain --clear";
            writeln!(io::stderr(), "polygraph: {text}")?;
            return Ok(ExitCode::from(exit::USAGE));
        }
        (Format::Htpasswd, false) => AccountFormat::Htpasswd,
        (Format::Ldif, clear) => AccountFormat::Ldif { base: &args.base, clear },
        (Format::Plain, clear) => AccountFormat::Plain { clear },
    };
    let compilation = compile(&args.file, &WorkloadLoader, &args.source.compiler(args.global_rng_seed));
    let Some(workload) = &compilation.workload else {
        show_findings(&compilation)?;
        return Ok(ExitCode::FAILURE);
    };
    let accounts = Accounts::of(workload);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for account in &accounts.list {
        out.write_all(Accounts::text(account, form).as_bytes())?;
    }
    out.flush()?;
    let mut err = io::stderr().lock();
    let count = accounts.list.len();
    writeln!(err, "{}", counted(count as u64, "account"))?;
    if count == 0 {
        writeln!(err, "no robot of the workload has credentials")?;
    }
    let Some(user) = accounts.contradictory.first() else { return Ok(ExitCode::SUCCESS) };
    let more = accounts.contradictory.len();
    writeln!(
        err,
        "polygraph: users with several passwords: {more}, for example {user}; the list has the first password of each"
    )?;
    Ok(ExitCode::FAILURE)
}
