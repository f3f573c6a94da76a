//! Converts the factors of a phase to the pace of robots.

use polygraph_link::{Nanos, nanos};
use polygraph_plan::{Factor, Factors, Goal, PositiveGoal};
use polygraph_robot::{Pace, Ramp};

/// The least progress that counted goals report. At a factor of zero no request would be sent and nothing counted, so
/// a ramp that starts at zero would never rise.
const LEAST_PROGRESS: f64 = 0.01;

/// The progress that the factors of a phase without a duration follow.
pub fn least_progress(progress: f64) -> f64 {
    progress.max(LEAST_PROGRESS)
}

/// The pace in a phase with this goal and these factors. The phase started at `begin` and has reached the share
/// `progress` (0 to 1) of its goal of transactions or fill.
///
/// With a duration, factors follow the clock, and the pace is valid for the whole phase. Otherwise factors follow the
/// counts, and the pace is valid for the moment. Loops ask again at every poll, because factors can be adjusted.
pub fn pace(goal: &Goal, factors: &Factors, begin: Nanos, progress: f64) -> Pace {
    let ramp = |factor: Factor| match goal.along() {
        Some(PositiveGoal::Time(seconds)) if !factor.is_flat() => {
            Ramp { begin, end: begin + nanos(seconds), from: factor.beg, to: factor.end }
        }
        Some(PositiveGoal::Xactions(_) | PositiveGoal::Fill(_)) => {
            Ramp::flat(factor.at(least_progress(progress)))
        }
        Some(PositiveGoal::Time(_)) | None => Ramp::flat(factor.beg),
    };
    Pace {
        populus: ramp(factors.populus),
        load: ramp(factors.load),
        recur: ramp(factors.recur),
        special: ramp(factors.special_msg),
        stopped: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;

    #[test]
    fn factors_follow_the_clock_or_the_count() {
        let factors = Factors {
            populus: Factor { beg: 0.0, end: 1.0 },
            load: Factor { beg: 1.0, end: 0.2 },
            recur: Factor::flat(0.1),
            special_msg: Factor { beg: 0.5, end: 1.0 },
        };
        let time = Goal { duration: Some(10.0), xactions: Some(5), ..Goal::default() };
        let count = Goal { xactions: Some(5), ..Goal::default() };
        let fill = Goal { fill_size: Some(5), ..Goal::default() };
        let begin = 100 * SECOND;
        // Goal, seconds since the begin, progress of counts, and the four factors then.
        for (goal, seconds, progress, expected) in [
            (time, 0, 0.9, [0.0, 1.0, 0.1, 0.5]),
            (time, 5, 0.9, [0.5, 0.6, 0.1, 0.75]),
            (time, 99, 0.9, [1.0, 0.2, 0.1, 1.0]),
            (count, 99, 0.0, [0.01, 0.992, 0.1, 0.505]),
            (count, 0, 0.5, [0.5, 0.6, 0.1, 0.75]),
            (fill, 0, 0.25, [0.25, 0.8, 0.1, 0.625]),
            (fill, 0, 7.0, [1.0, 0.2, 0.1, 1.0]),
            (Goal::default(), 99, 0.5, [0.0, 1.0, 0.1, 0.5]),
        ] {
            let pace = pace(&goal, &factors, begin, progress);
            let now = begin + seconds * SECOND;
            let values = [pace.populus, pace.load, pace.recur, pace.special].map(|ramp| ramp.at(now));
            let near = values.iter().zip(expected).all(|(value, expected)| (value - expected).abs() < 1e-9);
            assert!(near && !pace.stopped, "{goal} after {seconds} s at {progress}: {values:?}");
        }
    }
}
