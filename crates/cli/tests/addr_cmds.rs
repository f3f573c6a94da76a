//! The address tools as a user meets them.

use std::path::Path;
use std::process::Command;

/// Runs the program in a directory; gives exit status, standard output and standard error.
fn polygraph(dir: &Path, args: &str) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_polygraph"))
        .args(args.split(' '))
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn tables_and_single_ranges() {
    #[track_caller]
    fn check(args: &str, first_line: &str) {
        let (status, out, err) = polygraph(Path::new("."), args);
        assert_eq!((status, out.lines().next(), &*err), (Some(0), Some(first_line), ""), "{args}");
    }
    check("pmix3-ips 16 1000", "        bench:        16");
    check("pmix3-ips 16 1000/sec clt2", "10.16.5-8.1-209");
    check("pmix2-ips 16 1000 srvs", "10.16.129-134.1-126");
    check("webaxe4-ips 101 1000", "bench: 101");
    check("webaxe4-ips --route 101 1000 clt2", "10.101.4.0/22");
    check("webaxe4-ips --client_side.max_host_load 1000 101 1000 clts", "10.101.0-4.1-250");
}

#[test]
fn mistakes() {
    #[track_caller]
    fn check(args: &str, status: i32, message: &str) {
        let (found, out, err) = polygraph(Path::new("."), args);
        assert_eq!((found, &*out), (Some(status), ""), "{args}");
        assert!(err.contains(message), "{args}: {err}");
    }
    check("pmix3-ips 16 1000 clt9", 1, "error: there is no clt9: 3 machines of this side serve the rate\n");
    check("pmix3-ips 16 99999", 1, "error: 250000 robots need 1000 third octets");
    check("pmix3-ips 16", 2, "<RATE>");
    check("pmix3-ips 300 1000", 2, "300 is not in 0..=255");
    check("pmix3-ips 16 -5", 2, "error:");
    check("webaxe4-ips 101 0", 2, "write a positive number of requests per second");
    check("dns-cfg --zone t --addresses 10.0.0.9-1 --names a.t", 1, "the range 9-1 ends before it begins");
    check("dns-cfg --zone t --addresses 10.0.0.1 --names a.x", 1, "the name a.x is not in the zone t");
}

#[test]
fn zone_files_are_written_where_asked() {
    let dir = tempfile::tempdir().unwrap();
    let args = "dns-cfg --zone bench.tst --addresses 10.16.129.1-3:80 --names w[1-2].bench.tst:80";
    let (status, out, err) = polygraph(dir.path(), args);
    assert_eq!(status, Some(0));
    assert_eq!(err, "warning: 1 of 3 addresses have no name and are left out\n");
    assert!(out.starts_with("options {\n"), "{out}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(read("bench.tst").ends_with("w1\tIN\tA\t10.16.129.1\nw2\tIN\tA\t10.16.129.2\n"));
    assert!(read("bench.tst.rev").ends_with("1\tIN\tPTR\tw1.bench.tst.\n2\tIN\tPTR\tw2.bench.tst.\n"));
}
