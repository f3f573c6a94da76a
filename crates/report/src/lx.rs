//! The extractor: figures by name, as text, CSV or JSON.
//!
//! * this file: selection of logs and phases, and the entry points.
//! * `select`: selection of figures.
//! * `print`: output formats.
//! * `page`: the reference page of all figures.

mod page;
mod print;
pub(crate) mod select;

use std::str::FromStr;

use polygraph_stats::Side;

use crate::figures::{self, RunFigures};
use crate::fold::{FoldError, fold, fold_phases};
use crate::log::{Log, of_side};
use crate::scope::Scope;
use crate::{correctness, misses};

pub use page::statistics_page;
pub use print::{list_absent, list_figures, list_json};
pub(crate) use select::{Selected, select};

/// Selection of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LxSide {
    /// All given logs. If both sides are among them, the figures are those of the clients: adding the sides
    /// would count every miss twice.
    #[default]
    All,
    /// Client logs.
    Client,
    /// Server logs.
    Server,
}

impl FromStr for LxSide {
    type Err = String;

    fn from_str(text: &str) -> Result<LxSide, String> {
        match text {
            "all" => Ok(LxSide::All),
            "clt" | "client" => Ok(LxSide::Client),
            "srv" | "server" => Ok(LxSide::Server),
            _ => Err(format!("`{text}` is not a side: write clt, srv or all")),
        }
    }
}

/// Options of the extractor.
#[derive(Clone, Debug, Default)]
pub struct LxOptions {
    /// Names of phases; `all` or empty: all phases whose statistics the workload logs.
    pub phases: Vec<String>,
    /// Names of figures, complete first parts of dotted names (`hit.rptm`), or `all`; empty means all.
    pub objects: Vec<String>,
    /// The logs to use.
    pub side: LxSide,
    /// Print only values, without names.
    pub values_only: bool,
}

/// Why no figures can be extracted.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum LxError {
    /// There is no log of this side.
    #[error("none of the logs is from the {0} side")]
    NoSuchSide(&'static str),
    /// There are no logs.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Nothing was measured in this phase.
    #[error("no statistics of phase `{wanted}`; measured phases: {}", list(measured))]
    NoSuchPhase {
        /// The phase.
        wanted: String,
        /// The phases that have statistics.
        measured: Vec<String>,
    },
    /// Nothing was measured.
    #[error("nothing was measured in any phase")]
    NothingMeasured,
    /// None of the names belongs to a figure.
    #[error("{}", .0.iter().map(Unknown::to_string).collect::<Vec<_>>().join("; "))]
    NoSuchObject(Vec<Unknown>),
}

/// A name that belongs to no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The name.
    pub wanted: String,
    /// Why there is no such figure, if the original has one.
    pub why: Option<&'static str>,
    /// Similar names.
    pub near: Vec<String>,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no figure `{}`", self.wanted)?;
        match self.why {
            Some(why) => write!(f, ": {why}"),
            None => write!(f, "; {}", hint(&self.near)),
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn hint(near: &[String]) -> String {
    if near.is_empty() {
        "`lx --list` lists all".to_owned()
    } else {
        format!("did you mean {}? `lx --list` lists all", near.join(", "))
    }
}

/// The figures extracted from logs.
#[derive(Debug)]
pub struct Extract {
    /// Names of the phases.
    pub phases: Vec<String>,
    /// Statistics of the phases.
    pub scope: Scope,
    /// Requested names that belong to no figure.
    pub unknown: Vec<Unknown>,
    of_run: RunFigures,
    objects: Vec<String>,
    correctness: Option<serde_json::Value>,
    missed_hits: Option<Vec<String>>,
}

/// Folds the logs and phases that the options select.
///
/// # Errors
/// If a side or phase does not exist, or none of the figures exists.
pub fn extract(logs: &[Log], options: &LxOptions) -> Result<Extract, LxError> {
    let (phases, scope) = scope(logs, options)?;
    let of_run = figures::of_run(contents(logs), &scope.block.statuses());
    let unknown = select(&options.objects, &of_run)?.unknown;
    let (mut correctness, mut missed_hits) = (None, None);
    if select::wants_all(&options.objects) {
        let facts = fold(logs)?;
        correctness = Some(correctness::of_run(&facts).json());
        missed_hits = misses::explain(&facts).map(|story| story.sentences);
    }
    Ok(Extract { phases, scope, unknown, of_run, objects: options.objects.clone(), correctness, missed_hits })
}

/// Prints figures, one `name: value` per line. Undefined values are printed as -1, as in the original.
///
/// # Errors
/// If a side or phase does not exist, or none of the figures exists.
pub fn lx(logs: &[Log], options: &LxOptions) -> Result<String, LxError> {
    Ok(extract(logs, options)?.text(options.values_only))
}

/// The same as a JSON object: `{"phases": [...], "figures": {name: value}}`. Undefined values are null. If all figures
/// are requested, `correctness` contains findings with examples, and `missed_hits` the reasons for missed hits.
///
/// # Errors
/// If a side or phase does not exist, or none of the figures exists.
pub fn lx_json(logs: &[Log], options: &LxOptions) -> Result<String, LxError> {
    Ok(extract(logs, options)?.json())
}

/// The logs of the requested side.
pub(crate) fn logs_of(logs: &[Log], side: LxSide) -> Result<Vec<&Log>, LxError> {
    if logs.is_empty() {
        return Err(FoldError::NoLogs.into());
    }
    let side = match side {
        LxSide::All if of_side(logs, Side::Client).is_empty() => Side::Server,
        LxSide::All | LxSide::Client => Side::Client,
        LxSide::Server => Side::Server,
    };
    let logs = of_side(logs, side);
    if logs.is_empty() { Err(LxError::NoSuchSide(side.name())) } else { Ok(logs) }
}

/// The scope that the options select, and the names of its phases.
///
/// # Errors
/// If a side or phase does not exist.
pub fn scope(logs: &[Log], options: &LxOptions) -> Result<(Vec<String>, Scope), LxError> {
    let start_unix_ns = logs.iter().map(|log| log.log.header.start_unix_ns).min().unwrap_or(0);
    let logs = logs_of(logs, options.side)?;
    let phases: Vec<_> = fold_phases(&logs, start_unix_ns)
        .into_iter()
        .filter_map(|phase| phase.scope.map(|scope| (phase.name, scope)))
        .collect();
    let all = options.phases.is_empty() || options.phases.iter().any(|name| name == "all");
    for wanted in options.phases.iter().filter(|_| !all) {
        if !phases.iter().any(|(name, _)| name == wanted) {
            let measured = phases.into_iter().map(|(name, _)| name).collect();
            return Err(LxError::NoSuchPhase { wanted: wanted.clone(), measured });
        }
    }
    // Phases whose statistics the workload does not log, such as warm-ups, are shown only if they are named.
    let silent = |name: &str| {
        logs.iter().any(|log| log.log.header.phases.iter().any(|plan| plan.name == name && !plan.log_stats))
    };
    let wanted = |name: &String| if all { !silent(name) } else { options.phases.contains(name) };
    let chosen: Vec<_> = phases.iter().filter(|(name, _)| wanted(name)).collect();
    let scope = Scope::sequential(chosen.iter().map(|(_, scope)| scope)).ok_or(LxError::NothingMeasured)?;
    Ok((chosen.iter().map(|(name, _)| name.clone()).collect(), scope))
}

/// The names of the kinds of content in the logs.
pub fn contents<'a>(logs: impl IntoIterator<Item = &'a Log>) -> &'a [String] {
    let names =
        logs.into_iter().map(|log| log.log.header.contents.as_slice()).max_by_key(|names| names.len());
    names.unwrap_or_default()
}
