//! What earlier runs left behind, and what else changes packets on their way.

use polygraph_netsetup::{Ledger, Namespace, RecordedChanges, SYSTEM_DIRECTORY, State, run_program};

use crate::facts::LeftoverFacts;
use crate::parse;

use super::host_files::HostFiles;

/// Changes by processes of this program that were killed.
pub(super) fn abandoned(files: &HostFiles) -> Vec<String> {
    described(&records(files), State::Abandoned)
}

/// Everything that is left.
pub(super) fn leftovers(files: &HostFiles) -> LeftoverFacts {
    let records = records(files);
    let temporary = if files.are_real() { std::env::temp_dir() } else { files.path("/tmp") };
    let local = parse::local_addresses(&files.text("/proc/net/fib_trie"));
    let networks = local.networks.iter().filter(|(address, _)| !address.is_loopback());
    let networks = networks.map(|(address, length)| format!("{address}/{length}"));
    let inet6 = parse::inet6_local_networks(&files.text("/proc/net/ipv6_route"));
    let inet6_networks = inet6.iter().map(|(address, length)| format!("{address}/{length}"));
    let single = local.single.iter().filter(|address| !address.is_loopback()).count() as u64;
    LeftoverFacts {
        abandoned: described(&records, State::Abandoned),
        kept: described(&records, State::Kept),
        device_directories: polygraph_device::abandoned_directories(&temporary),
        addresses: single + parse::inet6_addresses(&files.text("/proc/net/if_inet6")),
        local_networks: networks.chain(inet6_networks).collect(),
        firewall_rules: if files.are_real() { firewall_rules() } else { None },
        shaping: if files.are_real() { shaping() } else { Vec::new() },
    }
}

/// The records of changes to the network namespace of this process; none if this user may not read them. Looking does not
/// create their directory.
fn records(files: &HostFiles) -> Vec<RecordedChanges> {
    let directory = files.path(SYSTEM_DIRECTORY);
    if !directory.is_dir() {
        return Vec::new();
    }
    let mut records = Ledger::at(&directory).and_then(|records| records.records()).unwrap_or_default();
    let here = Namespace::current().ok();
    records.retain(|record| Some(record.namespace) == here);
    records
}

fn described(records: &[RecordedChanges], state: State) -> Vec<String> {
    let wanted = records.iter().filter(|record| record.state == state);
    let changes = |count: usize| if count == 1 { "1 change".to_owned() } else { format!("{count} changes") };
    wanted.map(|record| format!("{} ({})", record.purpose, changes(record.changes.len()))).collect()
}

/// The number of firewall rules of all kinds; `None` if no program can list them.
fn firewall_rules() -> Option<u64> {
    let listed = run_program(&["nft", "list", "ruleset"]).ok().map(|text| parse::listed_rules(&text));
    let saved = ["iptables-legacy-save", "ip6tables-legacy-save"]
        .map(|program| run_program(&[program]).ok().map(|text| parse::saved_rules(&text)));
    [listed, saved[0], saved[1]].into_iter().flatten().reduce(u64::saturating_add)
}

fn shaping() -> Vec<String> {
    run_program(&["tc", "qdisc", "show"]).map(|text| parse::shaping(&text)).unwrap_or_default()
}
