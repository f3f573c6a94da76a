//! Whether a device that was too slow had the processors and disks of its host. They are known if the program started the device.
//!
//! A device that uses all the processor time that it is given is the limit itself. If its threads were ready to run, and others had the
//! processors meanwhile, nobody knows how fast the device is. For disks that cannot be told: a device may be the one who keeps them busy.

use super::stalls::judged;
use super::{FindingSeverity, Findings, LimitingParty, VerdictFinding, VoidBy, apart};
use crate::facts::RunFacts;
use crate::usage::UsageSample;

/// Name of the rule.
pub(super) const STARVED: &str = "starved";
/// A device that had less than this share of the processor time that it could have used was kept from it by others.
pub(super) const OWN_LEAST: f64 = 0.5;
/// Largest share of the judged time for which a device may lack a processor,
pub(super) const SHARE_MAX: f64 = 0.05;
/// and so many seconds are always allowed.
pub(super) const LEAST_S: f64 = 0.5;
/// Largest share of the judged time for which threads of the host may wait for disks without a warning.
pub(super) const DISKS_MAX: f64 = 0.2;

/// Comes after the rules that find a device too slow.
pub(super) fn starved(facts: &RunFacts, found: &mut Findings) {
    let is_slowness = |finding: &VerdictFinding| {
        finding.void_by == VoidBy::SlowBench && finding.weight == FindingSeverity::Failed
    };
    // A device that is gone needs no processor and no disk.
    let too_slow = facts.device_end.is_none() && found.all.iter().any(is_slowness);
    let windows = judged(facts);
    let whole_s: f64 = windows.iter().map(|(from, to)| to - from).sum();
    let within = |at_s: f64| windows.iter().any(|&(from, to)| at_s >= from && at_s <= to);
    let steps: Vec<Step> = facts
        .device_usage
        .windows(2)
        .filter(|pair| within((pair[0].at_s + pair[1].at_s) / 2.0))
        .map(|pair| Step::between(&pair[0], &pair[1]))
        .collect();
    let processors = facts.main_side().header().environment("processors").and_then(|text| text.parse().ok());
    let lacked_s =
        processors.map_or(0.0, |processors| steps.iter().map(|step| step.lacked_s(processors)).sum());
    if lacked_s > LEAST_S.max(SHARE_MAX * whole_s) {
        let (share, limit) = apart(100.0 * lacked_s / whole_s, 100.0 * SHARE_MAX, 0);
        let text = format!(
            "for {share} % of the measured time, the device was ready to run and had no processor, because other programs used those of \
             its host; the limit is {limit} %: give the device processors of its own (taskset, another host), or repeat the run when \
             the host is quiet"
        );
        match too_slow {
            true => found.invalid(STARVED, LimitingParty::Host, text),
            false => found.warn(STARVED, text),
        }
    }
    let disks = steps.iter().map(|step| step.disks_s).sum::<f64>() / whole_s;
    if too_slow && disks > DISKS_MAX {
        let text = format!(
            "for {:.0} % of the measured time, programs on the device's host waited for its disks (/proc/pressure/io): unless the device \
             itself kept them busy, repeat the run when the host is quiet",
            100.0 * disks
        );
        found.warn(STARVED, text);
    }
}

/// What happened between two samples.
struct Step {
    seconds: f64,
    cpu_s: f64,
    waiting_s: f64,
    disks_s: f64,
}

impl Step {
    fn between(first: &UsageSample, second: &UsageSample) -> Step {
        // Counts drop when a thread of the device ends.
        let grown = |count: fn(&UsageSample) -> Option<f64>| {
            count(first).zip(count(second)).map_or(0.0, |(first, second)| (second - first).max(0.0))
        };
        Step {
            seconds: second.at_s - first.at_s,
            cpu_s: grown(|sample| Some(sample.cpu_s)),
            waiting_s: grown(|sample| sample.waiting_s),
            disks_s: grown(|sample| sample.io_pressure_s),
        }
    }

    /// For how long the device lacked a processor because of others. Threads of a device that has all processors wait for each other. The
    /// kernel counts a wait when it ends, so one that is longer than the step is counted in part.
    fn lacked_s(&self, processors: f64) -> f64 {
        let usable_s = (self.cpu_s + self.waiting_s).min(processors * self.seconds);
        if self.cpu_s < OWN_LEAST * usable_s { (usable_s - self.cpu_s).min(self.seconds) } else { 0.0 }
    }
}
