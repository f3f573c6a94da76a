//! Checks of processors: how many there are, who else uses them, and how steady they are.

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{percent, rate, whole};

/// Requests per second that robots or servers handle on a processor at most, by experience with small replies.
const MOST_PER_PROCESSOR: f64 = 30_000.0;
/// Other processes may use this share of the processors without harm.
const QUIET: f64 = 0.03;
/// From this share on, other processes distort results.
const BUSY: f64 = 0.1;

/// Processors that this process may use: those of the host, of its mask, and of its control group.
pub(crate) fn usable(facts: &HostFacts) -> Option<f64> {
    let count = facts.processors.allowed.or(facts.processors.online)? as f64;
    Some(facts.processors.quota.map_or(count, |quota| quota.min(count)))
}

/// The number of processors.
pub(crate) fn number(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let count = usable(facts)?;
    let found = format!("{count} processors for robots, servers and a device on this host");
    let more = Remedy::manual(
        "run robots, servers and the device on different hosts (polygraph client, polygraph server)",
    );
    match load.rate {
        // The measured ceiling knows better.
        Some(_) if facts.ceiling.is_some() => None,
        Some(planned) => {
            let most = count * MOST_PER_PROCESSOR / load.ends_on_host().max(1) as f64;
            (planned > most).then(|| {
                let effect = format!(
                    "no host of this size sustained more than {} requests/s; {} are planned",
                    rate(most),
                    rate(planned)
                );
                HostFinding::new(Impact::Distorts, found, effect, more)
            })
        }
        None => (count < 2.0 && !load.is_known()).then(|| {
            let effect =
                "robots, servers and a device take turns on one processor, which adds to response times";
            HostFinding::new(Impact::Note, found.replace("processors", "processor"), effect, more)
        }),
    }
}

/// The share of processor time of the control group.
pub(crate) fn quota(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let quota = facts.processors.quota?;
    let count = facts.processors.allowed.or(facts.processors.online)? as f64;
    (quota < count).then(|| {
        let stops = facts.processors.throttled.filter(|&times| times > 0);
        let stops = stops.map(|times| format!(" and was stopped {} times", whole(times))).unwrap_or_default();
        HostFinding::new(
            Impact::Distorts,
            format!("the control group may use {quota:.2} of {count} processors{stops}"),
            "a group that has used its share stands still until the next period, for up to 100 ms",
            Remedy::manual("systemctl set-property UNIT CPUQuota=, or no --cpus of the container"),
        )
    })
}

/// The processors on which this process may run.
pub(crate) fn mask(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let (allowed, online) = facts.processors.allowed.zip(facts.processors.online)?;
    (allowed < online).then(|| {
        HostFinding::new(
            Impact::Note,
            format!("this process may run on {allowed} of {online} processors"),
            "robots and servers start one loop for each processor that they may use",
            Remedy::manual(format!("taskset -c 0-{} polygraph ...", online - 1)),
        )
    })
}

/// Governors that change the frequency with the load.
pub(crate) fn frequency(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let slow: Vec<&str> =
        facts.processors.governors.iter().map(String::as_str).filter(|name| *name != "performance").collect();
    (!slow.is_empty()).then(|| {
        HostFinding::new(
            Impact::Distorts,
            format!("the frequency of processors follows the load (governor {})", slow.join(", ")),
            "at low load processors run at a fraction of their speed, so response times fall when load rises",
            Remedy::files(&facts.processors.governor_files, "performance"),
        )
    })
}

/// Frequencies above the nominal one.
pub(crate) fn turbo(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    facts.processors.turbo.filter(|&on| on).map(|_| {
        HostFinding::new(
            Impact::Note,
            "processors exceed their nominal frequency while temperature allows it (turbo)",
            "long runs may be slower than short ones, and a second run slower than the first",
            Remedy::manual("echo 0 > /sys/devices/system/cpu/cpufreq/boost, or echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"),
        )
    })
}

/// A virtual machine.
pub(crate) fn virtual_machine(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    facts.processors.virtual_machine.then(|| {
        HostFinding::new(
            Impact::Note,
            "this host is a virtual machine",
            "its processors and network are shared: compare only runs of the same hour, and repeat them",
            Remedy::manual(
                "publish the kind of the machine with results; pin its processors if you own the hypervisor",
            ),
        )
    })
}

/// Time that other virtual machines take.
pub(crate) fn steal(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let (share, when) = match &facts.idle {
        Some(idle) if idle.steal > 0.001 => (idle.steal, "during this check"),
        _ => (facts.processors.steal?, "since the start of the system"),
    };
    let impact = match share {
        share if share > 0.02 => Impact::Distorts,
        share if share > 0.002 => Impact::Note,
        _ => return None,
    };
    Some(HostFinding::new(
        impact,
        format!("other virtual machines took {} of the processor time {when}", percent(share)),
        "robots and servers stand still in that time, which adds to response times",
        Remedy::manual("move to dedicated processors; `vmstat 1` shows the share as st"),
    ))
}

/// Whether event loops can use io_uring.
pub(crate) fn uring(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let refusal = facts.uring_refusal.as_ref()?;
    Some(HostFinding::new(
        Impact::Note,
        format!("io_uring cannot be used: {}", refusal.reason),
        "event loops use epoll, which needs more processor time for each transaction; --engine uring is an error",
        Remedy::manual(refusal.remedy.clone()),
    ))
}

/// Other processes.
pub(crate) fn others(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let idle = facts.idle.as_ref()?;
    let count = facts.processors.online? as f64;
    let share = idle.busy / count;
    let impact = match share {
        share if share > BUSY => Impact::Distorts,
        share if share > QUIET => Impact::Note,
        _ => return None,
    };
    let named: Vec<String> = idle.processes.iter().map(|(name, used)| format!("{name} {used:.2}")).collect();
    // What no process of the list used: the kernel itself, and processes that ended meanwhile.
    let rest = idle.busy - idle.processes.iter().map(|(_, used)| used).sum::<f64>();
    let rest = (rest > 0.05)
        .then(|| format!("{rest:.2} by the kernel and by processes that are smaller or have ended"));
    let named: Vec<String> = named.into_iter().chain(rest).collect();
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    Some(HostFinding::new(
        impact,
        format!("other processes use {:.2} of {count} processors{named}", idle.busy),
        format!("{} of the host is not there for the test, at times that nobody controls", percent(share)),
        Remedy::manual("top -o %CPU"),
    ))
}
