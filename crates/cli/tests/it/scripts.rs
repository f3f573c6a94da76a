//! What scripts, samples and dumps show.

use crate::sandbox::{Sandbox, free_port};

#[test]
fn scripts_samples_and_dumps_are_seen_where_they_belong() {
    let sandbox = Sandbox::new();
    let text = "
        Content C = { size = const(2KB); };
        Server S = { contents = [ C ]; direct_access = contents; addresses = ['127.0.0.1:PORT']; };
        Robot R = { origins = S.addresses; req_rate = 40/sec; addresses = ['127.0.0.1']; };
        Goal half = { duration = 500msec; };
        StatsSample T = { capacity = 9; };
        Phase P = { name = \"p\"; goal.duration = 3sec; load_factor_beg = 25%; stats_samples = [ T ]; script = {
            every half do { setLoadFactorTo(100%); print(\"now at \", currentLoadFactor()); }
        }; };
        schedule(P);
        use(S, R);
    ";
    sandbox.write("s.pg", &text.replace("PORT", &free_port().to_string()));
    let dump = "--dump req-hdr,sum --dump_size 40";
    let done = sandbox.polygraph(&format!("run --no_proxy --config s.pg --verb_lvl 6 {dump}"));
    for line in [
        "fyi: watchdog at s.pg:8:13: every 0.5 s",
        "fyi: load factor 25 % -> 100 %",
        "script output: now at 1",
        "dump: request of GET http://127.0.0.1",
        "sum: xact ",
    ] {
        assert!(done.out.contains(line), "{line}: {done:?}");
    }
    assert_eq!(done.out.matches("fyi: load factor").count(), 1, "what stays is not told: {done:?}");
    assert!(
        !done.out.contains("transactions per second were planned"),
        "the planned load is only the highest: {done:?}"
    );
    let log = sandbox.result().join("client.log");
    let shown = sandbox.polygraph(&format!("lr {}", log.display())).out;
    let xacts = shown.lines().filter(|line| line.contains("| sample p: xact=")).count();
    assert_eq!(xacts, 9, "{shown}");
    assert!(shown.contains("script output: now at 1") && !shown.contains("dump:"), "{shown}");
}
