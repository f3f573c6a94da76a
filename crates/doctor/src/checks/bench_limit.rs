//! Checks of the measured ceiling of this host.

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{bytes, rate};

use super::processors::usable;

/// Up to this share of the ceiling the bench adds little to response times.
const COMFORTABLE: f64 = 0.5;
/// Requests per second of a host that suffices for small tests only.
const SLOW: f64 = 500.0;

/// What the host achieves over loopback, against what is planned.
pub(crate) fn ceiling(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let measured = facts.ceiling.as_ref().filter(|measured| measured.persistent > 0.0)?;
    // What other processes took was not there for the measurement, and may be there for the test.
    let processors = usable(facts).unwrap_or(1.0).max(0.01);
    let new = (measured.new_per_processor * processors).max(measured.new_connections);
    let persistent = (measured.persistent_per_processor * processors).max(measured.persistent);
    let found = format!(
        "robots and servers together achieved {} requests/s with a new connection for each and {} over persistent connections, \
         with replies of {} and the engine {}; {} and {} for each processor that was busy with it",
        rate(measured.new_connections),
        rate(measured.persistent),
        bytes(measured.reply_bytes),
        measured.engine,
        rate(measured.new_per_processor),
        rate(measured.persistent_per_processor),
    );
    let debug = if measured.is_debug_build { "; this is a debug build, which is slower" } else { "" };
    // A plan with several requests per connection lies between the two: the time of a request is that over a persistent
    // connection, and that of the connection.
    let needed_share = load.rate.map(|planned| {
        let connections = load.connection_rate.unwrap_or(planned).min(planned);
        let setup = (1.0 / new.max(1e-9) - 1.0 / persistent).max(0.0);
        (planned / persistent + connections * setup) * load.ends_on_host() as f64 / 2.0
    });
    let hosts = Remedy::manual(
        "divide robots and servers among more hosts (polygraph client, polygraph server), or plan a lower rate",
    );
    let (impact, effect) = match (needed_share, load.rate) {
        (Some(share), Some(planned)) if share > 1.0 => (
            Impact::Blocks,
            format!(
                "{} requests/s take {:.0} % of this host without a device{debug}",
                rate(planned),
                share * 100.0
            ),
        ),
        (Some(share), Some(planned)) if share > COMFORTABLE => (
            Impact::Distorts,
            format!(
                "{} requests/s take {:.0} % of this host without a device, so requests wait for the bench{debug}",
                rate(planned),
                share * 100.0
            ),
        ),
        (Some(share), Some(planned)) => (
            Impact::Note,
            format!(
                "{} requests/s take {:.0} % of this host; a device on it gets the rest{debug}",
                rate(planned),
                share * 100.0
            ),
        ),
        _ if new < SLOW => (
            Impact::Distorts,
            format!("only tests of up to {} requests/s are safe here{debug}", rate(new * COMFORTABLE)),
        ),
        _ => (
            Impact::Note,
            format!(
                "tests of up to {} requests/s leave half of the host to a device{debug}",
                rate(new * COMFORTABLE)
            ),
        ),
    };
    Some(HostFinding::new(impact, found, effect, hosts))
}

/// Requests that failed while the ceiling was measured.
pub(crate) fn failures(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let is_dead = facts.ceiling.as_ref().is_some_and(|measured| measured.persistent == 0.0);
    if let Some(error) = facts.ceiling_error.as_deref().or(is_dead.then_some("no request succeeded")) {
        return Some(HostFinding::new(
            Impact::Blocks,
            format!("robots and servers do not reach each other over loopback: {error}"),
            "a run with both sides on this host cannot work",
            Remedy::manual("ip link set lo up; nft list ruleset"),
        ));
    }
    let measured = facts.ceiling.as_ref().filter(|measured| measured.failed > 0)?;
    Some(HostFinding::new(
        Impact::Distorts,
        format!("{} requests failed while the ceiling was measured over loopback", measured.failed),
        "there is nothing between robots and servers there, so this host itself loses connections",
        Remedy::manual(
            "polygraph run --no_proxy --req_rate 100/sec --goal 10s shows the classes of the errors",
        ),
    ))
}
