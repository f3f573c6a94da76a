//! The files of a workload, at places relative to each other, so that they include each other on other hosts as they do here.

use std::path::{Component, Path, PathBuf};

use polygraph_assets::SCHEME;

use crate::controller::RunFile;
use crate::error::{FleetError, Result};
use crate::names::RelativePath;

/// The files of a workload, as agents see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadFiles {
    /// All files.
    pub files: Vec<RunFile>,
    /// The directory in which processes work, which stands for that of this process.
    pub directory: RelativePath,
    /// The workload file.
    pub config: RelativePath,
    /// Directories with files that it includes.
    pub cfg_dirs: Vec<RelativePath>,
}

impl WorkloadFiles {
    /// Finds the places of files below the deepest directory that contains all of them and `here`, where this process works. Built-in
    /// files are shipped only if the workload itself is built in; otherwise every agent has those that it includes.
    ///
    /// # Errors
    /// If a file does not exist, or the name of a file is not UTF-8.
    pub fn new(
        here: &Path,
        config: &Path,
        others: &[PathBuf],
        cfg_dirs: &[PathBuf],
    ) -> Result<WorkloadFiles> {
        let real = |path: &Path| here.join(path).canonicalize().map_err(FleetError::file(path));
        if let Some(built_in) = config.to_str().and_then(|path| path.strip_prefix(SCHEME)) {
            return built_in_files(built_in, others);
        }
        let directory = here.canonicalize().map_err(FleetError::file(here))?;
        let config = real(config)?;
        let mut files = vec![config.clone()];
        for other in others {
            let path = real(other)?;
            if !files.contains(&path) {
                files.push(path);
            }
        }
        // Other directories have nothing that is used.
        let dirs: Vec<PathBuf> = cfg_dirs.iter().filter_map(|dir| real(dir).ok()).collect();
        let dirs: Vec<PathBuf> =
            dirs.into_iter().filter(|dir| files.iter().any(|file| file.starts_with(dir))).collect();
        let folders = files.iter().filter_map(|file| file.parent()).chain(dirs.iter().map(PathBuf::as_path));
        let root = folders.fold(directory.clone(), |root, path| common(&root, path));
        let below = |path: &Path| {
            let text = path.strip_prefix(&root).ok().and_then(Path::to_str).map(str::to_owned);
            let text = text.ok_or_else(|| FleetError::Usage(format!("{} is not UTF-8", path.display())))?;
            RelativePath::try_from(text).map_err(|error| FleetError::Usage(error.to_string()))
        };
        let run_file = |path: &PathBuf| Ok(RunFile { source: path.clone(), path: below(path)? });
        Ok(WorkloadFiles {
            files: files.iter().map(run_file).collect::<Result<_>>()?,
            directory: below(&directory)?,
            config: below(&config)?,
            cfg_dirs: dirs.iter().map(|dir| below(dir)).collect::<Result<_>>()?,
        })
    }
}

/// The files of a built-in workload, at their places in the source tree.
fn built_in_files(config: &str, others: &[PathBuf]) -> Result<WorkloadFiles> {
    let place = |path: &str| {
        RelativePath::try_from(path.to_owned()).map_err(|error| FleetError::Usage(error.to_string()))
    };
    let mut files = vec![RunFile { source: format!("{SCHEME}{config}").into(), path: place(config)? }];
    for other in others {
        let Some(path) = other.to_str().and_then(|path| path.strip_prefix(SCHEME)) else {
            let text =
                format!("{}: a built-in workload with files of this host cannot be shipped", other.display());
            return Err(FleetError::Usage(text + ": copy the workload with `polygraph workloads copy`"));
        };
        let file = RunFile { source: other.clone(), path: place(path)? };
        if !files.contains(&file) {
            files.push(file);
        }
    }
    Ok(WorkloadFiles { files, directory: place("")?, config: place(config)?, cfg_dirs: Vec::new() })
}

/// The deepest directory that contains both.
fn common(a: &Path, b: &Path) -> PathBuf {
    let parts = a.components().zip(b.components()).take_while(|(a, b)| a == b);
    parts.map(|(part, _)| part).filter(|part| !matches!(part, Component::CurDir)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_keep_their_places() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["here", "set/include", "unused"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["set/main.pg", "set/include/part.pg", "here/own.pg"] {
            fs::write(root.join(file), "").unwrap();
        }
        let others = ["../set/include/part.pg".into(), "own.pg".into(), root.join("set/main.pg")];
        let dirs = ["../set/include".into(), "../unused".into(), "../none".into()];
        let found =
            WorkloadFiles::new(&root.join("here"), Path::new("../set/main.pg"), &others, &dirs).unwrap();
        let places: Vec<String> = found.files.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(places, ["set/main.pg", "set/include/part.pg", "here/own.pg"]);
        assert_eq!(
            (found.directory.to_string(), found.config.to_string()),
            ("here".into(), "set/main.pg".into())
        );
        assert_eq!(found.cfg_dirs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["set/include"]);
        let alone = WorkloadFiles::new(&root.join("here"), Path::new("own.pg"), &[], &[]).unwrap();
        assert_eq!((alone.directory.to_string(), alone.config.to_string()), (String::new(), "own.pg".into()));
        assert!(WorkloadFiles::new(&root, Path::new("missing.pg"), &[], &[]).is_err());
    }

    #[test]
    fn built_in_files_keep_their_places() {
        let config = Path::new("builtin:workloads/polymix-4.pg");
        let part = PathBuf::from("builtin:workloads/include/benches.pg");
        let found = WorkloadFiles::new(Path::new("."), config, &[config.into(), part.clone()], &[]).unwrap();
        let places: Vec<String> = found.files.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(places, ["workloads/polymix-4.pg", "workloads/include/benches.pg"]);
        assert_eq!(found.files[1].source, part);
        assert_eq!(found.config.to_string(), "workloads/polymix-4.pg");
        assert!(WorkloadFiles::new(Path::new("."), config, &["/etc/hosts".into()], &[]).is_err());
    }
}
