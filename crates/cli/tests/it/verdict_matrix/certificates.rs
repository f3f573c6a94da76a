//! Servers that show bad certificates on purpose, and who refuses them.

use super::{Got, Row, Want};
use crate::bad_certificates::{
    FAULTS, block_page, block_page_mostly, block_redirect, gateway, start, through, workload,
};

const SQUID: &str = "--device squid-bump --device_opt ca=certs/ca.pem --trust_ca certs/ca.crt";
const NGINX: &str = "--device nginx --device_opt origin_tls=yes --device_tls no";

/// Devices that check the certificates of servers, and devices that do not.
pub fn faults() -> Vec<Row> {
    let row = |name, want, text: fn() -> String, words: String| {
        Row::new("servers show bad certificates", name, want, move |sandbox| {
            Got::of_run(sandbox, &start(sandbox, &text(), &words))
        })
    };
    let accepted = Want::failed("certificates", "the device accepted bad certificates");
    let all = || workload(&FAULTS, true, false);
    let expired = || workload(&["expired"], false, false);
    let checks = "--device_opt origin_ca=certs/ca.crt";
    vec![
        row("Squid refuses them", Want::VALID, all, format!("{SQUID} {checks}")),
        row("Squid does not check them", accepted, all, SQUID.to_owned()),
        row("nginx refuses them, and there are no others", Want::VALID, expired, format!("{NGINX} {checks}")),
        row("nginx does not check them", accepted, expired, NGINX.to_owned()),
        row("a gateway answers with a page, status 200", Want::VALID, expired, through(gateway(block_page))),
        row("a gateway redirects to a page", Want::VALID, expired, through(gateway(block_redirect))),
        row(
            "a gateway answers with a page, but one reply of twenty has marks of the servers",
            accepted,
            expired,
            through(gateway(block_page_mostly)),
        ),
        row(
            "robots refuse them, without a device",
            Want::VALID,
            || workload(&FAULTS, true, true),
            "--no_proxy".to_owned(),
        ),
    ]
}
