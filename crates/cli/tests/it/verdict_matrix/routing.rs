//! Devices that send requests to the wrong server or change their host, and devices that demand of robots what these do not have.

use super::bench::SHORT;
use super::device::DEMAND;
use super::setups::{MEASURE, proxied_by_squid_with_users, run, workload};
use super::{Deed, Device, Got, Row, Want};
use crate::peers::wait_for_listener;
use crate::sandbox::{Sandbox, free_port};

/// A workload with two servers, at these ports.
fn two_servers([first, second]: [u16; 2]) -> String {
    let text = workload("", "", MEASURE);
    text.replace("'127.0.0.1:PORT'", &format!("'127.0.0.1:{first}', '127.0.0.1:{second}'"))
}

/// A run with two servers through a device of this role that makes something of their ports.
fn balanced(role: &'static str, deed: fn([u16; 2]) -> Deed) -> impl Fn(&Sandbox) -> Got {
    move |sandbox| {
        let ports = [free_port(), free_port()];
        let device = Device::start(deed(ports));
        run(sandbox, &two_servers(ports), &format!("--{role} 127.0.0.1:{}", device.port()))
    }
}

pub fn servers() -> Vec<Row> {
    let wrong = Want::failed("misrouted", "the device sent requests to the wrong servers");
    let group = "a run with two servers";
    vec![
        Row::new(group, "a proxy asks any of them", wrong, balanced("proxy", Deed::Balance)),
        Row::new(
            group,
            "a surrogate asks any of them",
            Want::VALID.warning("misrouted"),
            balanced("surrogate", Deed::Balance),
        ),
        Row::new(group, "a surrogate asks any of them, and they have different names", wrong, |sandbox| {
            let ports @ [first, second] = [free_port(), free_port()];
            let device = Device::start(Deed::Balance(ports));
            let map = format!(
                "AddrMap M = {{ names = [ 'www.one.tst:{first}', 'www.two.tst:{second}' ]; addresses = S.addresses; }}; Robot"
            );
            let text = two_servers(ports).replacen("Robot", &map, 1);
            let text =
                text.replace("origins = S.addresses", "origins = M.names").replace("use(S,", "use(S, M,");
            run(sandbox, &text, &format!("--surrogate 127.0.0.1:{}", device.port()))
        }),
        Row::new(group, "a load balancer asks any of them", Want::VALID, balanced("balancer", Deed::Balance)),
        Row::new(
            group,
            "a load balancer asks only one of them",
            Want::VALID.warning("idle server"),
            balanced("balancer", |[first, _]| Deed::Balance([first, first])),
        ),
        Row::new(
            "a run",
            "a surrogate asks a server that is left over from another test",
            Want::invalid("test", "unasked"),
            |sandbox| {
                let port = free_port();
                let _other = sandbox.start(&format!("server --port {port} --loops 1"));
                wait_for_listener(port);
                let device = Device::start(Deed::Balance([port, port]));
                run(sandbox, &workload("", "", MEASURE), &format!("--surrogate 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "a surrogate asks such a server for every second request",
            Want::invalid("test", "unasked"),
            |sandbox| {
                let [own, other] = [free_port(), free_port()];
                let _other = sandbox.start(&format!("server --port {other} --loops 1"));
                wait_for_listener(other);
                let device = Device::start(Deed::Balance([own, other]));
                let text = workload("", "", MEASURE).replace("PORT", &own.to_string());
                run(sandbox, &text, &format!("--surrogate 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "a surrogate asks such a server, and all requests are uploads",
            Want::invalid("test", "unasked"),
            |sandbox| {
                let port = free_port();
                let _other = sandbox.start(&format!("server --port {port} --loops 1"));
                wait_for_listener(port);
                let device = Device::start(Deed::Balance([port, port]));
                let text = workload("", "req_methods = [ \"PUT\" ]; upload_contents = [ C ];", MEASURE);
                run(sandbox, &text, &format!("--surrogate 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new("a run", "the device replaces `Host`", Want::VALID.warning("host"), |sandbox| {
            let device = Device::start(Deed::Rewrite(|head| {
                let mut lines: Vec<&str> = head.lines().collect();
                lines
                    .iter_mut()
                    .filter(|line| line.starts_with("Host:"))
                    .for_each(|line| *line = "Host: backend");
                lines.join("\r\n") + "\r\n\r\n"
            }));
            run(sandbox, &workload("", "", MEASURE), &format!("--proxy 127.0.0.1:{}", device.port()))
        }),
    ]
}

/// A run through HAProxy that shows this certificate, with more options of `bind` behind it.
fn behind_haproxy(sandbox: &Sandbox, certificate: &str, words: &str) -> Got {
    let port = free_port();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    sandbox.write(
        "haproxy.cfg",
        &format!(
            "defaults\n mode http\n timeout connect 2s\n timeout client 5s\n timeout server 5s\n\
             frontend f\n bind 127.0.0.1:{port} ssl crt {certificate}\n"
        ),
    );
    let _haproxy = sandbox.start_program("haproxy", "-db -f haproxy.cfg");
    wait_for_listener(port);
    let done =
        sandbox.polygraph(&format!("run --surrogate 127.0.0.1:{port} --device_tls yes {words} {SHORT}"));
    Got::of_run(sandbox, &done)
}

/// Robots without what a device demands of its clients.
pub fn demands() -> Vec<Row> {
    let lacks = Want::invalid("test", "errors");
    vec![
        Row::new("a run", "Squid demands credentials of robots that have none", lacks, |sandbox| {
            proxied_by_squid_with_users(sandbox, "basic", "")
        }),
        Row::new(
            "a run with two servers",
            "a proxy demands credentials for one of them, and robots have none",
            lacks,
            balanced("proxy", |[first, _]| Deed::Protect(first)),
        ),
        Row::new(
            "a run",
            "a surrogate demands credentials of a proxy (407)",
            Want::failed("errors", "the device answered with errors"),
            |sandbox| {
                let device = Device::start(Deed::Say(DEMAND));
                run(sandbox, &workload("", "", MEASURE), &format!("--surrogate 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new("a run", "HAProxy demands certificates of robots that have none", lacks, |sandbox| {
            behind_haproxy(sandbox, "certs/127.0.0.1.pem ca-file certs/ca.crt verify required", "")
        }),
        Row::new("a run", "HAProxy shows a certificate of an authority (CA:TRUE)", lacks, |sandbox| {
            behind_haproxy(sandbox, "certs/ca.pem", "--trust_ca certs/ca.crt")
        }),
    ]
}
