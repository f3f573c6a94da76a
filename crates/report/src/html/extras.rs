//! Data of a report that is not in the logs.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::device::DeviceFacts;
use crate::downtime::{DOWNTIME, Downtime};
use crate::fleet::FleetFacts;
use crate::popularity::Curve;
use crate::prediction::RunPrediction;
use crate::run_dir::MANIFEST;

/// Data of a report that is not in the logs.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Name and popularity curve of a trace to compare the run with.
    pub trace: Option<(String, Curve)>,
    /// The prediction of a simulation.
    pub prediction: Option<RunPrediction>,
    /// Outage after a simulated power failure of the device.
    pub downtime: Option<Downtime>,
    /// The device, if the program started it.
    pub device: Option<DeviceFacts>,
    /// The fleet, if the run had one.
    pub fleet: Option<FleetFacts>,
}

impl Extras {
    /// The data in a result directory. Files that are missing or invalid are ignored.
    pub fn of_run(directory: &Path) -> Extras {
        let manifest: Option<serde_json::Value> = read(&directory.join(MANIFEST));
        Extras {
            device: manifest.as_ref().and_then(|manifest| DeviceFacts::of_run(directory, manifest)),
            fleet: manifest.as_ref().and_then(FleetFacts::of_run),
            prediction: manifest
                .and_then(|mut manifest| serde_json::from_value(manifest.get_mut("prediction")?.take()).ok()),
            downtime: read(&directory.join(DOWNTIME)),
            ..Extras::default()
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
