//! The sections of the report of a run; empty ones are left out.

use polygraph_stats::{ErrorKind, Header};

use super::page::{Example, Part, Section, Term};
use super::view::View;
use super::{
    Extras, charts, distributions, first_screen, fleet, glossary, popularity, request_tables, tables,
};
use crate::facts::{ErrorExample, ProcessFacts, RunFacts, SideFacts};
use crate::spread::Spread;
use crate::verdict::{LimitingParty, VerdictOutcome};
use crate::{correctness, failover, headline_spread, misses, text};

/// All sections in the order of the page.
pub fn all(facts: &RunFacts, extras: &Extras) -> Vec<Section> {
    let view = View::headline(facts);
    let view = view.as_ref();
    let mut sections: Vec<Section> = [
        load(facts, view),
        servers(facts, view),
        response_time(facts, view),
        hits(facts, view),
        correct(facts),
        traffic(facts, view),
        popular(facts, extras),
        device(facts, extras),
        fleet::section(extras.fleet.as_ref()),
        connections(facts, view),
        errors(facts),
        phases(facts, extras),
        downtime(extras),
        scopes(facts),
        health(facts),
        configuration(facts),
        Section::new("glossary", "Glossary", "").with([Part::Terms(glossary::terms())]),
    ]
    .into();
    let always = ["errors", "correctness"];
    sections.retain(|section| always.contains(&section.id.as_str()) || !section.parts.is_empty());
    let urgent = urgent(facts);
    sections.sort_by_key(|section| urgent.iter().position(|id| *id == section.id).unwrap_or(urgent.len()));
    sections
}

/// The sections that explain why a run is not valid; they come first.
fn urgent(facts: &RunFacts) -> Vec<&'static str> {
    let Some(limit) = facts.verdict.limit.filter(|_| facts.verdict.outcome != VerdictOutcome::Valid) else {
        return Vec::new();
    };
    let total = facts.main_side().total.as_ref();
    let failed = total.is_some_and(|total| total.block.errors.iter().any(|(kind, _)| kind.fails()));
    let bench = matches!(limit, LimitingParty::Client | LimitingParty::Server | LimitingParty::Host);
    [
        bench.then_some("health"),
        failed.then_some("errors"),
        (!correctness::of_run(facts).findings.is_empty()).then_some("correctness"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The device, if the program started it.
fn device(facts: &RunFacts, extras: &Extras) -> Section {
    let section = Section::new(
        "device",
        "Device",
        "Processor time and memory of the device over the whole run, and its configuration.",
    );
    let Some(device) = &extras.device else { return section };
    let mut parts = vec![Part::Pairs(first_screen::device(facts, extras))];
    parts.extend(charts::device(facts, device).into_iter().flatten().map(Part::Figure));
    if !device.command.is_empty() {
        parts.push(Part::Code(text::command(&device.command)));
    }
    parts.extend(device.files.iter().map(|(name, text)| Part::Fold {
        id: String::new(),
        summary: name.clone(),
        parts: vec![Part::Code(text.trim_end().to_owned())],
    }));
    section.with(parts)
}

fn load(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "load",
        "Load",
        "Offered: transactions that the robots started. Finished: transactions that ended, successful or not. Succeeded: transactions with a good reply.",
    )
    .with(view.and_then(tables::load))
    .with([charts::load(facts), charts::bandwidth(facts)].into_iter().flatten())
}

fn servers(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    let section = Section::new(
        "servers",
        "Requests by server",
        "How the device spread the requests of robots over the servers, and how long each server took to answer. Requests without \
         X-Xact are those that the device made by itself, such as health checks; they count in no share.",
    );
    let (Some(spread), Some(view)) = (headline_spread::spread(facts), view) else { return section };
    section
        .with([Part::Notes(spread.evenness())])
        .with(request_tables::servers(&spread, &view.name))
        .with(charts::servers(facts))
        .with(request_tables::failovers(&failover::of_run(facts)))
}

fn response_time(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "response-time",
        "Response time",
        "From the first byte sent, or from the start of the connection, to the last byte received. Failed transactions \
         are not included. Counted from the scheduled start of a request, it includes the lateness of the bench.",
    )
    .with(view.and_then(tables::response_times))
    .with(
        [
            charts::response_time(facts),
            charts::response_time_by_class(facts),
            distributions::heat(facts),
            distributions::response_times(facts),
            distributions::percentiles(facts),
            distributions::knee(facts),
        ]
        .into_iter()
        .flatten(),
    )
}

fn hits(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    let section = Section::new(
        "hits",
        "Hit ratio",
        "A hit is a reply that the device sent without requesting the object from our servers. Hits are recognized by header \
         fields that the benchmark adds to requests and replies, not by claims of the device. Offered hits are repeated \
         requests for cachable objects.",
    );
    let story = misses::explain(facts);
    section
        .with(story.iter().map(|story| Part::Notes(story.sentences.clone())))
        .with(view.and_then(tables::hits))
        .with(story.as_ref().filter(|story| !story.causes.is_empty()).map(request_tables::missed))
        .with([false, true].into_iter().filter_map(|bytes| charts::hit_ratio(facts, bytes)))
}

fn correct(facts: &RunFacts) -> Section {
    let found = correctness::of_run(facts);
    let examples = found
        .findings
        .iter()
        .flat_map(|finding| finding.samples.iter().map(|sample| example(sample, finding.side.name())));
    Section::new(
        "correctness",
        "Correctness",
        "Whether the replies were those that the servers had generated for the requests, and whether the device followed the \
         rules of HTTP caching during the whole run.",
    )
    .with([Part::Notes(vec![found.conclusion()])])
    .with(request_tables::findings(&found))
    .with(explained(meanings(found.findings.iter().map(|finding| finding.kind)), examples.collect()))
}

fn traffic(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "traffic",
        "Kinds of requests and content",
        "Kinds of requests and content, with rates, sizes and response times. Hit ratios count plain requests only.",
    )
    .with(view.and_then(request_tables::requests))
    .with(view.and_then(request_tables::contents))
    .with(distributions::contents(facts))
    .with(view.and_then(request_tables::pages))
    .with(request_tables::validations(facts))
    .with(view.and_then(request_tables::unseen).map(Part::Text))
}

fn popular(facts: &RunFacts, extras: &Extras) -> Section {
    Section::new(
        "popularity",
        "Popularity of objects",
        "How requests are spread over objects. The more requests go to few objects, the more a small cache, or the memory of a large one, can serve.",
    )
    .with(popularity::table(facts, extras))
    .with(popularity::of_run(facts, extras))
}

fn connections(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "connections",
        "Connections and concurrent transactions",
        "Connections and transactions in progress at the same time. A rising number of transactions shows that the device cannot keep up.",
    )
    .with(view.and_then(tables::connections))
    .with(view.and_then(request_tables::closes))
    .with(view.and_then(request_tables::exchange))
    .with(view.and_then(request_tables::tls))
    .with([charts::levels(facts), charts::reuse(facts)].into_iter().flatten())
}

fn errors(facts: &RunFacts) -> Section {
    let table = tables::errors(facts);
    let about = match &table {
        Some(_) => {
            "Failed transactions, and errors noted in transactions that continued, over the whole run."
        }
        None => "None: no transaction failed, and no error was noted.",
    };
    let examples = |side: &SideFacts| -> Vec<Example> {
        let others = side.samples.iter().filter(|sample| !sample.kind.concerns_correctness());
        others.map(|sample| example(sample, side.side.name())).collect()
    };
    let kinds = facts.sides().flat_map(|side| {
        let errors = side.total.iter().flat_map(|total| total.block.errors.iter());
        errors.map(|(kind, _)| kind).filter(|kind| !kind.concerns_correctness())
    });
    Section::new("errors", "Errors", about)
        .with(table)
        .with(charts::errors(facts))
        .with(explained(meanings(kinds), facts.sides().flat_map(examples).collect()))
}

fn phases(facts: &RunFacts, extras: &Extras) -> Section {
    Section::new("phases", "Phases", "The figures of each phase.")
        .with(differing_plans(facts).map(|note| Part::Notes(vec![note])))
        .with(facts.sides().map(tables::phases))
        .with(extras.prediction.as_ref().and_then(tables::prediction))
        .with(distributions::phases(facts))
}

fn downtime(extras: &Extras) -> Section {
    let section = Section::new(
        "downtime",
        "Downtime",
        "The device was killed during the test and restarted. The table shows how long the robots were without it.",
    );
    let Some(found) = &extras.downtime else { return section };
    section.with([tables::downtime(found)]).with([Part::Notes(vec![found.outage(), found.before()])])
}

/// A note if processes of a side had different phase schedules.
fn differing_plans(facts: &RunFacts) -> Option<String> {
    let names = |process: &ProcessFacts| -> Vec<String> {
        process.header.phases.iter().map(|plan| plan.name.clone()).collect()
    };
    let differs =
        |side: &&SideFacts| side.processes.windows(2).any(|pair| names(&pair[0]) != names(&pair[1]));
    let sides: Vec<&str> = facts.sides().filter(differs).map(|side| side.side.name()).collect();
    (!sides.is_empty()).then(|| {
        format!(
            "The processes of the {} side had different phases; phases with the same name are combined.",
            sides.join(" and ")
        )
    })
}

/// Every table once for all phases, and once for each of them.
fn scopes(facts: &RunFacts) -> Section {
    let fold = |view: &View<'_>| {
        let tables = [
            tables::load(view),
            tables::response_times(view),
            tables::hits(view),
            request_tables::requests(view),
            request_tables::contents(view),
            request_tables::pages(view),
            tables::connections(view),
            request_tables::closes(view),
            request_tables::exchange(view),
            request_tables::tls(view),
            request_tables::servers(&Spread::of(view.scope), &view.name),
        ];
        Part::Fold {
            id: String::new(),
            summary: format!("{} side, {}", view.side.side.name(), view.name),
            parts: tables.into_iter().flatten().map(Part::Table).collect(),
        }
    };
    let of_side = |side| {
        let all = View::all(facts, side);
        all.iter().map(fold).chain(View::each(facts, side).map(|view| fold(&view))).collect::<Vec<_>>()
    };
    Section::new(
        "scopes",
        "All figures by side and phase",
        "The tables above for each side, for all phases together and for each phase.",
    )
    .with(facts.sides().flat_map(of_side))
}

fn health(facts: &RunFacts) -> Section {
    Section::new("health", "Health of the load generator", "If the load generator is too busy or too late, the figures show its own limits instead of those of the device.")
        .with(tables::health(facts))
        .with([charts::busy(facts), charts::lateness(facts), charts::memory(facts)].into_iter().flatten())
}

fn configuration(facts: &RunFacts) -> Section {
    Section::new("configuration", "Configuration and environment", "Command lines, settings and hosts.")
        .with(facts.sides().flat_map(|side| &side.processes).flat_map(process))
        .with(workloads(facts))
}

/// The text of each workload, without repetition.
fn workloads(facts: &RunFacts) -> Vec<Part> {
    let mut headers: Vec<&Header> = Vec::new();
    for header in facts.sides().flat_map(|side| &side.processes).map(|process| &process.header) {
        let known = headers.iter().any(|known| known.workload_text == header.workload_text);
        if !known && !header.workload_text.is_empty() {
            headers.push(header);
        }
    }
    let fold = |header: &&Header| {
        let text = header.workload_text.trim_end().to_owned();
        let summary =
            format!("Workload {} ({})", header.workload, text::counted(text.lines().count() as u64, "line"));
        Part::Fold { id: String::new(), summary, parts: vec![Part::Code(text)] }
    };
    headers.iter().map(fold).collect()
}

fn process(facts: &ProcessFacts) -> Vec<Part> {
    let header = &facts.header;
    let end = match &facts.end {
        Some(reason) => crate::lr::end_reason(reason),
        None => "the log was not closed".to_owned(),
    };
    let mut parts = vec![
        Part::Heading(format!("{} {} ({end})", header.side.name(), facts.log)),
        Part::Text(format!(
            "Process {}, version {}, {}. Command line:",
            header.pid,
            header.version,
            text::counted(header.loops.into(), "event loop")
        )),
        Part::Code(text::command(&header.command)),
    ];
    parts.extend(facts.missing.iter().map(|missing| Part::Text(format!("Missing: {missing}."))));
    for (title, pairs) in [("Settings", &header.settings), ("Environment", &header.environment)] {
        if !pairs.is_empty() {
            let summary = format!("{title} ({})", pairs.len());
            parts.push(Part::Fold { id: String::new(), summary, parts: vec![Part::Pairs(pairs.clone())] });
        }
    }
    parts
}

/// Explanations and examples of error classes.
fn explained(meanings: Vec<Term>, examples: Vec<Example>) -> Vec<Part> {
    let mut parts = Vec::new();
    if !meanings.is_empty() {
        parts.extend([Part::Heading("What the errors mean".to_owned()), Part::Terms(meanings)]);
    }
    if !examples.is_empty() {
        let summary = format!("The first examples of each class ({})", examples.len());
        parts.push(Part::Fold { id: String::new(), summary, parts: vec![Part::Examples(examples)] });
    }
    parts
}

/// Explanations of error classes, without repetition.
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

fn example(sample: &ErrorExample, side: &str) -> Example {
    Example {
        at: format!("{:.3} s", sample.at_s),
        class: format!("{} {} ({side})", sample.kind.number(), sample.kind.text()),
        detail: sample.detail.clone(),
        facts: sample.facts.clone(),
    }
}
