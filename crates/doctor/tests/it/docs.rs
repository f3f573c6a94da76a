//! The page of checks, kept in step with the catalogue.

use std::path::Path;

use polygraph_doctor::CHECKS;

fn table() -> String {
    let row = |check: &polygraph_doctor::HostCheck| {
        let quick = if check.is_quick { "yes" } else { "" };
        format!("| `{}` | {} | {quick} |\n", check.name, check.looks_at)
    };
    let rows: String = CHECKS.iter().map(row).collect();
    format!("| check | looks at | at the start of runs |\n|---|---|---|\n{rows}")
}

#[test]
fn the_page_lists_every_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (page.find("| check |").unwrap(), page.find("\n\n## Files").unwrap());
    let now = format!("{}{}{}", &page[..begin], table().trim_end(), &page[end..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &now).unwrap();
    } else {
        assert!(
            page == now,
            "docs/doctor.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-doctor --test it docs`"
        );
    }
}
