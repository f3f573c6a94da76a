//! The catalogue of errors as a page for people, kept in step with the code.

use std::fmt::Write as _;
use std::path::Path;

use polygraph_stats::ErrorKind;

fn page() -> String {
    let mut page = String::from(
        "# Error classes\n\nEvery error is counted under its class, on the side that saw it; the first ones and those \
         that double the count are kept as examples with the facts of both sides. `lx` knows the counts as \
         `errors.NAME.count`. Numbers up to `c199` are those of the classic benchmark, from `c201` on they are ours; \
         `sN` are error numbers of the operating system.\n\nA class either fails its transaction or is only noted. Its \
         nature says whose affair it is: *content* (the device delivered something else than what the server made for \
         the request), *caching* (it broke a rule of caching), *message* (a message or connection was not as it has to \
         be), *access* (authentication), *slow* (it took too long), *names* (the name server that robots ask), *network* (there is no way to \
         the address), *bench* (the bench or its workload). What follows \
         for the verdict stands in [verdict.md](verdict.md).\n\n\
         | number | name | side | effect | nature | meaning |\n|---|---|---|---|---|---|\n",
    );
    for kind in ErrorKind::all() {
        let effect = if kind.fails() { "fails" } else { "noted" };
        let _ = writeln!(
            page,
            "| {} | `{}` | {} | {effect} | {} | {}. {} |",
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("writable");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == page(), "docs/errors.md is stale: run the tests once with UPDATE_DOCS=1");
}
