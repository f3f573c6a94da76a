//! The page of all figures, kept in step with the code.

use std::path::Path;

#[test]
fn the_page_of_statistics_is_of_today() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/generated/figures.md");
    let page = polygraph_report::lx::statistics_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        known == page,
        "docs/reference/generated/figures.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-report --test docs`"
    );
}
