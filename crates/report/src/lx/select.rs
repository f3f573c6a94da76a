//! Selection of figures by name.

use super::{LxError, Unknown};
use crate::figures::{self, RunFigures, TableEntry, absent};
use crate::names;

/// The figures in the papers of 1999. If all figures are printed, they come last, because the scripts of that time show
/// the end of the output.
pub(crate) const PAPER: [&str; 9] = [
    "log_cnt",
    "req_rate",
    "rep_rate",
    "resp_tm_mean",
    "conn_ttl_mean",
    "req_dhr",
    "rep_dhr",
    "err_cnt",
    "err_pct",
];

/// Names of lists in generation 1.x, with their current names.
const OF_OLD: [(&str, &str); 12] = [
    ("rep_sz_hist", "baseline.rep.size.hist"),
    ("conn_use_hist", "conn.use.hist"),
    ("soread_sz_hist", "so_read.size.hist"),
    ("sowrite_sz_hist", "so_write.size.hist"),
    ("conn_close_frgn_use_hist", "conn_close.idle_foreign.use.hist"),
    ("conn_close_frgn_ttl_hist", "conn_close.idle_foreign.ttl.hist"),
    ("conn_close_lcl_use_hist", "conn_close.idle_local.use.hist"),
    ("conn_close_lcl_ttl_hist", "conn_close.idle_local.ttl.hist"),
    ("conn_close_act_use_hist", "conn_close.busy.use.hist"),
    ("conn_close_act_ttl_hist", "conn_close.busy.ttl.hist"),
    ("err_cnt_tbl", "errors.tbl"),
    ("phase_name", "name"),
];

/// The entries that some names select.
#[derive(Debug)]
pub(crate) struct Selected<'a> {
    /// In the order of printing.
    pub(crate) entries: Vec<TableEntry<'a>>,
    /// Unknown names.
    pub(crate) unknown: Vec<Unknown>,
}

/// Whether all figures are requested.
pub(super) fn wants_all(objects: &[String]) -> bool {
    objects.is_empty() || objects.iter().any(|object| object.eq_ignore_ascii_case("all"))
}

/// The requested entries in the order of the table; if all are requested, the figures of [`PAPER`] come last.
///
/// # Errors
/// If no entry has any of the names.
pub(crate) fn select<'a>(objects: &[String], of_run: &'a RunFigures) -> Result<Selected<'a>, LxError> {
    let all = wants_all(objects);
    let known = || figures::entries().chain(of_run.entries());
    let found = |wanted: &str| known().any(|entry| matches(&entry.name(), wanted));
    let full = |object: &str| {
        let object = today(object);
        names::spelt_out(object).filter(|_| !found(object)).unwrap_or_else(|| object.to_owned())
    };
    let unknown: Vec<Unknown> =
        objects.iter().filter(|object| !all && !found(&full(object))).map(|object| unknown(object)).collect();
    let objects: Vec<String> = objects.iter().map(|object| full(object)).collect();
    let wanted = |name: &str| all || objects.iter().any(|object| matches(name, object));
    let mut entries: Vec<_> = known().filter(|entry| wanted(&entry.name())).collect();
    if entries.is_empty() {
        return Err(LxError::NoSuchObject(unknown));
    }
    if all {
        entries.sort_by_key(
            |entry| matches!(entry, TableEntry::Figure(figure) if PAPER.contains(&figure.name.as_str())),
        );
    }
    Ok(Selected { entries, unknown })
}

fn today(object: &str) -> &str {
    OF_OLD.iter().find(|(old, _)| *old == object).map_or(object, |(_, new)| new)
}

/// A name selects the entry with this name and all entries whose names continue it with a further part.
fn matches(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
}

fn unknown(wanted: &str) -> Unknown {
    Unknown { wanted: wanted.to_owned(), why: absent::why(wanted), near: names::near(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_select_what_they_stand_for() {
        let of_run = figures::of_any_run();
        let names = |object: &str| -> Vec<String> {
            let selected = select(&[object.to_owned()], &of_run).unwrap();
            assert!(selected.unknown.is_empty(), "{object}");
            selected.entries.iter().map(TableEntry::name).collect()
        };
        assert_eq!(names("dhr"), ["hit.ratio.obj"]);
        assert_eq!(names("rptm.p95"), ["baseline.rptm.p95"]);
        assert_eq!(names("rptm"), names("baseline.rptm"));
        // These are first parts of names.
        assert_eq!(
            names("offered"),
            names("offered.hit").into_iter().chain(names("offered.miss")).collect::<Vec<_>>()
        );
        let Err(LxError::NoSuchObject(unknown)) = select(&["rptm.meen".to_owned()], &of_run) else {
            panic!("there is no such figure")
        };
        assert_eq!(unknown[0].wanted, "rptm.meen");
        assert!(unknown[0].to_string().contains("did you mean baseline.rptm.mean"), "{}", unknown[0]);
    }

    #[test]
    fn names_of_old_are_of_today() {
        let of_run = figures::of_any_run();
        for (old, new) in OF_OLD {
            let selected = select(&[old.to_owned()], &of_run).unwrap();
            assert_eq!(selected.entries.iter().map(TableEntry::name).collect::<Vec<_>>(), [new], "{old}");
        }
    }
}
