//! `accounts`: whom the robots of a workload log in as, for the device that is to let them in.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use polygraph_pgl::{DiskLoader, Options, compile};
use polygraph_plan::accounts::{AccountFormat, Accounts};

use crate::pgl_cmds::{setting, show_findings};

pub const EXAMPLES: &str = "\
Examples:
  polygraph accounts my.pg > passwd                 for basic_ncsa_auth of Squid, auth_basic_user_file of nginx
  polygraph accounts my.pg --format ldif | ldapadd -x -D cn=admin,dc=polygraph,dc=test -W
  polygraph accounts my.pg --format plain --clear   user:password, to be hashed by something else

Accounts made by credentials() depend on the global seed: give the one of the run.
They are other ones than those of Polygraph 4.";

/// Arguments of `accounts`.
#[derive(Debug, Args)]
pub struct AccountsArgs {
    /// The workload; `-` is standard input
    file: String,
    /// How accounts are written
    #[arg(long, value_enum, default_value_t = Format::Htpasswd)]
    format: Format,
    /// Tell passwords in clear: with `plain`, and with `ldif` for directories that hash them in a way of their own
    #[arg(long)]
    clear: bool,
    /// Where entries of the directory are, for `ldif`
    #[arg(long, value_name = "DN", default_value = "ou=people,dc=polygraph,dc=test")]
    base: String,
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long = "cfg_dirs", alias = "cfg-dirs", value_name = "DIRS", value_delimiter = ':')]
    cfg_dirs: Vec<String>,
    /// Give a top-level name or field a value: NAME=VALUE in PGL notation
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Seed of random choices that all processes of a test share
    #[arg(long = "global_rng_seed", value_name = "SEED", default_value_t = 1)]
    global_seed: u64,
}

/// How accounts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `user:$apr1$...`, the MD5 of Apache, as Squid, nginx and Apache read it
    Htpasswd,
    /// Entries `inetOrgPerson` with `{SMD5}` passwords
    Ldif,
    /// One user a line
    Plain,
}

/// Writes the accounts of a workload to standard output.
pub fn run(args: &AccountsArgs) -> io::Result<ExitCode> {
    let form = match (args.format, args.clear) {
        (Format::Htpasswd, true) => {
            let text = "htpasswd has no passwords in clear: use --format plain --clear";
            writeln!(io::stderr(), "polygraph: {text}")?;
            return Ok(ExitCode::from(crate::exit::USAGE));
        }
        (Format::Htpasswd, false) => AccountFormat::Htpasswd,
        (Format::Ldif, clear) => AccountFormat::Ldif { base: &args.base, clear },
        (Format::Plain, clear) => AccountFormat::Plain { clear },
    };
    let options = Options {
        search_path: args.cfg_dirs.clone(),
        settings: args.settings.clone(),
        global_seed: args.global_seed,
        ..Options::default()
    };
    let compilation = compile(&args.file, &DiskLoader, &options);
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
    writeln!(err, "{count} account{}", if count == 1 { "" } else { "s" })?;
    if count == 0 {
        writeln!(err, "no robot of the workload has credentials; it may log in as nobody")?;
    }
    if accounts.by_target > 0 {
        let left = accounts.by_target;
        writeln!(err, "left out: {left} with `${{target_ip}}`, which depend on the address that is asked")?;
    }
    let Some(user) = accounts.contradictory.first() else { return Ok(ExitCode::SUCCESS) };
    let more = accounts.contradictory.len();
    writeln!(
        err,
        "polygraph: {more} users have several passwords, {user} for example; the first one is given"
    )?;
    Ok(ExitCode::FAILURE)
}
