//! The extractor: figures by name, as text or JSON.

use std::fmt::Write as _;
use std::str::FromStr;

use polygraph_stats::Side;
use serde_json::{Map, Value, json};

use crate::figures::{self, Figure};
use crate::fold::{FoldError, Log, fold, fold_phases, of_side};
use crate::scope::Scope;
use crate::{correctness, misses};

/// Which logs to look at.
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
            _ => Err(format!("`{text}` is not a side; use clt, srv or all")),
        }
    }
}

/// What to extract.
#[derive(Clone, Debug, Default)]
pub struct LxOptions {
    /// Names of phases, `all` or empty for all whose statistics the workload wants logged.
    pub phases: Vec<String>,
    /// Names of figures, or whole first parts of dotted names (`hit.rptm`), or `all`; empty means all.
    pub objects: Vec<String>,
    /// Which logs.
    pub side: LxSide,
    /// Leave names out and print values only.
    pub values_only: bool,
}

/// Why nothing can be extracted.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum LxError {
    /// No log of that side.
    #[error("none of the logs is of the {0} side")]
    NoSuchSide(&'static str),
    /// No log.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// A phase that nothing was measured in.
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
    /// No figure of that name.
    #[error("no figure `{wanted}`; {}", hint(near))]
    NoSuchObject {
        /// The name.
        wanted: String,
        /// Similar names.
        near: Vec<String>,
    },
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

/// The table of the papers of 1999. Where all figures are printed it comes last, because the scripts of that
/// time show the end of the output.
const PAPER: [&str; 9] = [
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

/// Prints figures, one `name: value` a line. Undefined values are printed as -1, as they always were.
///
/// # Errors
/// If a side, phase or figure does not exist.
pub fn lx(logs: &[Log], options: &LxOptions) -> Result<String, LxError> {
    let (_, scope) = scope(logs, options)?;
    let contents = contents(logs);
    let mut out = String::new();
    for figure in select(&options.objects, &contents)? {
        let value = figure.print(figure.of(&scope).unwrap_or(-1.0));
        if options.values_only {
            let _ = writeln!(out, "{value}");
        } else {
            let _ = writeln!(out, "{}: {value}", figure.name);
        }
    }
    Ok(out)
}

/// The same as a JSON object: `{"phases": [...], "figures": {name: value}}`. Undefined values are null. If all
/// figures are asked for, `correctness` holds findings with examples, and `missed_hits` why hits were missed.
///
/// # Errors
/// If a side, phase or figure does not exist.
pub fn lx_json(logs: &[Log], options: &LxOptions) -> Result<String, LxError> {
    let (phases, scope) = scope(logs, options)?;
    let contents = contents(logs);
    let values: Map<String, Value> = select(&options.objects, &contents)?
        .into_iter()
        .map(|f| (f.name.clone(), json!(f.of(&scope))))
        .collect();
    let mut all = json!({ "phases": phases, "figures": values });
    if wants_all(&options.objects) {
        let facts = fold(logs)?;
        all["correctness"] = correctness::of_run(&facts).json();
        if let Some(story) = misses::explain(&facts) {
            all["missed_hits"] = json!(story.sentences);
        }
    }
    let text = serde_json::to_string_pretty(&all);
    Ok(text.expect("names are strings and values are numbers") + "\n")
}

/// Names, units and definitions of the figures that `objects` selects.
///
/// # Errors
/// If a figure does not exist.
pub fn list_figures(objects: &[String]) -> Result<String, LxError> {
    let figures = select(objects, &[])?;
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for figure in figures {
        let _ = writeln!(out, "{:<width$}  {:<6}  {}", figure.name, figure.unit.symbol(), figure.definition);
    }
    Ok(out)
}

/// The scope that the options select, and the names of its phases.
fn scope(logs: &[Log], options: &LxOptions) -> Result<(Vec<String>, Scope), LxError> {
    if logs.is_empty() {
        return Err(FoldError::NoLogs.into());
    }
    let start_unix_ns = logs.iter().map(|log| log.log.header.start_unix_ns).min().unwrap_or(0);
    let side = match options.side {
        LxSide::All if of_side(logs, Side::Client).is_empty() => Side::Server,
        LxSide::All | LxSide::Client => Side::Client,
        LxSide::Server => Side::Server,
    };
    let logs = of_side(logs, side);
    if logs.is_empty() {
        return Err(LxError::NoSuchSide(side.name()));
    }
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
    // Phases that the workload does not want logged, such as warm-ups, are shown only if they are named.
    let silent = |name: &str| {
        logs.iter().any(|log| log.log.header.phases.iter().any(|plan| plan.name == name && !plan.log_stats))
    };
    let wanted = |name: &String| if all { !silent(name) } else { options.phases.contains(name) };
    let chosen: Vec<_> = phases.iter().filter(|(name, _)| wanted(name)).collect();
    let scope = Scope::sequential(chosen.iter().map(|(_, scope)| scope)).ok_or(LxError::NothingMeasured)?;
    Ok((chosen.iter().map(|(name, _)| name.clone()).collect(), scope))
}

fn wants_all(objects: &[String]) -> bool {
    objects.is_empty() || objects.iter().any(|object| object.eq_ignore_ascii_case("all"))
}

/// The figures of the kinds of content that the logs name.
fn contents(logs: &[Log]) -> Vec<Figure> {
    let names = logs.iter().map(|log| &log.log.header.contents).max_by_key(|names| names.len());
    figures::of_contents(names.map_or(&[], Vec::as_slice))
}

/// The figures that are asked for, in the order of the table; if all are, the [`PAPER`]'s come last.
fn select<'a>(objects: &[String], contents: &'a [Figure]) -> Result<Vec<&'a Figure>, LxError> {
    let all = wants_all(objects);
    let known = || figures::all().iter().chain(contents);
    if let Some(unknown) = objects.iter().find(|wanted| !all && !known().any(|f| matches(&f.name, wanted))) {
        return Err(LxError::NoSuchObject { wanted: unknown.clone(), near: near(unknown) });
    }
    let wanted = |name: &str| all || objects.iter().any(|object| matches(name, object));
    let mut selected: Vec<_> = known().filter(|figure| wanted(&figure.name)).collect();
    if all {
        selected.sort_by_key(|figure| PAPER.contains(&figure.name.as_str()));
    }
    Ok(selected)
}

/// A request selects the figure of that name and all that continue it with a further part.
fn matches(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
}

/// Up to five names that look like `wanted`, the most similar first.
fn near(wanted: &str) -> Vec<String> {
    let mut scored: Vec<_> = figures::all()
        .iter()
        .map(|figure| (strsim::jaro_winkler(wanted, &figure.name), &figure.name))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(5).map(|(_, name)| name.clone()).collect()
}
