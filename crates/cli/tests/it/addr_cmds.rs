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
    check(
        "pmix3-ips 16 1000 clt9",
        1,
        "error: there is no clt9: this side needs only 3 machines for the rate\n",
    );
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
    assert_eq!(err, "warning: 1 of 3 addresses have no name and are omitted\n");
    assert!(out.starts_with("options {\n"), "{out}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(read("bench.tst").ends_with("w1\tIN\tA\t10.16.129.1\nw2\tIN\tA\t10.16.129.2\n"));
    assert!(read("bench.tst.rev").ends_with("1\tIN\tPTR\tw1.bench.tst.\n2\tIN\tPTR\tw2.bench.tst.\n"));
}

/// The standard workloads, with the parameters of a small PolyMix-4 on two machines per side.
fn polymix_4(tool: &str, more: &str) -> String {
    let workloads = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    format!(
        "{tool} --config {workloads}/polymix-4.pg --cfg_dirs {workloads}/include --set TheBench.peak_req_rate=800/sec \
         --set FillRate=400/sec --set ProxyCacheSize=1GB --set DnsServers=['172.16.101.100:53'] \
         --set TheBench.client_side.hosts=['172.16.101.61-62'] --set TheBench.server_side.hosts=['172.16.101.191-192']\
         {more}"
    )
}

#[test]
fn machines_of_a_workload() {
    #[track_caller]
    fn check(more: &str, text: &str) {
        let (status, out, err) = polygraph(Path::new("."), &polymix_4("pgl2ips", more));
        assert_eq!((status, &*out, &*err), (Some(0), text, ""), "{more}");
    }
    check(
        "",
        "scope: host=any agent=any\n\n\
         polyclt1: host=172.16.101.61 ips=10.101.0-1.1-250 agents=1000\n\
         polyclt2: host=172.16.101.62 ips=10.101.4-5.1-250 agents=1000\n\
         polysrv1: host=172.16.101.191 ips=10.101.128.1-250,10.101.129.1-100 agents=350\n\
         polysrv2: host=172.16.101.192 ips=10.101.132.1-250,10.101.133.1-100 agents=350\n\
         robot1: kind=PolyMix-4-rbt ips=10.101.0-1.1-250,10.101.4-5.1-250 agents=2000\n\
         server1: kind=PolyMix-4-srv ips=10.101.128.1-250,10.101.129.1-100,10.101.132.1-250,10.101.133.1-100 \
         agents=700\n",
    );
    check(" --var polyclt2.ips", "10.101.4-5.1-250\n");
    check(" --host polysrv2 --var PolyMix-4-srv.agents", "350\n");
    let (status, _, err) = polygraph(Path::new("."), &polymix_4("pgl2ips", " --host polyclt3"));
    assert_eq!(status, Some(1));
    assert_eq!(err, "error: there is no host 'polyclt3'; hosts are polyclt1, polyclt2, polysrv1, polysrv2\n");
}

#[test]
fn zone_files_of_a_workload() {
    let dir = tempfile::tempdir().unwrap();
    let (status, out, err) = polygraph(dir.path(), &polymix_4("dns-cfg", ""));
    assert_eq!((status, &*err), (Some(0), ""));
    assert!(out.contains("zone \"bench.tst\" {"), "{out}");
    let zone = std::fs::read_to_string(dir.path().join("bench.tst")).unwrap();
    assert_eq!(zone.lines().filter(|line| line.contains("\tA\t10.101.")).count(), 700);
    assert!(zone.contains("\nw1001.h1128o1101s1010\tIN\tA\t10.101.128.1\n"), "{zone}");
    assert!(zone.ends_with("\nw1100.h1133o1101s1010\tIN\tA\t10.101.133.100\n"));

    let (status, _, err) = polygraph(dir.path(), "dns-cfg --config no-such.pg");
    assert_eq!(status, Some(1));
    assert!(err.ends_with("error: no-such.pg does not compile\n"), "{err}");
    let (status, _, err) = polygraph(dir.path(), "dns-cfg --config x.pg --zone t");
    assert_eq!(status, Some(2), "{err}");
}
