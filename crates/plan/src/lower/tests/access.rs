//! TLS, proxies and accounts of the agents of a workload.

use super::*;

#[test]
fn tls_is_adopted() {
    let both = "S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];";
    let test = adopted(&format!("SslWrap W; {both}"));
    let (client, server) = (&test.robots[0].tls.items()[0], &test.servers[0].farm.tls.items()[0]);
    assert!(test.field.servers.iter().all(|server| server.tls));
    assert_eq!(test.field.servers[0].scheme(), "https://");
    assert_eq!((client.verify, client.resumption, client.cache), (false, 0.0, None));
    assert_eq!(server.keys.items(), [b"RSA-2048".to_vec()]);
    assert!(server.ticket_secret.is_some() && server.authority.is_some() && server.cache == 0);
    let test = adopted(&format!(
        "SslWrap W = {{ protocols = [ \"TLSv1.3\" ]; ciphers = [ \"TLS_AES_128_GCM_SHA256\" ]; groups = [ \"x25519\" ]; \
         key_types = [ \"RSA\": 50%, \"Ed25519\" ]; rsa_key_sizes = [ 3072bit ]; root_certificate = \"ca.pem\"; \
         session_resumption = 70%; session_cache = 9; early_data = yes; verify_peer_certificate = yes; }}; {both}"
    ));
    let (client, server) = (&test.robots[0].tls.items()[0], &test.servers[0].farm.tls.items()[0]);
    assert!(client.verify && client.early_data && client.roots == [b"ca.pem".to_vec()]);
    assert_eq!((client.resumption, client.cache, server.cache), (0.7, Some(9), 9));
    assert_eq!(client.offer.ciphers.items(), [vec![0x1301]]);
    assert_eq!(
        (&client.offer.groups[..], client.offer.versions.items()),
        (&[0x1d][..], &[vec![Version::Tls13]][..])
    );
    assert_eq!(server.keys.items(), [b"RSA-3072".to_vec(), b"Ed25519".to_vec()]);
    assert_eq!((server.client_roots.len(), server.early_data > 0, server.ticket_secret), (1, true, None));
    // HTTP/3 arrives besides the other versions, which have names for TLS.
    let test = adopted(&format!(
        "SslWrap W; {both} S.http_versions = [ \"3\", \"2\" ]; R.http_versions = [ \"3\" ]; R.h2_streams = 9;"
    ));
    let farm = &test.servers[0].farm;
    assert_eq!((farm.http3.is_some(), farm.http2.is_some(), farm.accepts_http1), (true, true, false));
    assert_eq!(farm.tls.items()[0].offer.alpn, ["h2"]);
    assert!(test.robots[0].speaks_http3() && test.robots[0].http2.streams == 9);
    assert_eq!(test.check_http3(), Ok(()));
    let mut through = test.clone();
    through.through_proxies(&["10.0.0.9:80".parse().unwrap()]);
    assert!(through.check_http3().unwrap_err().contains("forward proxy"));
    Arc::make_mut(&mut through.robots[0]).name = "robots".to_owned();
    let told = through.check_http3().unwrap_err();
    assert!(told.starts_with("the robots speak HTTP/3, but use a forward proxy"), "{told}");
    let mut through = test.clone();
    through.through_socks(&["10.0.0.9:1080".parse().unwrap()], false);
    assert!(through.check_http3().unwrap_err().contains("SOCKS"));
    let mut through = test;
    through.device_tls = Some(false);
    through.through_surrogate("10.0.0.9:80".parse().unwrap());
    assert!(through.check_http3().unwrap_err().contains("has no TLS"));
    // The device of a simulation sends HTTP/1.1, but not where robots and servers do not understand each other anyway.
    for (robots, served) in [("2", true), ("1.1", false)] {
        let mut simulated = adopted(&format!(
            "SslWrap W; {both} S.http_versions = [ \"2\", \"3\" ]; R.http_versions = [ \"{robots}\" ];"
        ));
        simulated.without_tls();
        simulated.serve_http1();
        assert_eq!(simulated.servers[0].farm.accepts_http1, served, "{robots}");
    }
    // Robots of another version may follow an announcement of it.
    let followed = format!(
        "SslWrap W; {both} S.http_versions = [ \"2\", \"3\" ]; S.alt_svc = 90sec; R.http_versions = [ \"2\" ]; R.follow_alt_svc = true;"
    );
    let test = adopted(&followed);
    assert_eq!((test.servers[0].farm.alt_svc, test.robots[0].follow_alt_svc), (Some(90), true));
    assert_eq!(test.check_http3(), Ok(()));
    let mut through = test;
    through.through_proxies(&["10.0.0.9:80".parse().unwrap()]);
    assert!(through.check_http3().unwrap_err().contains("follow Alt-Svc to HTTP/3, but use a forward proxy"));
    // A proxy with TLS.
    let proxy = "SslWrap W; R.ssl_wraps = [ W ]; Proxy X = { addresses = [ '10.0.0.9:443' ]; ssl_wraps = [ W ]; }; use(X);\
         R.http_proxies = [ '10.0.0.9:443', '10.0.0.9:80' ];";
    let test = adopted(proxy);
    assert_eq!(test.robots[0].secure_proxies, [SocketAddr::from(([10, 0, 0, 9], 443))]);
    assert!(!test.field.servers[0].tls);
}

#[test]
fn robots_know_which_certificates_are_bad_and_who_can_notice() {
    use polygraph_robot::settings::BadCertificate;
    use polygraph_tls::settings::CertificateFault;
    let bad = "SslWrap B = { certificate_fault = \"expired\"; }; SslWrap W; S.ssl_wraps = [ B ]; R.ssl_wraps = [ W ];";
    let test = adopted(bad);
    let shown = |test: &Test| test.field.servers[0].bad_certificate;
    let fault = CertificateFault::Expired;
    assert_eq!(shown(&test), Some(BadCertificate { fault, is_hidden: false }));
    assert_eq!(test.servers[0].farm.certificate_fault(), Some(fault));
    assert!(test.notes.iter().any(|note| note.contains("add a Server without one")), "{:?}", test.notes);
    // Robots that check no certificates notice nothing, unless a device acts as the server.
    let why = |test: &Test| test.check_bad_certificates().err().unwrap_or_default();
    assert!(why(&test).contains("the robots r check no certificates"), "{}", why(&test));
    let mut through = test.clone();
    through.through_proxies(&["10.0.0.9:80".parse().unwrap()]);
    assert!(why(&through).contains("--trust_ca"), "{}", why(&through));
    let mut through = test.clone();
    through.through_surrogate("10.0.0.9:80".parse().unwrap());
    assert_eq!(
        (shown(&through), why(&through)),
        (Some(BadCertificate { fault, is_hidden: true }), String::new())
    );
    let checked = bad.replace("SslWrap W;", "SslWrap W = { root_certificate = \"root.pem\"; };");
    assert_eq!(why(&adopted(&checked)), "");
    // Simulations have no TLS.
    let mut simulated = test;
    simulated.without_tls();
    assert_eq!(shown(&simulated), None);
    // A device that acts as the servers chooses among those with the same contents.
    let other = |contents: &str| {
        let more = format!(
            "{bad} Content D = {{ kind = \"d\"; size = const(1KB); }}; Server T = {{ kind = \"t\"; contents = [ {contents} ];
             addresses = [ '10.0.1.9:80' ]; ssl_wraps = [ W ]; }}; use(T); R.origins = [ S.addresses, T.addresses ];"
        );
        let mut test = adopted(&more);
        assert!(test.notes.is_empty(), "{:?}", test.notes);
        test.through_surrogate("10.0.0.9:80".parse().unwrap());
        why(&test)
    };
    assert!(
        other("C").contains("have the same contents but not the same `certificate_fault`"),
        "{}",
        other("C")
    );
    assert_eq!(other("D"), "");
}

#[test]
fn only_those_who_run_servers_need_their_keys() {
    let more = "SslWrap W = { root_certificate = \"root.pem\"; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];";
    let client = Fake { runs_servers: false };
    let test =
        lower(&workload(&program(more)), "test", Seed(1), &client).expect("the file has no private key");
    assert_eq!(test.robots[0].tls.items()[0].roots, [b"root".to_vec()]);
    let server = &test.servers[0].farm.tls.items()[0];
    assert!(server.authority.is_none() && server.keys.items().is_empty());
}

#[test]
fn contradictory_tls_is_refused() {
    let cases = [
        ("SslWrap W; S.ssl_wraps = [ W ];", "`ssl_wraps` of their own"),
        (
            "SslWrap W = { ciphers = [ \"RC4-MD5\" ]; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "write \"ALL\"",
        ),
        ("SslWrap W = { groups = [ \"x\" ]; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];", "`groups`"),
        (
            "SslWrap W = { key_types = [ \"DSA\" ]; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "`key_types`",
        ),
        ("SslWrap W = { root_certificate = \"gone\"; }; R.ssl_wraps = [ W ];", "gone is gone"),
        (
            "SslWrap W = { root_certificate = \"root.pem\"; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "private key",
        ),
        (
            "SslWrap W = { certificates = [ \"root.pem\" ]; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "append the key",
        ),
        ("SslWrap W = { generate_certificates = yes; }; R.ssl_wraps = [ W ];", "robots cannot generate"),
        (
            "SslWrap W = { generate_certificates = no; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "needs `certificates`",
        ),
        (
            "SslWrap W = { early_data = yes; session_cache = 0; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "`session_cache`",
        ),
        (
            "SslWrap W = { certificate_fault = \"revoked\"; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "\"revoked\" is no fault of a certificate",
        ),
        (
            "SslWrap W = { certificate_fault = \"expired\"; certificates = [ \"a.pem\" ]; }; S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];",
            "leave out `certificates`",
        ),
        (
            "SslWrap W = { certificate_fault = \"expired\"; }; SslWrap V; S.ssl_wraps = [ V, W ]; R.ssl_wraps = [ V ];",
            "use another Server for each fault",
        ),
        (
            "SslWrap W = { certificate_fault = \"expired\"; }; SslWrap V; S.ssl_wraps = [ V ]; R.ssl_wraps = [ V ];
             Server T = { contents = [ C ]; addresses = [ '10.0.1.9:80' ]; ssl_wraps = [ W ]; };
             AddrMap M = { names = [ 'a.test:80' ]; addresses = [ S.addresses, T.addresses ]; }; use(T, M); R.origins = M.names;",
            "the servers behind a.test:80 must have the same `certificate_fault`",
        ),
    ];
    for (more, words) in cases {
        let all = lower(&workload(&program(more)), "test", Seed(1), &BENCH).err().unwrap_or_default();
        assert!(all.iter().any(|obstacle| obstacle.to_string().contains(words)), "{more}: {all:?}");
    }
}

#[test]
fn http3_needs_tls13() {
    const OLD: &str = "protocols = [ \"TLSv1.2\" ];";
    const OLD_CIPHERS: &str = "ciphers = [ \"ECDHE-RSA-AES128-GCM-SHA256\" ];";
    const BOTH: &str = "S.ssl_wraps = [ V ]; R.ssl_wraps = [ W ];";
    const ROBOTS: &str = "R.http_versions = [ \"3\" ];";
    const SERVERS: &str = "S.http_versions = [ \"1.1\", \"3\" ];";
    const FOLLOW: &str = "R.follow_alt_svc = true;";
    let obstacles = |robot: &str, server: &str, more: &str| {
        let text = format!("SslWrap W = {{ {robot} }}; SslWrap V = {{ {server} }}; {BOTH} {more}");
        let all = lower(&workload(&program(&text)), "test", Seed(1), &BENCH).err().unwrap_or_default();
        all.iter().map(LowerError::to_string).collect::<Vec<_>>()
    };
    let three = "leave out \"3\" of `http_versions`";
    let any = "`protocols` of their `ssl_wraps` has \"TLSv1.2\": write \"any\" or \"TLSv1.3\" instead, or";
    let cipher = "`ciphers` of their `ssl_wraps` has a list without ciphers of TLS 1.3: add TLS_AES_128_GCM_SHA256 to it, or";
    let mixed = "protocols = [ \"TLSv1.3\": 99%, \"TLSv1.2\" ];";
    let mixed_ciphers = "ciphers = [ \"ALL\", \"ECDHE-RSA-AES128-GCM-SHA256\" ];";
    for (robot, server, more, wanted) in [
        (OLD, "", ROBOTS, format!("robots speak HTTP/3, which needs TLS 1.3, but {any} {three}")),
        (mixed, "", ROBOTS, format!("robots speak HTTP/3, which needs TLS 1.3, but {any} {three}")),
        (OLD_CIPHERS, "", ROBOTS, format!("robots speak HTTP/3, which needs TLS 1.3, but {cipher} {three}")),
        (
            mixed_ciphers,
            "",
            ROBOTS,
            format!("robots speak HTTP/3, which needs TLS 1.3, but {cipher} {three}"),
        ),
        ("", OLD, SERVERS, format!("servers speak HTTP/3, which needs TLS 1.3, but {any} {three}")),
        (
            "",
            OLD_CIPHERS,
            SERVERS,
            format!("servers speak HTTP/3, which needs TLS 1.3, but {cipher} {three}"),
        ),
        (
            OLD,
            "",
            FOLLOW,
            format!(
                "robots follow Alt-Svc to HTTP/3, which needs TLS 1.3, but {any} leave out `follow_alt_svc`"
            ),
        ),
    ] {
        assert_eq!(obstacles(robot, server, more), [wanted], "{robot} {server} {more}");
    }
    let fits = "protocols = [ \"TLSv1.3\", \"any\" ]; \
                ciphers = [ \"ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_256_GCM_SHA384\", \"ALL\" ];";
    for (robot, server, more) in [
        (fits, fits, &*format!("{ROBOTS} {SERVERS}")),
        (fits, fits, &format!("{FOLLOW} {SERVERS}")),
        // The other side, and other versions of HTTP.
        (OLD, "", SERVERS),
        ("", OLD, ROBOTS),
        (OLD, OLD_CIPHERS, ""),
    ] {
        assert_eq!(obstacles(robot, server, more), [""; 0], "{robot} {server} {more}");
    }
}

#[test]
fn foreign_urls_must_be_possible() {
    let foreign = |trace: &str, more: &str| {
        let text = program(&format!(
            "R.interests = [ \"foreign\": 10%, \"public\" ]; R.foreign_trace = \"{trace}\"; {more}"
        ));
        let shown =
            |all: Vec<LowerError>| all.iter().map(LowerError::to_string).collect::<Vec<_>>().join("; ");
        lower(&workload(&text), "test", Seed(1), &BENCH).err().map(shown)
    };
    assert_eq!(foreign("plain", ""), None);
    let why = foreign("secure", "").unwrap_or_default();
    assert!(why.contains("`https://b.tst/x`: give the robots `ssl_wraps`"), "{why}");
    assert_eq!(foreign("secure", "SslWrap W; R.ssl_wraps = [ W ]; S.ssl_wraps = [ W ];"), None);
    let why = foreign("files", "").unwrap_or_default();
    assert!(why.contains("`ftp://b.tst/x`") && why.contains("FTP is obsolete"), "{why}");
    assert_eq!(foreign("files", "R.http_proxies = [ '10.0.0.9:3128' ];"), None);
}

#[test]
fn kerberos_of_robots_and_servers_is_adopted() {
    let wrap = "KerberosWrap K = { realm = \"EXAMPLE.COM\"; servers = [ '10.0.0.9', '10.0.0.10:1088' ]; timeout = 2sec; };";
    let test = adopted(&format!(
        "{wrap} R.kerberos_wrap = K; R.credentials = [ \"joe:x\" ]; R.http_proxies = [ '10.0.0.8:80' ]; \
         S.auth_schemes = [ \"negotiate\" ]; S.keytab = \"web.keytab\";"
    ));
    let robot = &test.robots[0];
    let kdcs = ["10.0.0.9:88", "10.0.0.10:1088"].map(|text| text.parse().unwrap()).to_vec();
    let (udp, tcp, realm) = (kdcs.clone(), kdcs, "EXAMPLE.COM".to_owned());
    assert_eq!(
        robot.kerberos,
        Some(Kerberos { realm, udp, tcp, timeout: Nanos::from_secs(2), service: None })
    );
    assert_eq!(robot.proxy_names, ["10.0.0.8"]);
    let keys = &test.servers[0].farm.access.as_ref().unwrap().keys;
    assert_eq!(keys[0].name, "web.keytab");
    let split = "KerberosWrap K = { realm = \"R\"; servers_tcp = [ '10.0.0.9' ]; timeout = 1sec; service = \"HTTP/a\"; };";
    let test = adopted(&format!("{split} R.kerberos_wrap = K; R.credentials = [ \"joe:x\" ];"));
    let kerberos = test.robots[0].kerberos.as_ref().unwrap();
    assert_eq!((kerberos.udp.len(), kerberos.tcp.len(), kerberos.service.as_deref()), (0, 1, Some("HTTP/a")));
}

#[test]
fn socks_proxies_of_robots_are_adopted() {
    assert_eq!(robot("").socks, None);
    assert_eq!(robot("R.socks_proxies = [ '10.0.0.9' ]; R.socks_prob = 0%;").socks, None);
    let robot = robot(
        "R.socks_proxies = [ '10.0.0.9:1081', '10.0.0.10' ]; R.http_proxies = [ '10.0.0.8:80' ]; R.socks_prob = 25%; \
         R.socks_chaining_prob = 50%; R.socks_names = true;",
    );
    let proxies = ["10.0.0.9:1081", "10.0.0.10:1080"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(robot.socks, Some(Socks { proxies, share: 0.25, chained: 0.5, names: true }));
    let long = format!("R.socks_proxies = [ '10.0.0.9' ]; R.credentials = [ \"joe:{}\" ];", "x".repeat(256));
    let all = lower(&workload(&program(&long)), "test", Seed(1), &BENCH).unwrap_err();
    assert!(all[0].to_string().contains("no room for more than 255 bytes"), "{all:?}");
}

#[test]
fn servers_know_the_accounts_of_all_robots() {
    let access = |more: &str| adopted(more).servers[0].farm.access.clone();
    assert_eq!(access("R.credentials = [ \"joe:a\" ];"), None);
    let access =
        access("R.credentials = [ \"joe:a\", \"D\\\\ann:b:c\" ]; S.auth_schemes = [ \"ntlm\", \"digest\" ];");
    let access = access.expect("access control");
    assert_eq!(access.schemes, [Scheme::Ntlm, Scheme::Digest(Hash::Md5)]);
    let users: Vec<_> = access.users.iter().map(|(user, password)| (&**user, &**password)).collect();
    assert_eq!(users, [("D\\ann", "b:c"), ("joe", "a")]);
    let twice = "R.credentials = [ \"joe:a\", \"joe:b\" ]; S.auth_schemes = [ \"basic\" ];";
    let all = lower(&workload(&program(twice)), "test", Seed(1), &BENCH).unwrap_err();
    assert!(all[0].to_string().contains("two passwords of the user `joe`"), "{all:?}");
}
