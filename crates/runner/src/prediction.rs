//! Predicts a run by simulation, for comparison with the measured figures.

use std::net::SocketAddr;

use polygraph_link::nanos;
use polygraph_plan::Test;
use polygraph_report::prediction::{MeasuredAndPredicted, PredictedPhase, RunPrediction};
use polygraph_report::{RunFacts, Scope};
use polygraph_sim::device::Model;
use polygraph_stats::{EndReason, Record, Side};

use crate::jobs::ServerTolerance;
use crate::simulation::{RunIdentities, Simulation, SimulationSetup};
use crate::simulation_table::{figure, measured_phases};
use crate::working_set::WorkingSetFiles;
use crate::{Failure, RunSettings, device_model};

/// The choice of the device model for a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PredictionModel {
    /// Nothing is predicted.
    Off,
    /// The model that follows from the device's parameters.
    Auto,
    /// This model; `None`: no device.
    Of(Option<Model>),
}

/// Maximum length of predicted runs: the simulation should delay the end of a run by a few seconds at most.
const MAX_TRANSACTIONS: u64 = 300_000;

/// A simulation is stopped after this many times the length of the run, in virtual time: it has a phase whose goal it cannot
/// reach.
const TIME_LIMIT_FACTOR: f64 = 3.0;

/// Facts about a run that a prediction needs.
#[derive(Debug)]
pub struct PredictionInput<'a> {
    /// The test as it was run, without the device.
    pub test: Test,
    /// Addresses of its servers.
    pub places: Vec<SocketAddr>,
    /// Settings of both sides.
    pub settings: &'a RunSettings,
    /// The identities of the run, whose requests the simulation repeats.
    pub identities: RunIdentities,
    /// The model of the device, or why it is unknown.
    pub device: Result<Option<Model>, String>,
    /// Time of day at the start, in seconds since 1970.
    pub epoch: u64,
    /// Unexpected replies that robots did not count as errors.
    pub tolerance: polygraph_robot::Tolerance,
    /// Unexpected requests that servers accepted.
    pub server_tolerance: ServerTolerance,
    /// The working set with which the test continued.
    pub working_set: &'a WorkingSetFiles,
}

/// A predicted phase.
struct SimulatedPhase {
    phase: usize,
    rep_rate: Option<f64>,
    dhr: Option<f64>,
}

impl PredictionInput<'_> {
    /// Predicted figures beside those of the run, or why there are none. `reason`: how the run ended.
    pub fn predict(self, facts: &RunFacts, reason: &EndReason) -> RunPrediction {
        let possible = match self.obstacle(facts, reason) {
            None => self.device.clone(),
            Some(why) => Err(why),
        };
        let expected = possible.and_then(|device| {
            let expected = self.simulate(device, facts).map_err(|failure| failure.to_string())?;
            Ok((device, expected))
        });
        let (device, expected) = match expected {
            Ok(expected) => expected,
            Err(left_out) => return RunPrediction::LeftOut { left_out },
        };
        let plans = facts.client.iter().flat_map(|side| &side.header().phases);
        let plans: Vec<&str> = plans.map(|plan| plan.name.as_str()).collect();
        let phase = |(name, scope): (&str, &Scope)| {
            let number = plans.iter().position(|plan| *plan == name)?;
            let expected = expected.iter().find(|it| it.phase == number)?;
            Some(PredictedPhase {
                phase: name.to_owned(),
                rep_rate: MeasuredAndPredicted {
                    measured: figure("ok_xact.rate", scope),
                    predicted: expected.rep_rate,
                },
                dhr: MeasuredAndPredicted { measured: figure("rep_dhr", scope), predicted: expected.dhr },
            })
        };
        RunPrediction::Made {
            device: device.as_ref().map_or("no device".into(), device_model::describe),
            phases: measured_phases(facts).filter_map(phase).collect(),
        }
    }

    /// Why the run cannot be predicted.
    fn obstacle(&self, facts: &RunFacts, reason: &EndReason) -> Option<String> {
        let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
        let started = total.map_or(0, |total| total.block.xacts.entered);
        if *reason != EndReason::Finished {
            Some("the run did not complete all its phases".into())
        } else if started > MAX_TRANSACTIONS {
            Some(format!(
                "{started} transactions take too long to simulate after a run; `polygraph simulate` has no limit"
            ))
        } else if self.test.full_rate().is_none() {
            Some("the rate of best-effort robots depends on the device and the network".into())
        } else if self.test.shows_bad_certificates() {
            Some(
                "simulations have no TLS, so nobody refuses the bad certificates of the servers there".into(),
            )
        } else {
            None
        }
    }

    fn simulate(self, device: Option<Model>, facts: &RunFacts) -> Result<Vec<SimulatedPhase>, Failure> {
        let ends = facts.client.iter().flat_map(|side| &side.phases).filter_map(|phase| phase.end_s);
        let measured_s = ends.fold(0.0, f64::max);
        let settings = RunSettings {
            // One interval per phase.
            interval_s: 1e9,
            loops: Some(self.identities.robots.len()),
            ..self.settings.clone()
        };
        let setup = SimulationSetup {
            places: Some(self.places),
            tolerance: self.tolerance,
            server_tolerance: self.server_tolerance,
            identities: Some(self.identities),
            epoch: self.epoch,
            ..SimulationSetup::new(self.test, &settings, device, self.working_set)
        };
        let (mut phases, mut requests, mut failed) = (Vec::new(), 0, 0);
        let (outcome, _) = Simulation::new(setup, None)?.run(
            Some(nanos(TIME_LIMIT_FACTOR * measured_s)),
            |header, record| {
                if let (Side::Client, Record::Interval(interval)) = (header.side, record) {
                    requests += interval.block.xacts.entered;
                    failed += interval.block.failed_count();
                    let scope = Scope::of_intervals([&**interval]);
                    phases.push(SimulatedPhase {
                        phase: interval.phase as usize,
                        rep_rate: figure("ok_xact.rate", &scope),
                        dhr: figure("rep_dhr", &scope),
                    });
                }
            },
        )?;
        match outcome.reason {
            EndReason::Fatal { why, .. } | EndReason::NoEnd(why) => {
                Err(Failure::data(anyhow::Error::msg(why)))
            }
            // With `--fault` and the like, some transactions fail in the run as well.
            _ if failed == requests => {
                Err(Failure::data(anyhow::Error::msg("every transaction fails in the simulation")))
            }
            _ => Ok(phases),
        }
    }
}
