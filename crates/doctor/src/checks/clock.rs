//! Checks of clocks.

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;

/// Sources that cost little to read.
const FAST: [&str; 7] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "hyperv",
    "timebase",
    "riscv_clocksource",
];
/// Nanoseconds from which reading the clock counts.
const SLOW_NS: f64 = 400.0;
/// How often the clock is read for a transaction, at least.
const READS: f64 = 10.0;
/// Microseconds of error from which clocks of several hosts differ noticeably.
const ROUGH_US: i64 = 100_000;

/// Whether a time service keeps the clock right.
pub(crate) fn synchronisation(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    // With both sides on one host there is only one clock.
    let impact = if load.robots && load.servers { Impact::Note } else { Impact::Distorts };
    let effect = "clocks of hosts drift apart by seconds a day: times in logs of two hosts do not fit, and freshness is judged wrongly from a minute on";
    let remedy = Remedy::manual("timedatectl set-ntp true");
    match (facts.clock.synchronised?, facts.clock.error_us) {
        (false, _) => Some(HostFinding::new(
            impact,
            "no time service keeps the clock right (adjtimex: unsynchronised)",
            effect,
            remedy,
        )),
        (true, Some(error)) if error > ROUGH_US => {
            let found = format!("the clock may be wrong by {:.2} s", error as f64 / 1e6);
            Some(HostFinding::new(impact, found, effect, remedy))
        }
        _ => None,
    }
}

/// What the kernel reads the time from.
pub(crate) fn source(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let name = facts.clock.source.as_deref().unwrap_or("unknown");
    let cost = facts.clock.read_ns;
    let is_slow = cost.map_or(!FAST.contains(&name) && facts.clock.source.is_some(), |cost| cost > SLOW_NS);
    if !is_slow {
        return None;
    }
    let found = match cost {
        Some(cost) => format!("reading the clock takes {cost:.0} ns (clock source {name})"),
        None => format!("the clock source is {name}"),
    };
    // What is known of the source: a system call and an access to a device.
    let share = cost.unwrap_or(1000.0) * READS * load.rate.unwrap_or(1000.0) / 1e9;
    let impact = if load.is_known() && share < 0.05 { Impact::Note } else { Impact::Distorts };
    let effect = format!(
        "at {:.0} requests/s that is at least {:.1} % of a processor",
        load.rate.unwrap_or(1000.0),
        share * 100.0
    );
    let remedy =
        Remedy::manual("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource");
    Some(HostFinding::new(impact, found, effect, remedy))
}
