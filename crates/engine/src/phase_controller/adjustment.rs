//! Changes of factors during a phase (docs/reference/models.md, "Load control").

use polygraph_plan::{Factor, Factors};

/// A change of a factor of the current phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjustment {
    /// Changes the load factor by this share of itself: 0.1 is 10 % more.
    LoadBy(f64),
    /// Sets the load factor to this value (0 to 1).
    LoadTo(f64),
    /// Changes the populus factor by this share of itself.
    PopulusBy(f64),
    /// Sets the populus factor to this value (0 to 1).
    PopulusTo(f64),
}

impl Adjustment {
    /// The name of the factor that changes: `load` or `populus`.
    pub fn factor(self) -> &'static str {
        match self {
            Adjustment::LoadBy(_) | Adjustment::LoadTo(_) => "load",
            Adjustment::PopulusBy(_) | Adjustment::PopulusTo(_) => "populus",
        }
    }

    /// Applies the change to the factors of a phase that has reached the share `progress` (0 to 1) of its goal.
    pub fn apply(self, mut factors: Factors, progress: f64) -> Factors {
        match self {
            Adjustment::LoadBy(share) => factors.load = changed(factors.load, share, progress),
            Adjustment::LoadTo(value) => factors.load = set(factors.load, value, progress),
            Adjustment::PopulusBy(share) => factors.populus = changed(factors.populus, share, progress),
            Adjustment::PopulusTo(value) => factors.populus = set(factors.populus, value, progress),
        }
        factors
    }
}

/// Changes the level of a flat factor, or the slope of a ramp, which continues from its present value.
fn changed(factor: Factor, share: f64, progress: f64) -> Factor {
    if factor.is_flat() {
        return Factor::flat((factor.beg * (1.0 + share)).clamp(0.0, 1.0));
    }
    line(factor.at(progress), (factor.end - factor.beg) * (1.0 + share), progress)
}

/// Sets the present value; a ramp keeps its slope.
fn set(factor: Factor, value: f64, progress: f64) -> Factor {
    let value = value.clamp(0.0, 1.0);
    if factor.is_flat() { Factor::flat(value) } else { line(value, factor.end - factor.beg, progress) }
}

/// The line through `value` at `progress`. Its ends may lie outside 0 to 1, but a factor never reaches them.
fn line(value: f64, slope: f64, progress: f64) -> Factor {
    Factor { beg: value - slope * progress, end: value + slope * (1.0 - progress) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_slopes_change_from_where_they_are() {
        let ramp = Factor { beg: 0.2, end: 1.0 };
        let fall = Factor { beg: 1.0, end: 0.2 };
        // Factor, progress, change of the load, value now, and at the end.
        let rows = [
            (Factor::flat(0.5), 0.3, Adjustment::LoadBy(0.1), 0.55, 0.55),
            (Factor::flat(0.95), 0.3, Adjustment::LoadBy(0.1), 1.0, 1.0),
            (Factor::flat(0.5), 0.3, Adjustment::LoadBy(-2.0), 0.0, 0.0),
            (Factor::flat(0.5), 0.3, Adjustment::LoadTo(0.8), 0.8, 0.8),
            (Factor::flat(0.5), 0.3, Adjustment::LoadTo(7.0), 1.0, 1.0),
            (ramp, 0.5, Adjustment::LoadBy(-0.5), 0.6, 0.8),
            (ramp, 0.5, Adjustment::LoadBy(1.0), 0.6, 1.0),
            (fall, 0.5, Adjustment::LoadBy(0.5), 0.6, 0.0),
            (ramp, 0.5, Adjustment::LoadTo(0.3), 0.3, 0.7),
            (ramp, 0.5, Adjustment::PopulusTo(0.3), 0.6, 1.0),
        ];
        for (load, progress, adjustment, now, end) in rows {
            let factors = adjustment.apply(Factors { load, ..Factors::ONE }, progress);
            let values = [factors.load.at(progress), factors.load.at(1.0)];
            let near = values.iter().zip([now, end]).all(|(value, wanted)| (value - wanted).abs() < 1e-9);
            assert!(near, "{load:?} at {progress}, {adjustment:?}: {values:?}");
            let populus = if adjustment == Adjustment::PopulusTo(0.3) { 0.3 } else { 1.0 };
            assert_eq!(factors.populus, Factor::flat(populus));
        }
    }
}
