//! What the tree must keep to: licences of dependencies, one version of each.

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
const DOUBLED: [(&str, &str); 2] = [
    ("embedded-io", "postcard names two, of which it uses none here"),
    ("syn", "the macros of domain are built with the one before"),
];

/// The packages that are built for Linux, as `cargo metadata` tells them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let used: Vec<&Value> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
    let all = metadata["packages"].as_array().unwrap();
    all.iter().filter(|package| used.contains(&&package["id"])).cloned().collect()
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
