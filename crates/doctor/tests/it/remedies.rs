//! Safe remedies are applied, recorded, and taken back.

use std::fs;
use std::path::Path;

use polygraph_doctor::{CHECKS, Diagnosis, HostFinding, Impact, Remedy, mend, take_back};
use polygraph_netsetup::{Ledger, State};

fn diagnosis(remedy: Remedy) -> Diagnosis {
    Diagnosis { check: &CHECKS[0], finding: HostFinding::new(Impact::Distorts, "found", "effect", remedy) }
}

#[test]
fn settings_are_changed_recorded_and_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let (setting, absent) = (place.path().join("setting"), place.path().join("absent"));
    fs::write(&setting, "128\n").unwrap();
    let records = Ledger::at(&place.path().join("records")).unwrap();
    let found = [
        diagnosis(Remedy::files(std::slice::from_ref(&setting), "4096")),
        diagnosis(Remedy::files(std::slice::from_ref(&absent), "1")),
        diagnosis(Remedy::manual("buy another host")),
    ];
    let mended = mend(&found, &records, place.path()).unwrap();
    assert_eq!(mended.done, [format!("echo 4096 | tee {}", setting.display())]);
    assert_eq!(mended.failed.len(), 1, "{mended:?}");
    assert!(mended.failed[0].1.contains("absent") && !absent.exists());
    assert_eq!(fs::read_to_string(&setting).unwrap(), "4096");
    let kept = records.records().unwrap();
    assert_eq!((kept.len(), kept[0].state, kept[0].changes.len()), (1, State::Kept, 1));
    drop(kept);
    let undone = take_back(&records).unwrap();
    assert_eq!((undone.done.len(), undone.failed.len()), (1, 0));
    assert_eq!(fs::read_to_string(&setting).unwrap(), "128\n");
    assert!(records.records().unwrap().is_empty());
    assert!(take_back(&records).unwrap().done.is_empty());
}

#[test]
fn what_needs_no_change_leaves_no_record() {
    let place = tempfile::tempdir().unwrap();
    let setting = place.path().join("setting");
    fs::write(&setting, "4096\n").unwrap();
    let records = Ledger::at(&place.path().join("records")).unwrap();
    mend(&[diagnosis(Remedy::files(&[setting], "4096"))], &records, place.path()).unwrap();
    assert!(records.records().unwrap().is_empty());
}

#[test]
fn remedies_are_commands() {
    let one = Remedy::sysctl("net.ipv4.ip_local_port_range", "10240 65535");
    assert_eq!(one.command, "sysctl -w net.ipv4.ip_local_port_range='10240 65535'");
    assert_eq!(one.settings[0].0, Path::new("/proc/sys/net/ipv4/ip_local_port_range"));
    let both = one.and(Remedy::sysctl("fs.file-max", 5));
    assert!(both.command.ends_with("&& sysctl -w fs.file-max=5"));
    assert_eq!(both.settings.len(), 2);
    assert!(both.is_safe() && Remedy::clean("x").is_safe() && !Remedy::manual("x").is_safe());
}
