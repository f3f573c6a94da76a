//! Workloads with several kinds of servers, contents and names, run as a whole.

use crate::sandbox::{Sandbox, free_port};

/// Two kinds of servers with pages and images, known by names that nobody can look up.
fn write_workload(sandbox: &Sandbox, port: u16) {
    let text = "
        Content Image = { kind = \"image\"; size = exp(2KB); cachable = 50%; };
        Content Page = { kind = \"page\"; size = const(4KB); cachable = 100%; may_contain = [ Image ];
            embedded_obj_cnt = const(3); mime = { type = \"text/html\"; extensions = [ \".html\" ]; }; };
        Content Text = { kind = \"text\"; size = unif(1KB, 3KB); checksum = 100%; };
        Content Large = { kind = \"large\"; size = const(3MB); };
        Server A = { kind = \"A\"; contents = [ Page, Image ]; direct_access = [ Page ];
            addresses = ['127.22.0.1-2:PORT']; pconn_use_lmt = const(9); };
        Server B = { kind = \"B\"; contents = [ Text, Large: 10% ]; addresses = ['127.22.0.3:PORT'];
            idle_pconn_tout = 1sec; http_versions = [ \"1.0\" ]; };
        AddrMap M = { names = ['a[1-2].bench.tst:PORT', 'b.bench.tst:PORT'];
            addresses = [ A.addresses, B.addresses ]; };
        Robot R = { kind = \"R\"; origins = M.names; embed_recur = 100%; recurrence = 40%;
            pop_model.pop_distr = popUnif(); req_rate = 20/sec; addresses = ['127.23.0.1-5'];
            pconn_use_lmt = const(5); open_conn_lmt = 4;
            dns_resolver = { servers = RESOLVERS; timeout = 1sec; }; };
        Phase run = { name = \"run\"; goal.duration = 10min; };
        schedule(run);
        use(A, B, M, R);
    ";
    let text = text.replace("PORT", &port.to_string());
    sandbox.write("named.pg", &text.replace("RESOLVERS", "['127.22.0.9']"));
    sandbox.write("mapped.pg", &text.replace("dns_resolver = { servers = RESOLVERS; timeout = 1sec; };", ""));
}

#[test]
fn pages_images_and_names_of_several_servers() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, free_port());
    // Whether the machine is too busy for a verdict does not matter here.
    let done = sandbox.polygraph("run --no-proxy --config mapped.pg --scale 1/100");
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    // 100/s for 6 s, embedded objects included.
    let ok = figures["ok_xact.count"];
    assert!((ok - 600.0).abs() < 5.0 * 600f64.sqrt(), "{ok}: {}", done.out);
    assert_eq!(figures["errors.count"], 0.0, "{}", done.out);
    // A page and its three images.
    assert!(done.out.contains("4.0 replies each"), "{}", done.out);
    let manifest = sandbox.read(sandbox.result().join("manifest.json"));
    for fact in [
        "content 3 page",
        "content 4 image",
        "content 5 text",
        "content 6 large",
        "A: servers",
        "B: HTTP version",
        "a1.bench.tst",
    ] {
        assert!(manifest.contains(fact), "{fact}: {manifest}");
    }
}

#[test]
fn a_surrogate_stands_for_all_servers() {
    let sandbox = Sandbox::new();
    let port = free_port();
    write_workload(&sandbox, port);
    // It passes all requests on to one of the servers, which knows its own name and no other.
    let mut surrogate = sandbox.start(&format!("proxy --port 0 --loops 1 --origin 127.22.0.1:{port}"));
    let place = surrogate.port("proxy at");
    let done =
        sandbox.polygraph(&format!("run --surrogate 127.0.0.1:{place} --config named.pg --scale 1/300"));
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let ok = client["ok_xact.count"];
    assert!(ok > 50.0, "names are not looked up: {}", done.out);
    let manifest = sandbox.read(sandbox.result().join("manifest.json"));
    assert!(manifest.contains("a1.bench.tst") && !manifest.contains("name servers"), "{manifest}");
    let other = sandbox.polygraph("run --surrogate 127.0.0.1:1 --proxy 127.0.0.1:1 --config mapped.pg");
    assert_eq!(other.code(), Some(2), "{}", other.err);
}

#[test]
fn what_cannot_be_run_is_listed() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "odd.pg",
        "Content C = { size = const(1KB); };
         Server S = { contents = [ C ]; addresses = ['127.0.0.1:9090']; };
         Robot R = { origins = S.addresses; addresses = ['127.0.0.1'];
             interests = [ \"foreign\": 10%, \"public\" ]; foreign_trace = \"no-such-trace\"; };
         use(S, R);",
    );
    let done = sandbox.polygraph("run --config odd.pg --scale 0");
    assert!(done.code() == Some(2) && done.err.contains("not a factor"), "{}", done.err);
    let done = sandbox.polygraph("run --config odd.pg");
    assert_eq!(done.code(), Some(2), "{}", done.err);
    assert!(done.err.contains("cannot read no-such-trace"), "{}", done.err);
}

#[test]
fn what_is_not_implemented_is_refused_by_checks_and_runs_alike() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "odd.pg",
        "Content C = { size = const(1KB); };
         Server S = { contents = [ C ]; addresses = ['127.0.0.1:9090']; accept_lmt = 5; };
         Robot R = { origins = S.addresses; addresses = ['127.0.0.1']; acl.deny = url =~/private/; };
         use(S, R);",
    );
    for (command, code) in [("check odd.pg", 1), ("run odd.pg", 2)] {
        let done = sandbox.polygraph(command);
        assert_eq!(done.code(), Some(code), "{command}: {}", done.err);
        for words in
            ["error[E1601]: `accept_lmt` is not implemented", "`acl` is not implemented", "odd.pg:3:"]
        {
            assert!(done.err.contains(words), "{command}: {words}: {}", done.err);
        }
    }
}
