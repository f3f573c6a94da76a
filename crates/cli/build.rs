//! Strips programs without debug information, as the profiles of Cargo.toml say.

#![allow(clippy::disallowed_methods, reason = "Cargo says everything by the environment")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo forgets `strip` of a profile for a package with a level of optimization of its own.
    if std::env::var("DEBUG").is_ok_and(|debug| debug == "false") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
