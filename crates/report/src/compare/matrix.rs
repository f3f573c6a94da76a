//! Systems by options: groups with names like `linux/aufs` make a table for each of the main figures, the best marked.

use super::cells::{BEST, TextTable, print};
use super::{ComparedPhases, Comparison, choice};
use crate::text::UNDEFINED;

/// The figures that have separate tables.
const MAIN: [&str; 4] = ["ok_xact.rate", "baseline.rptm.mean", "hit.ratio.obj", "err_xact.ratio"];

/// A titled table for each of the main figures. There are none unless all names have a system and an option, with at
/// least two systems and two options.
pub(super) fn of_part(comparison: &Comparison<'_>, part: &ComparedPhases) -> Vec<(String, TextTable)> {
    let names: Option<Vec<(&str, &str)>> =
        comparison.groups.iter().map(|group| group.name.split_once('/')).collect();
    let Some(names) = names else { return Vec::new() };
    let (systems, options) =
        (distinct(names.iter().map(|name| name.0)), distinct(names.iter().map(|name| name.1)));
    if systems.len() < 2 || options.len() < 2 {
        return Vec::new();
    }
    let main = part.rows.iter().filter(|row| MAIN.contains(&row.figure.name.as_str()));
    main.map(|row| {
        let cell = |system: &str, option: &str| {
            let found = names.iter().position(|name| *name == (system, option));
            found.map_or(UNDEFINED.to_owned(), |group| {
                let best = if row.best.contains(&group) { BEST } else { "" };
                format!("{}{best}", print(row.figure, row.values[group]))
            })
        };
        let of_system = |system: &&str| {
            let cells = options.iter().map(|option| cell(system, option));
            std::iter::once((*system).to_owned()).chain(cells).collect()
        };
        let head = std::iter::once(String::new()).chain(options.iter().map(|option| (*option).to_owned()));
        let title = match row.figure.unit.symbol() {
            "" => choice::title(row.figure),
            unit => format!("{}, {unit}", choice::title(row.figure)),
        };
        (title, TextTable { head: head.collect(), rows: systems.iter().map(of_system).collect() })
    })
    .collect()
}

/// The distinct values in the order of their first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    names.for_each(|name| {
        if !all.contains(&name) {
            all.push(name);
        }
    });
    all
}
