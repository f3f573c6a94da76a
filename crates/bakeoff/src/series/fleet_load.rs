//! The load of a series whose robots and servers are on the hosts of a fleet: the workload of the classic options as files, because
//! fleets run workload files.

use std::path::{Path, PathBuf};

use crate::plan::{BakeoffPlan, FleetBench};

/// Robots that fill a cache at each address, each with one request at a time.
const FILLERS: &str = "2";

/// What both workloads have in common.
fn start(bench: &FleetBench) -> String {
    let list =
        |ranges: &[String]| ranges.iter().map(|range| format!("'{range}'")).collect::<Vec<_>>().join(", ");
    format!(
        "addr[] ServerAddrs = [ {} ];\naddr[] RobotAddrs = [ {} ];\n\
         ObjLifeCycle olcStatic = {{ length = const(2year); variance = 0%; with_lmt = 100%; expires = [ nmt + const(0sec) ]; }};\n",
        list(&bench.servers),
        list(&bench.robots)
    )
}

/// PolyMix-1 at a rate, with the length and launch window of the plan.
pub fn measurement(bench: &FleetBench, plan: &BakeoffPlan, rate: f64, seconds: f64) -> String {
    let launch = plan.rules.launch_window_s.min(seconds / 10.0);
    format!(
        "{}Content C = {{ kind = \"polymix-1\"; size = exp(13KB); cachable = 80%; obj_life_cycle = olcStatic; }};\n\
         Server S = {{ kind = \"PolyMix-1-srv\"; http_versions = [ \"1.0\" ]; contents = [ C ]; direct_access = contents; accept_lmt = -1;\n\
         \x20   xact_think = norm(3sec, 1.5sec); addresses = ServerAddrs; }};\n\
         Robot R = {{ kind = \"PolyMix-1-rbt\"; http_versions = [ \"1.0\" ]; origins = S.addresses; recurrence = 55% / C.cachable;\n\
         \x20   pop_model = {{ pop_distr = popUnif(); }}; req_rate = {rate}/sec / count(RobotAddrs); addresses = RobotAddrs; }};\n\
         Phase Launch = {{ name = \"launch\"; goal.duration = {launch}sec; load_factor_beg = 1%; load_factor_end = 1.0; log_stats = false; }};\n\
         Phase Warm = {{ name = \"warm\"; goal.duration = {}sec; log_stats = false; }};\n\
         Phase Meas = {{ name = \"meas\"; goal.duration = {}sec; primary = true; }};\n\
         Phase Cool = {{ name = \"cool\"; goal.duration = {}sec; load_factor_end = 0.0; log_stats = false; }};\n\
         schedule(Launch, Warm, Meas{});\nuse(S, R);\n",
        start(bench),
        seconds / 10.0 - launch + launch.min(seconds / 20.0),
        seconds * 0.9,
        plan.workload.cool_s.max(1.0),
        if plan.workload.cool_s > 0.0 { ", Cool" } else { "" },
    )
}

/// Cachable replies that nobody requests twice, as fast as the device accepts them.
pub fn fill(bench: &FleetBench, replies: u64) -> String {
    format!(
        "{}Content C = {{ kind = \"fill\"; size = exp(13KB); cachable = 100%; obj_life_cycle = olcStatic; }};\n\
         Server S = {{ kind = \"fill-srv\"; http_versions = [ \"1.0\" ]; contents = [ C ]; direct_access = contents; addresses = ServerAddrs; }};\n\
         Robot R = {{ kind = \"fill-rbt\"; http_versions = [ \"1.0\" ]; origins = S.addresses; recurrence = 0%;\n\
         \x20   pop_model = {{ pop_distr = popUnif(); }}; addresses = RobotAddrs ** {FILLERS}; }};\n\
         Phase Fill = {{ name = \"fill\"; goal.xactions = {replies}; primary = true; }};\n\
         schedule(Fill);\nuse(S, R);\n",
        start(bench)
    )
}

/// Writes a workload, and returns the options that run it with the fleet.
///
/// # Errors
/// If the file cannot be written.
pub fn words(bench: &FleetBench, text: &str, directory: &Path, name: &str) -> std::io::Result<Vec<String>> {
    let path: PathBuf = directory.join(format!("{name}.pg"));
    std::fs::write(&path, text)?;
    let words = ["--config".to_owned(), path.display().to_string(), "--fleet".to_owned(), bench.url.clone()];
    Ok(words.into_iter().chain(bench.options.iter().cloned()).collect())
}
