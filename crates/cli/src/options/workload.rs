//! Options that name a workload file and change it.

use clap::Args;
use polygraph_pgl::render::Style;
use polygraph_pgl::{Compat, Options, Workload, compile};
use polygraph_runner::Failure;
use polygraph_runner::environment::WorkloadLoader;

use super::files::workload;
use super::values::{scale, setting, yes_no};
use crate::output;

/// How a workload file is compiled.
#[derive(Args, Clone, Debug, Default)]
#[command(rename_all = "snake_case")]
pub struct SourceOptions {
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long, value_name = "DIRS", value_delimiter = ':')]
    pub cfg_dirs: Vec<String>,
    /// Set a top-level name of the workload, or a field of one, to a value in PGL notation; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Allow the workload to run commands with backquotes and system()
    #[arg(long)]
    pub allow_exec: bool,
}

impl SourceOptions {
    /// The options of the compiler.
    pub fn compiler(&self, global_seed: u64) -> Options {
        Options {
            search_path: self.cfg_dirs.clone(),
            settings: self.settings.clone(),
            allow_exec: self.allow_exec,
            global_seed,
            ..Options::default()
        }
    }
}

/// Variants of a workload.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(rename_all = "snake_case")]
pub struct VariantOptions {
    /// Multiply the lengths of all phases (times, transactions and bytes) and the size of the working set by this factor:
    /// 1/60 turns hours into minutes
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    pub scale: Option<f64>,
    /// Choose objects by the rules of another version, whatever the workload says: `4.9` for comparison with results of Web
    /// Polygraph 4.9, `none` for the rules of this program (docs/compat.md). Must be the same on all sides
    #[arg(long, value_name = "4.9|none")]
    pub compat: Option<Compat>,
}

/// A workload file instead of the options that describe a workload.
#[derive(Args, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    next_help_heading = "Workload file",
    mut_arg("cfg_dirs", |arg| arg.requires("config")),
    mut_arg("settings", |arg| arg.requires("config")),
    mut_arg("allow_exec", |arg| arg.requires("config")),
    mut_arg("scale", |arg| arg.requires("config")),
    mut_arg("compat", |arg| arg.requires("config")),
)]
pub struct ConfigOptions {
    /// Workload file in PGL, or the name of a built-in workload (`polygraph workloads`), instead of the options that describe load
    /// and content
    #[arg(long, value_name = "FILE|NAME", value_parser = workload)]
    pub config: Option<String>,
    #[command(flatten)]
    pub source: SourceOptions,
    #[command(flatten)]
    pub variant: VariantOptions,
    /// Share knowledge about objects that may be requested again with the other processes of the test, through the servers.
    /// Default: yes for `client` and `server`. With both sides in one process: no, unless servers redirect (302 Found) to
    /// objects that they know from robots
    #[arg(long, value_name = "yes|no", value_parser = yes_no, requires = "config")]
    pub share_worlds: Option<bool>,
}

/// A workload file for commands that compute addresses and names.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AddressWorkloadOptions {
    /// Workload file in PGL, or the name of a built-in workload; `-` is standard input
    #[arg(long, value_name = "FILE|NAME", value_parser = workload)]
    pub config: Option<String>,
    #[command(flatten)]
    pub source: SourceOptions,
}

impl AddressWorkloadOptions {
    /// Compiles the workload, and shows findings.
    ///
    /// # Errors
    /// If there is no workload, or it does not compile.
    pub fn load(&self) -> Result<Workload, Failure> {
        let missing = || Failure::usage("there is no workload: add --config FILE");
        let file = self.config.as_deref().ok_or_else(missing)?;
        let compilation =
            compile(file, &WorkloadLoader, &self.source.compiler(Options::default().global_seed));
        output::note_raw(&compilation.render(Style::Plain));
        compilation.workload.ok_or_else(|| Failure::data(anyhow::anyhow!("{file} does not compile")))
    }
}
