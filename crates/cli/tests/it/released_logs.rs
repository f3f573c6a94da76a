//! The logs of released versions, in `tests/released/VERSION/`: those of the present format give the figures that they gave
//! on the day of the release; all others are refused with a message that names their version (docs/log-formats.md).

use std::path::{Path, PathBuf};

use polygraph_stats::log::{RELEASED, VERSION};

use crate::sandbox::Sandbox;

/// The files of a release: logs of both sides, and what `lx` found in them.
const FIGURES: &str = "figures.json";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/released")
}

/// Figures of both sides of a test in a directory.
fn figures(sandbox: &Sandbox, directory: &Path) -> String {
    let side = |name: &str| {
        let done = sandbox.polygraph(&format!("lx --json --phases all {}", directory.join(name).display()));
        assert_eq!(done.code(), Some(0), "{done:?}");
        done.out
    };
    side("client.log") + &side("server.log")
}

#[test]
fn logs_of_releases_are_read_or_refused_by_name() {
    let sandbox = Sandbox::new();
    if std::env::var_os("UPDATE_LOGS").is_some() {
        write(&sandbox);
    }
    for (format, version) in RELEASED {
        if *format == VERSION {
            let directory = folder().join(version);
            // The logs of a version are written when it is released (docs/releasing.md).
            if !directory.exists() {
                continue;
            }
            let expected = std::fs::read_to_string(directory.join(FIGURES)).unwrap();
            assert_eq!(
                figures(&sandbox, &directory),
                expected,
                "the figures of the logs of {version} have changed"
            );
            continue;
        }
        std::fs::write(sandbox.path().join("old.log"), signature(*format)).unwrap();
        for command in ["lx", "lr", "report", "export"] {
            let done = sandbox.polygraph(&format!("{command} old.log"));
            assert_eq!(done.code(), Some(4), "{command}: {done:?}");
            assert!(done.err.contains(&format!("of polygraph {version}")), "{command}: {done:?}");
        }
    }
    std::fs::write(sandbox.path().join("new.log"), signature(VERSION + 1)).unwrap();
    let done = sandbox.polygraph("lx new.log");
    assert!(done.code() == Some(4) && done.err.contains("of a later version"), "{done:?}");
}

/// The start of a log of a format.
fn signature(format: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = polygraph_stats::log::LogWriter::new(&mut bytes).map(drop);
    written.expect("memory can be written");
    let at = bytes.len() - 2;
    bytes[at] = format;
    bytes
}

/// Writes the logs of this version: a short test with a fixed seed.
fn write(sandbox: &Sandbox) {
    let directory = folder().join(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&directory).unwrap();
    let words = "simulate polymix-1 --set ReqRate=20/sec --set RobotAddrs=['127.0.0.1'] --scale 1/600 --device lru:1MB --out run --loops 1 \
        --stats_cycle 5s";
    let done = sandbox.polygraph(words);
    for name in ["client.log", "server.log"] {
        std::fs::copy(sandbox.path().join("run").join(name), directory.join(name))
            .unwrap_or_else(|e| panic!("{e}: {done:?}"));
    }
    std::fs::write(directory.join(FIGURES), figures(sandbox, &directory)).unwrap();
}
