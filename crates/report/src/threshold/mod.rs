//! Conditions on figures: `dhr>=54%` for a run, `rptm.p95>+5%` for a comparison.
//!
//! ```text
//! condition = name [ "@" phase ] op bound
//! op        = ">=" | "<=" | ">" | "<" | "==" | "!="
//! bound     = value | change
//! value     = number [ unit ]            of the figure itself
//! change    = ( "+" | "-" ) number unit  against the first run: "%" relative, "pt" percentage points, or the figure's unit
//! ```
//!
//! Names are those of `lx`, and short ones ([`crate::names`]). Units are those of the figure's kind: us, ms, s, min, hr;
//! bytes, KB, MB, GB; /s, /min, /hr; Kbps, Mbps, Gbps; %. Without a unit, the number is in the figure's own unit. Undefined figures meet no
//! condition.

mod check;
mod parse;

use crate::compare::AskedRow;
use crate::figures::Figure;
use crate::spread::SHARES;

pub use check::{Checked, check_comparison, check_run};
pub use parse::ConditionError;

/// A condition.
#[derive(Clone, Debug)]
pub struct Condition {
    /// As it was written.
    pub text: String,
    /// The figure.
    pub figure: &'static Figure,
    /// The phase; `None` for the phases of the headline figures.
    pub phase: Option<String>,
    op: Op,
    bound: Bound,
}

impl Condition {
    /// The rows of a comparison that these conditions are about, for [`CompareOptions::asked`](crate::compare::CompareOptions).
    pub fn asked(conditions: &[Condition]) -> Vec<AskedRow> {
        let changes = conditions.iter().filter(|condition| condition.is_change());
        changes.map(|change| AskedRow { figure: change.figure, phase: change.phase.clone() }).collect()
    }

    /// Checks that a test with these phases, of which there is at least one, can tell whether the condition is met.
    ///
    /// # Errors
    /// If the condition names another phase.
    pub fn check_phase(&self, phases: &[String]) -> Result<(), ConditionError> {
        let Some(phase) = self.phase.as_ref().filter(|phase| !phases.contains(phase)) else { return Ok(()) };
        let alike = |name: &String| strsim::jaro_winkler(&name.to_lowercase(), &phase.to_lowercase());
        let near = phases.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
        Err(ConditionError::UnknownPhase {
            text: self.text.clone(),
            phase: phase.clone(),
            near: near.filter(|name| alike(name) > 0.8).cloned(),
            phases: phases.to_vec(),
        })
    }

    /// Whether only servers count the figure; comparisons have what robots counted.
    pub fn is_of_servers(&self) -> bool {
        SHARES.contains(&&*self.figure.name)
    }

    /// Whether the condition is about a change from another run.
    pub fn is_change(&self) -> bool {
        !matches!(self.bound, Bound::Value(_))
    }
}

/// The required relation of a figure to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
}

impl Op {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Op::Greater => value > bound,
            Op::GreaterOrEqual => value >= bound,
            Op::Less => value < bound,
            Op::LessOrEqual => value <= bound,
            Op::Equal => value == bound,
            Op::NotEqual => value != bound,
        }
    }
}

/// The bound of a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// A value in the figure's unit.
    Value(f64),
    /// A change in percent of the first run's value.
    Percent(f64),
    /// A change in the figure's unit.
    By(f64),
}

impl Bound {
    fn number(self) -> f64 {
        let (Bound::Value(number) | Bound::Percent(number) | Bound::By(number)) = self;
        number
    }
}

#[cfg(test)]
mod tests;
