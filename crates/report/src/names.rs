//! Figures by full and short names.

use std::collections::HashSet;

use crate::figures::{self, Figure};

/// Short names of frequently used figures.
const SHORT: [(&str, &str); 9] = [
    ("rptm", "baseline.rptm"),
    ("due_rptm", "baseline.due_rptm"),
    ("req.rate", "baseline.req.rate"),
    ("rep.rate", "baseline.rep.rate"),
    ("dhr", "hit.ratio.obj"),
    ("bhr", "hit.ratio.byte"),
    ("offered.dhr", "offered.hit.ratio.obj"),
    ("offered.bhr", "offered.hit.ratio.byte"),
    ("err.ratio", "err_xact.ratio"),
];

/// No figure has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no figure `{name}`{} `lx --list` lists all", near_hint(near))]
pub struct UnknownFigure {
    /// The name.
    pub name: String,
    /// Similar names.
    pub near: Vec<String>,
}

fn near_hint(near: &[String]) -> String {
    if near.is_empty() { ";".to_owned() } else { format!(": did you mean {}?", near.join(", ")) }
}

/// The figure `name`: a name of the table, or a short name with or without an aggregate (`dhr`, `rptm.p95`, `rptm` for
/// its mean).
///
/// # Errors
/// If there is no such figure.
pub fn find(name: &str) -> Result<&'static Figure, UnknownFigure> {
    let spelt_out = spelt_out(name);
    let candidates = [Some(name.to_owned()), spelt_out.clone(), spelt_out.map(|name| format!("{name}.mean"))];
    candidates
        .iter()
        .flatten()
        .find_map(|name| figures::find(name))
        .ok_or_else(|| UnknownFigure { name: name.to_owned(), near: near(name) })
}

/// The full name, or first parts of it, that begin with a short name: `baseline.rptm.p95` for `rptm.p95`.
pub(crate) fn spelt_out(name: &str) -> Option<String> {
    SHORT.iter().find_map(|(short, long)| {
        let rest = name.strip_prefix(short)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("{long}{rest}"))
    })
}

/// Up to five names similar to `wanted`, the most similar first: statistics of short names (`rptm.p95` for `p95`) and names that
/// contain it as whole parts, or else names that are spelt like it, one of each group of statistics.
pub(crate) fn near(wanted: &str) -> Vec<String> {
    let known =
        || SHORT.iter().map(|(short, _)| *short).chain(figures::all().iter().map(|f| f.name.as_str()));
    let dotted = format!(".{wanted}.");
    let mut containing: Vec<&str> = known().filter(|name| format!(".{name}.").contains(&dotted)).collect();
    containing.sort_by_key(|name| name.len());
    let score = |name: &str| {
        let wanted = spelt_out(wanted).unwrap_or_else(|| wanted.to_owned());
        strsim::jaro_winkler(&wanted, name)
    };
    let mut alike: Vec<_> =
        known().map(|name| (score(name), name)).filter(|(score, _)| *score > 0.8).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut groups = HashSet::new();
    let group = |name: &'static str| name.rsplit_once('.').map_or(name, |(group, _)| group);
    alike.retain(|(_, name)| groups.insert(group(name)));
    let of_short = SHORT.iter().map(|(short, _)| format!("{short}.{wanted}"));
    let of_short = of_short.filter(|name| spelt_out(name).is_some_and(|name| figures::find(&name).is_some()));
    let names =
        if containing.is_empty() { alike.into_iter().map(|(_, name)| name).collect() } else { containing };
    of_short.chain(names.into_iter().map(str::to_owned)).take(5).collect()
}

/// The figures that `objects` names: full names, complete first parts of dotted names, short names, or `all`.
///
/// # Errors
/// If a name selects nothing.
pub(crate) fn select(objects: &[String]) -> Result<Vec<&'static Figure>, UnknownFigure> {
    if objects.iter().any(|object| object.eq_ignore_ascii_case("all")) {
        return Ok(figures::all().iter().collect());
    }
    let mut chosen: Vec<&'static Figure> = Vec::new();
    for object in objects {
        let begins = |figure: &&Figure| {
            figure.name.strip_prefix(object.as_str()).is_some_and(|rest| rest.starts_with(['.', ':']))
        };
        let mut group: Vec<&'static Figure> = figures::all().iter().filter(begins).collect();
        if group.is_empty() || figures::find(object).is_some() {
            group.insert(0, find(object)?);
        }
        for figure in group {
            if !chosen.iter().any(|other| other.name == figure.name) {
                chosen.push(figure);
            }
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_names() {
        for (name, want) in [
            ("rptm.p95", "baseline.rptm.p95"),
            ("rptm", "baseline.rptm.mean"),
            ("dhr", "hit.ratio.obj"),
            ("rep_dhr", "rep_dhr"),
            ("hit.rptm.mean", "hit.rptm.mean"),
            ("err.ratio", "err_xact.ratio"),
            ("rep.rate", "baseline.rep.rate"),
            ("req.rate", "baseline.req.rate"),
        ] {
            assert_eq!(find(name).unwrap().name, want, "{name}");
        }
        SHORT.iter().for_each(|(short, _)| assert!(find(short).is_ok(), "{short}"));
    }

    #[test]
    fn unknown_names_have_neighbours() {
        let error = find("hit.ratio.objs").unwrap_err();
        assert_eq!(error.near.first().map(String::as_str), Some("hit.ratio.obj"), "{error}");
        // One statistic of each group, and those of short names.
        let error = find("rptm.meen").unwrap_err();
        assert_eq!(error.near.first().map(String::as_str), Some("baseline.rptm.mean"), "{error}");
        assert!(!error.near.contains(&"baseline.rptm.min".to_owned()), "{error}");
        // Parts of names: the shortest names that have them.
        let error = find("ratio.obj").unwrap_err();
        assert!(error.near.contains(&"hit.ratio.obj".to_owned()), "{error}");
        let near = find("p95").unwrap_err().near;
        assert!(near[0] == "rptm.p95" && near.iter().all(|name| name.ends_with(".p95")), "{near:?}");
        assert_eq!(
            find("xyzzy").unwrap_err().to_string(),
            "there is no figure `xyzzy`; `lx --list` lists all"
        );
    }

    #[test]
    fn parts_of_names_select_groups() {
        let names = |objects: &[&str]| {
            let objects: Vec<String> = objects.iter().map(|o| (*o).to_owned()).collect();
            select(&objects).map(|all| all.iter().map(|f| f.name.clone()).collect::<Vec<_>>())
        };
        assert!(names(&["hit.rptm"]).unwrap().contains(&"hit.rptm.p95".to_owned()));
        assert_eq!(names(&["dhr", "hit.ratio.obj"]).unwrap(), ["hit.ratio.obj"]);
        assert!(names(&["no.such"]).is_err());
        assert_eq!(names(&["all"]).unwrap().len(), figures::all().len());
    }
}
