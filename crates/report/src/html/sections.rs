//! The parts of the report of a run; those without anything to show are left out.

use polygraph_stats::{ErrorKind, Header};

use super::page::{Example, Part, Section, Term};
use super::view::View;
use super::{Extras, charts, distributions, first, glossary, popularity, tables, wire};
use crate::facts::{ErrorExample, ProcessFacts, RunFacts, SideFacts};
use crate::verdict::{LimitingParty, RunOutcome};
use crate::{correctness, misses, text};

/// All sections in the order of the page.
pub fn all(facts: &RunFacts, extras: &Extras) -> Vec<Section> {
    let view = View::headline(facts);
    let view = view.as_ref();
    let mut sections: Vec<Section> = [
        load(facts, view),
        response_time(facts, view),
        hits(facts, view),
        correct(facts),
        traffic(facts, view),
        popular(facts, extras),
        device(facts, extras),
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

/// The sections that tell what went wrong in a run that is not valid: they come first.
fn urgent(facts: &RunFacts) -> Vec<&'static str> {
    let Some(limit) = facts.verdict.limit.filter(|_| facts.verdict.outcome != RunOutcome::Valid) else {
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

/// What the program knows of the device that it started.
fn device(facts: &RunFacts, extras: &Extras) -> Section {
    let section = Section::new(
        "device",
        "Device",
        "What the device used, by its processes on this machine, and how it was configured.",
    );
    let Some(device) = &extras.device else { return section };
    let mut parts = vec![Part::Pairs(first::device(facts, extras))];
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
        "Offered is what the robots began, measured is what came to an end, well or not.",
    )
    .with(view.and_then(tables::load))
    .with([charts::load(facts), charts::bandwidth(facts)].into_iter().flatten())
}

fn response_time(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "response-time",
        "Response time",
        "From the first byte sent (or the begin of the connection) to the last byte received; replies that \
         failed are not in it. Counted from the moment a request was due, it includes any lateness of the \
         bench itself.",
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
        "A hit is a reply that did not come first hand from our servers: known from marks in requests and \
         replies, never from what the device says. Offered hits are repeats of cachable objects.",
    );
    let story = misses::explain(facts);
    section
        .with(story.iter().map(|story| Part::Notes(story.sentences.clone())))
        .with(view.and_then(tables::hits))
        .with(story.as_ref().map(wire::missed))
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
        "Whether replies were what the servers had made for these requests, and whether the rules of caching were \
         kept, over the whole run.",
    )
    .with([Part::Notes(vec![found.conclusion()])])
    .with(wire::findings(&found))
    .with(explained(meanings(found.findings.iter().map(|finding| finding.kind)), examples.collect()))
}

fn traffic(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "traffic",
        "Kinds of requests and content",
        "What was asked for, and how each kind fared. Only plain requests take part in hit ratios.",
    )
    .with(view.and_then(wire::requests))
    .with(view.and_then(wire::contents))
    .with(distributions::contents(facts))
    .with(view.and_then(wire::pages))
    .with(wire::validations(facts))
    .with(view.and_then(wire::unseen).map(Part::Text))
}

fn popular(facts: &RunFacts, extras: &Extras) -> Section {
    Section::new(
        "popularity",
        "Popularity of objects",
        "Which share of the requests goes to how few objects decides how much a small cache, or the memory of a large one, can do.",
    )
    .with(popularity::table(facts, extras))
    .with(popularity::of_run(facts, extras))
}

fn connections(facts: &RunFacts, view: Option<&View<'_>>) -> Section {
    Section::new(
        "connections",
        "Connections and concurrent transactions",
        "How much was going on at a time. Transactions that pile up show a device that cannot follow.",
    )
    .with(view.and_then(tables::connections))
    .with(view.and_then(wire::closes))
    .with(view.and_then(wire::exchange))
    .with([charts::levels(facts), charts::reuse(facts)].into_iter().flatten())
}

fn errors(facts: &RunFacts) -> Section {
    let table = tables::errors(facts);
    let about = match &table {
        Some(_) => {
            "Failed transactions, and faults that were noted in transactions that went on, over the whole run."
        }
        None => "None: no transaction failed, and no fault was noted.",
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
    Section::new("phases", "Phases", "Each phase with its own figures.")
        .with(differing_plans(facts).map(|note| Part::Notes(vec![note])))
        .with(facts.sides().map(tables::phases))
        .with(extras.prediction.as_ref().and_then(tables::prediction))
        .with(distributions::phases(facts))
}

fn downtime(extras: &Extras) -> Section {
    let section = Section::new(
        "downtime",
        "Downtime",
        "The device was killed in the middle of the test and started again: when it was back for robots.",
    );
    let Some(found) = &extras.downtime else { return section };
    section.with([tables::downtime(found)]).with([Part::Notes(vec![found.outage(), found.before()])])
}

/// Says so if processes of a side had different plans.
fn differing_plans(facts: &RunFacts) -> Option<String> {
    let names = |process: &ProcessFacts| -> Vec<String> {
        process.header.phases.iter().map(|plan| plan.name.clone()).collect()
    };
    let differs =
        |side: &&SideFacts| side.processes.windows(2).any(|pair| names(&pair[0]) != names(&pair[1]));
    let sides: Vec<&str> = facts.sides().filter(differs).map(|side| side.side.name()).collect();
    (!sides.is_empty()).then(|| {
        format!(
            "The processes of the {} side had different phases; those of one name are taken together.",
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
            wire::requests(view),
            wire::contents(view),
            wire::pages(view),
            tables::connections(view),
            wire::closes(view),
            wire::exchange(view),
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
        "The tables above once more, for each side, for all phases together and for each by itself.",
    )
    .with(facts.sides().flat_map(of_side))
}

fn health(facts: &RunFacts) -> Section {
    Section::new("health", "Health of the load generator", "A bench that is busy or late measures itself.")
        .with(tables::health(facts))
        .with([charts::busy(facts), charts::lateness(facts), charts::memory(facts)].into_iter().flatten())
}

fn configuration(facts: &RunFacts) -> Section {
    Section::new("configuration", "Configuration and environment", "What was run, and where.")
        .with(facts.sides().flat_map(|side| &side.processes).flat_map(process))
        .with(workloads(facts))
}

/// The texts of the workloads, each once.
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
        let summary = format!("Workload {} ({} lines)", header.workload, text.lines().count());
        Part::Fold { id: String::new(), summary, parts: vec![Part::Code(text)] }
    };
    headers.iter().map(fold).collect()
}

fn process(facts: &ProcessFacts) -> Vec<Part> {
    let header = &facts.header;
    let end = match &facts.end {
        Some(reason) => crate::lr::end_reason(reason),
        None => "log was not closed".to_owned(),
    };
    let mut parts = vec![
        Part::Heading(format!("{} {} ({end})", header.side.name(), facts.log)),
        Part::Text(format!(
            "Process {}, version {}, {} event loop{}. To run it again:",
            header.pid,
            header.version,
            header.loops,
            if header.loops == 1 { "" } else { "s" }
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

/// What classes of errors mean, and examples of them.
fn explained(meanings: Vec<Term>, examples: Vec<Example>) -> Vec<Part> {
    let mut parts = Vec::new();
    if !meanings.is_empty() {
        parts.extend([Part::Heading("What it means".to_owned()), Part::Terms(meanings)]);
    }
    if !examples.is_empty() {
        let summary = format!("The first examples of each class ({})", examples.len());
        parts.push(Part::Fold { id: String::new(), summary, parts: vec![Part::Examples(examples)] });
    }
    parts
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

fn example(sample: &ErrorExample, side: &str) -> Example {
    Example {
        at: format!("{:.3} s", sample.at_s),
        class: format!("{} {} ({side})", sample.kind.number(), sample.kind.text()),
        detail: sample.detail.clone(),
        facts: sample.facts.clone(),
    }
}
