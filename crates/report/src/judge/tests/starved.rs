//! Devices whose host had no processor or disk for them.

use super::*;
use crate::usage::{DeviceEnd, UsageSample};

/// A second of a device: its processor time, and how long its threads waited for a processor and those of the host for disks.
type Second = (f64, Option<f64>, f64);

const IDLE: Second = (0.1, Some(0.01), 0.0);

/// The verdict on these logs if the device had this second from one time to another, and else nothing to do.
fn with_device(run: &Run, second: Second, from_s: usize, to_s: usize) -> Verdict {
    let mut facts = fold(&run.logs()).unwrap();
    let mut last = UsageSample {
        at_s: 0.0,
        cpu_s: 0.0,
        resident_bytes: 0.0,
        waiting_s: Some(7.0),
        io_pressure_s: Some(1e6),
    };
    for at_s in 0..36 {
        facts.device_usage.push(last);
        let (cpu_s, waiting_s, disks_s) = if (from_s..to_s).contains(&at_s) { second } else { IDLE };
        last = UsageSample {
            at_s: last.at_s + 1.0,
            cpu_s: last.cpu_s + cpu_s,
            waiting_s: waiting_s.and_then(|waiting_s| Some(last.waiting_s? + waiting_s)),
            io_pressure_s: last.io_pressure_s.map(|before| before + disks_s),
            ..last
        };
    }
    judge(&facts)
}

#[test]
fn a_device_whose_process_ended_is_told_from_a_slow_one() {
    let gone = Run { error: Some((2, ErrorKind::ConnectFailed)), ..Run::default() };
    let mut facts = fold(&gone.logs()).unwrap();
    // Programs of the host wait for disks all the time.
    facts.device_usage = (0..36)
        .map(|at_s| UsageSample {
            at_s: f64::from(at_s),
            cpu_s: 1.0,
            resident_bytes: if at_s < 12 { 1e6 } else { 0.0 },
            waiting_s: Some(0.0),
            io_pressure_s: Some(f64::from(at_s)),
        })
        .collect();
    let warned = judge(&facts);
    assert_eq!(warned.findings[0].rule, "errors");
    assert!(warned.findings.iter().any(|finding| finding.rule == "starved"));
    for (status, advice) in [("signal: 9 (SIGKILL)", "journalctl"), ("exit status: 1", "the folder `device`")]
    {
        facts.device_end = Some(DeviceEnd { name: "squid".into(), status: status.into() });
        let verdict = judge(&facts);
        assert_eq!(verdict.headline(), "FAILED (device): the device ended during the run");
        let text = &verdict.findings[0].text;
        let wanted = [status, "squid", "11 s after the start of the run it was still running", advice];
        assert!(wanted.iter().all(|part| text.contains(part)), "{text}");
        assert!(verdict.findings.iter().all(|finding| finding.rule != "starved"), "{verdict:#?}");
    }
}

/// Too slow a device on two processors, in a primary phase from second 4 to 34.
#[test]
fn a_device_without_a_processor_is_no_slow_one() {
    let slow = Run { capacity: 80.0, ..Run::default() };
    let hungry = (0.1, Some(0.8), 0.0);
    for (second, from_s, to_s, word) in [
        (hungry, 20, 24, "INVALID (host)"),
        // Less than 1.5 s, or not while it was measured.
        (hungry, 20, 21, "FAILED (device)"),
        (hungry, 0, 4, "FAILED (device)"),
        (IDLE, 0, 36, "FAILED (device)"),
        // One thread that has most of a processor, and many threads that have nearly all processors or half of them.
        ((0.7, Some(0.3), 0.0), 0, 36, "FAILED (device)"),
        ((1.9, Some(9.0), 0.0), 0, 36, "FAILED (device)"),
        ((1.0, Some(9.0), 0.0), 0, 36, "FAILED (device)"),
        ((0.8, Some(9.0), 0.0), 0, 36, "INVALID (host)"),
        // Nobody counted.
        ((0.1, None, 0.0), 0, 36, "FAILED (device)"),
    ] {
        let verdict = with_device(&slow, second, from_s, to_s);
        let is_starved = verdict.findings.iter().any(|finding| finding.rule == "starved");
        assert_eq!(
            (verdict.word().as_str(), is_starved),
            (word, word != "FAILED (device)"),
            "{second:?}: {verdict:#?}"
        );
    }
}

#[test]
fn what_a_device_without_a_processor_said_still_counts() {
    let hungry = (0.1, Some(0.8), 0.0);
    let wrong = Run { error: Some((10, ErrorKind::BadStatus)), ..Run::default() };
    assert_eq!(with_device(&wrong, hungry, 0, 36).word(), "FAILED (device)");
    let verdict = with_device(&Run::default(), hungry, 0, 36);
    let told: Vec<_> = verdict.findings.iter().map(|finding| (finding.rule, finding.weight)).collect();
    assert_eq!((verdict.outcome, told), (VerdictOutcome::Valid, vec![("starved", FindingSeverity::Warning)]));
}

/// Nobody knows whether the device itself kept them busy.
#[test]
fn busy_disks_are_told_of_slow_devices() {
    let slow = Run { capacity: 80.0, ..Run::default() };
    for (run, disks_s, word, warned) in [
        (&slow, 0.67, "FAILED (device)", true),
        (&slow, 0.1, "FAILED (device)", false),
        (&Run::default(), 0.67, "VALID", false),
    ] {
        let verdict = with_device(run, (0.1, Some(0.01), disks_s), 0, 36);
        let told = verdict.of_weight(FindingSeverity::Warning).any(|finding| finding.rule == "starved");
        assert_eq!((verdict.word().as_str(), told), (word, warned), "{verdict:#?}");
    }
}
