//! The reference page of all figures.

use std::fmt::Write as _;

use crate::figures::{self, TableEntry, Unit, absent};

const HEAD: &str = "# Figures\n\n\
`cargo test -p polygraph-report` generates this page from the table of figures of the `report` crate; do not edit it.\n\n\
`lx` prints these figures for one or more logs. `lx --list` lists them with all their names; `lx --list --all` includes names of \
the original that do not exist here. `lx`, reports, exports and this page share one table of definitions.\n\n\
```sh\n\
lx --phases meas --objects rep_rate,hit.rptm,errors.tbl clt.log      # names, or complete first parts of names\n\
lx --format csv --side srv runs/try/*.log                            # CSV and JSON have all digits\n\
ltrace --objects time,name,rep_rate,baseline.rptm.p95 --win_len 10s clt.log   # over time\n\
```\n\n\
* [Merging and concatenation](../statistics.md#merging-and-concatenation) says how logs and phases combine. Given logs of both \
sides, `lx` shows the figures of the clients unless `--side` says otherwise.\n\
* *Undefined* values (the mean of nothing) are `-1` in text, an empty cell in CSV and `null` in JSON, never 0.\n\
* Figures with **A** have `.count`, `.mean`, `.min`, `.max`, `.std_dev` (of the sample), `.rel_dev` (in % of the mean) and \
`.sum`, all exact. Figures with **P** also have `.p5`, `.p50`, `.p75`, `.p90`, `.p95`, `.p99`, `.p999` and the list `.hist`, \
whose rows have at least 1 % of all values. Percentiles are within 0.1 % of the value, or within 6 % where the table says \
**P6**.\n\
* Levels, with **L**, have `.started`, `.finished`, `.level.mean` (weighted by time), `.level.last` and `.level.peak`.\n\
* Response times end with the last byte. `rptm` starts with the transaction, `due_rptm` when the request was due.\n";

/// The contents of a row of the page.
struct Line {
    name: String,
    facts: &'static str,
    unit: Unit,
    text: String,
}

/// The page.
pub fn statistics_page() -> String {
    let of_run = figures::of_any_run();
    let mut page = String::from(HEAD);
    let mut section = "";
    for (title, line) in lines(figures::entries().chain(of_run.entries())) {
        if section != title {
            section = title;
            let _ = writeln!(page, "\n## {title}\n\n| name | facts | unit | meaning |\n|---|---|---|---|");
        }
        let Line { name, facts, unit, text } = line;
        let _ = writeln!(
            page,
            "| `{name}` | {facts} | {} | {} |",
            unit.symbol(),
            text.replace('|', "\\|").replace('<', "\\<")
        );
    }
    page.push_str("\n## Names without a figure\n\n| name in Web Polygraph | why |\n|---|---|\n");
    for (name, why) in absent::ABSENT {
        let _ = writeln!(page, "| `{name}.*` | {why} |");
    }
    page
}

const LEVEL: [&str; 5] = [".started", ".finished", ".level.mean", ".level.last", ".level.peak"];

fn lines<'a>(entries: impl Iterator<Item = TableEntry<'a>>) -> Vec<(&'static str, Line)> {
    let mut lines: Vec<(&'static str, Line)> = Vec::new();
    for entry in entries {
        let section = entry.section();
        let mut add = |name: &str, facts, unit, text: &str| {
            lines.push((section, Line { name: name.to_owned(), facts, unit, text: text.to_owned() }));
        };
        match entry {
            TableEntry::Figure(figure) => {
                let (name, text) = (figure.name.as_str(), figure.definition.as_str());
                let level = LEVEL.iter().find_map(|leaf| name.strip_suffix(leaf).map(|stem| (*leaf, stem)));
                match (figure.parts(), level) {
                    (Some((stem, "mean")), _) => {
                        add(stem, "A", figure.unit, text.strip_prefix("mean of ").unwrap_or(text));
                    }
                    (Some(_), _) => {}
                    (None, Some((".level.mean", stem))) => {
                        let what = text.trim_start_matches("mean number of ");
                        let what = what.split(" at a time").next().unwrap_or(what);
                        add(stem, "L", Unit::Count, what);
                    }
                    (None, Some(_)) => {}
                    (None, None) => add(name, "", figure.unit, text),
                }
            }
            // The aggregates are part of an earlier row.
            TableEntry::Distribution(distribution) => {
                if let Some((_, line)) = lines.last_mut().filter(|(_, line)| line.name == distribution.name) {
                    line.facts = if distribution.width_percent > 1.0 { "A, P6" } else { "A, P" };
                }
            }
            TableEntry::List(list) => {
                let columns = list.columns.join(", ");
                let text = match list.columns.is_empty() {
                    true => list.definition.to_owned(),
                    false => format!("{} ({columns})", list.definition),
                };
                add(list.name, "list", Unit::Count, &text);
            }
        }
    }
    lines
}
