//! The configuration files and command lines of the built-in set.

use std::net::SocketAddr;

use crate::device::Device;
use crate::params::Params;
use crate::render::{RenderContext, Rendered, render};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn context() -> RenderContext {
    RenderContext {
        address: address("127.0.0.1:3128"),
        work: "/work".into(),
        store: "/work/store".into(),
        service: "name7".into(),
        descriptors: 20_000,
    }
}

fn rendered(device: &str, params: &Params) -> Result<Rendered, String> {
    let device = Device::find(device).unwrap();
    let (spec, templates) = device.parts();
    render(device.name(), spec, templates, params, &context()).map_err(|error| error.to_string())
}

/// One text of all files and command lines.
fn all(rendered: &Rendered) -> String {
    let mut text: String = rendered.files.iter().map(|(name, text)| format!("== {name}\n{text}")).collect();
    let front = rendered.front.clone().unwrap_or_default();
    for words in [&rendered.args, &rendered.logger, &rendered.flush, &front] {
        text += &format!("$ {}\n", words.join(" "));
    }
    text
}

fn origins() -> Params {
    Params { origins: vec![address("127.0.0.1:81"), address("[::1]:82")], ..Params::default() }
}

fn option(name: &str, value: &str) -> Params {
    Params { options: [(name.to_owned(), value.to_owned())].into(), ..Params::default() }
}

#[test]
fn parameters_reach_their_places() {
    let plain = Params::default();
    let disk = Params { disk: Some(2 << 30), ..plain.clone() };
    let big = Params { memory: Some(1 << 30), max_object: Some(5 << 20), workers: Some(3), ..plain.clone() };
    let names = Params {
        hosts: vec![("www.bench.tst".into(), "10.0.0.1".parse().unwrap())],
        nameservers: vec![address("127.0.0.1:53")],
        ..plain.clone()
    };
    let port = Params { nameservers: vec![address("127.0.0.1:5300")], ..plain.clone() };
    let behind = origins();
    let groups = Params { options: option("endings", ".a,.b").options, ..origins() };
    let behind_disk = Params { disk: Some(1 << 30), workers: Some(2), ..origins() };
    for (device, params, parts) in [
        (
            "squid",
            &plain,
            &[
                "http_port 127.0.0.1:3128\n",
                "cache_mem 262144 KB",
                "workers 1\n",
                "$ -N -d1 -n name7 -f /work/squid.conf",
                "access_log stdio:/work/access.log bench",
            ][..],
        ),
        (
            "squid",
            &big,
            &[
                "cache_mem 1048576 KB",
                "maximum_object_size 5120 KB",
                "workers 3",
                "memory_cache_shared on",
                "$ --foreground",
            ],
        ),
        ("squid", &disk, &["\ncache_dir aufs /work/store 2048 16 256\n"]),
        ("squid", &names, &["\nhosts_file /work/hosts\n", "\ndns_nameservers 127.0.0.1\n"]),
        (
            "trafficserver",
            &plain,
            &[
                "server_ports STRING 3128:ip-in=127.0.0.1\n",
                "ram_cache.size INT 268435456\n",
                "\n/work/store 268435456\n",
                "connections_throttle INT 18000\n",
                "$ --run-root=/work/runroot.yaml",
                "format: '%<cqtq> %<ttms>",
            ],
        ),
        ("trafficserver", &disk, &["\n/work/store 2147483648\n", "ram_cache.size INT 268435456\n"]),
        ("trafficserver", &big, &["exec_thread.limit INT 3\n", "max_doc_size INT 5242880\n"]),
        ("trafficserver", &port, &["nameservers STRING 127.0.0.1:5300", "resolv_conf STRING NULL"]),
        ("trafficserver", &names, &["host_file.path STRING /work/hosts\n"]),
        (
            "varnish",
            &behind,
            &[
                ".host = \"127.0.0.1\";\n    .port = \"81\";",
                ".host = \"::1\";",
                "pool.add_backend(origin2);",
                "-a 127.0.0.1:3128",
                "-s malloc,268435456",
                "ban obj.status != 0",
                "-w /work/access.log",
            ],
        ),
        (
            "varnish",
            &Params { options: option("cert", "/c.pem").options, ..origins() },
            &[
                "-a /work/varnish.sock,PROXY",
                "$ --frontend=[127.0.0.1]:3128 --backend=/work/varnish.sock",
                "/work/cert\n",
            ],
        ),
        ("varnish", &behind_disk, &["-s file,/work/store/store,1073741824", "thread_pools=2"]),
        (
            "nginx",
            &behind,
            &[
                "listen 127.0.0.1:3128 backlog",
                "server 127.0.0.1:81 max_fails=0;",
                "server [::1]:82 max",
                "max_size=262144k",
                "keys_zone=bench:8192k",
                "worker_connections 10000;",
                "proxy_cache bench;",
            ],
        ),
        ("nginx", &behind_disk, &["max_size=1048576k", "keys_zone=bench:16384k", "worker_processes 2;"]),
        (
            "nginx-forward",
            &Params { disk: Some(1 << 30), ..port.clone() },
            &["resolver 127.0.0.1:5300", "max_size=1048576k", "proxy_pass http://$http_host$request_uri;"],
        ),
        (
            "haproxy",
            &behind,
            &[
                "bind 127.0.0.1:3128 ",
                "server origin1 127.0.0.1:81\n",
                "server origin2 [::1]:82\n",
                "balance roundrobin\n",
                "$ -db -f /work/haproxy.cfg",
            ],
        ),
        (
            "haproxy",
            &groups,
            &[
                "use_backend group1 if { path_end .a }\n    use_backend group2 if { path_end .b }\n    default",
                "backend group1\n    balance roundrobin\n    server origin1 127.0.0.1:81\n\nbackend group2\n",
                "server origin2 [::1]:82\n\nbackend origins\n",
            ],
        ),
        (
            "haproxy-proxies",
            &option("proxies", "127.0.0.1:1,[::1]:2"),
            &["balance uri whole\n    server proxy1 127.0.0.1:1\n    server proxy2 [::1]:2\n"],
        ),
    ] {
        let text = all(&rendered(device, params).unwrap());
        for part in parts {
            assert!(text.contains(part), "{device}: `{part}` is missing in\n{text}");
        }
    }
}

#[test]
fn what_is_not_asked_for_is_not_there() {
    for (device, params, part) in [
        ("squid", Params::default(), "cache_dir"),
        ("squid", Params::default(), "hosts_file"),
        ("squid", Params::default(), "dns_nameservers"),
        ("trafficserver", Params::default(), "proxy.config.dns.nameservers"),
        ("nginx-forward", Params::default(), "resolver"),
        ("nginx", Params { options: option("cache", "off").options, ..origins() }, "proxy_cache"),
        ("nginx", Params { options: option("reload", "ignore").options, ..origins() }, "proxy_cache_bypass"),
        ("varnish", origins(), "--frontend"),
        ("varnish", origins(), "http2"),
        ("varnish", Params { options: option("reload", "ignore").options, ..origins() }, "hash_always_miss"),
        ("haproxy", origins(), "group"),
    ] {
        let text = all(&rendered(device, &params).unwrap());
        assert!(!text.contains(part), "{device}: `{part}` in\n{text}");
    }
}

#[test]
fn stores_are_prepared_when_they_exist() {
    let disk = Params { disk: Some(64 << 20), ..Params::default() };
    for (device, params, expected) in [
        ("squid", Params::default(), None),
        ("squid", disk.clone(), Some("-N -z -n name7 -f /work/squid.conf")),
        ("trafficserver", disk, None),
    ] {
        let prepare = rendered(device, &params).unwrap().prepare.map(|args| args.join(" "));
        assert_eq!(prepare.as_deref(), expected, "{device}");
    }
}

#[test]
fn versions_of_http_depend_on_settings() {
    for (device, options, versions) in [
        ("haproxy", &[][..], "1.1"),
        ("haproxy", &[("http2", "backend")], "1.1"),
        ("haproxy", &[("http2", "frontend")], "2"),
        ("haproxy", &[("http2", "both"), ("cert", "/c.pem")], "1.1 2"),
        ("nginx", &[("http2", "on")], "2"),
        ("nginx", &[("http2", "on"), ("cert", "/c.pem")], "1.1 2"),
        ("varnish", &[], "1.1"),
        ("varnish", &[("http2", "on")], "1.1 2"),
        ("caddy", &[("http3", "on"), ("cert", "/c.pem")], "1.1 3"),
    ] {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let params = Params { options: options.collect(), ..origins() };
        let spoken = rendered(device, &params).unwrap().http_versions.unwrap();
        assert_eq!(spoken.join(" "), versions, "{device} {:?}", params.options);
    }
    assert_eq!(rendered("squid", &Params::default()).unwrap().http_versions, None);
    for (device, version, setting) in [
        ("caddy", "2", Some("http2=frontend")),
        ("caddy", "3", Some("http3=on")),
        ("varnish", "2", Some("http2=on")),
        ("varnish", "3", None),
    ] {
        let rendered = rendered(device, &origins()).unwrap();
        assert_eq!(rendered.setting_for_version(version), setting, "{device}");
    }
}

#[test]
fn devices_with_a_choice_of_versions_say_what_they_speak() {
    for device in Device::set().unwrap() {
        if device.options().iter().any(|(name, _)| name.starts_with("http")) {
            assert!(device.parts().0.http_versions.is_some(), "{}", device.name());
        }
    }
}

#[test]
fn what_a_device_cannot_do_is_refused() {
    let dns = Params { nameservers: vec![address("127.0.0.1:5300")], ..Params::default() };
    let aufs = Params { disk: Some(1 << 30), workers: Some(2), ..Params::default() };
    for (device, params, part) in [
        ("varnish", Params::default(), "needs the addresses of origin servers"),
        ("haproxy", Params { memory: Some(1), ..origins() }, "`mem` has no effect"),
        ("haproxy", Params { disk_directory: Some("/x".into()), ..origins() }, "`disk_dir` has no effect"),
        ("squid", origins(), "`origins` has no effect"),
        ("varnish", Params { nameservers: dns.nameservers.clone(), ..origins() }, "`dns` has no effect"),
        ("squid", dns, "squid.conf: Squid asks DNS servers at port 53 only: give it hosts instead"),
        ("squid", aufs, "workers cannot share an aufs store"),
        ("squid", option("store_type", "ufs"), "`store_type` must be aufs or rock, not `ufs`"),
        (
            "squid",
            option("speed", "1"),
            "`speed` has no effect on this device; its settings are: listen, mem, disk, disk_dir, max_object, workers, dns, hosts, cert, store_type",
        ),
        (
            "haproxy",
            Params { options: option("speed", "1").options, ..origins() },
            "its settings are: listen, workers, balance, cert, endings, http2, origin_ca, origin_sni, origin_tls",
        ),
        ("haproxy", Params { options: option("endings", ".a,.b,.c").options, ..origins() }, "divided evenly"),
        ("trafficserver-surrogate", origins(), "it has one origin server, and the test has 2"),
        ("squid-bump", Params::default(), "an authority is necessary"),
        ("haproxy-proxies", Params::default(), "name the proxies behind it"),
    ] {
        let error = rendered(device, &params).unwrap_err();
        assert!(error.contains(part), "{device}: {error}");
    }
}

#[test]
fn the_configuration_of_caddy_is_json() {
    for (name, value) in [("balance", "random"), ("http2", "both"), ("cert", "/c.pem"), ("origin_tls", "yes")]
    {
        let params = Params { options: option(name, value).options, ..origins() };
        let rendered = rendered("caddy", &params).unwrap();
        let text = &rendered.files[0].1;
        let config: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let server = &config["apps"]["http"]["servers"]["bench"];
        assert_eq!(server["listen"][0], "127.0.0.1:3128", "{text}");
        let upstreams = &server["routes"][0]["handle"][0]["upstreams"];
        assert_eq!(upstreams[1]["dial"], "[::1]:82", "{text}");
    }
}
