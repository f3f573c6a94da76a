//! Data flows one way: the files of a crate import each other without circles.

use std::path::Path;

use polygraph_tidy::circles::{circles, describe};
use polygraph_tidy::imports::{Imports, of_crate};
use polygraph_tidy::tree;

fn of_sources(files: &[(&str, &str)]) -> Imports {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("imports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let found = of_crate(&folder.join("lib.rs"));
    std::fs::remove_dir_all(&folder).unwrap();
    found
}

#[test]
fn circles_are_found_through_re_exports_paths_and_macros_but_not_between_parent_and_child() {
    let imports = of_sources(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use a::A; pub use d::D;"),
        // A circle through a re-export of the root and a path in code.
        ("a.rs", "pub struct A; pub fn f() { crate::b::g(); }"),
        ("b.rs", "use crate::A; pub fn g() -> A { A }"),
        // A parent and its child, which is allowed, and two children of it, which is not.
        ("c.rs", "mod x; mod y; mod z; pub struct C; use x::X; use z::Z;"),
        ("c/x.rs", "use super::C; use super::y::Y; pub struct X(C, Y);"),
        ("c/y.rs", "pub struct Y; fn h() { println!(\"{}\", super::x::NAME); }"),
        ("c/z.rs", "use super::C; pub struct Z(C);"),
        // No circle: only a test looks back.
        ("d.rs", "pub struct D; #[cfg(test)] mod tests { use crate::e::E; }"),
    ]);
    let mut found: Vec<Vec<String>> = circles(&imports)
        .iter()
        .map(|circle| circle.iter().map(|&file| imports.files[file].display().to_string()).collect())
        .collect();
    found.sort();
    assert_eq!(found, [vec!["a.rs", "b.rs"], vec!["c/x.rs", "c/y.rs"]]);
}

#[test]
fn files_of_a_crate_import_each_other_without_circles() {
    let mut report = String::new();
    for folder in tree::crates() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let root = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file));
        let root = root.iter().find(|file| file.is_file()).unwrap();
        let imports = of_crate(root);
        let found = circles(&imports);
        for circle in &found {
            report += &format!(
                "{name}: {}
",
                describe(&imports, circle)
            );
        }
    }
    assert!(report.is_empty(), "circles of imports:\n{report}");
}
