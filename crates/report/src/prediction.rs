//! Predicted figures of a run beside the measured ones. The manifest of the run contains them.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::text;

/// A figure, measured and predicted; `None` where it is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredAndPredicted {
    /// Value in the run.
    pub measured: Option<f64>,
    /// Value in the simulation.
    pub predicted: Option<f64>,
}

/// The measured and predicted figures of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedPhase {
    /// Name of the phase.
    pub phase: String,
    /// Replies per second.
    pub rep_rate: MeasuredAndPredicted,
    /// Document hit ratio in percent.
    pub dhr: MeasuredAndPredicted,
}

/// The prediction of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunPrediction {
    /// There is a prediction.
    Made {
        /// The model of the device.
        device: String,
        /// The phases of the run.
        phases: Vec<PredictedPhase>,
    },
    /// There is no prediction.
    LeftOut {
        /// Why there is no prediction.
        left_out: String,
    },
}

impl RunPrediction {
    /// A table for the console, or the reason why there is no prediction.
    pub fn text(&self) -> String {
        let (device, phases) = match self {
            RunPrediction::Made { device, phases } => (device, phases),
            RunPrediction::LeftOut { left_out } => return format!("no prediction: {left_out}\n"),
        };
        let mut out = format!(
            "\n{:<10} {:>10} {:>10}   {:>10} {:>10}   ({device})\n",
            "phase", "rep/s", "predicted", "DHR %", "predicted"
        );
        for PredictedPhase { phase, rep_rate, dhr } in phases {
            let cell = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
            let [rate, rate_predicted] = [rep_rate.measured, rep_rate.predicted].map(cell);
            let [dhr, dhr_predicted] = [dhr.measured, dhr.predicted].map(cell);
            let _ =
                writeln!(out, "{phase:<10} {rate:>10} {rate_predicted:>10}   {dhr:>10} {dhr_predicted:>10}");
        }
        out
    }

    /// The rows of the table on a page: the phase, then replies per second and hit ratio, each measured and predicted.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let RunPrediction::Made { phases, .. } = self else { return Vec::new() };
        let cells = |it: &PredictedPhase| {
            [it.rep_rate.measured, it.rep_rate.predicted, it.dhr.measured, it.dhr.predicted]
                .map(|value| text::number(value, 2))
        };
        phases.iter().map(|it| std::iter::once(it.phase.clone()).chain(cells(it)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Manifests of earlier runs have this form.
    #[test]
    fn the_form_in_the_manifest() {
        let made = json!({ "device": "ideal", "phases": [
            { "phase": "top1", "rep_rate": { "measured": 59.5, "predicted": 59.25 }, "dhr": { "measured": null, "predicted": 55.0 } },
        ]});
        let prediction: RunPrediction = serde_json::from_value(made.clone()).unwrap();
        assert_eq!(serde_json::to_value(&prediction).unwrap(), made);
        assert_eq!(
            prediction.text().lines().last().unwrap(),
            "top1            59.50      59.25            -      55.00"
        );
        assert_eq!(prediction.rows(), [["top1", "59.50", "59.25", text::UNDEFINED, "55.00"]]);
        let left_out: RunPrediction = serde_json::from_value(json!({ "left_out": "no time" })).unwrap();
        assert_eq!(left_out.text(), "no prediction: no time\n");
        assert!(left_out.rows().is_empty());
    }
}
