//! Lines of each device's log, as the programs write them.

use polygraph_device::{AccessCounts, Device, PlainCounts};

#[test]
fn lines_by_example() {
    let squid = "\
1795293981.887     43 127.0.0.1 TCP_MISS/200 5199 GET http://127.0.0.1:3200/a - HIER_DIRECT/127.0.0.1 - GET/-/-/-
1795293981.889      0 127.0.0.1 TCP_MEM_HIT/200 5206 GET http://127.0.0.1:3200/a - HIER_NONE/- - GET/-/-/-
1795293981.889      0 127.0.0.1 TCP_HIT/200 5206 GET http://127.0.0.1:3200/a - HIER_NONE/- - GET/-/-/-
1795293981.890      0 127.0.0.1 TCP_IMS_HIT/304 300 GET http://127.0.0.1:3200/a - HIER_NONE/- - GET/-/-/Sun,%2006%20Nov%201994%2008:49:37%20GMT
1795293981.890      2 127.0.0.1 TCP_REFRESH_UNMODIFIED/200 5206 GET http://127.0.0.1:3200/a - HIER_DIRECT/127.0.0.1 -
1795293981.891      2 127.0.0.1 TCP_REFRESH_MODIFIED/200 5206 GET http://127.0.0.1:3200/a - HIER_DIRECT/127.0.0.1 -
1795293981.892      2 127.0.0.1 TCP_CLIENT_REFRESH_MISS/200 5206 GET http://127.0.0.1:3200/a - HIER_DIRECT/127.0.0.1 - GET/no-cache/-/-
1795293981.892      0 127.0.0.1 TCP_MEM_HIT/206 606 GET http://127.0.0.1:3200/a - HIER_NONE/- - GET/-/bytes=0-99/-
1795293981.893      2 127.0.0.1 TCP_MISS_ABORTED/200 17 GET http://127.0.0.1:3200/a - HIER_DIRECT/127.0.0.1 - GET/-/-/-
1795293981.894      0 127.0.0.1 TCP_DENIED/403 4000 GET http://127.0.0.1:3200/a - HIER_NONE/- text/html
1795293981.895      0 127.0.0.1 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -
1795293981.896      0 127.0.0.1 NONE_NONE/400 3900 - error:invalid-request - HIER_NONE/- text/html
1795293981.897      0 127.0.0.1 TCP_MEM_";
    let traffic_server = "\
1795293981.887 1 127.0.0.1 TCP_MISS/200 5199 GET http://127.0.0.1:3200/a DIRECT/127.0.0.1 - GET/-/-/Sun, 06 Nov 1994 08:49:37 GMT
1795293981.889 0 127.0.0.1 TCP_HIT/200 5199 GET http://127.0.0.1:3200/a NONE/- - GET/-/-/-
1795293981.978 0 127.0.0.1 TCP_MEM_HIT/200 5199 GET http://127.0.0.1:3200/a NONE/- - GET/-/-/-
1795293981.979 0 127.0.0.1 TCP_REFRESH_HIT/200 5199 GET http://127.0.0.1:3200/a DIRECT/127.0.0.1 - GET/-/-/Sun, 06 Nov 1994 08:49:37 GMT
1795293981.980 0 127.0.0.1 TCP_REFRESH_MISS/200 5199 GET http://127.0.0.1:3200/a DIRECT/127.0.0.1 - GET/-/-/Sun, 06 Nov 1994 08:49:37 GMT
1795293981.981 0 127.0.0.1 ERR_CONNECT_FAIL/502 400 GET http://127.0.0.1:3200/a DIRECT/- text/html
";
    let varnish = "\
1795293989.891615 943 127.0.0.1 miss/200 5199 GET /a GET/-/-/-
1795293989.893020 92 127.0.0.1 hit/200 5205 GET /a GET/-/-/-
1795293989.893440 1177 127.0.0.1 pass/200 5190 POST /a POST/-/-/-
1795293989.893940 11 127.0.0.1 synth/400 200 GET /a
1795293989.893941 11 127.0.0.1 -/400 - GET /a
";
    let nginx = "\
1795294182.986 0.001 127.0.0.1 MISS/200 5194 GET /a GET/-
1795294182.987 0.000 127.0.0.1 HIT/200 5194 GET /a GET/+
1795294182.988 0.000 127.0.0.1 REVALIDATED/200 5194 GET /a
1795294182.989 0.000 127.0.0.1 EXPIRED/200 5194 GET /a
1795294182.989 0.000 127.0.0.1 -/200 5194 GET /a
";
    let haproxy = "\
1795294181.495 1 127.0.0.1 origins/origin1/200 5184 GET /a
1795294181.497 1 127.0.0.1 origins/origin2/200 5184 GET /a
[NOTICE]   (1) : New worker forked
";
    let counts = |requests, hits, misses, other, bytes, unreadable, plain: Option<(u64, u64)>| AccessCounts {
        requests,
        hits,
        misses,
        other,
        bytes,
        unreadable,
        plain: plain.map(|(requests, hits)| PlainCounts { requests, hits }),
    };
    for (name, log, expected) in [
        (
            "squid",
            squid,
            counts(11, 5, 4, 2, 5199 + 5 * 5206 + 606 + 300 + 17 + 4000 + 3900, 1, Some((4, 2))),
        ),
        ("trafficserver", traffic_server, counts(6, 3, 2, 1, 5 * 5199 + 400, 0, Some((2, 2)))),
        ("varnish", varnish, counts(5, 1, 2, 2, 5199 + 5205 + 5190 + 200, 0, Some((2, 1)))),
        ("nginx", nginx, counts(5, 2, 2, 1, 5 * 5194, 0, Some((1, 0)))),
        ("haproxy", haproxy, counts(2, 0, 0, 2, 2 * 5184, 1, None)),
    ] {
        let device = Device::find(name).unwrap();
        let found = device.log_format().unwrap().count(log.as_bytes()).unwrap();
        assert_eq!(found, expected, "{name}");
    }
}
