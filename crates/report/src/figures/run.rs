//! Figures whose names come from the logs: kinds of content, status codes.

use std::borrow::Cow;

use polygraph_stats::{CoarseHistogram, KindStats};

use super::table::{FigureTable, NeededBins};
use super::{Distribution, Figure, TableEntry, Unit, percent};

/// Figures that one run has in addition to those of every run.
#[derive(Default)]
pub struct RunFigures(FigureTable);

impl RunFigures {
    /// Figures in the order of printing.
    pub fn figures(&self) -> &[Figure] {
        &self.0.figures
    }

    /// Distributions in the order of printing.
    pub fn distributions(&self) -> &[Distribution] {
        &self.0.distributions
    }

    /// Everything in the order of printing.
    pub fn entries(&self) -> impl Iterator<Item = TableEntry<'_>> {
        self.0.entries()
    }
}

impl std::fmt::Debug for RunFigures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries().map(|entry| entry.name())).finish()
    }
}

/// The figures of kinds of content with these names, by number.
pub fn of_contents(names: &[String]) -> Vec<Figure> {
    of_run(names, &[]).0.figures
}

/// The figures of kinds of content with these names, by number, and of replies with these status codes; 0 stands for
/// codes that HTTP does not know.
pub fn of_run(contents: &[String], statuses: &[u16]) -> RunFigures {
    let mut t = FigureTable::default();
    t.start_section(CONTENTS);
    for (number, name) in contents.iter().enumerate() {
        content(&mut t, number, name);
    }
    t.start_section(STATUSES);
    for &code in statuses {
        let name = if code == 0 { "other".to_owned() } else { code.to_string() };
        status(&mut t, code, &name);
    }
    RunFigures(t)
}

/// What [`of_run`] returns for the kind of content `<kind>` and the status `<code>`: for lists of all figures.
pub fn of_any_run() -> RunFigures {
    let mut t = FigureTable::default();
    t.start_section(CONTENTS);
    content(&mut t, usize::MAX, "<kind>");
    t.start_section(STATUSES);
    status(&mut t, 0, "<code>");
    RunFigures(t)
}

/// Whether a name may select figures of status codes, which depend on the codes in the logs.
pub fn of_statuses(name: &str) -> bool {
    name.starts_with(OF_STATUS)
}

/// First part of the names of figures of status codes.
const OF_STATUS: &str = "rep_status_code";
const CONTENTS: &str = "Kinds of content";
const STATUSES: &str = "Status codes";

fn status(t: &mut FigureTable, code: u16, name: &str) {
    let what = format!("replies with status {name}, including those of failed transactions and challenges");
    t.add_class_stats(&format!("{OF_STATUS}.{name}"), &what, move |s| s.block.by_status(code));
}

/// A histogram of a kind of content, which processes that do not use it lack.
fn of_content(counted: Option<&CoarseHistogram>) -> Cow<'_, CoarseHistogram> {
    counted.map_or_else(|| Cow::Owned(CoarseHistogram::default()), Cow::Borrowed)
}

fn content(t: &mut FigureTable, number: usize, name: &str) {
    let what = format!("successful transactions, content {name}");
    let prefix = format!("cont_type.{name}");
    t.add_time_and_size(
        &prefix,
        &what,
        move |s| of_content(s.block.kinds.get(number).map(|kind| &kind.replies.rptm_us)),
        move |s| of_content(s.block.kinds.get(number).map(|kind| &kind.replies.size)),
    );
    let mut one = |leaf: &str, what: &str, compute: fn(&KindStats) -> Option<f64>| {
        let text = format!("{what}, content {name}");
        t.add_figure(&format!("{prefix}.{leaf}"), Unit::Percent, &text, move |s| {
            compute(s.block.kinds.get(number)?)
        });
    };
    one("offered.hit.ratio.obj", "offered document hit ratio", |k| {
        percent(k.offered_hits.count as f64, k.basic.count as f64)
    });
    one("offered.hit.ratio.byte", "offered byte hit ratio", |k| {
        percent(k.offered_hits.bytes as f64, k.basic.bytes as f64)
    });
    one("hit.ratio.obj", "measured document hit ratio", |k| {
        percent(k.hits.count as f64, k.basic.count as f64)
    });
    one("hit.ratio.byte", "measured byte hit ratio", |k| percent(k.hits.bytes as f64, k.basic.bytes as f64));
    let prefix = format!("req_cont_type.{name}");
    let what = format!("successful transactions whose request carried content {name}");
    t.add_histogram_of(
        NeededBins::OF_COMPUTED,
        &format!("{prefix}.rptm"),
        &format!("response time of {what}"),
        Unit::Ms,
        1e-3,
        move |s| of_content(s.block.request_kinds.get(number).map(|sent| &sent.rptm_us)),
    );
    t.add_histogram_of(
        NeededBins::OF_COMPUTED,
        &format!("{prefix}.size"),
        &format!("request size of {what}"),
        Unit::Bytes,
        1.0,
        move |s| of_content(s.block.request_kinds.get(number).map(|sent| &sent.size)),
    );
}
