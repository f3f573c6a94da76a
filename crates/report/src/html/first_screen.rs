//! The first screen: device, verdict, headline figures, the run in one chart.

use polygraph_stats::Side;

use super::page::{Banner, Part, Tile, Tone};
use super::{Extras, charts};
use crate::facts::{RunFacts, SideFacts};
use crate::figures::value;
use crate::fleet::FleetFacts;
use crate::text;
use crate::verdict::{FindingSeverity, LimitingParty, VerdictOutcome};
use crate::{device, summary};

/// Largest number of error classes on the first screen.
const FAULTS: usize = 3;
/// Longest example of an error, in characters.
const EXAMPLE: usize = 160;

/// Title of the page: the device and the workload.
pub fn title(facts: &RunFacts, extras: &Extras) -> String {
    let workload = match facts.main_side().header().workload.as_str() {
        "" => "an unnamed workload",
        "command line" => "a load from the command line",
        workload => workload,
    };
    let device =
        extras.device.as_ref().map(device::DeviceFacts::title).or_else(|| device::of_settings(facts));
    let text = match device {
        Some(device) => format!("{device} under {workload}"),
        None => workload.to_owned(),
    };
    // The first letter of a sentence.
    let mut letters = text.chars();
    match letters.next() {
        // Programs are written as they write themselves.
        Some(first) if extras.device.as_ref().is_none_or(|device| device.name.starts_with("builtin")) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => text,
    }
}

/// Label, time, the part of the run that the figures cover, number of processes.
pub fn subtitle(facts: &RunFacts) -> String {
    let mut parts = Vec::new();
    let label = &facts.main_side().header().label;
    if !label.is_empty() {
        parts.push(label.clone());
    }
    parts.push(text::time_of_day(facts.start_unix_ns));
    let run = facts.main_side().total.as_ref().map(|total| text::duration(total.seconds));
    match (&facts.headline, run) {
        (Some(headline), Some(run)) => parts.push(format!(
            "figures from phase {}: {} of a run of {run}",
            headline.phase,
            text::duration(headline.scope.seconds)
        )),
        (None, Some(run)) => parts.push(format!("a run of {run}")),
        _ => {}
    }
    for side in facts.sides() {
        let name = format!("{} process", side.side.name());
        parts.push(text::counted(side.processes.len() as u64, &name));
    }
    parts.join(" · ")
}

/// The device, and the protocols that robots used, if these are not HTTP/1 without TLS.
pub fn facts(facts: &RunFacts, extras: &Extras) -> Vec<(String, String)> {
    let protocols = summary::protocols_of(facts).map(|text| ("Protocols".to_owned(), text));
    device(facts, extras).into_iter().chain(protocols).collect()
}

/// The device: its configuration, the resources it used, and the hits in its own log.
pub fn device(facts: &RunFacts, extras: &Extras) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let Some(device) = &extras.device else {
        let note = |device: String| match device.starts_with("proxy ") {
            true => format!("{device} (not started by polygraph, so nothing more is known about it)"),
            false => device,
        };
        return device::of_settings(facts)
            .map(|device| vec![pair("Device", note(device))])
            .unwrap_or_default();
    };
    let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
    let ended = total.map(|total| total.ended_count());
    let hits = total.map(|total| total.block.class(polygraph_stats::Class::Hit).rptm_us.count());
    let account = device.result.as_ref();
    [
        Some(pair("Device", device.setup())),
        device.used(ended).map(|used| pair("Used, whole run", used)),
        device.own_hits(hits).map(|own| pair("Own log, whole run", own)),
        account
            .and_then(|account| account.ended_by_itself.as_ref())
            .map(|status| pair("Crash", format!("the device stopped during the run ({status})"))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub fn banner(facts: &RunFacts) -> Banner {
    let verdict = &facts.verdict;
    // Findings that decided the verdict come first; all others are warnings.
    let heaviest = verdict.findings.first().map(|finding| finding.weight);
    let decides = |weight: FindingSeverity| weight != FindingSeverity::Warning && Some(weight) == heaviest;
    let texts = |wanted: bool| {
        let found = verdict.findings.iter().filter(|finding| decides(finding.weight) == wanted);
        found.map(|finding| finding.text.clone()).collect()
    };
    Banner {
        word: verdict.word(),
        meaning: verdict.meaning(),
        tone: match verdict.outcome {
            VerdictOutcome::Valid => Tone::Good,
            VerdictOutcome::Failed => Tone::Bad,
            VerdictOutcome::Invalid => Tone::Doubtful,
        },
        reasons: texts(true),
        remedy: verdict.remedy(),
        warnings: texts(false),
    }
}

/// A note if the headline figures are not those of the primary phase; otherwise empty.
pub fn lead(facts: &RunFacts) -> String {
    match &facts.headline {
        None => "Nothing was measured.".to_owned(),
        Some(headline) if headline.primary => String::new(),
        Some(headline) => format!("These figures are from phase {}: {}.", headline.phase, headline.reason),
    }
}

pub fn tiles(facts: &RunFacts) -> Vec<Tile> {
    let Some(headline) = &facts.headline else { return Vec::new() };
    let figure = |name: &str| value(name, &headline.scope);
    let planned = headline.planned_rate;
    let failed = figure("err_cnt").unwrap_or(0.0);
    let ended = headline.scope.ended_count() as f64;
    let offered = format!("{}/s offered", text::number(figure("req_rate"), 1));
    // After a phase with a higher load, or a slower one, more transactions finish than start.
    let more_than_offered =
        figure("ok_xact.count").zip(figure("xact.started")).is_some_and(|(ok, all)| ok > all);
    let late_replies = if more_than_offered { "; includes requests sent before the phase" } else { "" };
    let good = Tile {
        name: "Successful transactions".into(),
        value: text::number(figure("ok_xact.rate"), 1),
        unit: "/s".into(),
        more: match planned {
            Some(planned) => format!("{}/s planned, {offered}{late_replies}", text::number(Some(planned), 1)),
            None => format!("{offered}{late_replies}"),
        },
        ..Tile::default()
    };
    let bad = Tile {
        name: "Failed transactions".into(),
        value: text::number(figure("err_xact.rate"), if failed > 0.0 { 1 } else { 0 }),
        unit: "/s".into(),
        more: format!(
            "{} % ({} of {})",
            text::number(figure("err_pct"), 2),
            text::number(Some(failed), 0),
            text::number(Some(ended), 0)
        ),
        bad: failed > 0.0,
    };
    let time = |name: &str, figures: &str| {
        let of = |leaf: &str| figure(&format!("{figures}.{leaf}"));
        let (value, unit) = text::in_unit(of("mean"));
        let more = [("median", "p50"), ("p95", "p95")]
            .map(|(shown, leaf)| format!("{shown} {}", text::ms(of(leaf))).replace(' ', "\u{a0}"))
            .join(" · ");
        Tile { name: name.into(), value, unit: unit.into(), more, ..Tile::default() }
    };
    let mut tiles = vec![good];
    if facts.client.is_some() {
        let share = |name: &str| format!("{} %", text::number(figure(name), 1));
        tiles.extend([
            time("Response time of hits, mean", "hit.rptm"),
            time("Response time of misses, mean", "miss.rptm"),
        ]);
        tiles.push(Tile {
            name: "Document hit ratio".into(),
            value: text::number(figure("rep_dhr"), 1),
            unit: "%".into(),
            more: format!(
                "{} offered; byte hit ratio {} of {}",
                share("req_dhr"),
                share("rep_bhr"),
                share("req_bhr")
            ),
            ..Tile::default()
        });
    } else {
        tiles.push(time("Response time, mean", "baseline.rptm"));
    }
    if facts.verdict.outcome != VerdictOutcome::Valid {
        // Without a successful transaction there are no response times and hit ratios.
        tiles.retain(|tile| tile.value != text::UNDEFINED);
    }
    if facts.verdict.outcome == VerdictOutcome::Invalid && facts.verdict.limit == Some(LimitingParty::Client)
    {
        let (value, unit) = text::in_unit(figure("late.p99"));
        let more =
            format!("mean {}, largest {}", text::ms(figure("late.mean")), text::ms(figure("late.max")));
        let name = "Lateness of requests, p99".into();
        tiles.insert(0, Tile { name, value, unit: unit.into(), more, bad: true });
    }
    // Failures come first.
    tiles
        .insert(if bad.bad && facts.verdict.outcome != VerdictOutcome::Valid { 0 } else { tiles.len() }, bad);
    tiles
}

/// Below the headline figures: what a fleet has lost, the errors of a run that is not valid, and the run in one chart.
pub fn rest(facts: &RunFacts, extras: &Extras) -> Vec<Part> {
    let mut parts = Vec::new();
    let losses = extras.fleet.as_ref().map(FleetFacts::losses).unwrap_or_default();
    if !losses.is_empty() {
        parts.extend([Part::Heading("What the fleet has lost".to_owned()), Part::Faults(losses)]);
    }
    let faults = if facts.verdict.outcome == VerdictOutcome::Valid { Vec::new() } else { faults(facts) };
    if !faults.is_empty() {
        parts.extend([Part::Heading("Errors of the whole run".to_owned()), Part::Faults(faults)]);
    }
    parts.extend(charts::overview(facts).map(Part::Figure));
    parts
}

/// The most frequent errors of the whole run, as the clients saw them, each with an explanation and an example.
fn faults(facts: &RunFacts) -> Vec<String> {
    let side = facts.main_side();
    let Some(total) = &side.total else { return Vec::new() };
    let mut errors: Vec<_> = total.block.errors.iter().filter(|(kind, _)| kind.fails()).collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let line = |(kind, count): &(polygraph_stats::ErrorKind, u64)| {
        let example = example(side, *kind).map_or(String::new(), |text| format!(" For example: {text}"));
        format!(
            "{} of {} transactions failed: {}. {}{example}",
            text::number(Some(*count as f64), 0),
            text::number(Some(total.ended_count() as f64), 0),
            kind.text(),
            sentence(kind.hint())
        )
    };
    errors.iter().take(FAULTS).map(line).collect()
}

/// `text` with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let capital: String = letters.next().map_or(String::new(), |first| first.to_uppercase().collect());
    let stop = if text.ends_with('.') || text.is_empty() { "" } else { "." };
    format!("{capital}{}{stop}", letters.as_str())
}

fn example(side: &SideFacts, kind: polygraph_stats::ErrorKind) -> Option<String> {
    let sample = side.samples.iter().find(|sample| sample.kind == kind)?;
    let mut text: String = sample.detail.chars().take(EXAMPLE).collect();
    if text.len() < sample.detail.len() {
        text.push('…');
    }
    (side.side == Side::Client && !text.is_empty()).then_some(text)
}
