//! Seeded mutation of messages, for fuzzing without coverage.

use polygraph_live::LiveStatistics;
use polygraph_live::notification::{ForwardedNotification, Micros, Notification};
use polygraph_live::subscription::of_notification;
use polygraph_stats::Side;
use polygraph_testing::mutation::{Mutator, Random};

/// Takes any bytes for everything that foreign bytes are taken for. Nothing may panic, and what is understood must have
/// finite values. True if one of the readers understood the bytes.
pub fn run(data: &[u8]) -> bool {
    let plain = Notification::decode(data).ok();
    let forwarded = ForwardedNotification::decode(data).ok().map(|found| found.notification);
    for found in [&plain, &forwarded].into_iter().flatten() {
        let Notification {
            request_rate, reply_rate, bandwidth, hit_ratio, connection_use, error_ratio, ..
        } = found;
        let values = [
            Some(*request_rate),
            Some(*reply_rate),
            Some(*bandwidth),
            *hit_ratio,
            *connection_use,
            *error_ratio,
        ];
        assert!(values.iter().flatten().all(|value| value.is_finite()), "{found:?}");
        assert!(!found.label.contains(char::is_control), "{found:?}");
        // What was understood can be sent on.
        assert!(Notification::decode(&found.encode()).is_ok(), "{found:?}");
    }
    let line = LiveStatistics::read(data).ok();
    if let Ok(found) = ForwardedNotification::decode(data) {
        check(&of_notification(&found));
    }
    line.iter().for_each(check);
    plain.is_some() || forwarded.is_some() || line.is_some()
}

/// What was understood can be sent on.
fn check(message: &LiveStatistics) {
    let again = LiveStatistics::read(message.line().as_bytes()).unwrap();
    assert!(!again.host.contains(char::is_control) && !again.label.contains(char::is_control), "{again:?}");
}

/// A line of a stream.
const LINE: &str = r#"{"format":1,"host":"a","pid":7,"side":"client","label":"l","workload":"w","version":"0.2.0",
"start_unix_us":1700000000000000,"elapsed_s":3.5,"state":"running","end":null,
"phase":{"name":"meas","index":1,"planned":2,"elapsed_s":1.5,"duration_s":10.0,"primary":true},"planned_rate":null,
"interval":{"seconds":1.0,"started":5.0,"ok":4.0,"failed":1.0,"rptm_us":1e3,"basic":4.0,"hits":2.0,"offered_hits":3.0,
"reply_bytes":1e4,"cpu_s":0.1,"busiest_s":0.1},
"total":{"seconds":3.0,"started":5.0,"ok":4.0,"failed":1.0,"rptm_us":1e3,"basic":4.0,"hits":2.0,"offered_hits":3.0,
"reply_bytes":1e4,"cpu_s":0.1,"busiest_s":0.1},
"rptm_p95_us":900,"open_connections":3,"transactions":2,"agents":10,"rss_bytes":1000,
"errors":[{"number":"c1","text":"t","count":1,"fails":true}],
"verdict":{"word":"VALID","meaning":"m","findings":["f"]}}"#;

/// The messages that mutation starts from.
pub fn corpus() -> Vec<Vec<u8>> {
    let notification = Notification {
        label: "label".into(),
        start: Micros(1_700_000_000_000_000),
        sent: Micros(1_700_000_010_000_001),
        response_time: Some(Micros(3_012_345)),
        request_rate: 100.5,
        reply_rate: 99.0,
        bandwidth: 1.3e6,
        hit_ratio: Some(0.55),
        connection_use: Some(1.0),
        error_ratio: None,
        transactions: 1000,
        errors: 2,
        open_connections: 300,
        side: Side::Client,
    };
    let datagram = notification.encode();
    let sender = std::net::SocketAddrV4::new([10, 0, 0, 1].into(), 4000);
    let forwarded = ForwardedNotification::encode(&datagram, Micros(1), sender, 2);
    vec![datagram.to_vec(), forwarded.to_vec(), LINE.replace('\n', "").into_bytes()]
}

/// Another message made from those of the corpus.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    Mutator::default().mutate(corpus, random)
}
