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

use crate::facts::{RunFacts, SideFacts};
use crate::figures::{self, RunFigures};
use crate::fold::{FoldError, fold};
use crate::mixed::MIXED;
use crate::scope::Scope;
use crate::source::{LogSource, of_side};
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
    /// All facts of the run.
    pub facts: RunFacts,
    /// Requested names that belong to no figure.
    pub unknown: Vec<Unknown>,
    of_run: RunFigures,
    objects: Vec<String>,
    correctness: Option<serde_json::Value>,
    missed_hits: Option<Vec<String>>,
}

impl Extract {
    /// Why the figures may not be those of one run, in the words of the verdict.
    pub fn mixed(&self) -> impl Iterator<Item = &str> {
        let findings = self.facts.verdict.findings.iter().filter(|finding| finding.rule == MIXED);
        findings.map(|finding| finding.text.as_str())
    }
}

/// Folds the logs and phases that the options select.
///
/// # Errors
/// If a side or phase does not exist, or none of the figures exists.
pub fn extract<S: LogSource>(logs: &[S], options: &LxOptions) -> Result<Extract, LxError> {
    if logs.is_empty() {
        return Err(FoldError::NoLogs.into());
    }
    let side = side_of(logs, options.side)?;
    let facts = fold(logs)?;
    let measured = facts.sides().find(|facts| facts.side == side).ok_or(LxError::NoSuchSide(side.name()))?;
    let (phases, scope) = scope(measured, &options.phases)?;
    let of_run = figures::of_run(contents(logs), &scope.block.statuses());
    let unknown = select(&options.objects, &of_run)?.unknown;
    let (mut correctness, mut missed_hits) = (None, None);
    if select::wants_all(&options.objects) {
        correctness = Some(correctness::of_run(&facts).json());
        missed_hits = misses::explain(&facts).map(|story| story.sentences);
    }
    let objects = options.objects.clone();
    Ok(Extract { phases, scope, facts, unknown, of_run, objects, correctness, missed_hits })
}

/// Prints figures, one `name: value` per line. Undefined values are printed as -1, as in the original.
///
/// # Errors
/// If a side or phase does not exist, or none of the figures exists.
pub fn lx<S: LogSource>(logs: &[S], options: &LxOptions) -> Result<String, LxError> {
    Ok(extract(logs, options)?.text(options.values_only))
}

/// The same as a JSON object: `{"phases": [...], "figures": {name: value}}`. Undefined values are null. If all figures
/// are requested, `correctness` contains findings with examples, and `missed_hits` the reasons for missed hits.
///
/// # Errors
/// If a side or phase does not exist, or none of the figures exists.
pub fn lx_json<S: LogSource>(logs: &[S], options: &LxOptions) -> Result<String, LxError> {
    Ok(format!("{:#}\n", extract(logs, options)?.json()))
}

/// The side whose figures are requested.
fn side_of<S: LogSource>(logs: &[S], side: LxSide) -> Result<Side, LxError> {
    let has = |side| !of_side(logs, side).is_empty();
    let side = match side {
        LxSide::All if !has(Side::Client) => Side::Server,
        LxSide::All | LxSide::Client => Side::Client,
        LxSide::Server => Side::Server,
    };
    if has(side) { Ok(side) } else { Err(LxError::NoSuchSide(side.name())) }
}

/// The logs of the requested side.
pub(crate) fn logs_of<S: LogSource>(logs: &[S], side: LxSide) -> Result<Vec<&S>, LxError> {
    if logs.is_empty() {
        return Err(FoldError::NoLogs.into());
    }
    Ok(of_side(logs, side_of(logs, side)?))
}

/// The scope of the phases with these names, and the names; `all` or none: all phases whose statistics the workload
/// logs.
///
/// # Errors
/// If a phase does not exist.
pub fn scope(side: &SideFacts, phases: &[String]) -> Result<(Vec<String>, Scope), LxError> {
    let measured = || side.phases.iter().filter_map(|phase| Some((&phase.name, phase.scope.as_ref()?)));
    let all = phases.is_empty() || phases.iter().any(|name| name == "all");
    for wanted in phases.iter().filter(|_| !all) {
        if !measured().any(|(name, _)| name == wanted) {
            let measured = measured().map(|(name, _)| name.clone()).collect();
            return Err(LxError::NoSuchPhase { wanted: wanted.clone(), measured });
        }
    }
    // Phases whose statistics the workload does not log, such as warm-ups, are shown only if they are named.
    let plans = || side.processes.iter().flat_map(|process| &process.header.phases);
    let silent = |name: &String| plans().any(|plan| plan.name == *name && !plan.log_stats);
    let wanted = |name: &String| if all { !silent(name) } else { phases.contains(name) };
    let chosen: Vec<_> = measured().filter(|(name, _)| wanted(name)).collect();
    let scope = Scope::sequential(chosen.iter().map(|(_, scope)| *scope)).ok_or(LxError::NothingMeasured)?;
    Ok((chosen.into_iter().map(|(name, _)| name.clone()).collect(), scope))
}

/// The names of the kinds of content in the logs.
pub fn contents<S: LogSource>(logs: &[S]) -> &[String] {
    let names = logs.iter().map(|log| log.header().contents.as_slice()).max_by_key(|names| names.len());
    names.unwrap_or_default()
}
