//! The workload of a fleet: its files, and the options of the processes that run it.

use std::path::{Path, PathBuf};

use jiff::Zoned;
use polygraph_fleet::files::WorkloadFiles;
use polygraph_fleet::{FleetRun, LostPolicy, RunId};
use polygraph_pgl::compile;
use polygraph_runner::Failure;
use polygraph_runner::environment::WorkloadLoader;

use crate::options::fleet::failure;
use crate::options::{SourceOptions, VariantOptions};

/// The longest part of a label in the id of a run.
const LABEL: usize = 30;

/// A run of a workload without members, who are added later.
pub fn run_of(
    config: &str,
    source: &SourceOptions,
    label: &str,
    global_seed: u64,
) -> Result<FleetRun, Failure> {
    if config == "-" {
        return Err(Failure::usage("a fleet needs a workload in a file: standard input cannot be shipped"));
    }
    let compilation = compile(config, &WorkloadLoader, &source.compiler(global_seed));
    let built_in = polygraph_assets::is_builtin(Path::new(config));
    // What commands print is a source, too, but not a file.
    let others: Vec<PathBuf> = compilation
        .sources
        .files()
        .iter()
        .map(|file| PathBuf::from(&file.name))
        .filter(|path| if built_in { polygraph_assets::is_file(path) } else { path.is_file() })
        .collect();
    let dirs: Vec<PathBuf> = source.cfg_dirs.iter().map(PathBuf::from).collect();
    let here = std::env::current_dir().map_err(Failure::setup)?;
    let WorkloadFiles { files, directory, config, cfg_dirs } =
        WorkloadFiles::new(&here, Path::new(config), &others, &dirs).map_err(failure)?;
    Ok(FleetRun {
        run: new_run(label)?,
        members: Vec::new(),
        files,
        directory,
        config,
        cfg_dirs,
        settings: source.settings.clone(),
        allow_exec: source.allow_exec,
        start_in: std::time::Duration::from_secs(10),
        policy: LostPolicy::default(),
        patience: std::time::Duration::from_secs(10),
    })
}

/// An id that no other run has.
fn new_run(label: &str) -> Result<RunId, Failure> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let label: String = label.chars().map(plain).take(LABEL).collect();
    let label = label.trim_matches(['-', '_']);
    let label = if label.is_empty() { "run" } else { label };
    let time = Zoned::now().strftime("%Y%m%dT%H%M%S").to_string();
    let text = format!("{label}-{time}-{}", std::process::id());
    text.parse().map_err(|error| Failure::usage(format!("{error}")))
}

/// The options of all processes, besides those that name the workload.
pub fn words(variant: VariantOptions, label: &str, global_seed: u64) -> Vec<String> {
    let VariantOptions { scale, compat } = variant;
    let given = [
        ("--scale", scale.map(|scale| scale.to_string())),
        ("--compat", compat.map(|compat| compat.word().to_owned())),
        ("--label", Some(label.to_owned()).filter(|label| !label.is_empty())),
        ("--global_rng_seed", Some(global_seed.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
}

/// Options as words of a command line.
pub fn words_of(options: &[(String, String)]) -> Vec<String> {
    options.iter().flat_map(|(key, value)| [format!("--{key}"), value.clone()]).collect()
}
