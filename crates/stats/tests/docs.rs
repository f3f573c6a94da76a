//! The catalogue of errors as a page for people, kept in step with the code.

use std::fmt::Write as _;
use std::path::Path;

use polygraph_stats::ErrorKind;
use polygraph_stats::error::Nature;

fn page() -> String {
    let mut page = String::from(
        "# Error classes\n\n`cargo test -p polygraph-stats` generates this page from the catalogue of the `stats` crate; do not edit it.\n\n\
         Every error is counted under its class, on the side that saw it. The first error of a class, and each one that \
         doubles the count, is kept as an example with the facts of both sides. `lx` prints the counts as \
         `errors.NAME.count`. Numbers up to `c199` are those of Web Polygraph; numbers from `c201` on are new; `sN` is \
         error number N of the operating system.\n\nAn error either *fails* its transaction or is only *noted*. Its \
         nature says what it concerns: *content* (the device delivered something other than what the server made for \
         the request), *caching* (a rule of caching was broken), *message* (a message or a connection was malformed or \
         broken), *access* (authentication), *slow* (a time limit passed), *names* (the name server that the robots \
         query), *network* (the address cannot be reached), *bench* (the bench or its workload). \
         [The verdict](../../verdict.md) depends on the nature. Classes marked *correctness* count against the correctness of \
         replies as those of content and caching do.\n\n\
         | number | name | side | effect | nature | meaning |\n|---|---|---|---|---|---|\n",
    );
    for kind in ErrorKind::all() {
        let is_marked =
            kind.concerns_correctness() && !matches!(kind.nature(), Nature::Content | Nature::Caching);
        let mark = if is_marked { ", correctness" } else { "" };
        let effect = if kind.fails() { "fails" } else { "noted" };
        let _ = writeln!(
            page,
            "| {} | `{}` | {} | {effect} | {}{mark} | {}. {} |",
            kind.number(),
            kind.name(),
            kind.sides().name(),
            kind.nature().word(),
            kind.text(),
            kind.hint()
        );
    }
    page
}

#[test]
fn the_page_of_errors_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/generated/errors.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("writable");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == page(),
        "docs/reference/generated/errors.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-stats --test docs`"
    );
}
