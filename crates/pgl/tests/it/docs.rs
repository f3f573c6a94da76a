//! The reference page is made from the tables.

use std::path::Path;

#[test]
fn the_reference_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/generated/pgl.md");
    let page = polygraph_pgl::docs::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, &page).expect("writable");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == page,
        "docs/reference/generated/pgl.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-pgl --test it docs`"
    );
}

#[test]
fn the_grammar_for_editors_is_json_and_knows_the_units() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/textmate/pgl.tmLanguage.json");
    let text = std::fs::read_to_string(path).expect("the grammar");
    let grammar: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let numbers = grammar["repository"]["numbers"]["patterns"][0]["match"].as_str().expect("a pattern");
    let units = polygraph_pgl::syntax::TIME_UNITS.iter().chain(polygraph_pgl::syntax::SIZE_UNITS);
    for (unit, _) in units {
        assert!(numbers.contains(unit), "{unit}");
    }
}
