//! Checks runs and comparisons against conditions.

use serde_json::{Value, json};

use super::{Bound, Condition};
use crate::compare::{Better, ComparedFigure, ComparedPhases, Comparison, EstimatedDifference, RUNS_MAX};
use crate::facts::RunFacts;
use crate::figures::Figure;
use crate::headline_spread;
use crate::text::{self, UNDEFINED};

/// A checked condition and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The condition as it was written.
    pub condition: String,
    /// Whether it holds; `None` if a change meets it that may be noise, which only comparisons have.
    pub holds: Option<bool>,
    /// The group of a comparison, and its phase if there are several; empty for a run.
    pub place: String,
    /// The values, as text for people.
    pub found: String,
    /// The checked value or change, in the unit of the condition's bound; `None` if it is undefined.
    pub value: Option<f64>,
}

impl Checked {
    /// The result as JSON, for the manifest and other programs.
    pub fn json(&self) -> Value {
        json!({ "condition": self.condition, "holds": self.holds, "found": self.found, "value": self.value })
    }
}

fn print(figure: &Figure, value: Option<f64>) -> String {
    let Some(value) = value else { return "undefined".into() };
    match figure.unit.symbol() {
        "" => text::short(Some(value)),
        "%" => format!("{} %", text::number(Some(value), 2)),
        unit => format!("{} {unit}", text::short(Some(value))),
    }
}

/// Checks the conditions on values for a run. A condition on a change needs another run and is not met.
pub fn check_run(facts: &RunFacts, conditions: &[Condition]) -> Vec<Checked> {
    let check = |condition: &Condition| {
        if condition.is_of_servers() {
            return check_share(facts, condition);
        }
        let scope = match &condition.phase {
            None => facts.headline.as_ref().map(|headline| &headline.scope),
            Some(name) => facts.main_side().phase(name).and_then(|phase| phase.scope.as_ref()),
        };
        let value = scope.and_then(|scope| condition.figure.of(scope));
        let found = match (scope, &condition.phase) {
            (None, Some(phase)) => format!("phase {phase} was not measured"),
            _ => print(condition.figure, value),
        };
        of_value(condition, value, found)
    };
    conditions.iter().map(check).collect()
}

/// Checks the condition on a value for a run.
fn of_value(condition: &Condition, value: Option<f64>, found: String) -> Checked {
    let holds = match (value, condition.bound) {
        (Some(value), Bound::Value(bound)) => condition.op.holds(value, bound),
        _ => false,
    };
    Checked { condition: condition.text.clone(), holds: Some(holds), place: String::new(), found, value }
}

/// Checks a condition on the shares of servers, which only servers count.
fn check_share(facts: &RunFacts, condition: &Condition) -> Checked {
    let spread = match &condition.phase {
        None => headline_spread::spread(facts),
        Some(name) => headline_spread::spread_in(facts, name),
    };
    let value = spread.as_ref().and_then(|spread| spread.share_named(&condition.figure.name));
    let found = match (&facts.server, &condition.phase, &spread) {
        (None, _, _) => "undefined, because only servers count it, and their logs are missing".to_owned(),
        (_, Some(phase), None) => format!("phase {phase} was not measured by servers"),
        (_, None, None) => "undefined, because there is only one server".to_owned(),
        _ => print(condition.figure, value),
    };
    of_value(condition, value, found)
}

/// Checks the conditions on each group against the first one. Conditions on values are checked for every group but the
/// first. The comparison has been told which rows the conditions are about ([`CompareOptions::asked`](crate::compare::CompareOptions)), so
/// that their changes are known with its confidence together, and rows say what conditions say. A condition on an
/// undefined figure is met unless the figure was undefined in the first run, too: conditions name what must not happen, and figures must
/// not disappear.
pub fn check_comparison(comparison: &Comparison<'_>, conditions: &[Condition]) -> Vec<Checked> {
    let all: Vec<(&Condition, &ComparedPhases)> =
        conditions.iter().flat_map(|condition| parts(comparison, condition)).collect();
    let others = comparison.groups.len() - 1;
    let check = |condition: &Condition, part: &ComparedPhases, index: usize| {
        let (holds, found, value) = match row(part, condition) {
            // No group has a value.
            None => (Some(!condition.is_change()), UNDEFINED.to_owned(), None),
            Some(row) => of_row(row, index, condition, comparison),
        };
        let place = if comparison.parts.len() > 1 { format!(" in {}", part.phase) } else { String::new() };
        let place = format!("{}{place}", comparison.groups[index].name);
        let found = format!("{place}: {found}");
        Checked { condition: condition.text.clone(), holds, place, found, value }
    };
    let of_part = |(condition, part)| (1..=others).map(move |index| check(condition, part, index));
    all.into_iter().flat_map(of_part).collect()
}

/// The parts of a comparison that a condition is about.
fn parts<'a>(
    comparison: &'a Comparison<'_>,
    condition: &'a Condition,
) -> impl Iterator<Item = (&'a Condition, &'a ComparedPhases)> {
    let wanted =
        move |part: &&ComparedPhases| condition.phase.as_ref().is_none_or(|name| part.phase == *name);
    comparison.parts.iter().filter(wanted).map(move |part| (condition, part))
}

fn row<'a>(part: &'a ComparedPhases, condition: &Condition) -> Option<&'a ComparedFigure> {
    part.rows.iter().find(|row| row.figure.is_same_as(condition.figure))
}

fn of_row(
    row: &ComparedFigure,
    index: usize,
    condition: &Condition,
    comparison: &Comparison<'_>,
) -> (Option<bool>, String, Option<f64>) {
    let confidence = comparison.asked_confidence;
    let value = row.values[index];
    let shown = print(row.figure, value);
    let Some(known) = value else {
        let vanished = row.values[0].is_some() || !condition.is_change();
        return (Some(vanished), shown, None);
    };
    let holds = |value: f64| condition.op.holds(value, condition.bound.number());
    let Some(unit) = ChangeUnit::of(condition, row.values[0]) else {
        return (Some(holds(known)), shown, value);
    };
    let Some(change) = row.changes[index - 1].difference else {
        return (Some(false), format!("{shown}, without a value to compare with"), None);
    };
    let by = unit.of_change(change.by);
    let half = change.plus_minus(confidence);
    let sign = if by > 0.0 { "+" } else { "" };
    let shown = format!("{shown}, {sign}{}", unit.print(row.figure, change.by));
    // If no change at all meets the condition, noise does not excuse a change that meets it, too.
    let is_real = holds(0.0) || half.is_some_and(|half| change.by.abs() > half);
    let (holds, found) = match (holds(by), half) {
        (true, None) if !is_real => {
            let trend = trend(row, &change);
            (None, format!("{shown}, {trend}; the phase is too short to tell changes from noise: {MEASURE}"))
        }
        (true, Some(half)) if !is_real => {
            let least = unit.print(row.figure, half);
            let runs = [0, index].map(|group| comparison.groups[group].runs.len());
            let advice = match change.runs_that_decide(runs, confidence) {
                Some(count) => format!("if the change is real, about {count} runs on each side show it"),
                None => format!("{RUNS_MAX} runs on each side would not show so small a change: {MEASURE}"),
            };
            let trend = trend(row, &change);
            (None, format!("{shown}, {trend}; this comparison can only see changes above {least}; {advice}"))
        }
        (holds, None) => (Some(holds), shown),
        (holds, Some(half)) => (Some(holds), format!("{shown} ± {}", unit.print(row.figure, half))),
    };
    (holds, found, Some(by).filter(|by| by.is_finite()))
}

/// What helps where chance hides changes.
const MEASURE: &str = "measure longer, and at least three times on each side";

/// Which way a change goes that may be noise.
fn trend(row: &ComparedFigure, change: &EstimatedDifference) -> &'static str {
    match (row.better, change.by > 0.0) {
        (Better::Higher, true) | (Better::Lower, false) => "a trend for the better",
        (Better::Higher, false) | (Better::Lower, true) => "a trend for the worse",
        (Better::Neither, true) => "an upward trend",
        (Better::Neither, false) => "a downward trend",
    }
}

/// How a condition measures changes.
#[derive(Clone, Copy)]
enum ChangeUnit {
    /// In percent of this value.
    PercentOf(f64),
    /// In the unit of the figure.
    Own,
}

impl ChangeUnit {
    /// `None` if the condition is not about a change.
    fn of(condition: &Condition, first: Option<f64>) -> Option<ChangeUnit> {
        match condition.bound {
            Bound::Value(_) => None,
            Bound::Percent(_) => Some(ChangeUnit::PercentOf(first.unwrap_or(0.0).abs())),
            Bound::By(_) => Some(ChangeUnit::Own),
        }
    }

    /// A change in this unit: infinite relative to a value that was 0.
    fn of_change(self, by: f64) -> f64 {
        match self {
            ChangeUnit::PercentOf(_) if by == 0.0 => 0.0,
            ChangeUnit::PercentOf(first) => 100.0 * by / first,
            ChangeUnit::Own => by,
        }
    }

    fn print(self, figure: &Figure, by: f64) -> String {
        match (self, figure.unit.symbol()) {
            (ChangeUnit::PercentOf(first), _) if first > 0.0 => {
                format!("{} %", text::number(Some(self.of_change(by)), 2))
            }
            // The difference of two percentages is one in points.
            (_, "%") => format!("{} points", text::number(Some(by), 2)),
            _ => print(figure, Some(by)),
        }
    }
}
