//! The report of bake-offs as a page, with the contents of the report of 1999, from imported results and own series.

use std::fmt::Write as _;

use polygraph_report::html::page::{Page, Part, Section, Term, Tile};
use polygraph_report::html::table::Table;
use polygraph_report::text::{self, number};

use crate::charts::Popularity;
use crate::entry::{Comment, Participant};
use crate::{charts, tables};

/// The data of a report.
#[derive(Clone, Debug, Default)]
pub struct BakeoffReport {
    /// Title of the page.
    pub title: String,
    /// The series and publications from which the entries come.
    pub events: Vec<ReportEvent>,
    /// The participants.
    pub entries: Vec<Participant>,
    /// Popularity of the objects of the workload in one of the runs.
    pub popularity: Option<Popularity>,
}

/// A series of runs, or a publication.
#[derive(Clone, Debug, Default)]
pub struct ReportEvent {
    /// Title of the series or publication.
    pub title: String,
    /// Whether it was run with this program.
    pub own: bool,
    /// First and last day.
    pub when: String,
    /// A sentence about the remaining steps, if it is not complete.
    pub unfinished: Option<String>,
    /// Differences between its rules and those of 1999.
    pub deviations: Vec<String>,
}

/// The report as an HTML page.
pub fn html(report: &BakeoffReport) -> String {
    let entries = appendices(&report.entries);
    // Colours are assigned by position, so entries without results are left out.
    let tested: Vec<Participant> =
        entries.iter().filter(|entry| entry.achieved().is_some()).cloned().collect();
    let headliners = headliners(&entries);
    let mut sections = vec![
        ranking(&headliners, entries.len()),
        advice(),
        rules(report, &entries),
        Section::new(
            "workload",
            "Workload",
            "How requests are spread over objects. The more requests go to few objects, the more a small cache, or the memory \
             of a large one, can serve.",
        )
        .with(report.popularity.as_ref().and_then(charts::popularity)),
        Section::new(
            "response-time",
            "Response time",
            "Throughput has no chart of its own: in a passed run it equals the request rate, which is the x axis. Only passed \
             runs are shown.",
        )
        .with(charts::response_times(&tested)),
        Section::new("hits", "Hit ratio", "Share of the replies that the device sent from its cache.")
            .with(charts::hit_ratios(&tested)),
        prices(&entries),
        costs(&tested),
        peaks(&entries),
        Section::new(
            "summary",
            "Summary",
            "Peaks and ranges over passed runs. Read the sections above and the appendices before you use a line of this table.",
        )
        .with(tables::summary(&entries)),
    ];
    sections.extend(entries.iter().enumerate().map(|(index, entry)| appendix(entry, index)));
    sections.push(glossary());
    sections.retain(|section| !section.parts.is_empty());
    let own: Vec<&str> = report.events.iter().filter(|e| e.own).map(|e| e.when.as_str()).collect();
    let subtitle = [
        text::counted(entries.len() as u64, "device"),
        own.join("; "),
        if report.events.iter().any(|e| !e.own) { "with published results".into() } else { String::new() },
    ];
    let subtitle: Vec<String> = subtitle.into_iter().filter(|part| !part.is_empty()).collect();
    Page {
        title: report.title.clone(),
        subtitle: subtitle.join(" · "),
        banner: None,
        tiles: tiles(&headliners),
        lead: String::new(),
        sections,
        footer: format!(
            "{} · polygraph {}. A dash (–) marks an unknown or undefined value. All figures of own runs are computed from \
             their logs.",
            report.title,
            polygraph_stats::version()
        ),
        ..Page::default()
    }
    .html()
}

/// The entries, each with the letter of its appendix: published entries keep their letters, and the others get the next
/// ones.
fn appendices(entries: &[Participant]) -> Vec<Participant> {
    let mut entries = entries.to_vec();
    let taken: Vec<String> = entries.iter().map(|entry| entry.appendix.clone()).collect();
    let mut free = (0..).map(letters).filter(|letter| !taken.contains(letter));
    let after = taken.iter().max().cloned().unwrap_or_default();
    for entry in entries.iter_mut().filter(|entry| entry.appendix.is_empty()) {
        // Letters continue after those in use, so published entries stay together.
        entry.appendix =
            free.by_ref().find(|letter| (letter.len(), letter) > (after.len(), &after)).unwrap_or_default();
    }
    entries.sort_by(|a, b| (a.appendix.len(), &a.appendix).cmp(&(b.appendix.len(), &b.appendix)));
    entries
}

/// A, B ... Z, AA, AB ...
fn letters(index: usize) -> String {
    let last = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letters(more - 1)),
    }
}

/// The entries that the first screen shows: those of own series, if there are any. Other entries were measured on other
/// machines and in other years.
fn headliners(entries: &[Participant]) -> Vec<Participant> {
    let own: Vec<Participant> =
        entries.iter().filter(|entry| entry.own && !entry.points.is_empty()).cloned().collect();
    if own.is_empty() { entries.to_vec() } else { own }
}

fn ranking(headliners: &[Participant], all: usize) -> Section {
    let others = match all - headliners.len() {
        0 => String::new(),
        others => format!(
            " {others} devices that were not measured in these series are not ranked, because other machines and years cannot \
             be compared; their results are further down."
        ),
    };
    Section::new(
        "ranking",
        "Ranking",
        format!(
            "Devices by the highest rate that they sustained. No single figure is enough to rank devices: see how to read this \
             report.{others}"
        ),
    )
    .with(tables::ranking(headliners))
}

fn tiles(entries: &[Participant]) -> Vec<Tile> {
    let best = |name: &str, unit: &str, decimals, values: Vec<(f64, &Participant)>, more: &str| {
        let (value, entry) =
            values.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        Some(Tile {
            name: name.into(),
            value: number(Some(value.abs()), decimals),
            unit: unit.into(),
            more: format!("{}{more}", entry.name),
            ..Tile::default()
        })
    };
    let each = |value: fn(&Participant) -> Option<f64>| {
        entries.iter().filter_map(|entry| Some((value(entry)?, entry))).collect::<Vec<_>>()
    };
    // Negated values are those of which less is better.
    [
        best("Highest throughput", "req/s", 0, each(Participant::achieved), ""),
        best("Lowest mean response time", "s", 3, each(|e| Some(-e.mean_range()?.0)), ", at its best rate"),
        best("Highest hit ratio at peak", "%", 1, each(hits_at_peak), ", at its peak"),
        best(
            "Lowest throughput cost",
            "$ per req/s",
            2,
            each(|e| Some(-e.cost(e.achieved()?)?)),
            ", at its peak",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn hits_at_peak(entry: &Participant) -> Option<f64> {
    let peak = entry.achieved()?;
    entry.passed().find(|point| point.rate == peak).and_then(|point| Some(point.hit_pct?.value))
}

fn advice() -> Section {
    let advice = [
        "Do not choose a device by one figure or one table: devices differ in too many ways.",
        "Consider throughput, response time and hit ratio together, and weigh them according to your needs. A device that \
         stops caching under load looks fast but saves no traffic.",
        "Read the comments and remarks in the appendix of a device before you conclude anything about it.",
        "Take prices into account, and what they include: they are list prices of equipment, including the network equipment \
         that a device needs, without operation, support, space and power.",
        "Compare only results that were measured in the same way: other machines, networks, years and workloads yield other \
         figures. Scaled-down runs show how devices differ, not what they are capable of.",
        "This report does not show whether a device is reliable, easy to manage, or correct.",
    ];
    let citing = "Results of the bake-off of 1999 may be used if its official site is cited: Wessels, Rousskov, Chisholm, The \
        First IRCACHE Web Caching Bake-off, Proceedings of the Fourth Web Caching Workshop, San Diego, April 1999; raw data and \
        independent analysis at http://bakeoff.ircache.net/. In the same spirit, if you quote a figure of this report, name the \
        report and its date, the device with its version and configuration, the workload and the rate, and say where the whole \
        report can be read.";
    Section::new("reading", "How to read this report", "").with([
        Part::Notes(advice.map(str::to_owned).to_vec()),
        Part::Heading("How to cite this report".into()),
        Part::Text(citing.into()),
    ])
}

fn rules(report: &BakeoffReport, entries: &[Participant]) -> Section {
    let rules = [
        "Every device gets the same workload; only the request rate differs from run to run, in a mixed order.",
        "The cache is full before the first run: it no longer grows although cachable traffic continues.",
        "The load rises over a launch window, and there is a pause between runs.",
        "A run fails if more than 3 % of the transactions fail, or if the device cannot keep up (docs/verdict.md has the rules \
         for all runs). A run that was spoiled by the bench itself counts neither as passed nor as failed.",
        "A run may be repeated. If several runs of a rate were passed, one of them is reported.",
        "The participant claims in advance a rate that the device sustains, and may raise this claim once.",
        "Configurations do not change between the runs of a device, unless all of its results are dropped.",
        "The price includes the network equipment that the device needs.",
    ];
    let mut parts: Vec<Part> = vec![
        Part::Table(tables::participants(entries)),
        Part::Heading("The rules".into()),
        Part::Notes(rules.map(str::to_owned).to_vec()),
    ];
    for event in report.events.iter().filter(|event| event.own) {
        let mut notes = event.deviations.clone();
        notes.extend(event.unfinished.clone());
        if !notes.is_empty() {
            parts.push(Part::Heading(format!("{}: differences from 1999", event.title)));
            parts.push(Part::Notes(notes));
        }
    }
    Section::new("rules", "Participants and rules", "").with(parts)
}

fn prices(entries: &[Participant]) -> Section {
    let disagreements: Vec<String> = entries.iter().flat_map(Participant::disagreements).collect();
    let section = Section::new(
        "price",
        "Price",
        "Prices with and without network equipment, because some readers already have such equipment or can buy it for less.",
    );
    let section = section.with(tables::prices(entries));
    if section.parts.is_empty() || disagreements.is_empty() {
        section
    } else {
        section.with([Part::Notes(disagreements)])
    }
}

fn costs(entries: &[Participant]) -> Section {
    let section = Section::new(
        "cost",
        "Price and performance",
        "The cost of a reply per second, including network equipment. The ranking depends on the load at which costs are \
         compared, so read both charts.",
    )
    .with(charts::costs(entries));
    let table: Vec<Table> = tables::costs(entries).into_iter().collect();
    if section.parts.is_empty() && table.is_empty() {
        return section;
    }
    section.with(table).with([Part::Text(
        "To estimate the price of a cluster of identical devices for R requests per second, choose a rate x at which the \
         results of one device are acceptable to you, and read its throughput cost y at this rate from figure 5.5. The cluster \
         costs about R times y."
            .into(),
    )])
}

fn peaks(entries: &[Participant]) -> Section {
    let over = entries
        .iter()
        .filter(|entry| entry.achieved().zip(entry.claimed).is_some_and(|(a, c)| a < c))
        .count();
    let all = entries.iter().filter(|entry| entry.achieved().is_some() && entry.claimed.is_some()).count();
    let section = Section::new(
        "peaks",
        "Claimed and achieved",
        "The rates that participants claimed, and the rates that their devices sustained.",
    )
    .with(tables::peaks(entries))
    .with(charts::peaks(entries));
    if section.parts.is_empty() {
        return section;
    }
    section
        .with([Part::Text(format!("{over} of {all} achieved less than was claimed."))])
        .with(tables::failures(entries))
}

fn appendix(entry: &Participant, index: usize) -> Section {
    let id = format!("appendix-{}", entry.appendix.to_lowercase());
    let about = if entry.withheld {
        "The participant chose not to publish the results of this device, as the rules allow. In this case the rules do not \
         allow comments either."
    } else {
        ""
    };
    let mut parts: Vec<Part> = Vec::new();
    let mut pairs = entry.facts.clone();
    let rates: Vec<String> = entry.points.iter().map(|point| point.rate.to_string()).collect();
    if !rates.is_empty() {
        pairs.push(("request rates".into(), rates.join(", ")));
    }
    parts.extend(tables::equipment(entry).map(Part::Table));
    let mut block = |heading: &str, part: Option<Part>| {
        if let Some(part) = part {
            parts.extend([Part::Heading(heading.into()), part]);
        }
    };
    block("Configuration", (!pairs.is_empty()).then_some(Part::Pairs(pairs)));
    block("Checks of the bench", (!entry.checks.is_empty()).then(|| Part::Pairs(entry.checks.clone())));
    parts.extend(tables::results(entry).map(Part::Table));
    parts.extend(charts::of_device(entry, &format!("dev{index}")).into_iter().map(Part::Figure));
    let mut remarks = entry.remarks.clone();
    let failed: Vec<String> = entry
        .points
        .iter()
        .filter(|point| point.status == crate::entry::AttemptStatus::Failed && entry.attempts.is_empty())
        .map(|point| point.rate.to_string())
        .collect();
    if !failed.is_empty() {
        remarks.push(format!("Failed rates: {} requests per second.", failed.join(", ")));
    }
    if !remarks.is_empty() {
        parts.extend([Part::Heading("Remarks".into()), Part::Notes(remarks)]);
    }
    if let Some(table) = tables::attempts(entry) {
        let summary = format!("Runs: {}", entry.attempts.len());
        parts.push(Part::Fold { id: String::new(), summary, parts: vec![Part::Table(table)] });
    }
    parts.extend(entry.comments.iter().flat_map(comment));
    Section::new(id, format!("Appendix {}: {}", entry.appendix, entry.name), about).with(parts)
}

/// A comment, whose paragraphs are separated by empty lines.
fn comment(comment: &Comment) -> Vec<Part> {
    let paragraphs =
        comment.text.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let texts = paragraphs.filter(|text| !text.is_empty()).map(Part::Text);
    std::iter::once(Part::Heading(comment.heading.clone())).chain(texts).collect()
}

fn glossary() -> Section {
    let term = |name: &str, text: &str| Term { name: name.into(), text: text.into() };
    Section::new("glossary", "Terms and formulas", "").with([Part::Terms(vec![
        term("passed, failed, invalid", "the device sustained the load; the device did not sustain the load; the bench, not \
                                         the device, was the limit"),
        term("achieved peak", "the highest rate of a passed run"),
        term("cache alone, with network", "sum of all prices without and with network equipment; a published sum takes precedence"),
        term("throughput cost", "total price / request rate"),
        term("utilisation", "request rate / achieved peak"),
        term("document hit ratio", "replies from the cache of the device / all replies to plain requests, in percent"),
        term(
            "ranges",
            "smallest and largest value over passed runs, rounded half up: seconds to one decimal place (to three below 0.1 \
             s), percentages to integers",
        ),
        term("device processor time", "user and system time of the device's processes during a run / transactions of that run; \
                                       known only for devices on this machine"),
    ])])
}

/// The summary for the console.
pub fn summary(entries: &[Participant]) -> String {
    let head = ["device", "peak", "claimed", "mean response time", "hit ratio", "passed"];
    let rows = entries.iter().map(|entry| {
        let range = |range: Option<(f64, f64)>, decimals: usize, unit: &str| match range {
            Some((low, high)) => format!("{low:.decimals$}-{high:.decimals$} {unit}"),
            None => text::UNDEFINED.to_owned(),
        };
        [
            entry.name.clone(),
            number(entry.achieved(), 0),
            number(entry.claimed, 0),
            range(entry.mean_range(), 3, "s"),
            range(entry.hit_range(), 1, "%"),
            format!("{} of {} rates", entry.passed().count(), entry.points.len()),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column))).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{AttemptStatus, PrintedNumber, RatePoint};

    fn entry(name: &str, own: bool, peak: f64) -> Participant {
        let point = |rate: f64| RatePoint {
            mean_s: Some(PrintedNumber::new(1.0 + rate / 1000.0, 3)),
            hit_pct: Some(PrintedNumber::new(50.0, 1)),
            ..RatePoint::new(rate, AttemptStatus::Passed)
        };
        let points = vec![point(peak / 2.0), point(peak)];
        Participant { name: name.into(), own, points, ..Participant::default() }
    }

    #[test]
    fn the_ranking_is_first_and_published_results_take_no_headline() {
        let entries =
            vec![entry("Then", false, 1680.0), entry("Slow", true, 60.0), entry("Quick", true, 100.0)];
        let page = html(&BakeoffReport { title: "Both".into(), entries, ..BakeoffReport::default() });
        let (top, rest) = page.split_once("<section id=").unwrap();
        assert!(top.contains(">Quick<") && !top.contains("1,680"), "{top}");
        assert!(rest.starts_with("\"ranking\">"), "{}", &rest[..200]);
        let (ranking, later) = rest.split_once("</section>").unwrap();
        let (quick, slow) = (ranking.find(">Quick<").unwrap(), ranking.find(">Slow<").unwrap());
        assert!(quick < slow && !ranking.contains(">Then<"), "{ranking}");
        assert!(later.contains(">Then<"), "it is in the tables below");
        let (_, figure) =
            later.split_once("<figure id=\"fig-mean\">").unwrap_or_else(|| panic!("no figure of means"));
        let (figure, _) = figure.split_once("</figure>").unwrap();
        assert_eq!(figure.matches("<circle").count(), 6, "each run is a point on its line");
        // Published results alone are ranked among themselves.
        let alone =
            html(&BakeoffReport { entries: vec![entry("Then", false, 1680.0)], ..BakeoffReport::default() });
        assert!(alone.split_once("<section id=").unwrap().0.contains("1,680"));
    }
}
