//! Messages of a small bench: two client processes and a server process on three hosts.

use polygraph_live::statistics::{FORMAT, LiveError, LivePhase, LiveVerdict};
use polygraph_live::{LiveCounts, LiveState, LiveStatistics};
use polygraph_stats::Side;

/// When the runs started, in seconds since 1970.
pub const START_S: u64 = 1_700_000_000;

/// What a process says after `second` seconds of the phase `meas`, at a rate of `rate` per second.
pub fn message(host: &str, side: Side, second: u64, rate: f64) -> LiveStatistics {
    let counts = |seconds: f64| LiveCounts {
        seconds,
        started: rate * seconds,
        ok: rate * seconds,
        failed: seconds,
        rptm_us: rate * seconds * 20_000.0,
        basic: if side == Side::Client { rate * seconds } else { 0.0 },
        hits: if side == Side::Client { rate * seconds / 4.0 } else { 0.0 },
        offered_hits: 0.0,
        reply_bytes: rate * seconds * 1000.0,
        cpu_s: 0.1 * seconds,
        busiest_s: 0.1 * seconds,
    };
    LiveStatistics {
        format: FORMAT,
        host: host.into(),
        pid: 100,
        side,
        label: "trial".into(),
        workload: "PolyMix-1".into(),
        version: "0.2.0".into(),
        start_unix_us: START_S * 1_000_000,
        elapsed_s: second as f64,
        state: LiveState::Running,
        end: None,
        phase: Some(LivePhase {
            name: "meas".into(),
            index: 1,
            planned: 2,
            elapsed_s: second as f64,
            duration_s: Some(100.0),
            primary: true,
        }),
        planned_rate: Some(rate),
        interval: counts(1.0),
        total: counts(second as f64),
        rptm_p95_us: Some(30_000),
        open_connections: 5,
        transactions: 3,
        agents: 10,
        rss_bytes: 50 << 20,
        errors: vec![LiveError {
            number: "c99".into(),
            text: "<b>odd</b> reply".into(),
            count: second,
            fails: true,
        }],
        verdict: (side == Side::Client).then(|| LiveVerdict {
            word: "VALID".into(),
            meaning: "the device sustained the load".into(),
            findings: vec!["a remark".into()],
        }),
    }
}

/// What the bench says in a second.
pub fn bench(second: u64) -> Vec<LiveStatistics> {
    vec![
        message("clt1", Side::Client, second, 100.0),
        message("clt2", Side::Client, second, 300.0),
        message("srv1", Side::Server, second, 200.0),
    ]
}
