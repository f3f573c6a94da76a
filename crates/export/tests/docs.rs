//! The table of tables in `docs/export.md`, generated from the tables.

use std::fmt::Write as _;
use std::path::Path;

fn tables() -> String {
    let mut text = String::from("| table | contents of a row | columns |\n|---|---|---|\n");
    for table in polygraph_export::tables() {
        let _ = writeln!(text, "| `{}` | {} | {} |", table.name, table.definition, table.columns.len());
    }
    text
}

#[test]
fn the_tables_are_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (page.find("| table |").unwrap(), page.find("\n\n`schema.json`").unwrap());
    let now = format!("{}{}{}", &page[..start], tables().trim_end(), &page[end..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &now).unwrap();
    } else {
        assert!(
            page == now,
            "docs/export.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-export --test docs`"
        );
    }
}
