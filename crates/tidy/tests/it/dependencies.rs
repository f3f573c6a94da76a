//! Dependencies: permissive licences, one version of each; and fuzz targets that their manifest names.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Licences that dependencies may have.
const ALLOWED: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "BSL-1.0",
    "0BSD",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
];

/// Crates of which two versions are unavoidable for now, each with its reason.
const DOUBLED: [(&str, &str); 12] = [
    ("base64", "async-nats is built with the one before"),
    ("untrusted", "aws-lc-rs is built with the one before"),
    ("block-buffer", OF_NKEYS),
    ("cpufeatures", OF_NKEYS),
    ("crypto-common", OF_NKEYS),
    ("digest", OF_NKEYS),
    ("rand", OF_NKEYS),
    ("rand_core", OF_NKEYS),
    ("sha2", OF_NKEYS),
    ("embedded-io", "postcard names two, of which it uses none here"),
    ("getrandom", "ahash, which parquet hashes with, is built with the one before"),
    ("syn", "the macros of domain are built with the one before"),
];

/// Why there are two versions of what signs the credentials of NATS.
const OF_NKEYS: &str = "nkeys, which async-nats signs with, is built with the one before";

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// What `cargo` prints.
fn cargo(words: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO")).args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The packages that are built for Linux. `cargo metadata` has the licences, but also what features ask for that only
/// other platforms switch on; `cargo tree` knows what is built.
fn packages() -> Vec<Value> {
    let tree = ["tree", "--workspace", "--locked", "--edges", "all", "--prefix", "none", "--format", "{p}"];
    let built = cargo(&[&tree[..], &["--target", LINUX]].concat());
    // `name v1.2.3`, and more behind that.
    let built: Vec<_> = built.lines().filter_map(|line| line.split_once(" v")).collect();
    let is_built = |package: &Value| {
        let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        built.iter().any(|(known, rest)| *known == name && rest.split(' ').next() == Some(version))
    };
    let metadata = ["metadata", "--format-version", "1", "--locked", "--filter-platform", LINUX];
    let metadata: Value = serde_json::from_str(&cargo(&metadata)).unwrap();
    let all = metadata["packages"].as_array().unwrap();
    let found: Vec<Value> = all.iter().filter(|package| is_built(package)).cloned().collect();
    assert!(found.len() > 100, "{found:?}");
    found
}

/// Whether one of the alternatives of an SPDX expression has only allowed parts.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace('/', " OR ").replace(['(', ')'], "");
    plain
        .split(" OR ")
        .any(|alternative| alternative.split(" AND ").all(|licence| ALLOWED.contains(&licence.trim())))
}

#[test]
fn licences_are_permissive() {
    assert!(is_allowed("MIT OR GPL-3.0") && !is_allowed("MIT AND GPL-3.0") && is_allowed("MIT/Apache-2.0"));
    let bad: Vec<String> = packages()
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_allowed))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn no_dependency_comes_in_two_versions() {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages() {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        versions.entry(text("name")).or_default().push(text("version"));
    }
    let doubled: Vec<_> = versions
        .iter()
        .filter(|(name, versions)| versions.len() > 1 && !DOUBLED.iter().any(|(known, _)| known == name))
        .collect();
    assert!(doubled.is_empty(), "{doubled:#?}");
}

/// They are a workspace of their own, which nothing else here reads.
#[test]
fn every_fuzz_target_is_named_in_its_manifest() {
    let manifest = "../../fuzz/Cargo.toml";
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1", "--manifest-path", manifest]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let targets = metadata["packages"][0]["targets"].as_array().unwrap();
    let mut named: Vec<&str> = targets.iter().map(|target| target["name"].as_str().unwrap()).collect();
    named.sort_unstable();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    files.sort_unstable();
    assert_eq!(named, files);
}
