//! `msl_test` against TCPs that wait for different times: Linux, and one of our own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::network::{ADDRESSES, TwoHosts};
use crate::sandbox::{Done, Sandbox};
use crate::tcp_peer::{Manner, TcpPeer};

const PORT: u16 = 8080;

fn address(ipv6: bool) -> SocketAddr {
    SocketAddr::new(ADDRESSES[1][usize::from(ipv6)].parse().unwrap(), PORT)
}

/// Measures a peer of our own from the other host.
fn measure(manner: Manner, ipv6: bool, options: &str) -> Done {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    let peer = hosts.on(1, || TcpPeer::start(address(ipv6), manner));
    let words = format!("msl_test -i cable -d {} -p {PORT} {options}", address(ipv6).ip());
    let done = hosts.polygraph(0, &sandbox, &words);
    drop(peer);
    done
}

/// A field of the output in JSON.
fn number(done: &Done, name: &str) -> f64 {
    let line = done
        .out
        .lines()
        .find(|line| line.contains(&format!("\"{name}\":")))
        .unwrap_or_else(|| panic!("{done:?}"));
    line.rsplit_once(": ").unwrap().1.trim_end_matches(',').parse().unwrap_or_else(|_| panic!("{done:?}"))
}

#[test]
fn a_linux_host_waits_for_60_seconds() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    let server = hosts.on(1, || TcpListener::bind(address(false)).unwrap());
    let thread = std::thread::spawn(move || {
        // The connection of the test and the one that ends it.
        let (mut client, _) = server.accept().unwrap();
        let _ = client.read(&mut [0; 1024]);
        client.write_all(b"HTTP/1.0 200 OK\r\n\r\npage").unwrap();
        drop(client);
        server
    });
    let source = ADDRESSES[0][0];
    sandbox.link("msl_test");
    let done = hosts.polygraph(
        0,
        &sandbox,
        &format!("msl_test -s {source} -d {} -p {PORT} --json", address(false).ip()),
    );
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(done.out.contains("\"verdict\": \"meets\""), "{done:?}");
    // Timers of the kernel are never early, and those of this length are up to two seconds late.
    let (least, most) = (number(&done, "at_least_s"), number(&done, "time_wait_s"));
    assert!((58.0..=62.2).contains(&least) && (59.9..65.0).contains(&most), "{done:?}");
    assert!(number(&done, "acknowledgements") > 20.0, "Linux answers old duplicates: {done:?}");
    drop(thread.join().unwrap());
}

#[test]
fn peers_that_wait_for_other_times() {
    for (seconds, ipv6) in [(3, false), (2, true)] {
        let done = measure(Manner::Close(Duration::from_secs(seconds)), ipv6, "--json");
        assert_eq!(done.code(), Some(1), "{done:?}");
        assert!(done.out.contains("\"verdict\": \"violates\""), "{done:?}");
        let (least, most, wanted) =
            (number(&done, "at_least_s"), number(&done, "time_wait_s"), seconds as f64);
        assert!(least <= wanted + 0.01 && wanted <= most && most < wanted + 3.0, "{done:?}");
    }
    let done = measure(Manner::Close(Duration::from_secs(3)), false, "--rule 3s");
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(
        done.out.contains("which is an MSL of 1.5 s") && done.out.contains("meets the 3 s rule"),
        "{done:?}"
    );
    let done = measure(Manner::Close(Duration::from_secs(600)), false, "--rule 1s --most 2s");
    assert!(done.out.contains("longer than") && done.code() == Some(0), "{done:?}");
}

#[test]
fn peers_that_do_not_close_in_order() {
    let done = measure(Manner::Reset, false, "");
    assert!(
        done.out.contains("does not close connections, it resets them") && done.code() == Some(1),
        "{done:?}"
    );
    assert!(done.out.contains("violates the 60 s rule"), "{done:?}");
    let done = measure(Manner::KeepOpen, false, "--patience 1s");
    assert!(
        done.out.contains("does not close the connection within 1 s") && done.code() == Some(1),
        "{done:?}"
    );
}

#[test]
fn what_keeps_the_test_from_measuring() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    for (options, code, text) in [
        ("-d 10.77.0.2 -p 9", 1, "refuses connections"),
        ("-d 10.77.0.99 -p 9 --patience 1500ms", 1, "does not answer"),
        ("-d 10.99.0.1 -p 9", 3, "there is no route to 10.99.0.1"),
        ("-d 10.77.0.2 -p 9 -s 10.77.0.7", 3, "10.77.0.7 is not an address of this host"),
        ("-d 10.77.0.2 -p 9 -s fd77::1", 2, "different families"),
        ("-d 10.77.0.2 -p 9 -i absent", 3, "cannot use the interface absent"),
        ("-d 10.77.0.2 -p 0", 2, "0 is not a port"),
        ("-d 10.77.0.2 -p 9 --most 10s", 2, "before the 60 s of the rule"),
        ("-d fe80::1 -p 9", 2, "write its interface with -i"),
        ("-d fe80::1 -p 9 -i absent", 3, "cannot use the interface absent"),
    ] {
        let done = hosts.polygraph(0, &sandbox, &format!("net msl_test {options}"));
        assert_eq!(done.code(), Some(code), "{options}: {done:?}");
        assert!((done.out.clone() + &done.err).contains(text), "{options}: {done:?}");
    }
    // Someone who is not root. The program must be readable to everyone for this.
    let program = sandbox.path().join("polygraph");
    std::fs::copy(env!("CARGO_BIN_EXE_polygraph"), &program).unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    open(sandbox.path());
    open(&program);
    let words = format!("--reuid 65534 --clear-groups {} msl_test -d 127.0.0.1 -p 9", program.display());
    let done = sandbox.start_program("setpriv", &words).finish();
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("needs root") && done.err.contains("CAP_NET_RAW"), "{done:?}");
}
