//! What a report shows beside what logs say.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::device::DeviceFacts;
use crate::downtime::{DOWNTIME, Downtime};
use crate::popularity::Curve;
use crate::prediction::RunPrediction;
use crate::run_dir::MANIFEST;

/// What a report shows beside what logs say.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Name and popularity curve of a trace, to be shown beside that of the run.
    pub trace: Option<(String, Curve)>,
    /// What a simulation said of the run.
    pub prediction: Option<RunPrediction>,
    /// What a power failure of the device cost.
    pub downtime: Option<Downtime>,
    /// The device, if the program started it.
    pub device: Option<DeviceFacts>,
}

impl Extras {
    /// What a result directory has beside its logs. Files that are missing or of another form have nothing.
    pub fn of_run(directory: &Path) -> Extras {
        let manifest: Option<serde_json::Value> = read(&directory.join(MANIFEST));
        Extras {
            device: manifest.as_ref().and_then(|manifest| DeviceFacts::of_run(directory, manifest)),
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
