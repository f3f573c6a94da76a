//! Every check finds what it is for, says how much it matters, and is silent about a sound host.

mod hosts;
mod kernel;
mod machine;
mod sockets;
mod surroundings;

use std::collections::BTreeSet;

use polygraph_doctor::facts::HostFacts;
use polygraph_doctor::{CHECKS, HostFinding, Impact, PlannedLoad, diagnose, diagnose_quick};

use hosts::{loopback, planned, sound};

use Impact::{Blocks, Distorts, Note};

/// A check, a host or a load that provokes it, what it must find, and words of the finding. `None` for loads and figures
/// that are just good enough.
struct Case {
    check: &'static str,
    spoil: fn(&mut HostFacts),
    load: PlannedLoad,
    impact: Option<Impact>,
    words: &'static [&'static str],
}

fn case(
    check: &'static str,
    spoil: fn(&mut HostFacts),
    load: PlannedLoad,
    impact: impl Into<Option<Impact>>,
    words: &'static [&'static str],
) -> Case {
    Case { check, spoil, load, impact: impact.into(), words }
}

fn found(facts: &HostFacts, load: &PlannedLoad, name: &str) -> Option<HostFinding> {
    diagnose(facts, load).into_iter().find(|diagnosis| diagnosis.check.name == name).map(|it| it.finding)
}

#[test]
fn every_check_is_provoked() {
    let groups = [sockets::cases(), kernel::cases(), machine::cases(), surroundings::cases()];
    let cases: Vec<Case> = groups.into_iter().flatten().collect();
    let mut wrong = Vec::new();
    for case in &cases {
        let mut facts = sound();
        (case.spoil)(&mut facts);
        let found = found(&facts, &case.load, case.check);
        let text = found.as_ref().map(HostFinding::line).unwrap_or_default();
        let lacks = case.words.iter().find(|word| !text.contains(**word));
        if found.as_ref().map(|found| found.impact) != case.impact || lacks.is_some() {
            wrong.push(format!("{} (expected {:?}, {lacks:?}): {found:?}", case.check, case.impact));
        }
        let is_mended = |found: &HostFinding| found.remedies.iter().any(|it| !it.command.is_empty());
        assert!(found.as_ref().is_none_or(is_mended), "{} has no remedy", case.check);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let provoked: BTreeSet<&str> =
        cases.iter().filter(|case| case.impact.is_some()).map(|case| case.check).collect();
    let missing: Vec<&str> =
        CHECKS.iter().map(|check| check.name).filter(|name| !provoked.contains(name)).collect();
    assert_eq!(missing, [""; 0], "checks without a case");
}

#[test]
fn names_of_checks_are_unique() {
    let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());
}

#[test]
fn a_sound_host_has_no_findings() {
    for load in [PlannedLoad::default(), planned(500.0, 2000), loopback(5000.0, 10_000)] {
        let found: Vec<String> = diagnose(&sound(), &load)
            .iter()
            .filter(|diagnosis| !(load.rate == Some(5000.0) && diagnosis.check.name == "time_wait_limit"))
            .map(|diagnosis| format!("{}: {}", diagnosis.check.name, diagnosis.finding.line()))
            .collect();
        assert_eq!(found, [""; 0]);
    }
}

/// Whoever cannot read a fact must not be told that something is wrong.
#[test]
fn an_unknown_host_has_no_findings_but_unknown_names() {
    for load in [PlannedLoad::default(), planned(1e6, 1_000_000)] {
        let found = diagnose(&HostFacts::default(), &load);
        let names: Vec<&str> = found.iter().map(|diagnosis| diagnosis.check.name).collect();
        assert_eq!(names, ["names"]);
    }
}

#[test]
fn the_worst_comes_first_and_quick_checks_are_a_part() {
    let mut facts = sound();
    facts.leftovers.firewall_rules = Some(1);
    facts.queues.listen = Some(128);
    facts.storage.free = Some(0);
    let impacts: Vec<Impact> =
        diagnose(&facts, &PlannedLoad::default()).iter().map(|diagnosis| diagnosis.finding.impact).collect();
    assert_eq!(impacts, [Blocks, Distorts, Note]);
    let quick: Vec<&str> =
        diagnose_quick(&facts, &PlannedLoad::default()).iter().map(|it| it.check.name).collect();
    assert_eq!(quick, ["disk_space", "listen_queue"]);
}
