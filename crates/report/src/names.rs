//! Figures by full and short names.

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
#[error("there is no figure `{name}`{}; `lx --list` lists all", near_hint(near))]
pub struct UnknownFigure {
    /// The name.
    pub name: String,
    /// Similar names.
    pub near: Vec<String>,
}

fn near_hint(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(", ")) }
}

/// The figure `name`: a name of the table, or a short name with or without an aggregate (`dhr`, `rptm.p95`, `rptm` for
/// its mean).
///
/// # Errors
/// If there is no such figure.
pub fn find(name: &str) -> Result<&'static Figure, UnknownFigure> {
    let spelt_out = SHORT.iter().find_map(|(short, long)| {
        let rest = name.strip_prefix(short)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("{long}{rest}"))
    });
    let candidates = [Some(name.to_owned()), spelt_out.clone(), spelt_out.map(|name| format!("{name}.mean"))];
    candidates
        .iter()
        .flatten()
        .find_map(|name| figures::find(name))
        .ok_or_else(|| UnknownFigure { name: name.to_owned(), near: near(name) })
}

/// Up to five names similar to `wanted`, the most similar first.
fn near(wanted: &str) -> Vec<String> {
    let known =
        figures::all().iter().map(|figure| figure.name.as_str()).chain(SHORT.iter().map(|(short, _)| *short));
    let mut scored: Vec<_> = known
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(5).map(|(_, name)| name.to_owned()).collect()
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
        assert!(error.near.contains(&"hit.ratio.obj".to_owned()), "{error}");
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
