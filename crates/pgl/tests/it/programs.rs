//! Whole programs.

use std::path::Path;

use polygraph_pgl::render::Style;
use polygraph_pgl::{Compilation, DiskLoader, Options, compile};

fn lab() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/lab.pg")).expect("readable")
}

/// The folder of the standard workloads.
pub fn workloads() -> String {
    format!("{}/../../workloads", env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a standard workload with settings.
pub fn standard(name: &str, settings: &[(&str, &str)]) -> Compilation {
    let options = Options {
        search_path: vec![workloads(), format!("{}/include", workloads())],
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Options::default()
    };
    compile(name, &DiskLoader, &options)
}

#[test]
fn the_complete_program_of_the_reference_has_240_robots() {
    let compilation = crate::compile_text(&lab());
    assert!(compilation.diagnostics.is_empty(), "{}", crate::findings(&compilation));
    let workload = compilation.workload.expect("no errors");
    assert_eq!(workload.robot_count(), 240);
    assert_eq!(workload.server_count(), 1);
    let robots = &workload.robots[0].agent.addresses.0;
    assert_eq!(robots[0].to_string(), "eth1::172.20.0.1/22");
    assert_eq!(robots[79].to_string(), "eth1::172.20.0.80/22");
    // The whole list of addresses comes again, not each address several times.
    assert_eq!(robots[80], robots[0]);
    assert_eq!(workload.phases.len(), 2);
    assert_eq!(workload.contents.len(), 2);
    let kinds: Vec<_> = workload.contents.iter().filter_map(|content| content.kind.as_deref()).collect();
    assert_eq!(kinds, ["page", "blob"]);
    assert!((workload.robots[0].recurrence - 0.4 / (0.7 * 0.95)).abs() < 1e-12);
    assert_eq!(workload.program.scripts.len(), 1);
}

#[test]
fn standard_workloads_compile_with_parameters() {
    for (name, settings) in STANDARD {
        let compilation = standard(name, settings);
        let text = compilation.render(Style::Plain);
        assert!(!compilation.has_errors(), "{name}\n{text}");
    }
}

/// The standard workloads with the parameters they leave to the user.
const STANDARD: &[(&str, &[(&str, &str)])] = &[
    ("simple.pg", &[]),
];
