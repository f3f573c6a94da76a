//! The response time controller of a phase, with a device whose response time rises with its load.

use crate::sandbox::{Sandbox, free_port, quiet, valid};

/// A statistics line of the console: seconds since the start, replies per second.
fn interval(line: &str) -> Option<(f64, f64)> {
    let (minutes, rest) = line.split_once("| i-hold ")?;
    let rate = rest.split_whitespace().nth(1)?;
    Some((minutes.parse::<f64>().ok()? * 60.0, rate.parse().ok()?))
}

/// The device serves 200 requests per second, and 2/3 of that from the 17th second on. Theory (M/M/1) has mean response
/// times of 25 to 60 ms at 80 to 92 % of its capacity: 160 to 183 per second, then 93 to 117.
#[test]
fn the_load_finds_its_level_and_follows_a_slower_device() {
    let _quiet = quiet();
    let workload = "
        Content C = { size = const(1KB); cachable = 0%; };
        Server S = { contents = [ C ]; addresses = ['127.0.0.1:PORT']; pconn_use_lmt = const(1000); };
        Robot R = { origins = S.addresses; req_rate = 150/sec; addresses = ['127.0.0.1' ** 2]; pconn_use_lmt = const(1000); };
        Phase P = { name = \"hold\"; goal.duration = 36sec; load_factor_beg = 40%; primary = true;
            rptmstat = { sample_dur = 1sec; load_delta = 6%; rptm_min = 25msec; rptm_max = 60msec; }; };
        schedule(P);
        use(S, R);
    ";
    let (_sandbox, done) = valid(|| {
        let sandbox = Sandbox::new();
        sandbox.write("hold.pg", &workload.replace("PORT", &free_port().to_string()));
        let done = sandbox.polygraph(
            "run --device builtin --device_opt service_work=exp:5ms --device_opt slow_down=17s:1.5 \
             --config hold.pg --verb_lvl 8 --stats_cycle 1s --loops 1",
        );
        (sandbox, done)
    });
    // The workload plans no rate for a phase whose load follows the response time.
    assert!(!done.out.contains("planned load"), "{}", done.out);
    for said in [
        "000.0000| fyi: rptmstat: samples of 1 s, load changes by 6 % to keep the mean response time between 25.0 ms and 60.0 ms",
        "ms changes load by +6 %",
        "ms changes load by -6 %",
        "requires no load adjustment",
        "fyi: load factor 40 % -> 42.4 %",
    ] {
        assert!(done.out.contains(said), "{said}: {}", done.out);
    }
    let rate = |from: f64, to: f64| {
        let rates: Vec<f64> = done
            .out
            .lines()
            .filter_map(interval)
            .filter(|(at, _)| (from..to).contains(at))
            .map(|(_, rate)| rate)
            .collect();
        assert!(rates.len() >= 4, "{from} {to}: {}", done.out);
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    let (before, after) = (rate(9.5, 17.5), rate(29.5, 36.5));
    assert!((145.0..200.0).contains(&before), "{before}: {}", done.out);
    assert!((80.0..134.0).contains(&after), "{after}: {}", done.out);
    assert!(after < 0.8 * before, "{before} {after}: {}", done.out);
}
