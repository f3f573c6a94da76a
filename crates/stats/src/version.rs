//! The version of the program, as logs and reports name it.

use std::sync::OnceLock;

static VERSION: OnceLock<&str> = OnceLock::new();

/// Sets the version of the program. Its last crate knows which build it is, so that a new commit compiles no other crate again.
/// Later calls have no effect.
pub fn set_version(version: &'static str) {
    VERSION.get_or_init(|| version);
}

/// The version of the program, such as `0.3.0`, or `0.3.0+dev.1a2b3c4d` between releases.
pub fn version() -> &'static str {
    VERSION.get().copied().unwrap_or(env!("CARGO_PKG_VERSION"))
}
