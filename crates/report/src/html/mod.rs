//! The HTML report: one file, offline, readable without scripts, on paper and in the dark.
//!
//! The first screen answers: can I trust it, what did it do, how fast, how many hits. All headline figures come
//! from the primary phase, which is named. Nothing is shown that was not measured.

pub mod chart;
mod charts;
mod tables;
mod wire;

use std::path::{Path, PathBuf};
use std::{fs, io};

use askama::Template;
use polygraph_stats::ErrorKind;
use polygraph_stats::log::LogError;

use crate::figures::{self, value};
use crate::fold::{FoldError, Log, ProcessFacts, RunFacts, Sample, SideFacts, fold};
use crate::verdict::Weight;
use crate::{correctness, misses, text};
use chart::Drawn;
use tables::Table;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A log cannot be used at all.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The logs do not make a run.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The report cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// Reads the logs of one run, writes its report to `out` and returns the facts it was made from.
///
/// # Errors
/// If a log cannot be used at all, or the report cannot be written. Logs that are incomplete are no error; the
/// report says what is missing.
pub fn write_report(logs: &[PathBuf], out: &Path) -> Result<RunFacts, ReportError> {
    let logs = logs.iter().map(|path| Log::open(path)).collect::<Result<Vec<_>, _>>()?;
    let facts = fold(&logs)?;
    fs::write(out, html(&facts))
        .map_err(|source| ReportError::Write { path: out.display().to_string(), source })?;
    Ok(facts)
}

/// The report of a run.
pub fn html(facts: &RunFacts) -> String {
    Page::new(facts).render().expect("rendering into a string cannot fail")
}

/// A large number of the first screen.
struct Tile {
    name: &'static str,
    value: String,
    unit: &'static str,
    more: String,
}

/// A part of the page.
struct Section {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    /// Conclusions, a paragraph each.
    notes: Vec<String>,
    tables: Vec<Table>,
    charts: Vec<Drawn>,
    /// What the classes of errors mean.
    meanings: Vec<Term>,
    samples: Vec<Example>,
}

/// An example of an error.
struct Example {
    at: String,
    class: String,
    detail: String,
    facts: Vec<(String, String)>,
}

/// A process: what was run, and how to run it again.
struct Process<'a> {
    facts: &'a ProcessFacts,
    title: String,
    command: String,
    pairs: Vec<(&'static str, &'a [(String, String)])>,
}

/// An entry of the glossary.
struct Term {
    name: String,
    text: String,
}

/// What the template shows.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    subtitle: String,
    word: &'static str,
    meaning: &'static str,
    icon: &'static str,
    reasons: Vec<&'a str>,
    warnings: Vec<&'a str>,
    phase: String,
    tiles: Vec<Tile>,
    sections: Vec<Section>,
    processes: Vec<Process<'a>>,
    glossary: Vec<Term>,
    version: &'a str,
}

impl<'a> Page<'a> {
    fn new(facts: &'a RunFacts) -> Page<'a> {
        let header = facts.main_side().header();
        let verdict = &facts.verdict;
        let texts = |warning: bool| -> Vec<&str> {
            let wanted = verdict.findings.iter().filter(|f| (f.weight == Weight::Warning) == warning);
            wanted.map(|finding| finding.text.as_str()).collect()
        };
        let workload = if header.workload.is_empty() { "Unnamed workload" } else { &header.workload };
        let title = match header.label.as_str() {
            "" => workload.to_owned(),
            label => format!("{workload}: {label}"),
        };
        Page {
            title,
            subtitle: subtitle(facts),
            word: verdict.outcome.word(),
            meaning: verdict.outcome.meaning(),
            icon: match verdict.outcome {
                crate::Outcome::Valid => "✓",
                crate::Outcome::Failed => "✕",
                crate::Outcome::Invalid => "?",
            },
            reasons: texts(false),
            warnings: texts(true),
            phase: phase(facts),
            tiles: tiles(facts),
            sections: sections(facts),
            processes: facts.sides().flat_map(|side| &side.processes).map(process).collect(),
            glossary: glossary(),
            version: &header.version,
        }
    }
}

fn subtitle(facts: &RunFacts) -> String {
    let mut parts = vec![text::time_of_day(facts.start_unix_ns)];
    if let Some(total) = &facts.main_side().total {
        parts.push(format!("{} measured", text::duration(total.seconds)));
    }
    for side in facts.sides() {
        let n = side.processes.len();
        parts.push(format!("{n} {} process{}", side.side.name(), if n == 1 { "" } else { "es" }));
    }
    parts.join(" · ")
}

fn phase(facts: &RunFacts) -> String {
    match &facts.headline {
        None => "Nothing was measured.".to_owned(),
        Some(headline) => format!(
            "These figures are of phase {}, {} long, from {} to {} of the run: {}.",
            headline.phase,
            text::duration(headline.scope.seconds),
            text::duration(headline.begin_s),
            text::duration(headline.end_s),
            headline.reason
        ),
    }
}

fn tiles(facts: &RunFacts) -> Vec<Tile> {
    let Some(headline) = &facts.headline else { return Vec::new() };
    let figure = |name| value(name, &headline.scope);
    let mut tiles = vec![
        Tile {
            name: "Measured load",
            value: text::number(figure("rep_rate"), 1),
            unit: "replies/s",
            more: match facts.main_side().offered_rate() {
                Some(planned) => format!(
                    "{} requests/s offered, {} planned",
                    text::number(figure("req_rate"), 1),
                    text::number(Some(planned), 1)
                ),
                None => format!("{} requests/s offered", text::number(figure("req_rate"), 1)),
            },
        },
        Tile {
            name: "Mean response time",
            value: text::short(figure("resp_tm_mean")),
            unit: "ms",
            more: [("p50", "resp_tm_p50"), ("p95", "resp_tm_p95"), ("p99", "resp_tm_p99")]
                .map(|(shown, name)| format!("{shown} {}", text::ms(figure(name))).replace(' ', "\u{a0}"))
                .join(" · "),
        },
    ];
    if facts.client.is_some() {
        tiles.push(Tile {
            name: "Document hit ratio",
            value: text::number(figure("rep_dhr"), 1),
            unit: "%",
            more: format!("{} % offered", text::number(figure("req_dhr"), 1)),
        });
        tiles.push(Tile {
            name: "Byte hit ratio",
            value: text::number(figure("rep_bhr"), 1),
            unit: "%",
            more: format!("{} % offered", text::number(figure("req_bhr"), 1)),
        });
    }
    tiles.push(Tile {
        name: "Errors",
        value: text::number(figure("err_pct"), 2),
        unit: "%",
        more: format!(
            "{} of {} transactions",
            text::number(figure("err_cnt"), 0),
            text::number(Some(headline.scope.ended_count() as f64), 0)
        ),
    });
    tiles
}

/// The parts of the page; those without anything to show are left out.
fn sections(facts: &RunFacts) -> Vec<Section> {
    let section = |id, title, about, tables: Vec<Option<Table>>, charts: Vec<Option<Drawn>>| Section {
        id,
        title,
        about,
        notes: Vec::new(),
        tables: tables.into_iter().flatten().collect(),
        charts: charts.into_iter().flatten().collect(),
        meanings: Vec::new(),
        samples: Vec::new(),
    };
    let mut errors = section(
        "errors",
        "Errors",
        "Failed transactions, and faults that were noted in transactions that went on, over the whole run.",
        vec![tables::errors(facts)],
        vec![charts::errors(facts)],
    );
    if errors.tables.is_empty() {
        errors.about = "None: no transaction failed, and no fault was noted.";
    }
    let side_samples = |side: &'_ SideFacts| {
        let others = side.samples.iter().filter(|sample| !correctness::concerns(sample.kind));
        others.map(|sample| example(sample, side.side.name())).collect::<Vec<_>>()
    };
    errors.samples = facts.sides().flat_map(side_samples).collect();
    errors.meanings = meanings(facts.sides().flat_map(|side| {
        let errors = side.total.iter().flat_map(|total| total.block.errors.iter());
        errors.map(|(kind, _)| kind).filter(|kind| !correctness::concerns(*kind))
    }));
    let found = correctness::of_run(facts);
    let mut right = section(
        "correctness",
        "Correctness",
        "Whether replies were what the servers had made for these requests, and whether the rules of caching were \
         kept, over the whole run.",
        vec![wire::findings(&found)],
        Vec::new(),
    );
    right.notes.push(found.conclusion());
    right.meanings = meanings(found.findings.iter().map(|finding| finding.kind));
    right.samples = found
        .findings
        .iter()
        .flat_map(|finding| finding.samples.iter().map(|sample| example(sample, finding.side.name())))
        .collect();
    let mut hits = section(
        "hits",
        "Hit ratio",
        "A hit is a reply that did not come first hand from our servers: known from marks in requests and \
         replies, never from what the device says. Offered hits are repeats of cachable objects.",
        vec![tables::hits(facts)],
        vec![charts::hit_ratio(facts)],
    );
    if let Some(story) = misses::explain(facts) {
        hits.tables.push(wire::missed(&story));
        hits.notes = story.sentences;
    }
    vec![
        section(
            "load",
            "Load",
            "Offered is what the robots began, measured is what came to an end, well or not.",
            vec![tables::load(facts)],
            vec![charts::load(facts)],
        ),
        section(
            "response-time",
            "Response time",
            "From the first byte sent (or the begin of the connection) to the last byte received; replies that \
             failed are not in it. Counted from the moment a request was due, it includes any lateness of the \
             bench itself.",
            vec![tables::response_times(facts)],
            vec![
                charts::response_time(facts),
                charts::response_time_by_class(facts),
                charts::distribution(facts),
                charts::percentiles(facts),
            ],
        ),
        hits,
        right,
        section(
            "traffic",
            "Kinds of requests and content",
            "What was asked for, and how each kind fared. Only plain requests take part in hit ratios.",
            vec![
                wire::requests(facts),
                wire::contents(facts),
                wire::pages(facts),
                wire::validations(facts),
            ],
            Vec::new(),
        ),
        section(
            "connections",
            "Connections and concurrent transactions",
            "How much was going on at a time. Transactions that pile up show a device that cannot follow.",
            vec![tables::connections(facts), wire::closes(facts), wire::exchange(facts)],
            vec![charts::levels(facts)],
        ),
        errors,
        section(
            "phases",
            "Phases",
            "Each phase with its own figures.",
            facts.sides().map(|side| Some(tables::phases(side))).collect(),
            Vec::new(),
        ),
        section(
            "health",
            "Health of the load generator",
            "A bench that is busy or late measures itself.",
            vec![tables::health(facts)],
            vec![charts::busy(facts), charts::lateness(facts), charts::memory(facts)],
        ),
    ]
    .into_iter()
    .filter(|section| ["errors", "correctness"].contains(&section.id) || !section.tables.is_empty() || !section.charts.is_empty())
    .collect()
}

/// What classes of errors mean, each once.
fn meanings(kinds: impl Iterator<Item = ErrorKind>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for kind in kinds {
        let name = format!("{}: {}", kind.number(), kind.text());
        if !terms.iter().any(|term| term.name == name) {
            terms.push(Term { name, text: kind.hint().to_owned() });
        }
    }
    terms
}

fn example(sample: &Sample, side: &str) -> Example {
    Example {
        at: format!("{:.3} s", sample.at_s),
        class: format!("{} {} ({side})", sample.kind.number(), sample.kind.text()),
        detail: sample.detail.clone(),
        facts: sample.facts.clone(),
    }
}

fn process(facts: &ProcessFacts) -> Process<'_> {
    let header = &facts.header;
    let end = match &facts.end {
        Some(reason) => crate::lr::end_reason(reason),
        None => "log was not closed".to_owned(),
    };
    let sections = [("Settings", &header.settings), ("Environment", &header.environment)];
    Process {
        title: format!("{} {} ({end})", header.side.name(), facts.log),
        command: text::command(&header.command),
        pairs: sections
            .into_iter()
            .filter(|(_, pairs)| !pairs.is_empty())
            .map(|(title, pairs)| (title, pairs.as_slice()))
            .collect(),
        facts,
    }
}

/// Terms of the page: definitions of the figures behind the large numbers, as everywhere else, and some words.
fn glossary() -> Vec<Term> {
    let figure = |name: &str, shown: &str| {
        let definition = figures::find(name).map_or("", |figure| &figure.definition);
        Term { name: format!("{shown} ({name})"), text: definition.to_owned() }
    };
    let word = |name: &str, text: &str| Term { name: name.to_owned(), text: text.to_owned() };
    vec![
        word("device", "what is measured: a proxy, cache or other intermediary between robots and servers"),
        word("robot", "a simulated user; a transaction is one request of it with its reply"),
        word(
            "hit, miss, uncachable",
            "answered by the device alone; fetched from a server and cachable; fetched and not cachable",
        ),
        figure("req_rate", "offered load"),
        figure("rep_rate", "measured load"),
        figure("resp_tm_mean", "mean response time"),
        word("p50, p95, p99", "percentiles: 50, 95, 99 % of the replies took no longer; p50 is the median"),
        figure("req_dhr", "offered document hit ratio"),
        figure("rep_dhr", "measured document hit ratio"),
        figure("rep_bhr", "measured byte hit ratio"),
        figure("err_pct", "error share"),
        word("lateness", "how much later than due a request was started, by the bench's own fault"),
        word("primary phase", "the phase that results are taken from"),
        word(
            "VALID, FAILED, INVALID",
            "figures can be trusted; the device did not hold; the bench did not do its part",
        ),
    ]
}

#[cfg(test)]
mod tests;
