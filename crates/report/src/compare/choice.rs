//! The figures that are compared, and whether more or less of each is better.

use crate::figures::{self, Figure};
use crate::names::{self, UnknownFigure};

/// A figure that is compared by default.
const USUAL: [&str; 15] = [
    "baseline.req.rate",
    "ok_xact.rate",
    "rep.bwidth",
    "baseline.rptm.mean",
    "baseline.rptm.p50",
    "baseline.rptm.p95",
    "baseline.rptm.p99",
    "hit.rptm.mean",
    "miss.rptm.mean",
    "offered.hit.ratio.obj",
    "hit.ratio.obj",
    "hit.ratio.byte",
    "err_xact.ratio",
    "xact.level.mean",
    "conn.use.mean",
];

/// Names of the figures that are compared by default.
pub fn usual() -> impl Iterator<Item = String> {
    USUAL.iter().map(|name| (*name).to_owned())
}

/// The title of a figure with its name in `lx`. Figures that are not compared by default have only the name.
pub(super) fn title(figure: &Figure) -> String {
    let name = figure.name.as_str();
    let title = match name {
        "baseline.req.rate" => "offered load",
        "baseline.rep.rate" => "finished transactions",
        "ok_xact.rate" => "successful transactions",
        "rep.bwidth" => "bandwidth of replies",
        "baseline.rptm.mean" => "response time, mean",
        "baseline.rptm.p50" => "response time, median",
        "baseline.rptm.p95" => "response time, 95th percentile",
        "baseline.rptm.p99" => "response time, 99th percentile",
        "hit.rptm.mean" => "response time of hits, mean",
        "miss.rptm.mean" => "response time of misses, mean",
        "offered.hit.ratio.obj" => "document hit ratio, offered",
        "hit.ratio.obj" => "document hit ratio",
        "hit.ratio.byte" => "byte hit ratio",
        "err_xact.ratio" => "failed transactions",
        "xact.level.mean" => "concurrent transactions",
        "conn.use.mean" => "transactions per connection",
        _ => return name.to_owned(),
    };
    format!("{title} ({name})")
}

/// Whether more or less of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither is better: the figure is an input, or its value depends on preferences.
    Neither,
}

impl Better {
    /// Whether `a` is better than `b`.
    pub fn prefers(self, a: f64, b: f64) -> bool {
        match self {
            Better::Higher => a > b,
            Better::Lower => a < b,
            Better::Neither => false,
        }
    }

    /// The name of the variant in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "neither",
        }
    }
}

/// Whether more or less of the figure with this name is better.
pub fn better(name: &str) -> Better {
    let spread = [".std_dev", ".rel_dev", ".count", ".sum"].iter().any(|end| name.ends_with(end));
    let part = |wanted: &str| name.split(['.', ':', '_']).any(|part| part == wanted);
    if name.contains("offered") || name.starts_with("req_") {
        Better::Neither
    } else if part("err") || part("errors") {
        Better::Lower
    } else if ["hit.ratio.obj", "hit.ratio.byte", "rep_dhr", "rep_bhr", "baseline.rep.rate", "rep_rate"]
        .contains(&name)
        || ["ok_xact.rate", "rep.bwidth"].contains(&name)
    {
        Better::Higher
    } else if !spread && (part("rptm") || name.contains("resp_tm") || part("late") || name == "cpu.xact.time")
    {
        Better::Lower
    } else {
        Better::Neither
    }
}

/// The figures that `objects` names, or the default ones.
pub(super) fn choose(objects: &[String]) -> Result<Vec<&'static Figure>, UnknownFigure> {
    match objects {
        [] => Ok(USUAL.iter().filter_map(|name| figures::find(name)).collect()),
        objects => names::select(objects),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_figures_exist() {
        assert_eq!(choose(&[]).unwrap().len(), USUAL.len());
    }

    #[test]
    fn usual_figures_have_titles() {
        for figure in choose(&[]).unwrap() {
            assert!(title(figure).ends_with(&format!(" ({})", figure.name)), "{}", figure.name);
        }
    }

    #[test]
    fn directions() {
        for (name, want) in [
            ("baseline.rptm.p95", Better::Lower),
            ("resp_tm_mean", Better::Lower),
            ("baseline.rptm.std_dev", Better::Neither),
            ("hit.rptm.count", Better::Neither),
            ("hit.ratio.obj", Better::Higher),
            ("offered.hit.ratio.obj", Better::Neither),
            ("req_dhr", Better::Neither),
            ("err_xact.ratio", Better::Lower),
            ("errors.timeout.count", Better::Lower),
            ("baseline.req.rate", Better::Neither),
            ("baseline.rep.rate", Better::Higher),
            ("conn.use.mean", Better::Neither),
        ] {
            assert_eq!(better(name), want, "{name}");
        }
    }
}
