//! All readers of text, for tests and for the fuzzer.

use crate::{control_group, kernel_counters, parse};

/// Runs all readers on a text.
pub fn all(text: &str) {
    parse::named_number(text, "MemTotal");
    parse::socket_count(text, "TCP", "tw");
    kernel_counters::counter(text, "Tcp", "OutSegs");
    parse::softnet_drops(text);
    parse::time_wait_ports(text, (1, u16::MAX));
    parse::processor_ticks(text);
    parse::process_ticks(text);
    parse::list_length(text);
    parse::ports_in_range(text, (10, 60_000));
    parse::chosen(text);
    control_group::directories(text, "memory");
    control_group::processor_quotas(|_| Some(text.to_owned()));
    parse::local_addresses(text);
    parse::inet6_addresses(text);
    parse::inet6_local_networks(text);
    parse::name_servers(text);
    parse::addresses_of(text, "localhost");
    parse::file_system(text, "/data/runs");
    parse::saved_rules(text);
    parse::listed_rules(text);
    parse::shaping(text);
}
