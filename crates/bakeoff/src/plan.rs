//! The plan of a bake-off: devices, workload, rules and rates. docs/bakeoff.md describes the file.

mod rate_order;
mod raw;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use polygraph_report::text;

use crate::entry::PriceLine;

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("cannot read the plan {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not TOML, or has unknown keys.
    #[error("{path}: {problem}")]
    Form {
        /// The file.
        path: String,
        /// The position and the problem.
        problem: String,
    },
    /// A value is invalid.
    #[error("{path}, {place}: {problem}")]
    Sense {
        /// The file.
        path: String,
        /// The position in the plan.
        place: String,
        /// The problem, and what to write instead.
        problem: String,
    },
}

/// A bake-off.
#[derive(Clone, Debug, PartialEq)]
pub struct BakeoffPlan {
    /// Title of the report.
    pub title: String,
    /// The workload for all devices.
    pub workload: BakeoffWorkload,
    /// The rules.
    pub rules: BakeoffRules,
    /// The checks before the runs.
    pub checks: BenchChecks,
    /// The devices, in order.
    pub devices: Vec<Contestant>,
}

/// The workload for all devices; only the rate differs from run to run.
#[derive(Clone, Debug, PartialEq)]
pub struct BakeoffWorkload {
    /// Length of a run in seconds, including the warm-up.
    pub duration_s: f64,
    /// Length of the cool-down in seconds.
    pub cool_s: f64,
    /// Options of `polygraph run` by name, without dashes.
    pub options: BTreeMap<String, String>,
    /// A workload file instead of PolyMix-1.
    pub file: Option<WorkloadFile>,
    /// The fleet that runs robots and servers; `None`: this machine does.
    pub fleet: Option<FleetBench>,
}

/// A fleet that runs robots and servers.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetBench {
    /// Where it is, as for `run --fleet`.
    pub url: String,
    /// Further options of `run --fleet`, word by word.
    pub options: Vec<String>,
    /// Ranges of addresses of the robots of PolyMix-1 and of those that fill caches.
    pub robots: Vec<String>,
    /// Ranges of addresses with ports of their servers.
    pub servers: Vec<String>,
}

/// A workload in the workload language.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFile {
    /// The file.
    pub path: PathBuf,
    /// The name in it whose value is the rate.
    pub rate: String,
}

/// The rules; the defaults are those of 1999.
#[derive(Clone, Debug, PartialEq)]
pub struct BakeoffRules {
    /// Seconds over which the load rises.
    pub launch_window_s: f64,
    /// Pause between runs in seconds.
    pub idle_gap_s: f64,
    /// Largest share (0 to 1) of failed transactions in a passed run.
    pub max_errors: f64,
    /// Maximum time to fill a cache in seconds.
    pub fill_limit_s: f64,
    /// Number of passed runs to make for each rate.
    pub repeats: u32,
    /// Maximum number of runs for each rate.
    pub attempts: u32,
    /// Selects which of several passed runs is reported.
    pub report: ReportedRun,
}

impl Default for BakeoffRules {
    fn default() -> BakeoffRules {
        BakeoffRules {
            launch_window_s: 60.0,
            idle_gap_s: 600.0,
            max_errors: 0.03,
            fill_limit_s: 8.0 * 3600.0,
            repeats: 1,
            attempts: 2,
            report: ReportedRun::Fastest,
        }
    }
}

/// Selects which of several passed runs at a rate is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedRun {
    /// The run with the lowest mean response time, which a participant would choose.
    Fastest,
    /// The first run.
    First,
    /// The last run.
    Last,
}

/// The checks before the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchChecks {
    /// Length of the run without a proxy in seconds; `None`: no such run.
    pub no_proxy_s: Option<f64>,
    /// Length of the measurement of network throughput in seconds; `None`: no measurement.
    pub network_s: Option<f64>,
}

/// A participating device.
#[derive(Clone, Debug, PartialEq)]
pub struct Contestant {
    /// Identifier, which is also the name of its directory.
    pub name: String,
    /// Its name in tables.
    pub title: String,
    /// The participant: the vendor or person that enters the device.
    pub vendor: String,
    /// Program or address of the device.
    pub target: DeviceLocation,
    /// Size of the cache in bytes: the least amount of data to fill it. For devices that are started here, it follows
    /// from their options.
    pub size: Option<u64>,
    /// Request rates per second, in the order of the runs.
    pub rates: Vec<f64>,
    /// The highest rate that the participant claims.
    pub claimed: f64,
    /// A higher claim and the rates to try for it, once the first claim is met.
    pub raise: Option<Raise>,
    /// Price list.
    pub prices: Vec<PriceLine>,
    /// Configuration, for the appendix.
    pub facts: BTreeMap<String, String>,
    /// Comments of the referees: a text file.
    pub referee_comments: Option<PathBuf>,
    /// Comments of the participant: a text file.
    pub comments: Option<PathBuf>,
}

/// The one raise of a claim that the rules allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Raise {
    /// The new claim.
    pub claimed: f64,
    /// The rates to try, in order; all above the first claim.
    pub rates: Vec<f64>,
}

/// How a device is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceLocation {
    /// A device that is started here: a name from `polygraph devices` or a directory, and options.
    Device {
        /// Name or directory.
        name: String,
        /// Options by name.
        options: BTreeMap<String, String>,
    },
    /// A forward proxy that runs somewhere, `host:port`.
    Proxy(String),
    /// A surrogate that runs somewhere, `host:port`.
    Surrogate(String),
}

/// The text of a plan, which may be built in. Files other than regular files are refused, because reading them might
/// never end.
fn read(path: &Path) -> io::Result<String> {
    if polygraph_assets::is_builtin(path) {
        return polygraph_assets::read_to_string(path);
    }
    let mut text = String::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    file.take(raw::MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > raw::MAX_FILE {
        let problem = format!("more than {} bytes, which is too large for a plan", raw::MAX_FILE);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(text)
}

impl BakeoffPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If it cannot be read or used; the error says where and what to write instead.
    pub fn read(path: &Path) -> Result<BakeoffPlan, PlanError> {
        let name = path.display().to_string();
        let text = read(path).map_err(|source| PlanError::Read { path: name.clone(), source })?;
        let plan = BakeoffPlan::parse(&text, &name, path.parent().unwrap_or(Path::new("")))?;
        for device in &plan.devices {
            let files = [("referee_comments", &device.referee_comments), ("comments", &device.comments)];
            let missing = files
                .iter()
                .find(|(_, file)| file.as_ref().is_some_and(|file| !polygraph_assets::is_file(file)));
            if let Some((field, Some(file))) = missing {
                return Err(PlanError::Sense {
                    path: name,
                    place: format!("device `{}`, {field}", device.name),
                    problem: format!("there is no file {}: create it, or remove the line", file.display()),
                });
            }
        }
        Ok(plan)
    }

    /// Reads a plan from its text. Paths in it are relative to `directory`, and the files may be missing.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<BakeoffPlan, PlanError> {
        raw::parse(text, name, directory)
    }

    /// The highest rate that any device may have to sustain.
    pub fn top_rate(&self) -> f64 {
        let rates = self.devices.iter().flat_map(|device| device.rates.iter().chain(device.raise_rates()));
        rates.copied().fold(0.0, f64::max)
    }

    /// Length of one run in seconds, without the pause.
    pub fn run_s(&self) -> f64 {
        self.workload.duration_s + self.workload.cool_s
    }

    /// Differences between the plan and the rules of 1999, in sentences.
    pub fn deviations(&self) -> Vec<String> {
        let own = BakeoffRules::default();
        let seconds = polygraph_report::text::duration;
        let mut found = Vec::new();
        let mut differs = |what: &str, is: String, was: String| {
            if is != was {
                found.push(format!("{what}: {is} instead of {was}."));
            }
        };
        let rules = &self.rules;
        differs("Length of a run", seconds(self.workload.duration_s), seconds(3600.0));
        differs("Launch window", seconds(rules.launch_window_s), seconds(own.launch_window_s));
        differs("Pause between runs", seconds(rules.idle_gap_s), seconds(own.idle_gap_s));
        let percent = |share: f64| text::percent(share, 2);
        differs("Maximum share of failed transactions", percent(rules.max_errors), percent(own.max_errors));
        differs("Maximum time to fill a cache", seconds(rules.fill_limit_s), seconds(own.fill_limit_s));
        match &self.workload.file {
            Some(file) => found.push(format!("Workload: {} instead of PolyMix-1.", file.path.display())),
            None => found.extend(
                self.workload.options.iter().map(|(name, value)| format!("Workload: {name} is {value}.")),
            ),
        }
        found
    }
}

impl Contestant {
    /// The rates of the raised claim.
    pub fn raise_rates(&self) -> impl Iterator<Item = &f64> {
        self.raise.iter().flat_map(|raise| &raise.rates)
    }

    /// The settings that must not change between the runs of a device, because results with another configuration are
    /// not comparable. Rates, prices and comments may change.
    pub fn configuration(&self, plan: &BakeoffPlan) -> String {
        format!("{:?} {:?} {:?} {:?}", self.target, self.size, plan.workload, plan.rules.launch_window_s)
    }
}
