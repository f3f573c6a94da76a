//! Commands about workload files: `check` (also `pgl-test`), `explain`, `fmt`, `lsp`.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use polygraph_pgl::render::{Style, render};
use polygraph_pgl::{Compat, Compilation, Options, Severity, compile};
use polygraph_plan::predict::{predict, scaled, warnings};
use serde_json::json;

use crate::accounts::{self, AccountsArgs};
use crate::environment::Looker;
use crate::preview::Preview;

/// Commands about workload files.
#[derive(Debug, Subcommand)]
pub enum PglCommand {
    /// Compile a workload and show what it would do
    #[command(name = "check", visible_alias = "pgl-test", after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// List the accounts that robots log in with, for the device: htpasswd, LDIF or plain
    #[command(name = "accounts", after_help = crate::accounts::EXAMPLES)]
    Accounts(AccountsArgs),
    /// Explain a finding by its identifier
    Explain(ExplainArgs),
    /// Format workload files
    #[command(name = "fmt", after_help = FMT_EXAMPLES)]
    Fmt(FmtArgs),
    /// Serve an editor over standard input and output (language server protocol)
    Lsp(LspArgs),
}

const CHECK_EXAMPLES: &str = "\
Examples:
  polygraph check simple.pg
  polygraph check polymix-4.pg --cfg_dirs include --set TheBench.peak_req_rate=1000/sec --set FillRate=500/sec \\
      --set ProxyCacheSize=54GB --set \"DnsServers=['172.16.101.100:53']\"

A short simulation of some of the robots and servers, through a cache that keeps everything, shows what is offered.";

const FMT_EXAMPLES: &str = "\
Examples:
  polygraph fmt my.pg            rewrite the file
  polygraph fmt --check *.pg     only say which files would change";

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The workload; `-` is standard input
    file: String,
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long = "cfg_dirs", alias = "cfg-dirs", value_delimiter = ':')]
    cfg_dirs: Vec<String>,
    /// Give a top-level name or field a value: NAME=VALUE in PGL notation
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Let the workload run commands: back quotes and system()
    #[arg(long = "allow-exec")]
    allow_exec: bool,
    /// Plan phases and working set so many times as long, as `run --scale` makes them
    #[arg(long = "scale", value_name = "FACTOR", value_parser = crate::options::scale)]
    scale: Option<f64>,
    /// Choose what to ask for by the rules of another version: 4.9 for comparison with results of the original, none
    /// for our own, which judge devices (docs/compat.md)
    #[arg(long = "compat", value_name = "4.9|none")]
    compat: Option<Compat>,
    /// Leave the simulation out that shows what is offered
    #[arg(long = "no_simulation")]
    no_simulation: bool,
    /// Seed of random choices that all processes of a test share
    #[arg(long = "global_rng_seed", default_value_t = 1)]
    global_seed: u64,
    /// Write everything as one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The identifier, such as E0402; without one all are listed
    id: Option<String>,
}

/// Arguments of `fmt`.
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Only say which files are not formatted; exit 1 if there are any
    #[arg(long)]
    check: bool,
    /// The files; `-` formats standard input to standard output
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Arguments of `lsp`.
#[derive(Debug, Args)]
pub struct LspArgs {
    /// Directories for `#include`, searched in order
    #[arg(long = "cfg_dirs", alias = "cfg-dirs", value_delimiter = ':')]
    cfg_dirs: Vec<String>,
}

/// Reads `NAME=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("a setting is NAME=VALUE, such as TheBench.peak_req_rate=100/sec".to_owned()),
    }
}

impl PglCommand {
    /// Runs the command. A reader that went away ends it quietly.
    pub fn run(self) -> ExitCode {
        let done = match self {
            PglCommand::Check(args) => check(&args),
            PglCommand::Accounts(args) => accounts::run(&args),
            PglCommand::Explain(args) => explain(&args),
            PglCommand::Fmt(args) => fmt(&args),
            PglCommand::Lsp(args) => lsp(args),
        };
        match done {
            Ok(code) => code,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(io::stderr(), "polygraph: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

fn check(args: &CheckArgs) -> io::Result<ExitCode> {
    let options = Options {
        search_path: args.cfg_dirs.clone(),
        settings: args.settings.clone(),
        allow_exec: args.allow_exec,
        global_seed: args.global_seed,
        ..Options::default()
    };
    let mut compilation = compile(&args.file, &Looker, &options);
    if let Some(factor) = args.scale {
        compilation.workload = compilation.workload.map(|workload| scaled(workload, factor));
    }
    if let Some(workload) = &mut compilation.workload {
        workload.compat = args.compat.or(workload.compat);
    }
    let plan = compilation.workload.as_ref().map(|workload| (predict(workload), workload));
    let physics = plan.as_ref().map(|(plan, workload)| warnings(workload, plan)).unwrap_or_default();
    let simulated = plan.as_ref().filter(|_| !args.no_simulation);
    let preview = simulated.map(|(plan, workload)| Preview::of(workload, plan, args.global_seed));
    let plan = plan.map(|(plan, _)| plan);
    compilation.diagnostics.extend(physics);
    let failed = compilation.has_errors();
    let mut out = io::stdout().lock();
    if args.json {
        let findings: Vec<_> =
            compilation.diagnostics.iter().map(|finding| finding.to_json(&compilation.sources)).collect();
        let value = json!({
            "ok": !failed,
            "script_output": compilation.script_output,
            "diagnostics": findings,
            "plan": plan,
            "preview": preview,
        });
        writeln!(out, "{value:#}")?;
    } else {
        for line in &compilation.script_output {
            writeln!(out, "script output: {line}")?;
        }
        out.flush()?;
        show_findings(&compilation)?;
        if let Some(plan) = plan {
            write!(out, "{plan}")?;
        }
        if let Some(preview) = preview {
            write!(out, "\n{preview}")?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Writes findings to standard error, for people.
pub fn show_findings(compilation: &Compilation) -> io::Result<()> {
    let mut err = io::stderr().lock();
    let colors = err.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let style = if colors { Style::Color } else { Style::Plain };
    for finding in &compilation.diagnostics {
        writeln!(err, "{}", render(finding, &compilation.sources, style))?;
    }
    let errors: Vec<_> =
        compilation.diagnostics.iter().filter(|finding| finding.severity == Severity::Error).collect();
    if !errors.is_empty() {
        let s = if errors.len() == 1 { "" } else { "s" };
        let mut ids: Vec<&str> = errors.iter().map(|finding| finding.code.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        let (id, here) = match &ids[..] {
            [id] => (*id, String::new()),
            [first @ .., last] => ("ID", format!(", here about {} and {last}", first.join(", "))),
            [] => ("ID", String::new()),
        };
        writeln!(err, "{} error{s}; `polygraph explain {id}` tells more{here}", errors.len())?;
    }
    Ok(())
}

fn explain(args: &ExplainArgs) -> io::Result<ExitCode> {
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
            writeln!(io::stderr(), "polygraph: there is no finding {id}; `polygraph explain` lists all")?;
            Ok(ExitCode::from(2))
        }
    }
}

fn fmt(args: &FmtArgs) -> io::Result<ExitCode> {
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

/// The text of a workload, from standard input for `-`, as far as the compiler takes it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let limit = polygraph_pgl::Limits::default().source_bytes;
    let wrong = |kind, text: String| io::Error::new(kind, format!("{}: {text}", path.display()));
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let file = std::fs::File::open(path).map_err(|error| wrong(error.kind(), error.to_string()))?;
        // A device or a pipe could deliver bytes for ever.
        if !file.metadata()?.is_file() {
            return Err(wrong(io::ErrorKind::InvalidInput, "not a plain file".into()));
        }
        Box::new(file)
    };
    let mut text = Vec::new();
    let got = input.take(limit as u64 + 1).read_to_end(&mut text);
    got.map_err(|error| wrong(error.kind(), error.to_string()))?;
    if text.len() > limit {
        return Err(wrong(
            io::ErrorKind::InvalidData,
            format!("more than {limit} bytes: this is no workload"),
        ));
    }
    Ok(text)
}

fn lsp(args: LspArgs) -> io::Result<ExitCode> {
    let stdin = io::stdin().lock();
    let stdout = io::stdout().lock();
    let clean = polygraph_pgl::lsp::serve(stdin, stdout, args.cfg_dirs)?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
