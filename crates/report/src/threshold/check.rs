//! Checks runs and comparisons against conditions.

use serde_json::{Value, json};

use super::{Bound, Condition};
use crate::compare::{ComparedFigure, ComparedPhases, Comparison};
use crate::facts::RunFacts;
use crate::figures::Figure;
use crate::text::{self, UNDEFINED};

/// A checked condition and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The condition as it was written.
    pub condition: String,
    /// Whether it holds.
    pub holds: bool,
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
        let scope = match &condition.phase {
            None => facts.headline.as_ref().map(|headline| &headline.scope),
            Some(name) => facts.main_side().phase(name).and_then(|phase| phase.scope.as_ref()),
        };
        let value = scope.and_then(|scope| condition.figure.of(scope));
        let holds = match (value, condition.bound) {
            (Some(value), Bound::Value(bound)) => condition.op.holds(value, bound),
            _ => false,
        };
        let found = match (scope, &condition.phase) {
            (None, Some(phase)) => format!("phase {phase} was not measured"),
            _ => print(condition.figure, value),
        };
        Checked { condition: condition.text.clone(), holds, found, value }
    };
    conditions.iter().map(check).collect()
}

/// Checks the conditions on each group against the first one. Conditions on values are checked for every group but the
/// first. A change counts only if it is significant. A condition on an undefined figure is met unless the figure was
/// undefined in the first run, too: conditions name what must not happen, and figures must not disappear.
pub fn check_comparison(comparison: &Comparison<'_>, conditions: &[Condition]) -> Vec<Checked> {
    let mut all = Vec::new();
    for condition in conditions {
        let wanted = |part: &&ComparedPhases| condition.phase.as_ref().is_none_or(|name| part.phase == *name);
        for part in comparison.parts.iter().filter(wanted) {
            let row = row(part, condition);
            for (index, group) in comparison.groups.iter().enumerate().skip(1) {
                let (holds, found, value) = match row {
                    // No group has a value.
                    None => (!condition.is_change(), UNDEFINED.to_owned(), None),
                    Some(row) => of_row(row, index, condition),
                };
                let place =
                    if comparison.parts.len() > 1 { format!(" in {}", part.phase) } else { String::new() };
                let found = format!("{}{place}: {found}", group.name);
                all.push(Checked { condition: condition.text.clone(), holds, found, value });
            }
        }
    }
    all
}

fn row<'a>(part: &'a ComparedPhases, condition: &Condition) -> Option<&'a ComparedFigure> {
    part.rows.iter().find(|row| row.figure.is_same_as(condition.figure))
}

fn of_row(row: &ComparedFigure, index: usize, condition: &Condition) -> (bool, String, Option<f64>) {
    let (value, change) = (row.values[index], &row.changes[index - 1]);
    let shown = print(row.figure, value);
    if value.is_none() {
        let vanished = row.values[0].is_some() || !condition.is_change();
        return (vanished, shown, None);
    }
    let looked_at = match condition.bound {
        Bound::Value(_) => value,
        // A value that was 0 before has no relative change.
        Bound::Percent(_) => {
            change.percent.or(change.difference.map(|d| if d.by == 0.0 { 0.0 } else { d.by * f64::INFINITY }))
        }
        Bound::By(_) => change.difference.map(|difference| difference.by),
    };
    let (Bound::Value(bound) | Bound::Percent(bound) | Bound::By(bound)) = condition.bound;
    let beyond = looked_at.is_some_and(|value| condition.op.holds(value, bound));
    let sign = |by: f64| if by > 0.0 { "+" } else { "" };
    let found = match (condition.bound, looked_at) {
        (Bound::Value(_), _) => shown,
        (_, None) => format!("{shown}, without a value to compare with"),
        (Bound::Percent(_), Some(by)) => {
            format!("{shown}, {}{} %, {}", sign(by), text::number(Some(by), 2), change.judgement.word())
        }
        (Bound::By(_), Some(by)) => {
            // The difference of two percentages is one in points.
            let by_shown = match row.figure.unit.symbol() {
                "%" => format!("{} points", text::number(Some(by), 2)),
                _ => print(row.figure, Some(by)),
            };
            format!("{shown}, {}{by_shown}, {}", sign(by), change.judgement.word())
        }
    };
    let real = !condition.is_change() || change.judgement.differs();
    (beyond && real, found, looked_at.filter(|value| value.is_finite()))
}
