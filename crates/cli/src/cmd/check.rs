//! `polygraph check` (pgl-test): compiles a workload, and shows what it would do.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use polygraph_pgl::render::{Style, render};
use polygraph_pgl::{Compilation, Severity, compile};
use polygraph_plan::predict::{predict, scaled, warnings};
use polygraph_runner::environment::CheckingLoader;
use polygraph_runner::preview::OfferedPreview;
use polygraph_text::counted;
use serde_json::json;

use crate::options::files::workload;
use crate::options::{SourceOptions, VariantOptions};
use crate::output;

/// Options of `check`.
#[derive(Debug, Parser)]
#[command(
    rename_all = "snake_case",
    after_help = "\
Examples:
  polygraph check simple.pg
  polygraph check polymix-4 --set TheBench.peak_req_rate=1000/sec --set FillRate=500/sec \\
      --set ProxyCacheSize=54GB --set \"DnsServers=['172.16.101.100:53']\"

A short simulation of some of the robots and servers, with a cache that keeps everything, shows the offered hit ratio."
)]
pub struct Args {
    /// Workload file, or the name of a built-in workload; `-` is standard input
    #[arg(value_name = "FILE|NAME", value_parser = workload)]
    file: String,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    variant: VariantOptions,
    /// Skip the simulation
    #[arg(long)]
    no_simulation: bool,
    /// Random seed for everything that all processes of a test must agree on
    #[arg(long, value_name = "N", default_value_t = 1)]
    global_rng_seed: u64,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

/// Checks a workload.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    let options = args.source.compiler(args.global_rng_seed);
    let mut compilation = compile(&args.file, &CheckingLoader, &options);
    if let Some(factor) = args.variant.scale {
        compilation.workload = compilation.workload.map(|workload| scaled(workload, factor));
    }
    if let Some(workload) = &mut compilation.workload {
        workload.compat = args.variant.compat.or(workload.compat);
    }
    let plan = compilation.workload.as_ref().map(|workload| (predict(workload), workload));
    let implausible = plan.as_ref().map(|(plan, workload)| warnings(workload, plan)).unwrap_or_default();
    let simulated = plan.as_ref().filter(|_| !args.no_simulation);
    let preview = simulated.map(|(plan, workload)| OfferedPreview::of(workload, plan, args.global_rng_seed));
    let plan = plan.map(|(plan, _)| plan);
    compilation.diagnostics.extend(implausible);
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
        out.write_all(output::json_text(&value).as_bytes())?;
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

/// Prints findings to standard error.
///
/// # Errors
/// If standard error cannot be written.
pub fn show_findings(compilation: &Compilation) -> io::Result<()> {
    let mut err = io::stderr().lock();
    let style = if output::colors::wanted(&err) { Style::Color } else { Style::Plain };
    for finding in &compilation.diagnostics {
        writeln!(err, "{}", render(finding, &compilation.sources, style))?;
    }
    let errors: Vec<_> =
        compilation.diagnostics.iter().filter(|finding| finding.severity == Severity::Error).collect();
    if !errors.is_empty() {
        let mut ids: Vec<&str> = errors.iter().map(|finding| finding.code.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        let (id, here) = match &ids[..] {
            [id] => (*id, String::new()),
            [first @ .., last] => ("ID", format!(" with {} or {last}", first.join(", "))),
            [] => ("ID", String::new()),
        };
        let count = counted(errors.len() as u64, "error");
        writeln!(err, "{count}; for details, run `polygraph explain {id}`{here}")?;
    }
    Ok(())
}
