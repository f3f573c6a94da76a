//! The lab that a command line means: the name of one that is up, or a lab file.

use std::path::{Path, PathBuf};

use clap::Args;
use polygraph_assets::SCHEME;
use polygraph_lab::{Lab, LabFile, LabWorkload};
use polygraph_pgl::render::Style;
use polygraph_pgl::{Options, compile};
use polygraph_plan::BenchNeeds;
use polygraph_runner::Failure;
use polygraph_runner::environment::WorkloadLoader;

use super::failure;
use crate::options::SourceOptions;
use crate::options::files::workload;
use crate::output;

/// A workload of a lab.
#[derive(Args, Clone, Debug, Default)]
#[command(rename_all = "snake_case", next_help_heading = "Workload file")]
pub struct LabWorkloadOptions {
    /// Workload file in PGL, or the name of a built-in workload, instead of the one that the lab file names
    #[arg(long, alias = "workload", value_name = "FILE|NAME", value_parser = workload)]
    pub config: Option<String>,
    #[command(flatten)]
    pub source: SourceOptions,
}

impl LabWorkloadOptions {
    /// The workload: that of the options, or else the given one; settings of the options come on top.
    pub fn over(&self, default: Option<&LabWorkload>) -> Option<LabWorkload> {
        let mut workload = match &self.config {
            Some(config) => LabWorkload { config: absolute(Path::new(config)), ..LabWorkload::default() },
            None => default?.clone(),
        };
        let SourceOptions { cfg_dirs, settings, allow_exec } = &self.source;
        workload.cfg_dirs.extend(cfg_dirs.iter().cloned());
        workload.set.retain(|(name, _)| settings.iter().all(|(new, _)| new != name));
        workload.set.extend(settings.iter().cloned());
        workload.allow_exec |= allow_exec;
        Some(workload)
    }

    /// Whether the options say anything.
    pub fn is_given(&self) -> bool {
        let SourceOptions { cfg_dirs, settings, allow_exec } = &self.source;
        self.config.is_some() || !cfg_dirs.is_empty() || !settings.is_empty() || *allow_exec
    }
}

/// The path of a file for processes that work elsewhere.
fn absolute(path: &Path) -> PathBuf {
    let is_here = !polygraph_assets::is_builtin(path);
    is_here.then(|| std::path::absolute(path).ok()).flatten().unwrap_or_else(|| path.to_owned())
}

/// The options of a workload for the compiler.
pub fn source(workload: &LabWorkload) -> SourceOptions {
    SourceOptions {
        cfg_dirs: workload.cfg_dirs.clone(),
        settings: workload.set.clone(),
        allow_exec: workload.allow_exec,
    }
}

/// Whether a text means a lab file and not the name of a lab.
pub fn is_file(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml") || text.starts_with(SCHEME)
}

/// The name of the lab that a text means.
///
/// # Errors
/// If the file's name cannot be that of a lab.
pub fn name(text: &str) -> Result<String, Failure> {
    if !is_file(text) {
        return Ok(text.to_owned());
    }
    let stem = Path::new(text).file_stem();
    stem.map(|stem| stem.to_string_lossy().into_owned())
        .ok_or_else(|| Failure::usage(format!("`{text}` is not a lab file")))
}

/// The lab that a file and options describe.
///
/// # Errors
/// If the file cannot be read, or makes no sense, alone or with its workload.
pub fn describe(
    path: &Path,
    name: Option<&str>,
    options: &LabWorkloadOptions,
    bare: bool,
) -> Result<Lab, Failure> {
    let file = LabFile::read(path).map_err(failure)?;
    let name = name.map_or_else(|| file.name(), |name| Ok(name.to_owned())).map_err(failure)?;
    let own = file.workload.as_ref().zip(file.workload_path()).map(|(choice, config)| LabWorkload {
        config,
        set: choice.set.clone().into_iter().collect(),
        ..LabWorkload::default()
    });
    let workload = options.over(own.as_ref());
    if workload.is_none() && options.is_given() {
        return Err(Failure::usage("the lab file names no workload for these options: add --config FILE"));
    }
    let needs = workload.as_ref().map(needs).transpose()?;
    let lab = Lab::new(&file, &name, needs.as_ref(), bare).map_err(failure)?;
    Ok(Lab { workload, ..lab })
}

/// The hosts that a workload needs.
///
/// # Errors
/// If the workload does not compile, or its agents cannot be shared among hosts.
pub fn needs(workload: &LabWorkload) -> Result<BenchNeeds, Failure> {
    let file = workload.config.display().to_string();
    let compilation =
        compile(&file, &WorkloadLoader, &source(workload).compiler(Options::default().global_seed));
    output::note_raw(&compilation.render(Style::Plain));
    let Some(found) = compilation.workload else {
        return Err(Failure::usage(format!(
            "{file} cannot be used; `polygraph check` shows the same findings. Values that it asks for: --set NAME=VALUE"
        )));
    };
    BenchNeeds::of(&found).map_err(Failure::usage)
}
