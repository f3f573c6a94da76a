//! Network interfaces, from `/sys/class/net`.

use crate::facts::InterfaceFacts;

use super::ethtool;
use super::host_files::HostFiles;

const INTERFACES: &str = "/sys/class/net";
/// Counters of damaged or lost packets.
const ERRORS: [&str; 4] = ["rx_crc_errors", "rx_frame_errors", "tx_errors", "tx_carrier_errors"];
/// Counters of received packets for which a queue had no room. `rx_dropped` also counts packets of unknown protocols.
const DROPS: [&str; 3] = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];

/// The interfaces that are up, without loopback.
pub(super) fn interfaces(files: &HostFiles) -> Vec<InterfaceFacts> {
    let names = files.names(INTERFACES).into_iter();
    names.filter(|name| name != "lo").filter_map(|name| interface(files, name)).collect()
}

fn interface(files: &HostFiles, name: String) -> Option<InterfaceFacts> {
    let file = |what: &str| format!("{INTERFACES}/{name}/{what}");
    let state = files.known_text(&file("operstate"))?;
    let has_carrier = files.value::<u64>(&file("carrier")) == Some(1);
    if state != "up" && !(state == "unknown" && has_carrier) {
        return None;
    }
    let counter = |what: &str| files.value::<u64>(&file(&format!("statistics/{what}"))).unwrap_or(0);
    let sum = |names: &[&str]| names.iter().map(|name| counter(name)).fold(0, u64::saturating_add);
    let card = if files.are_real() { ethtool::read(&name) } else { ethtool::CardFacts::default() };
    Some(InterfaceFacts {
        is_virtual: !files.path(&file("device")).exists(),
        // -1: the driver does not know.
        speed: files
            .value::<i64>(&file("speed"))
            .and_then(|speed| u64::try_from(speed).ok())
            .filter(|s| *s > 0),
        half_duplex: files.known_text(&file("duplex")).as_deref() == Some("half"),
        mtu: files.value(&file("mtu")),
        packets: sum(&["rx_packets", "tx_packets"]),
        errors: sum(&ERRORS),
        drops: sum(&DROPS),
        ring: card.ring,
        offloads_off: card.offloads_off,
        name,
    })
}
