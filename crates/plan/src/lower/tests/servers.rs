//! Settings of servers, and how robots see them: by name, by address, through a device.

use polygraph_origin::settings::{Cookies, Redirects};
use polygraph_robot::ToldFreshness;

use super::*;

#[test]
fn settings_of_servers() {
    type Change = fn(&mut polygraph_origin::settings::ServerProfile);
    let cases: &[(&str, Change)] = &[
        ("S.xact_think = norm(3sec, 1.5sec); S.xact_lifetime = const(9sec);", |s| {
            s.think = Some(Distr::Norm { mean: 3.0, sd: 1.5 });
            s.lifetime = Some(Distr::Const(9.0));
        }),
        ("S.http_versions = [ \"1.0\" ];", |s| s.http_minors = Selector::only(0)),
        ("S.http_versions = [ \"2\", \"1.0\": 20% ]; S.h2_streams = 7;", |s| {
            s.http_minors = Selector::only(0);
            s.http2 = Some(Http2Settings { streams: 7, window: 1 << 20 });
        }),
        ("S.http_versions = [ \"2\" ]; S.h2_window = 2MB;", |s| {
            s.http_minors = Selector::default();
            s.accepts_http1 = false;
            s.http2 = Some(Http2Settings { streams: 100, window: 2 << 20 });
        }),
        ("S.pconn_use_lmt = zipf(16); S.idle_pconn_tout = 15sec; S.abort_prob = 0.1%;", |s| {
            s.requests_per_connection = Distr::Zipf { n: 16 };
            s.idle_timeout = Some(15 * SECOND);
            s.abort_prob = 0.001;
        }),
        (
            "S.rep_types = [ \"302 Found\": 10%, \"Basic\" ]; S.pop_model = { pop_distr = popZipf(1); };",
            |s| {
                s.redirects = Some(Redirects {
                    share: 0.1,
                    popularity: PopModel::plain(Popularity::Zipf { skew: 1.0 }),
                });
            },
        ),
        (
            "S = { cookie_set_prob = 40%; cookie_set_count = unif(1.0, 3.0); cookie_value_size = const(9Byte); cookie_sender = 50%; };",
            |s| {
                s.cookies = Some(Cookies {
                    senders: 0.5,
                    prob: 0.4,
                    count: Distr::Unif { min: 1.0, max: 3.0 },
                    size: Distr::Const(9.0),
                });
            },
        ),
        ("S.req_body_allowed = 70%; S.http_headers = [ 'X-A: v': 30% ];", |s| {
            s.continue_prob = 0.7;
            s.headers = vec![word(0.3, "X-A")];
        }),
        ("Content D = C; D.kind = \"d\"; S.contents = [ C: 10%, D ];", |s| {
            s.contents = Selector::weighted([(ContentKind(3), 0.1), (ContentKind(4), 0.9)]);
        }),
    ];
    for (more, change) in cases {
        let mut wanted = adopted("").servers[0].farm.clone();
        change(&mut wanted);
        same(more, &adopted(more).servers[0].farm, &wanted);
    }
}

/// Visible servers: name in URLs, addresses to connect to, and contents (number, kinds, shares).
#[test]
fn visible_servers() {
    let other = "Content D = C; D.kind = \"d\"; Server T = S; T = { contents = [ D ]; addresses = [ '10.0.2.1:80' ]; };";
    // More of the program, and authority, addresses and kinds of each visible server.
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(u8, f64)]);
    let one = &[(3, 1.0)][..];
    let cases: &[(String, &[Row<'_>])] = &[
        // One name for all addresses, and no resolver: robots pick any address.
        (
            "AddrMap M = { names = [ 'w.tst:80' ]; addresses = S.addresses; }; use(M); R.origins = M.names;".into(),
            &[("w.tst:80", &["10.0.1.1:80", "10.0.1.2:80"], one)],
        ),
        // A name for each address, in turn; without ports, URLs have the port of HTTP.
        (
            "AddrMap M = { names = [ 'w[1-3].tst' ]; addresses = S.addresses; }; use(M); R.origins = M.names;".into(),
            &[
                ("w1.tst:80", &["10.0.1.1:80"], one),
                ("w2.tst:80", &["10.0.1.2:80"], one),
                ("w3.tst:80", &["10.0.1.1:80"], one),
            ],
        ),
        // Names that robots resolve.
        (
            "AddrMap M = { names = [ 'w.tst:80' ]; addresses = S.addresses; }; use(M); R.origins = M.names; \
             R.dns_resolver = { servers = [ '10.6.0.1' ]; timeout = 1sec; };"
                .into(),
            &[("w.tst:80", &[], one)],
        ),
        // A device with its own address that poses as the servers.
        (
            "AddrMap M = { names = [ '10.3.0.1:8080' ]; addresses = S.addresses; }; use(M); R.origins = M.names;"
                .into(),
            &[("10.3.0.1:8080", &["10.3.0.1:8080"], one)],
        ),
        // Different servers behind one name: their contents are mixed.
        (
            format!(
                "{other} use(T); AddrMap M = {{ names = [ 'w.tst:80' ]; addresses = [ S.addresses, T.addresses ]; }}; \
                 use(M); R.origins = M.names;"
            ),
            &[(
                "w.tst:80",
                &["10.0.1.1:80", "10.0.1.2:80", "10.0.2.1:80"],
                // The server that is used first has the first content.
                &[(3, 1.0 / 3.0), (4, 2.0 / 3.0)],
            )],
        ),
        // Different servers, each with its contents; only those that robots request are listed.
        (
            format!("{other} use(T); R.origins = [ T.addresses, '10.0.1.2:80' ];"),
            &[("10.0.2.1:80", &["10.0.2.1:80"], one), ("10.0.1.2:80", &["10.0.1.2:80"], &[(4, 1.0)])],
        ),
        // Contents that are not requested directly.
        (
            "Content I = { kind = \"i\"; size = const(1KB); }; C.may_contain = [ I ]; C.embedded_obj_cnt = const(2); \
             Content O = { kind = \"o\"; size = const(1KB); }; S.contents = [ C: 15%, I: 65%, O ]; \
             S.direct_access = [ C, O ]; R.origins = [ '10.0.1.1:80' ];"
                .into(),
            &[("10.0.1.1:80", &["10.0.1.1:80"], &[(3, 15.0 / 35.0), (5, 20.0 / 35.0)])],
        ),
        // Their own shares, even if they are equal.
        (
            "Content O = { kind = \"o\"; size = const(1KB); }; S.contents = [ C: 90%, O ]; \
             S.direct_access = [ C: 50%, O: 50% ]; R.origins = [ '10.0.1.1:80' ];"
                .into(),
            &[("10.0.1.1:80", &["10.0.1.1:80"], &[(3, 0.5), (4, 0.5)])],
        ),
    ];
    for (more, wanted) in cases {
        let test = adopted(more);
        let got: Vec<_> = test
            .field
            .servers
            .iter()
            .map(|server| {
                let direct = &test.field.direct[server.direct];
                let shares =
                    direct.items().iter().enumerate().map(|(at, kind)| (kind.0, direct.probability(at)));
                (server.authority.as_str(), server.addresses.clone(), shares.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(got.len(), wanted.len(), "{more}: {got:?}");
        for (got, (authority, addresses, shares)) in got.iter().zip(*wanted) {
            assert_eq!(got.0, *authority, "{more}");
            assert_eq!(got.1, addresses.iter().map(|text| socket(text)).collect::<Vec<_>>(), "{more}");
            assert_eq!(got.2.len(), shares.len(), "{more}: {:?}", got.2);
            for (a, b) in got.2.iter().zip(*shares) {
                assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-9, "{more}: {:?}", got.2);
            }
        }
    }
}

#[test]
fn servers_that_redirect_are_told_about_objects() {
    let redirects = "S.pop_model.pop_distr = popUnif(); S.rep_types = [ \"302 Found\": 10%, \"Basic\" ];";
    assert!(!adopted("").field.share_worlds);
    assert!(adopted(redirects).field.share_worlds);
}

#[test]
fn robots_do_not_know_the_freshness_of_configured_fields() {
    let told = |more: &str| adopted(&format!("{more} S.contents = [ C ];")).field.freshness;
    assert_eq!(told("C.mime_headers = [ 'X-A: v' ];"), ToldFreshness::LifeCycle);
    for more in
        ["C.mime_headers = [ 'expires: 0' ];", "S.http_headers = [ [ 'Cache-Control: max-age=9' ]: 10% ];"]
    {
        assert_eq!(told(more), ToldFreshness::Configured, "{more}");
    }
}

#[test]
fn servers_behind_one_name_have_the_same_contents() {
    let other = |contents: &str, names: &str, more: &str| {
        adopted(&format!(
            "Content D = C; D.kind = \"d\"; \
             Server T = {{ kind = \"t\"; contents = [ {contents} ]; addresses = [ '10.0.2.1:80' ]; }}; \
             AddrMap M = {{ names = [ {names} ]; addresses = [ S.addresses, T.addresses ]; }}; use(T, M); \
             {more}"
        ))
    };
    let resolver = "R.origins = M.names; R.dns_resolver = { servers = [ '10.6.0.1' ]; timeout = 1sec; };";
    for more in ["R.origins = M.names;", resolver] {
        let mut test = other("D", "'w.tst:80'", more);
        let text = test.misdirection().unwrap_or_default();
        assert!(text.contains("w.tst:80 are servers with different contents, t and s"), "{text}");
        test.through_proxies(&[socket("10.9.0.1:3128")]);
        assert!(test.misdirection().is_some(), "a proxy looks for an address as robots do");
        test.through_surrogate(socket("10.3.0.1:80"));
        assert_eq!(test.misdirection(), None);
    }
    for (contents, names, more) in [
        ("C", "'w.tst:80'", "R.origins = M.names;"),
        ("D", "'w[1-3].tst:80'", "R.origins = M.names;"),
        ("D", "'10.3.0.1:80'", "R.origins = M.names;"),
        ("D", "'w.tst:80'", "R.origins = S.addresses;"),
    ] {
        assert_eq!(other(contents, names, more).misdirection(), None, "{contents} {names} {more}");
    }
}

#[test]
fn servers_know_their_names() {
    let test = adopted(
        "AddrMap M = { names = [ 'a.tst:80', 'b.tst:8080' ]; addresses = [ '10.0.1.1:80' ]; }; use(M); \
         R.origins = [ M.names, '10.0.1.2:80' ];",
    );
    let names: Vec<_> = test.servers[0].sites.iter().map(|site| site.names.join(" ")).collect();
    assert_eq!(names, ["a.tst:80 b.tst:8080", "10.0.1.2:80"]);
    let ip = |n| std::net::IpAddr::from([10, 0, 1, n]);
    assert_eq!(test.names, [("a.tst".to_owned(), vec![ip(1)]), ("b.tst".to_owned(), vec![ip(1)])]);
}

#[test]
fn a_device_takes_the_place_of_servers() {
    let mut test = adopted("R.dns_resolver = { servers = [ '10.6.0.1' ]; timeout = 1sec; };");
    let device = socket("10.3.0.1:8080");
    test.through_surrogate(device);
    assert!(test.field.servers.iter().all(|server| server.addresses == [device]));
    assert!(test.robots[0].dns.is_none() && test.robots[0].proxies.is_empty());
    test.through_proxies(&[device]);
    assert_eq!(test.robots[0].proxies, [device]);
}

#[test]
fn servers_behind_a_balancer_know_the_names_of_those_with_the_same_contents() {
    let mut test = adopted(
        "Content D = C; D.kind = \"d\"; \
         Server T = { kind = \"t\"; contents = [ D ]; addresses = [ '10.0.2.1:80' ]; }; use(T); \
         S.addresses = [ '10.0.1.1-2:80' ]; R.origins = [ S.addresses, T.addresses ];",
    );
    test.through_balancer(socket("10.3.0.1:80"));
    let names = |group: usize| -> Vec<String> {
        test.servers[group].sites.iter().map(|site| site.names.join(" ")).collect()
    };
    assert_eq!(names(1), ["10.0.1.1:80 10.0.1.2:80", "10.0.1.2:80 10.0.1.1:80"]);
    assert_eq!(names(0), ["10.0.2.1:80"]);
}

#[test]
fn the_slowest_servers_decide_when_objects_are_asked_for_again() {
    let think = "S.xact_think = const(2sec);";
    let images = "Content I = C; I.kind = \"i\"; C.may_contain = [ I ]; C.embedded_obj_cnt = const(2); S.contents = [ C, I ];";
    for (more, settle) in [
        (String::new(), 0.25),
        (think.to_owned(), 2.25),
        (
            format!(
                "{think} Server T = S; T = {{ addresses = [ '10.0.2.1:80' ]; xact_think = const(3sec); }}; use(T);"
            ),
            3.25,
        ),
        (format!("{think} {images}"), 2.25),
        (format!("{think} {images} R.embed_recur = 10%;"), 4.25),
    ] {
        assert_eq!(adopted(&more).field.settle, settle, "{more}");
    }
}
