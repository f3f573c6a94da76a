//! Turns TOML into a valid plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use polygraph_addr::AddrRange;
use polygraph_assets::{EntryKind, is_builtin, join, locate};
use polygraph_plan::values;
use serde::Deserialize;

use super::rate_order::mixed;
use super::{
    BakeoffPlan, BakeoffRules, BakeoffWorkload, BenchChecks, Contestant, DeviceLocation, FleetBench,
    PlanError, Raise, ReportedRun, WorkloadFile,
};
use crate::entry::PriceLine;

/// Options of `polygraph run` that a plan may set; all others follow from the plan.
const OPTIONS: [&str; 17] = [
    "accept_foreign_msgs",
    "dhr",
    "global_rng_seed",
    "http_version",
    "ign_urls",
    "local_addrs",
    "local_rng_seed",
    "loops",
    "open_conn_lmt",
    "pconn_use_lmt",
    "pop_model",
    "rep_cachable",
    "rep_sz",
    "robots",
    "scale",
    "xact_lifetime",
    "xact_think",
];
/// The options that are also possible with a workload file.
const WITH_FILE: [&str; 7] = [
    "accept_foreign_msgs",
    "global_rng_seed",
    "ign_urls",
    "local_rng_seed",
    "loops",
    "open_conn_lmt",
    "scale",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    title: String,
    #[serde(default)]
    rates: Vec<f64>,
    #[serde(default)]
    order: Order,
    workload: Option<RawWorkload>,
    rules: Option<RawRules>,
    checks: Option<RawChecks>,
    fleet: Option<RawFleet>,
    #[serde(default)]
    device: Vec<RawDevice>,
}

/// The order in which rates are run.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// As written in the plan.
    #[default]
    Given,
    /// Low and high rates in turn, as in 1999.
    Mixed,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    duration: Option<String>,
    cool: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, toml::Value>,
    config: Option<String>,
    rate: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFleet {
    url: String,
    #[serde(default)]
    options: BTreeMap<String, toml::Value>,
    #[serde(default)]
    robots: Vec<String>,
    #[serde(default)]
    servers: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRules {
    launch_window: Option<String>,
    idle_gap: Option<String>,
    max_errors: Option<String>,
    fill_limit: Option<String>,
    repeats: Option<u32>,
    attempts: Option<u32>,
    report: Option<ReportedRun>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChecks {
    no_proxy: Option<String>,
    network: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDevice {
    name: String,
    title: Option<String>,
    #[serde(default)]
    vendor: String,
    device: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, toml::Value>,
    proxy: Option<String>,
    surrogate: Option<String>,
    size: Option<String>,
    rates: Option<Vec<f64>>,
    claimed: Option<f64>,
    raise_to: Option<f64>,
    raise_rates: Option<Vec<f64>>,
    #[serde(default)]
    prices: Vec<RawPrice>,
    #[serde(default)]
    facts: BTreeMap<String, String>,
    referee_comments: Option<String>,
    comments: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrice {
    part: String,
    quantity: Option<u32>,
    price: Option<f64>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    note: String,
}

/// Creates errors about a place in the plan.
struct PlanPath<'a> {
    path: &'a str,
    place: String,
}

impl PlanPath<'_> {
    fn wrong(&self, field: &str, problem: impl std::fmt::Display) -> PlanError {
        let place = if field.is_empty() { self.place.clone() } else { format!("{}, {field}", self.place) };
        PlanError::Sense { path: self.path.to_owned(), place, problem: problem.to_string() }
    }

    /// The value of an optional text.
    fn read<T>(
        &self,
        field: &str,
        text: Option<&String>,
        read: impl Fn(&str) -> Result<T, String>,
        default: T,
    ) -> Result<T, PlanError> {
        text.map_or(Ok(default), |text| read(text).map_err(|problem| self.wrong(field, problem)))
    }
}

/// Longest time in a plan, in seconds: 30 days.
const MAX_S: f64 = 30.0 * 86_400.0;
/// Highest rate in a plan, in requests per second: more than a hundred current machines can offer.
const MAX_RATE: f64 = 1e7;
/// Maximum number of rates of a device.
const MAX_RATES: usize = 100_000;
/// Maximum size of a plan in bytes.
pub(super) const MAX_FILE: u64 = 16 << 20;

fn time(text: &str) -> Result<f64, String> {
    let seconds = values::time(text)?;
    if (0.0..=MAX_S).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("`{text}`: write a time of at most 30 days, for example 60s"))
    }
}

fn positive_time(text: &str) -> Result<f64, String> {
    let seconds = time(text)?;
    if seconds > 0.0 { Ok(seconds) } else { Err(format!("`{text}`: write a positive time, for example 60s")) }
}

pub(super) fn parse(text: &str, path: &str, directory: &Path) -> Result<BakeoffPlan, PlanError> {
    let raw: RawPlan = toml::from_str(text).map_err(|e| PlanError::Form {
        path: path.to_owned(),
        problem: e.to_string().trim_end().to_owned(),
    })?;
    let at = |place: &str| PlanPath { path, place: place.to_owned() };
    let mut workload = workload(&raw.workload.unwrap_or_default(), &at("[workload]"), directory)?;
    workload.fleet = raw.fleet.map(|fleet| fleet_bench(fleet, &workload, &at("[fleet]"))).transpose()?;
    let rules = rules(&raw.rules.unwrap_or_default(), &at("[rules]"), &workload)?;
    let checks = checks(&raw.checks.unwrap_or_default(), &at("[checks]"))?;
    if raw.device.is_empty() {
        return Err(at("plan").wrong("", "there are no devices: write a [[device]] with a name"));
    }
    let mut names = BTreeSet::new();
    let mut devices = Vec::new();
    for device in &raw.device {
        let place = at(&format!("device `{}`", device.name));
        if !names.insert(&device.name) {
            return Err(place.wrong("name", "two devices have this name: choose different names"));
        }
        let mut contestant = contestant(device, &raw.rates, &place, directory)?;
        if let Order::Mixed = raw.order {
            contestant.rates = mixed(&contestant.rates);
        }
        devices.push(contestant);
    }
    if workload.fleet.is_some() {
        for device in &devices {
            if let DeviceLocation::Device { .. } = device.target {
                let place = at(&format!("device `{}`", device.name));
                return Err(place.wrong(
                    "device",
                    "a fleet tests devices on hosts of their own: start it there, and write proxy or surrogate with its address, and size",
                ));
            }
        }
        if checks.network_s.is_some() {
            return Err(at("[checks]").wrong(
                "network",
                "it is measured on this machine only: write \"none\", and measure the hosts of the fleet with `polygraph net throughput`",
            ));
        }
    }
    let surrogate = devices.iter().find(|device| matches!(device.target, DeviceLocation::Surrogate(_)));
    if let (Some(device), Some(_)) = (surrogate, &workload.file) {
        let place = at(&format!("device `{}`", device.name));
        return Err(place.wrong("surrogate", "surrogates are tested with PolyMix-1 only: leave config out"));
    }
    Ok(BakeoffPlan { title: raw.title, workload, rules, checks, devices })
}

/// The path of a workload: of a file at the plan, or of a built-in one, which is written as `builtin:NAME`.
fn workload_path(directory: &Path, path: &str, place: &PlanPath<'_>) -> Result<PathBuf, PlanError> {
    if !is_builtin(Path::new(path)) {
        return Ok(join(directory, Path::new(path)));
    }
    let located = locate(EntryKind::Workload, path);
    located.map(PathBuf::from).map_err(|error| place.wrong("config", error.to_string()))
}

fn workload(raw: &RawWorkload, place: &PlanPath<'_>, directory: &Path) -> Result<BakeoffWorkload, PlanError> {
    let file = match (&raw.config, &raw.rate) {
        (Some(path), Some(rate)) => {
            Some(WorkloadFile { path: workload_path(directory, path, place)?, rate: rate.clone() })
        }
        (None, None) => None,
        (Some(_), None) => {
            return Err(place.wrong(
                "rate",
                "missing: name the setting of the workload that determines the request rate",
            ));
        }
        (None, Some(_)) => return Err(place.wrong("rate", "can be used only with config")),
    };
    let known: &[&str] = if file.is_some() { &WITH_FILE } else { &OPTIONS };
    let mut options = BTreeMap::new();
    for (name, value) in &raw.options {
        if !known.contains(&name.as_str()) {
            let problem = format!("cannot be set here; these can: {}", known.join(", "));
            return Err(place.wrong(&format!("options.{name}"), problem));
        }
        options.insert(name.clone(), plain(value, place, &format!("options.{name}"))?);
    }
    let mut duration_s = place.read("duration", raw.duration.as_ref(), positive_time, 3600.0)?;
    let mut cool_s = place.read("cool", raw.cool.as_ref(), time, 60.0)?;
    if file.is_some() && raw.duration.is_none() {
        return Err(place.wrong(
            "duration",
            "missing: write the length of a run of the workload, which limits the time that a run may take",
        ));
    }
    if file.is_some() {
        // The workload file defines its phases, so the time beyond its length is unknown here.
        (duration_s, cool_s) = (duration_s + cool_s, 0.0);
    }
    Ok(BakeoffWorkload { duration_s, cool_s, options, file, fleet: None })
}

/// Options of `run --fleet` that a plan may set.
const FLEET_OPTIONS: [&str; 8] =
    ["agents", "clock_limit", "creds", "lost", "lost_after", "start_in", "tls_ca", "anonymous"];
/// Options that act with the workload file that a fleet runs.
const WITH_FLEET: [&str; 2] = ["global_rng_seed", "scale"];

fn fleet_bench(
    raw: RawFleet,
    workload: &BakeoffWorkload,
    place: &PlanPath<'_>,
) -> Result<FleetBench, PlanError> {
    if let Some(name) = workload.options.keys().find(|name| !WITH_FLEET.contains(&name.as_str())) {
        return Err(place.wrong(
            "",
            format!("the option {name} in [workload] is not possible with a fleet: write a workload file (config) that sets it"),
        ));
    }
    for (field, ranges) in [("robots", &raw.robots), ("servers", &raw.servers)] {
        if ranges.is_empty() {
            return Err(place.wrong(
                field,
                "missing: write addresses on the hosts of the fleet, for example [\"10.1.0.1-4\"], with ports for servers",
            ));
        }
        for range in ranges {
            let parsed =
                AddrRange::parse(range).map_err(|error| place.wrong(field, format!("`{range}`: {error}")))?;
            if field == "servers" && parsed.port.is_none() {
                return Err(
                    place.wrong(field, format!("`{range}` has no port: write for example {range}:80"))
                );
            }
        }
    }
    let mut options = Vec::new();
    for (name, value) in &raw.options {
        if !FLEET_OPTIONS.contains(&name.as_str()) {
            let problem = format!("cannot be set here; these can: {}", FLEET_OPTIONS.join(", "));
            return Err(place.wrong(&format!("options.{name}"), problem));
        }
        match value {
            toml::Value::Boolean(true) => options.push(format!("--{name}")),
            toml::Value::Boolean(false) => {}
            value => options.extend([format!("--{name}"), plain(value, place, &format!("options.{name}"))?]),
        }
    }
    Ok(FleetBench { url: raw.url, options, robots: raw.robots, servers: raw.servers })
}

/// A plain value as text.
fn plain(value: &toml::Value, place: &PlanPath<'_>, field: &str) -> Result<String, PlanError> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(yes) => Ok(if *yes { "yes" } else { "no" }.into()),
        _ => Err(place.wrong(field, "write a text or a number")),
    }
}

fn rules(
    raw: &RawRules,
    place: &PlanPath<'_>,
    workload: &BakeoffWorkload,
) -> Result<BakeoffRules, PlanError> {
    let own = BakeoffRules::default();
    let rules = BakeoffRules {
        launch_window_s: place.read(
            "launch_window",
            raw.launch_window.as_ref(),
            time,
            own.launch_window_s,
        )?,
        idle_gap_s: place.read("idle_gap", raw.idle_gap.as_ref(), time, own.idle_gap_s)?,
        max_errors: place.read("max_errors", raw.max_errors.as_ref(), values::share, own.max_errors)?,
        fill_limit_s: place.read("fill_limit", raw.fill_limit.as_ref(), positive_time, own.fill_limit_s)?,
        repeats: raw.repeats.unwrap_or(own.repeats),
        attempts: raw.attempts.unwrap_or_else(|| own.attempts.max(raw.repeats.unwrap_or(0))),
        report: raw.report.unwrap_or(own.report),
    };
    if workload.file.is_none() && rules.launch_window_s >= workload.duration_s {
        let problem = format!(
            "this must be shorter than the runs, which take {}: write a shorter time, or make runs longer",
            polygraph_report::text::duration(workload.duration_s)
        );
        return Err(place.wrong("launch_window", problem));
    }
    if !(1..=20).contains(&rules.repeats) {
        return Err(place.wrong("repeats", "write a number from 1 to 20"));
    }
    if rules.attempts < rules.repeats || rules.attempts > 40 {
        let problem = format!("write a number from {} (the repeats) to 40", rules.repeats);
        return Err(place.wrong("attempts", problem));
    }
    Ok(rules)
}

fn checks(raw: &RawChecks, place: &PlanPath<'_>) -> Result<BenchChecks, PlanError> {
    let optional = |field: &str, text: Option<&String>, default: f64| match text {
        Some(text) if values::is_none(text) => Ok(None),
        _ => place.read(field, text, positive_time, default).map(Some),
    };
    Ok(BenchChecks {
        no_proxy_s: optional("no_proxy", raw.no_proxy.as_ref(), 3600.0)?,
        network_s: optional("network", raw.network.as_ref(), 300.0)?,
    })
}

fn contestant(
    raw: &RawDevice,
    common_rates: &[f64],
    place: &PlanPath<'_>,
    directory: &Path,
) -> Result<Contestant, PlanError> {
    let word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if raw.name.is_empty() || !raw.name.chars().all(word) || raw.name.starts_with('.') {
        return Err(place.wrong(
            "name",
            "write a word of letters, digits, `-`, `_` and `.`, because a directory gets this name",
        ));
    }
    let target = target(raw, place)?;
    let rates = raw.rates.clone().unwrap_or_else(|| common_rates.to_vec());
    if rates.is_empty() {
        return Err(place
            .wrong("rates", "missing: write request rates per second, for this device or for all devices"));
    }
    distinct(&rates, "rates", place)?;
    let top = rates.iter().copied().fold(0.0, f64::max);
    let claimed = raw.claimed.unwrap_or(top);
    if let Some(above) = rates.iter().find(|rate| **rate > claimed) {
        let problem = format!(
            "{above} is above the claim of {claimed}: raise the claim, or move this rate to raise_rates"
        );
        return Err(place.wrong("rates", problem));
    }
    let raise = raise(raw, claimed, &rates, place)?;
    let size = raw.size.as_ref().map(|text| values::size(text)).transpose();
    let size = size.map_err(|problem| place.wrong("size", problem))?;
    if size.is_none() && !matches!(target, DeviceLocation::Device { .. }) {
        return Err(place.wrong(
            "size",
            "missing: write the size of the cache, for example 20GB; it is filled with twice as much",
        ));
    }
    let prices = raw.prices.iter().enumerate().map(|(index, line)| price(line, index, place));
    let file = |path: &Option<String>| path.as_ref().map(|path| join(directory, Path::new(path)));
    Ok(Contestant {
        name: raw.name.clone(),
        title: raw.title.clone().unwrap_or_else(|| raw.name.clone()),
        vendor: raw.vendor.clone(),
        target,
        size,
        rates,
        claimed,
        raise,
        prices: prices.collect::<Result<_, _>>()?,
        facts: raw.facts.clone(),
        referee_comments: file(&raw.referee_comments),
        comments: file(&raw.comments),
    })
}

fn target(raw: &RawDevice, place: &PlanPath<'_>) -> Result<DeviceLocation, PlanError> {
    match (&raw.device, &raw.proxy, &raw.surrogate) {
        (Some(name), None, None) => {
            let mut options = BTreeMap::new();
            for (key, value) in &raw.options {
                options.insert(key.clone(), plain(value, place, &format!("options.{key}"))?);
            }
            Ok(DeviceLocation::Device { name: name.clone(), options })
        }
        _ if !raw.options.is_empty() => Err(place.wrong(
            "options",
            "options are possible only for a device that is started here: name it with device",
        )),
        (None, Some(address), None) => Ok(DeviceLocation::Proxy(address.clone())),
        (None, None, Some(address)) => Ok(DeviceLocation::Surrogate(address.clone())),
        _ => Err(place.wrong(
            "",
            "write exactly one of device (a name from `polygraph devices`), proxy and surrogate (host:port)",
        )),
    }
}

fn raise(
    raw: &RawDevice,
    claimed: f64,
    rates: &[f64],
    place: &PlanPath<'_>,
) -> Result<Option<Raise>, PlanError> {
    let Some(new) = raw.raise_to else {
        return match raw.raise_rates {
            Some(_) => Err(place.wrong("raise_rates", "also write the new claim: raise_to")),
            None => Ok(None),
        };
    };
    if !(new <= MAX_RATE && claimed <= MAX_RATE) {
        return Err(
            place.wrong("raise_to", format!("write a rate of at most {MAX_RATE} requests per second"))
        );
    }
    if new <= claimed {
        return Err(place
            .wrong("raise_to", format!("{new} does not raise the claim of {claimed}: write a higher rate")));
    }
    if !rates.contains(&claimed) {
        let problem =
            format!("the claim of {claimed} must be met before it is raised: add this rate to rates");
        return Err(place.wrong("raise_to", problem));
    }
    let rates = raw.raise_rates.clone().unwrap_or_else(|| vec![new]);
    distinct(&rates, "raise_rates", place)?;
    match rates.iter().find(|rate| **rate <= claimed || **rate > new) {
        Some(rate) => {
            let problem =
                format!("{rate} is not above the claim of {claimed} and at most the new claim of {new}");
            Err(place.wrong("raise_rates", problem))
        }
        None => Ok(Some(Raise { claimed: new, rates })),
    }
}

fn distinct(rates: &[f64], field: &str, place: &PlanPath<'_>) -> Result<(), PlanError> {
    if rates.len() > MAX_RATES {
        return Err(place.wrong(field, format!("{} rates: write at most {MAX_RATES}", rates.len())));
    }
    if let Some(rate) = rates.iter().find(|rate| !(**rate > 0.0 && **rate <= MAX_RATE)) {
        let problem =
            format!("{rate} is not a rate: write requests per second, more than 0 and at most {MAX_RATE}");
        return Err(place.wrong(field, problem));
    }
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("{} is listed twice: to run a rate several times, set rules.repeats", pair[0]);
        return Err(place.wrong(field, problem));
    }
    Ok(())
}

fn price(raw: &RawPrice, index: usize, place: &PlanPath<'_>) -> Result<PriceLine, PlanError> {
    if raw.price.is_some_and(|price| !(price.is_finite() && price >= 0.0)) {
        let field = format!("prices[{}]", index + 1);
        return Err(
            place.wrong(&field, "write a price in dollars of at least 0, or leave it out if it is unknown")
        );
    }
    Ok(PriceLine {
        part: raw.part.clone(),
        quantity: raw.quantity.unwrap_or(1),
        price: raw.price,
        network: raw.network,
        note: raw.note.clone(),
    })
}
