//! The parser of conditions.

use std::str::FromStr;

use super::{Bound, Condition, Op};
use crate::figures::Unit;
use crate::names::{self, UnknownFigure};

/// Why a condition is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is no operator.
    #[error(
        "`{0}` is not a condition: write a figure, one of >= <= > < == !=, and a bound, for example dhr>=54%"
    )]
    NoOperator(String),
    /// There is no such figure.
    #[error("in `{0}`: {1}")]
    NoFigure(String, UnknownFigure),
    /// There is no phase after the `@`.
    #[error("in `{0}`: the name of the phase is missing after @")]
    NoPhase(String),
    /// The test has no such phase.
    #[error("in `{text}`: there is no phase `{phase}`{}; the phases are {}", did_you_mean(near), phases.join(", "))]
    UnknownPhase {
        /// The condition.
        text: String,
        /// The phase that it names.
        phase: String,
        /// The phase that may be meant.
        near: Option<String>,
        /// The phases of the test.
        phases: Vec<String>,
    },
    /// The bound is not a number.
    #[error("in `{text}`: `{bound}` is not a bound: write a number and a unit, for example 54% or 250ms")]
    NoNumber {
        /// The condition.
        text: String,
        /// The bound.
        bound: String,
    },
    /// The unit does not fit the figure.
    #[error("in `{text}`: `{unit}` does not fit {figure}, which is measured in {}", units(*own))]
    WrongUnit {
        /// The condition.
        text: String,
        /// The figure.
        figure: String,
        /// Unit of the figure.
        own: Unit,
        /// The unit that was given.
        unit: String,
    },
    /// A change of a percentage is given in percent, which is ambiguous.
    #[error(
        "in `{0}`: a change of a percentage is ambiguous: write pt for percentage points (dhr<-2pt), or rel% for percent of \
         the value (dhr<-5rel%)"
    )]
    AmbiguousPercent(String),
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let written = || text.trim().to_owned();
        let at = text.find(['<', '>', '=', '!']).ok_or_else(|| ConditionError::NoOperator(written()))?;
        let (left, rest) = text.split_at(at);
        let operators = [
            (">=", Op::GreaterOrEqual),
            ("<=", Op::LessOrEqual),
            ("==", Op::Equal),
            ("!=", Op::NotEqual),
            (">", Op::Greater),
            ("<", Op::Less),
        ];
        let (op, bound) = operators
            .iter()
            .find_map(|(sign, op)| Some((*op, rest.strip_prefix(sign)?)))
            .ok_or_else(|| ConditionError::NoOperator(written()))?;
        let (name, phase) = match left.split_once('@') {
            Some((_, phase)) if phase.trim().is_empty() => return Err(ConditionError::NoPhase(written())),
            Some((name, phase)) => (name.trim(), Some(phase.trim().to_owned())),
            None => (left.trim(), None),
        };
        if name.is_empty() {
            return Err(ConditionError::NoOperator(written()));
        }
        let figure = names::find(name).map_err(|unknown| ConditionError::NoFigure(written(), unknown))?;
        let no_number = || ConditionError::NoNumber { text: written(), bound: bound.trim().to_owned() };
        let (sign, number, unit) = split(bound.trim()).ok_or_else(no_number)?;
        let wrong_unit = || ConditionError::WrongUnit {
            text: written(),
            figure: figure.name.clone(),
            own: figure.unit,
            unit: unit.to_owned(),
        };
        let own = || factor(figure.unit, unit).map(|factor| number * factor).ok_or_else(wrong_unit);
        let bound = match (sign, unit) {
            (None, _) => Bound::Value(own()?),
            (Some(sign), "rel%") => Bound::Percent(sign * number),
            (Some(sign), "pt") if figure.unit == Unit::Percent => Bound::By(sign * number),
            (Some(_), "%") if figure.unit == Unit::Percent => {
                return Err(ConditionError::AmbiguousPercent(written()));
            }
            (Some(sign), "%") => Bound::Percent(sign * number),
            (Some(sign), _) => Bound::By(sign * own()?),
        };
        Ok(Condition { text: written(), figure, phase, op, bound })
    }
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!(": did you mean {near}?"))
}

/// Splits a bound into sign (if any), number and unit.
fn split(bound: &str) -> Option<(Option<f64>, f64, &str)> {
    let (sign, rest) = match bound.as_bytes().first()? {
        b'+' => (Some(1.0), &bound[1..]),
        b'-' => (Some(-1.0), &bound[1..]),
        _ => (None, bound),
    };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().ok().filter(|number: &f64| number.is_finite())?;
    Some((sign, number, rest[end..].trim()))
}

/// The size of `unit` in the figure's unit; `None` if they measure different things. Units are those of options and workload files
/// (docs/reference/tools.md, "Value grammar"), and those that figures are printed with.
fn factor(own: Unit, unit: &str) -> Option<f64> {
    if unit.is_empty() {
        return Some(1.0);
    }
    match own {
        Unit::Us => Some(seconds(unit)? * 1e6),
        Unit::Ms => Some(seconds(unit)? * 1e3),
        Unit::Seconds => seconds(unit),
        Unit::Percent => ["%", "p"].contains(&unit).then_some(1.0),
        Unit::PerSecond => Some(1.0 / seconds(unit.strip_prefix('/')?)?),
        Unit::Mbps => match unit.to_ascii_lowercase().as_str() {
            "kbps" | "kbit/s" => Some(1e-3),
            "mbps" | "mbit/s" => Some(1.0),
            "gbps" | "gbit/s" => Some(1e3),
            _ => None,
        },
        Unit::Bytes => match unit.to_ascii_lowercase().as_str() {
            "b" | "byte" | "bytes" => Some(1.0),
            "k" | "kb" | "kib" => Some(1024.0),
            "m" | "mb" | "mib" => Some(1024.0 * 1024.0),
            "g" | "gb" | "gib" => Some(1024.0 * 1024.0 * 1024.0),
            _ => None,
        },
        Unit::Count | Unit::Things => None,
    }
}

fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" | "usec" | "µs" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" | "sec" => 1.0,
        "min" => 60.0,
        "h" | "hr" | "hour" => 3600.0,
        "day" => 86_400.0,
        _ => return None,
    })
}

/// What a figure is measured in, and the units that a condition on it may have.
fn units(own: Unit) -> &'static str {
    match own {
        Unit::Us => "µs: write us, ms, s, min or hr",
        Unit::Ms => "ms: write us, ms, s, min or hr",
        Unit::Seconds => "s: write us, ms, s, min or hr",
        Unit::Percent => "%: write % or p",
        Unit::PerSecond => "/s: write /s, /min or /hr",
        Unit::Mbps => "Mbit/s: write Kbps, Mbps or Gbps",
        Unit::Bytes => "bytes: write bytes, KB, MB or GB",
        Unit::Count | Unit::Things => "plain numbers: leave out the unit",
    }
}
