//! Whether a quota of processor time stopped a process of the bench. It does so for less than a period at a time, usually 100 ms, so few of
//! these stops are stalls; but nothing else explains them, whereas a busy host makes loops wait for a processor without harm.

use polygraph_stats::record::environment::{CONTROL_GROUP, HOST, QUOTA};

use super::stalls::judged;
use super::{Findings, LimitingParty, apart};
use crate::facts::{RunFacts, SideFacts};

pub(super) const THROTTLED: &str = "throttled";
/// Largest share of the judged time for which event loops may be stopped: 1 % of the requests are enough to make up the 99th percentile.
pub(super) const SHARE_MAX: f64 = 0.01;
/// A smaller share causes no warning.
pub(super) const TOLD_SHARE: f64 = 0.001;

pub(super) fn throttled(facts: &RunFacts, found: &mut Findings) {
    let windows = judged(facts);
    let stopped: Vec<(&SideFacts, f64)> = facts
        .sides()
        .map(|side| (side, share(side, &windows)))
        .filter(|(_, share)| *share > TOLD_SHARE)
        .collect();
    if let [(client, a), (server, b)] = stopped[..]
        && group(client).is_some()
        && group(client) == group(server)
    {
        // Nobody can tell whose work used the quota up; it may even be that of a device.
        report(found, "the client and the server", client, a.max(b), LimitingParty::Host);
        return;
    }
    for (side, share) in stopped {
        report(found, &format!("the {}", side.side.name()), side, share, side.side.into());
    }
}

fn report(found: &mut Findings, whom: &str, side: &SideFacts, share: f64, party: LimitingParty) {
    let group = match (side.header().environment(CONTROL_GROUP), side.header().environment(QUOTA)) {
        (Some(directory), Some(quota)) => format!(" of {directory}, which is {quota}"),
        _ => String::new(),
    };
    let (percent, limit) = apart(100.0 * share, 100.0 * SHARE_MAX, 1);
    let text = format!(
        "a quota of processor time stopped {whom} for {percent} % of the measured time; the limit is {limit} %: raise the quota{group}"
    );
    match share > SHARE_MAX {
        true => found.invalid(THROTTLED, party, text),
        false => found.warn(THROTTLED, text),
    }
}

/// The share of the judged time for which loops of a side were stopped.
fn share(side: &SideFacts, windows: &[(f64, f64)]) -> f64 {
    let within = |at_s: f64| windows.iter().any(|&(from, to)| at_s >= from && at_s <= to);
    let points = || side.series.iter().filter(|point| within(point.at_s));
    let seconds: f64 = points().map(|point| point.seconds).sum();
    let stopped = points().filter_map(|point| Some(point.get("cpu.throttled.share")? * 0.01 * point.seconds));
    if seconds > 0.0 { stopped.sum::<f64>() / seconds } else { 0.0 }
}

/// The host and the control group that all processes of a side are in.
fn group(side: &SideFacts) -> Option<(&str, &str)> {
    let mut all = side
        .processes
        .iter()
        .map(|process| Some((process.header.environment(HOST)?, process.header.environment(CONTROL_GROUP)?)));
    let first = all.next()??;
    all.all(|group| group == Some(first)).then_some(first)
}
