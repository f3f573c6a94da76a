//! Strips programs without debug information, as the profiles of Cargo.toml say, and names the build.

#![allow(clippy::disallowed_methods, reason = "Cargo says everything by the environment")]

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=POLYGRAPH_BUILD");
    println!("cargo::rustc-env=POLYGRAPH_VERSION={}{}", env!("CARGO_PKG_VERSION"), build());
    // Cargo forgets `strip` of a profile for a package with another level of optimization.
    if env::var("DEBUG").is_ok_and(|debug| debug == "false") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}

/// What follows the version: nothing for a release, which is built by `make dist` or without a repository. A commit is named only if
/// `make` says which; looking it up here would compile this crate again after each commit.
fn build() -> String {
    match env::var("POLYGRAPH_BUILD").unwrap_or_default().as_str() {
        "release" => String::new(),
        "" if !Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git").exists() => String::new(),
        "" => "+dev".to_owned(),
        commit => format!("+dev.{commit}"),
    }
}
