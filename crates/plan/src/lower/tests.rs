//! Parts of programs, and the tests that they become.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use polygraph_kerberos::service::ServiceKey;
use polygraph_kerberos::{CipherKey, EncryptionType};
use polygraph_link::{Nanos, SECOND};
use polygraph_multiplex::Http2Settings;
use polygraph_pgl::render::Style;
use polygraph_pgl::{DiskLoader, MemoryLoader, Options, Workload, compile};
use polygraph_robot::settings::{Dns, Expect, Kerberos, Load, Profile, Rules, Session, Socks};
use polygraph_stats::HttpVersion;
use polygraph_tls::names::Version;
use polygraph_tls::pem;
use polygraph_tls::settings::{Identity, KeyKind};
use polygraph_traffic::content::{BodySource, Embeds, Encodings, Injected, Injection};
use polygraph_traffic::files::{File, Files};
use polygraph_traffic::headers::{HeaderChoice, HeaderRule};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::ranges::{DrawnExtent, Extent, RangeRule};
use polygraph_traffic::request::BehaviorChange;
use polygraph_traffic::table::{Bin, DistributionTable};
use polygraph_traffic::{
    Content, ContentKind, Distr, Method, PopModel, Popularity, RequestKind, Seed, Selector,
};
use polygraph_wire::auth::access::Scheme;
use polygraph_wire::auth::digest::Hash;

use super::{Environment, LowerError, lower};
use crate::SamplePlan;
use crate::offered::offered_dhr;
use crate::rptmstat::Rptmstat;
use crate::test::Test;
use crate::without_effect::settings_without_effect;

mod access;
mod servers;

/// An environment with files whose only entry is their own path, a trace of one URL, and one host with an
/// address.
struct Fake {
    runs_servers: bool,
}

fn files(path: &str) -> Files {
    Files(vec![File { name: path.to_owned(), bytes: b"x".to_vec() }])
}

/// A process that runs robots and servers.
const BENCH: Fake = Fake { runs_servers: true };

impl Environment for Fake {
    fn content_db(&self, path: &str) -> Result<Files, String> {
        Ok(files(path))
    }

    fn document_root(&self, path: &str) -> Result<Files, String> {
        Ok(files(path))
    }

    fn text_db(&self, path: &str) -> Result<Files, String> {
        Ok(files(path))
    }

    fn trace(&self, path: &str) -> Result<Vec<String>, String> {
        match path {
            "gone" => Err("gone is gone".to_owned()),
            "secure" | "files" => {
                let scheme = if path == "secure" { "https" } else { "ftp" };
                Ok(vec!["http://a/".to_owned(), format!("{scheme}://b.tst/x")])
            }
            _ => Ok(vec![format!("http://{path}/")]),
        }
    }

    fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        match host {
            "known.tst" => Ok(SocketAddr::from(([10, 9, 9, 9], port))),
            _ => Err(format!("{host} has no address")),
        }
    }

    fn tls(&self) -> Result<(), String> {
        Ok(())
    }

    fn kerberos(&self) -> Result<(), String> {
        Ok(())
    }

    fn keytab(&self, path: &str) -> Result<Vec<ServiceKey>, String> {
        let key = CipherKey::new(EncryptionType::Aes128Sha1, &[1; 16]).unwrap();
        Ok(vec![ServiceKey { name: path.to_owned(), version: 1, key }])
    }

    fn pem(&self, path: &str) -> Result<String, String> {
        match path {
            "gone" => Err("gone is gone".to_owned()),
            "root.pem" => Ok(pem::text("CERTIFICATE", b"root")),
            _ => Ok(pem::identity_text(&Identity {
                chain: vec![path.as_bytes().to_vec()],
                key: b"key".to_vec(),
            })),
        }
    }

    fn runs_servers(&self) -> bool {
        self.runs_servers
    }

    fn authority(&self, group: Option<&str>) -> Result<Identity, String> {
        let name = group.unwrap_or_default().as_bytes().to_vec();
        Ok(Identity { chain: vec![name], key: b"key".to_vec() })
    }

    fn private_key(&self, _: Option<&str>, kind: KeyKind) -> Result<Vec<u8>, String> {
        Ok(kind.name().into_bytes())
    }
}

/// The smallest test, followed by more statements; `R`, `S` and `C` are its robot, server and content.
fn program(more: &str) -> String {
    format!(
        "Content C = {{ kind = \"c\"; size = const(13KB); cachable = 80%; }};\n\
         Server S = {{ kind = \"s\"; contents = [ C ]; addresses = [ '10.0.1.1-2:80' ]; }};\n\
         Robot R = {{ kind = \"r\"; origins = S.addresses; addresses = [ '10.0.0.1-3' ]; }};\n\
         {more}\n\
         Phase P = {{ name = \"p\"; goal.duration = 1min; }};\n\
         schedule(P); use(S, R);\n"
    )
}

#[track_caller]
fn workload(text: &str) -> Workload {
    let loader = MemoryLoader::default().with("test.pg", text);
    let compilation = compile("test.pg", &loader, &Options::default());
    let findings = compilation.render(Style::Plain);
    compilation.workload.unwrap_or_else(|| panic!("{findings}\n{text}"))
}

#[track_caller]
fn adopted(more: &str) -> Test {
    lower(&workload(&program(more)), "test", Seed(1), &BENCH).unwrap_or_else(|all| panic!("{more}: {all:?}"))
}

#[track_caller]
fn robot(more: &str) -> Profile {
    (*adopted(more).robots[0]).clone()
}

#[track_caller]
fn content(more: &str) -> Content {
    adopted(&format!("{more} S.contents = [ C ];")).field.catalog.contents[0].clone()
}

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn hot(law: Popularity) -> PopModel {
    PopModel { law, hot_frac: 0.01, hot_prob: 0.1, bhr_discrimination: 0.9 }
}

fn word(prob: f64, name: &str) -> HeaderRule {
    HeaderRule { prob, what: HeaderChoice::One { name: name.to_owned(), value: "v".to_owned() } }
}

/// Robots and contents do not implement equality, so their settings are compared as text.
#[track_caller]
fn same<T: std::fmt::Debug>(what: &str, got: &T, wanted: &T) {
    assert_eq!(format!("{got:#?}"), format!("{wanted:#?}"), "{what}");
}

#[test]
fn what_is_left_alone_has_its_default() {
    let test = adopted("");
    let mut plain = Profile::plain("r", 3, Load::Closed { think: None }, Default::default());
    plain.addresses = (1..=3).map(|n| [10, 0, 0, n].into()).collect();
    plain.origins = Selector::even(vec![0, 1]);
    same("robot", &*test.robots[0], &plain);
    let mut farm = polygraph_origin::settings::ServerProfile::plain("s", vec![ContentKind::FIRST]);
    farm.http_minors = Selector::only(1);
    same("server", &test.servers[0].farm, &farm);
    same("content", &test.field.catalog.contents[0], &Content::plain("c", Distr::Const(13.0 * 1024.0), 0.8));
    let servers: Vec<_> =
        test.field.servers.iter().map(|s| (&s.authority[..], &s.addresses[..], s.direct)).collect();
    let (a, b) = (socket("10.0.1.1:80"), socket("10.0.1.2:80"));
    assert_eq!(servers, [("10.0.1.1:80", &[a][..], 0), ("10.0.1.2:80", &[b][..], 0)]);
    assert_eq!(test.field.direct, [Selector::only(ContentKind::FIRST)]);
    let sites: Vec<_> = test.servers[0].sites.iter().map(|site| (site.listen, &site.names[..])).collect();
    assert_eq!(sites, [(a, &["10.0.1.1:80".to_owned()][..]), (b, &["10.0.1.2:80".to_owned()][..])]);
    assert!(test.notes.is_empty() && test.names.is_empty(), "{:?}", test.notes);
}

#[test]
fn settings_of_robots() {
    type Change = fn(&mut Profile);
    let cases: &[(&str, Change)] = &[
        ("R.req_rate = 5/sec;", |r| r.load = Load::Open { rate: 5.0 }),
        ("R.req_rate = 0/sec;", |r| r.load = Load::Passive),
        ("R.custom_stats_scope = [ \"4xx\", \"-404\" ];", |r| {
            r.custom_scope = polygraph_stats::StatusScope::parse(["-404", "4xx"]).unwrap();
        }),
        ("R.req_inter_arrival = unif(1sec, 3sec);", |r| {
            r.load = Load::InterArrival(Distr::Unif { min: 1.0, max: 3.0 });
        }),
        ("R.addresses = [ '10.0.0.1-2' ] ** 2;", |r| {
            r.count = 4;
            r.addresses = [1, 2, 1, 2].map(|n| [10, 0, 0, n].into()).to_vec();
        }),
        ("R.origins = [ '10.0.1.2:80': 25%, '10.0.1.1:80' ];", |r| {
            r.origins = Selector::weighted([(0, 0.25), (1, 0.75)]);
        }),
        (
            "R.recurrence = 50%; R.pop_model = { pop_distr = popZipf(0.5); hot_set_frac = 1%; hot_set_prob = 10%; bhr_discrimination = 90%; };",
            |r| {
                r.behavior.recurrence = 0.5;
                r.behavior.popularity = hot(Popularity::Zipf { skew: 0.5 });
            },
        ),
        ("R.req_types = [ \"Ims200\": 5%, \"Ims304\": 10%, \"Reload\": 5%, \"Basic\" ];", |r| {
            r.behavior.kinds = Selector::weighted([
                (RequestKind::Ims200, 0.05),
                (RequestKind::Ims304, 0.1),
                (RequestKind::Reload, 0.05),
                (RequestKind::Basic, 0.8),
            ]);
        }),
        (
            "R.req_methods = [ \"GET\", \"POST\": 10%, \"PUT\": 10% ]; R.post_contents = [ C ]; R.put_contents = [ C ]; R.req_body_recurrence = 20%;",
            |r| {
                r.behavior.methods =
                    Selector::weighted([(Method::Get, 0.8), (Method::Post, 0.1), (Method::Put, 0.1)]);
                r.post = Selector::only(ContentKind::FIRST);
                r.upload = Selector::only(ContentKind::FIRST);
                r.body_recurrence = 0.2;
            },
        ),
        (
            "SingleRange A = { first_byte_pos_absolute = 1KB; last_byte_pos_relative = 0.5; }; SingleRange B = { suffix_length_absolute = 9Byte; }; \
          MultiRange D = { range_count = const(3); range_length_relative = const(0.1); first_range_start_absolute = exp(5Byte); }; \
          R.ranges = [ A: 50%, B: 25%, D ]; R.req_types = [ \"Range\" ];",
            |r| {
                r.behavior.kinds = Selector::only(RequestKind::Range);
                r.behavior.ranges = Selector::weighted([
                    (
                        RangeRule::From { first: Extent::Absolute(1024), last: Some(Extent::Relative(0.5)) },
                        0.5,
                    ),
                    (RangeRule::Suffix(Extent::Absolute(9)), 0.25),
                    (
                        RangeRule::Many {
                            count: Distr::Const(3.0),
                            length: DrawnExtent::Relative(Distr::Const(0.1)),
                            first: Some(DrawnExtent::Absolute(Distr::Exp { mean: 5.0 })),
                        },
                        0.25,
                    ),
                ]);
            },
        ),
        ("R.req_body_pause_prob = 30%;", |r| r.expect = Expect::Prob(0.3)),
        ("R.req_body_pause_start = 2KB;", |r| r.expect = Expect::From(2048)),
        ("R.http_versions = [ \"1.0\": 25%, \"1.1\" ];", |r| {
            r.http_version = Selector::weighted([(HttpVersion::Http10, 0.25), (HttpVersion::Http11, 0.75)]);
        }),
        ("R.http_versions = [ \"2\" ]; R.h2_streams = 5; R.h2_window = 64KB + 1Byte;", |r| {
            r.http_version = Selector::only(HttpVersion::Http2);
            r.http2 = Http2Settings { streams: 5, window: 65_537 };
        }),
        (
            "R.pconn_use_lmt = zipf(64); R.idle_pconn_tout = 15sec; R.open_conn_lmt = 4; R.wait_xact_lmt = 7;",
            |r| {
                r.requests_per_connection = Distr::Zipf { n: 64 };
                r.idle_timeout = Some(15 * SECOND);
                r.open_limit = Some(4);
                r.wait_limit = Some(7);
            },
        ),
        ("R.pipeline_depth = const(5.0); R.minimize_new_conn = 40%; note_substitutes(S.addresses);", |r| {
            r.pipeline = Some(Distr::Const(5.0));
            r.minimize_new_conn = 0.4;
        }),
        ("R.private_cache_cap = 12; R.unique_urls = true; R.embed_recur = 60%;", |r| {
            r.private_cache = 12;
            r.unique_urls = true;
            r.embed_recur = 0.6;
        }),
        ("R.xact_lifetime = exp(10sec); R.abort_prob = 1%;", |r| {
            r.lifetime = Some(Distr::Exp { mean: 10.0 });
            r.abort_prob = 0.01;
        }),
        ("R.http_headers = [ 'X-A: v', 'X-B: v': 20%, [ 'X-C: v', 'X-D: v': 10% ]: 50% ];", |r| {
            let group = HeaderChoice::Group(vec![word(1.0, "X-C"), word(0.1, "X-D")]);
            r.headers = vec![word(1.0, "X-A"), word(0.2, "X-B"), HeaderRule { prob: 0.5, what: group }];
        }),
        (
            "R.accept_content_encodings = [ \"gzip\", \"*;q=0\" ]; R.container_tags = [ \"<IMG SRC>\", \"<a href>\" ];",
            |r| {
                r.accept_encoding = Some("gzip, *;q=0".to_owned());
                r.container_tags = ["<IMG SRC>", "<a href>"].map(str::to_owned).to_vec();
            },
        ),
        (
            "R.session = { busy_period = { duration = 1min; xactions = 5; fill_size = 1KB; }; idle_period_duration = exp(2min); };",
            |r| {
                r.session = Some(Session {
                    busy_s: Some(60.0),
                    busy_xacts: Some(5),
                    busy_fill: Some(1024),
                    idle: Distr::Exp { mean: 120.0 },
                });
            },
        ),
        ("R.credentials = [ \"u[1-2]:p${worker}\" ]; R.auth_error = 3%;", |r| {
            r.credentials = vec!["u1:p0".to_owned(), "u2:p0".to_owned()];
            r.auth_error = 0.03;
        }),
        ("R.cookie_sender = 50%; R.cookies_keep_lmt = const(9.0);", |r| {
            r.cookie_sender = 0.5;
            r.cookies_keep = Distr::Const(9.0);
        }),
        (
            "R.interests = [ \"foreign\": 30%, \"public\" ]; R.foreign_trace = \"trace\"; R.raw_uri_thrower = \"*\";",
            |r| {
                r.foreign = 0.3;
                r.trace = Arc::new(vec!["http://trace/".to_owned()]);
                r.raw_uri_thrower = Some("*".to_owned());
            },
        ),
        ("R.http_proxies = [ '10.5.0.1-2:3128', 'known.tst:8080' ];", |r| {
            r.proxies = ["10.5.0.1:3128", "10.5.0.2:3128", "10.9.9.9:8080"].map(socket).to_vec();
            r.proxy_names = ["10.5.0.1", "10.5.0.2", "known.tst"].map(str::to_owned).to_vec();
        }),
        (
            "R.dns_resolver = { servers = [ '10.6.0.1', '10.6.0.2:5353' ]; timeout = 2sec; query_type = \"AAAA\"; cache = { capacity = 10; sharing_group = \"g\"; }; };",
            |r| {
                r.dns = Some(Dns {
                    servers: ["10.6.0.1:53", "10.6.0.2:5353"].map(socket).to_vec(),
                    timeout: 2 * SECOND,
                    v6: true,
                    cache: 10,
                    sharing_group: Some("g".to_owned()),
                });
            },
        ),
    ];
    for (more, change) in cases {
        let mut wanted = robot("");
        change(&mut wanted);
        same(more, &robot(more), &wanted);
    }
}

#[test]
fn settings_of_contents() {
    type Change = fn(&mut Content);
    let cases: &[(&str, Change)] = &[
        ("C = { size = logn(9KB, 2KB); cachable = 5%; checksum = 10%; unique = 20%; };", |c| {
            c.size = Some(Distr::logn(9216.0, 2048.0));
            c.cachable = 0.05;
            c.checksum = 0.1;
            c.unique = Some(0.2);
        }),
        ("C.generator = \"random_data\";", |c| c.source = BodySource::Data),
        ("C = { size = undef(); content_db = \"a.cdb\"; };", |c| {
            c.size = None;
            c.source = BodySource::Database(Arc::new(files("a.cdb")));
        }),
        ("C.document_root = \"site\";", |c| c.source = BodySource::Root(Arc::new(files("site")))),
        (
            "C.obj_life_cycle = { length = const(2day); variance = 33%; with_lmt = 50%; expires = [ nmt + 0: 80%, now + const(1hour) ]; };",
            |c| {
                let rule = |base, gap| Expiry { base, gap: Distr::Const(gap) };
                c.life = Some(LifeCycle {
                    length: Distr::Const(172_800.0),
                    variance: 0.33,
                    with_lmt: 0.5,
                    expires: Selector::weighted([
                        (rule(ExpiryBase::Nmt, 0.0), 0.8),
                        (rule(ExpiryBase::Now, 3600.0), 0.2),
                    ]),
                });
            },
        ),
        ("C.obj_life_cycle = { with_lmt = 50%; };", |_| {}),
        (
            "Content I = { kind = \"i\"; size = const(1KB); }; Content J = I; J.kind = \"j\"; C.may_contain = [ I, J ]; C.embedded_obj_cnt = zipf(13);",
            |c| {
                c.embeds = Some(Embeds {
                    kinds: Selector::even(vec![ContentKind(4), ContentKind(5)]),
                    count: Distr::Zipf { n: 13 },
                });
            },
        ),
        (
            "C.mime = { type = \"text/html\"; extensions = [ \".html\": 60%, \".htm\" ]; prefixes = [ \"p/\" ]; };",
            |c| {
                c.mime_type = Some("text/html".to_owned());
                c.extensions = Selector::weighted([(".html".to_owned(), 0.6), (".htm".to_owned(), 0.4)]);
                c.prefixes = Selector::only("p/".to_owned());
            },
        ),
        ("C.encodings = [ \"identity\", \"gzip\" ];", |c| {
            c.encodings = Encodings { identity: true, gzip: true }
        }),
        ("C.encodings = [ \"gzip\" ];", |c| c.encodings = Encodings { identity: false, gzip: true }),
        ("C = { infect_prob = 10%; inject_db = \"t\"; inject_gap = exp(1KB); };", |c| {
            let what = Injected::Texts { texts: Arc::new(files("t")), gap: Distr::Exp { mean: 1024.0 } };
            c.injection = Some(Injection { prob: 0.1, what });
        }),
        ("C = { infect_prob = 10%; inject_object = \"request_uri\"; };", |c| {
            c.injection = Some(Injection { prob: 0.1, what: Injected::RequestUri });
        }),
        ("C.mime_headers = [ 'X-A: v' ];", |c| c.headers = vec![word(1.0, "X-A")]),
        (
            "C.client_behavior = { recurrence = 10%; req_types = [ \"Reload\" ]; req_methods = [ \"GET\" ]; pop_model = { pop_distr = popUnif(); }; };",
            |c| {
                c.behavior = Some(BehaviorChange {
                    recurrence: Some(0.1),
                    popularity: Some(PopModel::default()),
                    kinds: Selector::only(RequestKind::Reload),
                    methods: Selector::only(Method::Get),
                    ranges: Selector::default(),
                });
            },
        ),
    ];
    for (more, change) in cases {
        let mut wanted = content("");
        change(&mut wanted);
        same(more, &content(more), &wanted);
    }
}

#[test]
fn rules_of_another_version_are_adopted_with_all_that_follows() {
    let think = "S.xact_think = const(2sec);";
    for (more, rules, settle) in [
        ("", Rules::Device, 2.25),
        ("compat(\"none\");", Rules::Device, 2.25),
        ("compat(\"4.9\");", Rules::V4_9, 0.0),
        ("compat(\"4.9\"); compat(\"none\");", Rules::Device, 2.25),
    ] {
        let field = adopted(&format!("{think} {more}")).field;
        assert_eq!((field.rules, field.settle, field.page_delay), (rules, settle, 2.0), "{more}");
    }
}

#[test]
fn defaults_may_be_written_out() {
    adopted("R.socket.nagle = false; S.socket = { nagle = false; }; R.spnego_auth_ratio = 100%;");
}

#[test]
fn thermostats_of_phases_are_adopted() {
    let more = "Phase Q = { name = \"q\"; goal.duration = 1min; \
         rptmstat = { sample_dur = 30sec; load_delta = 1%; rptm_max = 1.5sec; }; }; schedule(Q);";
    let test = lower(&workload(&program(more)), "test", Seed(1), &BENCH).expect("a test");
    let rule = Rptmstat { sample_dur: 30.0, load_delta: 0.01, rptm_min: None, rptm_max: Some(1.5) };
    let rules: Vec<_> = test.schedule.phases.iter().map(|phase| phase.rptmstat).collect();
    assert_eq!(rules.iter().flatten().collect::<Vec<_>>(), [&rule]);
}

#[test]
fn gaps_without_a_length_are_refused() {
    let workload = workload(&program("R.req_rate = undef(); R.req_inter_arrival = const(0sec);"));
    let all = lower(&workload, "test", Seed(1), &BENCH).err().unwrap_or_default();
    assert!(all.iter().any(|obstacle| obstacle.to_string().contains("req_inter_arrival")), "{all:?}");
}

#[test]
fn distributions() {
    let bin = |min, max, weight| Bin { min, max, weight };
    let table = DistributionTable::new([bin(1024.0, None, 1.0), bin(2048.0, Some(4096.0), 3.0)]).unwrap();
    for (size, wanted) in [
        ("const(1KB)", Distr::Const(1024.0)),
        ("unif(1KB, 2KB)", Distr::Unif { min: 1024.0, max: 2048.0 }),
        ("exp(1KB)", Distr::Exp { mean: 1024.0 }),
        ("norm(2KB, 1KB)", Distr::Norm { mean: 2048.0, sd: 1024.0 }),
        ("logn(2KB, 1KB)", Distr::logn(2048.0, 1024.0)),
        ("seq(1KB)", Distr::Ascending { first: 1024.0 }),
        ("table(\"sizes\")", Distr::Table(table)),
    ] {
        let sizes = "size_distr sizes = {\n1024 1\n2048:4096 3\n}\n";
        let text = program(&format!("C.size = {size}; S.contents = [ C ];"));
        let loader = MemoryLoader::default().with("test.pg", text).with("sizes", sizes);
        let compilation = compile("test.pg", &loader, &Options::default());
        let workload =
            compilation.workload.unwrap_or_else(|| panic!("{size}: {:?}", compilation.diagnostics));
        let test = lower(&workload, "test", Seed(1), &BENCH).unwrap();
        assert_eq!(test.field.catalog.contents[0].size, Some(wanted), "{size}");
    }
}

#[test]
fn what_is_missing_outside_is_named() {
    for (more, words) in [
        ("R.interests = [ \"foreign\" ]; R.foreign_trace = \"gone\";", "gone is gone"),
        ("R.http_proxies = [ 'nobody.tst:3128' ];", "nobody.tst has no address"),
    ] {
        let all = lower(&workload(&program(more)), "test", Seed(1), &BENCH).err().unwrap_or_default();
        assert_eq!(all, [LowerError::Missing(words.to_owned())], "{more}");
    }
}

#[test]
fn what_changes_nothing_on_the_wire_is_noted() {
    for (more, words) in [
        ("Proxy X = { addresses = [ '10.0.0.9:80' ]; }; use(X);", "replaces the Proxy"),
        ("NetPipe N = { addresses = S.addresses; packet_loss = 1%; }; use(N);", "NetPipe"),
        ("Bench B; B.client_side.hosts = [ '10.0.9.1-2' ]; use(B);", "2 client machines"),
    ] {
        let notes = adopted(more).notes;
        assert!(notes.len() == 1 && notes[0].contains(words), "{more}: {notes:?}");
    }
}

#[test]
fn settings_that_nothing_reads_are_noted() {
    const ROBOTS: &str = "R.ssl_wraps = [ W ];";
    const SERVERS: &str = "S.ssl_wraps = [ W ]; SslWrap V; R.ssl_wraps = [ V ];";
    const BOTH: &str = "S.ssl_wraps = [ W ]; R.ssl_wraps = [ W ];";
    const HTTP2: &str = "R.http_versions = [ \"2\" ];";
    let early = "early_data = yes; session_resumption = 50%;";
    let keys = "key_types = [ \"Ed25519\" ];";
    let sizes = "rsa_key_sizes = [ 3072bit ];";
    let group = "sharing_group = \"g\";";
    let resumption = "session_resumption = 50%;";
    let fault = "certificate_fault = \"expired\";";
    let files = "certificates = [ \"a.pem\" ];";
    let pipeline = "R.pipeline_depth = const(4.0);";
    let proxy = "Proxy X = { addresses = [ '10.0.0.9:443' ]; ssl_wraps = [ W ]; }; use(X); R.http_proxies = [ '10.0.0.9:443' ];";
    for (wrap, users, more, wanted) in [
        ("", ROBOTS, pipeline, ""),
        ("", BOTH, "R.http_versions = [ \"2\", \"3\" ];", ""),
        ("", BOTH, &*format!("{pipeline} {HTTP2}"), "`pipeline_depth` of the robots r has no effect"),
        (
            "",
            BOTH,
            &format!("{pipeline} R.http_versions = [ \"3\", \"2\", \"1.1\": 0% ];"),
            "`pipeline_depth`",
        ),
        ("", BOTH, &format!("{pipeline} R.http_versions = [ \"2\", \"1.0\": 1% ];"), ""),
        (early, ROBOTS, "", ""),
        (
            "early_data = yes;",
            ROBOTS,
            "",
            "`early_data` in the `ssl_wraps` of r has no effect: only resumed sessions",
        ),
        ("early_data = yes;", BOTH, "", ""),
        (
            &format!("key_types = [ \"RSA-4096\" ]; {sizes}"),
            SERVERS,
            "",
            "`rsa_key_sizes` in the `ssl_wraps` of s has no effect: no key of `key_types` is an RSA key without",
        ),
        (early, ROBOTS, HTTP2, ""),
        (early, BOTH, HTTP2, ""),
        (
            "early_data = yes;",
            ROBOTS,
            "Robot Q = R; Q.kind = \"q\"; use(Q);",
            "`early_data` in the `ssl_wraps` of q, r",
        ),
        (keys, BOTH, "", ""),
        (keys, SERVERS, "", ""),
        (keys, ROBOTS, "", "`key_types` in the `ssl_wraps` of r has no effect: only servers generate keys"),
        (keys, ROBOTS, proxy, "`key_types` in the `ssl_wraps` of r has no effect"),
        (sizes, ROBOTS, "", "`rsa_key_sizes` in the `ssl_wraps` of r has no effect: only servers"),
        (group, ROBOTS, "", "`sharing_group` in the `ssl_wraps` of r has no effect: only servers"),
        (
            &format!("{keys} {sizes}"),
            BOTH,
            "",
            "`rsa_key_sizes` in the `ssl_wraps` of r, s has no effect: no key of `key_types`",
        ),
        (&format!("key_types = [ \"Ed25519\", \"RSA\" ]; {sizes} {group}"), SERVERS, "", ""),
        (
            &format!("{files} {group}"),
            SERVERS,
            "",
            "`sharing_group` in the `ssl_wraps` of s has no effect: servers with",
        ),
        (files, BOTH, "", ""),
        (resumption, SERVERS, "", "`session_resumption` in the `ssl_wraps` of s has no effect: only robots"),
        (resumption, ROBOTS, "", ""),
        (fault, ROBOTS, "", "`certificate_fault` in the `ssl_wraps` of r has no effect: only servers"),
        (fault, BOTH, "", ""),
        (resumption, BOTH, "", ""),
        // Values that are the default say nothing, and neither do settings of unused wraps.
        (
            "session_resumption = 0%; early_data = no; key_types = [ \"RSA\" ]; rsa_key_sizes = [ 2048bit ];",
            ROBOTS,
            HTTP2,
            "",
        ),
        (&format!("{early} {keys} {group}"), "", HTTP2, ""),
    ] {
        let text = format!("SslWrap W = {{ {wrap} }}; {users} {more}");
        let workload = workload(&program(&text));
        let found = settings_without_effect(&workload);
        assert_eq!(found.len(), usize::from(!wanted.is_empty()), "{text}: {found:?}");
        assert_eq!(crate::predict::warnings(&workload, &crate::predict::predict(&workload)), found, "{text}");
        let notes =
            lower(&workload, "test", Seed(1), &BENCH).unwrap_or_else(|all| panic!("{text}: {all:?}")).notes;
        for finding in found {
            assert!(
                finding.message.contains(wanted) && finding.message.contains(" has no effect: "),
                "{finding:?}"
            );
            assert_eq!(finding.severity, polygraph_pgl::Severity::Warning);
            let [help] = &finding.help[..] else { panic!("{finding:?}") };
            assert!(notes.contains(&format!("{}; {help}", finding.message)), "{text}: {notes:?}");
        }
        assert!(
            !wanted.is_empty() || !notes.iter().any(|note| note.contains("no effect")),
            "{text}: {notes:?}"
        );
    }
}

#[test]
fn offered_hit_ratios() {
    let repeat = "R.recurrence = 50%; R.pop_model.pop_distr = popUnif();";
    let page = "Content I = C; I = { kind = \"i\"; cachable = 40%; }; C = { may_contain = [ I ]; embedded_obj_cnt = const(3); }; \
                S.contents = [ C, I ]; S.direct_access = [ C ];";
    let cases = [
        (repeat.to_owned(), Some(0.5 * 0.8)),
        // One page and three images.
        (format!("{repeat} {page} R.embed_recur = 100%;"), Some(0.5 * (0.8 + 3.0 * 0.4) / 4.0)),
        (format!("{repeat} {page}"), Some(0.5 * 0.8)),
        (format!("{repeat} C.client_behavior.recurrence = 10%; S.contents = [ C ];"), Some(0.1 * 0.8)),
        // Two kinds of robots, weighted by their rates.
        (
            format!(
                "{repeat} R.req_rate = 1/sec; Robot Q = R; Q = {{ recurrence = 0.0; req_rate = 3/sec; }}; use(Q);"
            ),
            Some(0.25 * 0.5 * 0.8),
        ),
        (format!("{repeat} Robot Q = R; Q.recurrence = 0.0; use(Q);"), None),
        (format!("{repeat} R.private_cache_cap = 5;"), None),
        (
            format!(
                "{repeat} Phase Q = {{ goal.duration = 1min; recur_factor_beg = 50%; primary = true; }}; schedule(Q);"
            ),
            Some(0.5 * 0.5 * 0.8),
        ),
        (
            format!(
                "{repeat} Phase Q = {{ goal.duration = 1min; recur_factor_end = 50%; primary = true; }}; schedule(Q);"
            ),
            None,
        ),
    ];
    for (more, wanted) in cases {
        let got = offered_dhr(&adopted(&more));
        let same = match (got, wanted) {
            (Some(got), Some(wanted)) => (got - wanted).abs() < 1e-9,
            (None, None) => true,
            _ => false,
        };
        assert!(same, "{more}: {got:?}, not {wanted:?}");
    }
}

/// The command lines that run each standard workload on one machine, as in `docs/workloads.md`.
fn standard() -> Vec<(String, Vec<(String, String)>)> {
    let text =
        std::fs::read_to_string(format!("{}/../../docs/workloads.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut all = Vec::new();
    for command in text.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()) {
        let command = command.replace("\\\n", " ");
        let words = words(&command);
        let after = |option: &str| {
            let places = words.iter().enumerate().filter(move |(_, word)| *word == option);
            places.map(|(at, _)| words[at + 1].clone()).collect::<Vec<_>>()
        };
        let Some(mut file) = after("--config").pop() else { continue };
        if !file.contains('/') {
            // The name of a built-in workload.
            file = format!("workloads/{file}.pg");
        }
        let settings = after("--set");
        let split = |text: &String| {
            let (name, value) = text.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        all.push((file, settings.iter().map(split).collect()));
    }
    all
}

/// Splits a command line at blanks outside double quotes, as a shell does.
fn words(command: &str) -> Vec<String> {
    let mut quoted = false;
    let mut all = vec![String::new()];
    for c in command.chars() {
        match c {
            '"' => quoted = !quoted,
            '\'' if !quoted => panic!("a shell takes the quotes away: {command}"),
            c if c.is_whitespace() && !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all.retain(|word| !word.is_empty());
    all
}

#[test]
fn the_standard_workloads_can_be_run_on_one_machine() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = standard();
    for (file, settings) in &all {
        let path = directory.join(file);
        let options = Options { settings: settings.clone(), ..Options::default() };
        let compilation = compile(path.to_str().unwrap(), &DiskLoader, &options);
        assert_eq!(compilation.render(Style::Plain), "", "{file}");
        let workload = compilation.workload.unwrap();
        assert_eq!(settings_without_effect(&workload), [], "{file}");
        let test = lower(&workload, file, Seed(1), &BENCH).unwrap_or_else(|all| panic!("{file}: {all:?}"));
        assert!(test.robot_count() > 0 && !test.field.servers.is_empty(), "{file}");
        let mut machine = test.servers.iter().flat_map(|servers| &servers.sites).map(|site| site.listen.ip());
        assert!(machine.all(|ip| ip.is_loopback()), "{file}");
        assert!(test.robots.iter().flat_map(|robot| &robot.addresses).all(|ip| ip.is_loopback()), "{file}");
        assert!(
            test.field.servers.iter().flat_map(|s| &s.addresses).all(|addr| addr.ip().is_loopback()),
            "{file}"
        );
        let dhr = offered_dhr(&test).unwrap_or_else(|| panic!("{file} offers an unknown hit ratio"));
        assert!((0.03..0.95).contains(&dhr), "{file}: {dhr}");
    }
    // All files in `workloads/`.
    let mut files: Vec<_> = std::fs::read_dir(directory.join("workloads"))
        .unwrap()
        .map(|entry| format!("workloads/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|name| name.ends_with(".pg"))
        .collect();
    files.sort();
    let mut told: Vec<_> = all.into_iter().map(|(file, _)| file).collect();
    told.sort();
    told.dedup();
    assert_eq!(told, files);
}

#[test]
fn samples_begin_in_the_middle_of_plateaus_or_where_they_say() {
    let test = adopted(
        "StatsSample t = { name = \"t\"; start = 3sec; capacity = 10; };
         StatsSample u = { capacity = 5; };
         Phase A = { name = \"a\"; goal.duration = 1min; stats_samples = [ u, t ]; };
         Phase B = { name = \"b\"; goal.xactions = 9; stats_samples = [ u ]; };
         schedule(A, B, t);",
    );
    let plan =
        |name: &str, start, of_run, capacity| SamplePlan { name: name.into(), start, of_run, capacity };
    let all: Vec<&SamplePlan> = test.schedule.samples().collect();
    let expected = [
        plan("a", 30.0, false, 5),
        plan("t", 3.0, false, 10),
        plan("t", 3.0, true, 10),
        plan("b", 0.0, false, 5),
    ];
    assert_eq!(all, expected.iter().collect::<Vec<_>>());
    let shorter = test.schedule.scaled(0.5);
    assert_eq!(shorter.samples().map(|sample| sample.start).collect::<Vec<_>>(), [15.0, 1.5, 1.5, 0.0]);
}
