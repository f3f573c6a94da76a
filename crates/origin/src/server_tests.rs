//! Whole connections, over a link with a virtual clock.

mod connections;
mod knowledge;
mod objects;
mod requests;

use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_sim::VirtualLink;
use polygraph_stats::{Block, Class, CloseKind, ErrorKind, Recorder};
use polygraph_traffic::content::Content;
use polygraph_traffic::headers::{HeaderChoice, HeaderRule};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::{AbortCoords, Distr, Fingerprint, PopModel, Seed, Selector, UniqId};
use polygraph_wire::{checksum, date};

use crate::origin::Origin;
use crate::server::Server;
use crate::settings::{Cookies, OriginConfig, Redirects, ServerSpec};
use crate::testing::{EPOCH, PATH, TestClient, classic, config_of, connection, link};

/// A server and what it counts.
struct Bench {
    link: VirtualLink,
    origin: Rc<Origin<VirtualLink>>,
    recorder: Recorder,
}

impl Bench {
    fn new(config: OriginConfig) -> Bench {
        let (link, recorder) = (link(), Recorder::new());
        let origin = Origin::new(link.clone(), Arc::new(config), 0, recorder.clone());
        Bench { link, origin, recorder }
    }

    /// A client of the server, which accepts at once.
    fn connect(&self) -> TestClient {
        let names = vec!["www:80".to_owned()];
        let server = ServerSpec { profile: 0, number: 1, address: "10.0.0.1:80".into(), names };
        let (client, conn) = connection(&self.link);
        self.link.spawn(Server::new(&self.origin, server).serve(conn));
        client
    }

    fn run(&self, until: Nanos) {
        self.link.run(until);
    }

    fn block(&self) -> Block {
        self.recorder.with(|block| block.clone())
    }

    /// What one request on a fresh connection gets.
    fn ask(&self, request: impl AsRef<[u8]>) -> String {
        String::from_utf8_lossy(&self.ask_bytes(request)).into_owned()
    }

    fn ask_bytes(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        let client = self.connect();
        client.send(request);
        self.run(self.link.now());
        client.close();
        self.run(self.link.now() + Nanos::new(1));
        client.take()
    }

    #[track_caller]
    fn assert_errors(&self, expected: &[(ErrorKind, u64)]) {
        assert_eq!(self.block().errors.iter().collect::<Vec<_>>(), expected);
    }

    #[track_caller]
    fn assert_classes(&self, expected: &[(Class, u64)]) {
        let block = self.block();
        let found: Vec<_> = Class::ALL
            .into_iter()
            .map(|class| (class, block.class(class).size.count()))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(block.xacts.last, 0, "all transactions have ended");
    }
}

fn persistent(mut config: OriginConfig) -> OriginConfig {
    config.profiles[0].requests_per_connection = Distr::Const(1000.0);
    config.profiles[0].idle_timeout = Some(15 * SECOND);
    config
}

const MARKS: &str = "X-Target: www:80\r\nX-Xact: 00000001.00000abc:00000002 00000001.00000abc:00000004 0\r\n";

fn get(fields: &str) -> String {
    format!("GET {PATH} HTTP/1.1\r\nHost: www\r\n{MARKS}{fields}\r\n")
}

fn split(reply: &str) -> (&str, &str) {
    reply.split_once("\r\n\r\n").unwrap()
}

fn field<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let head = split(reply).0;
    head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Contents with a life cycle, with and without a date of it, private, and compressed.
fn living() -> OriginConfig {
    let life = LifeCycle {
        length: Distr::Const(86_400.0),
        variance: 0.1,
        with_lmt: 1.0,
        expires: Selector::only(Expiry { base: ExpiryBase::Now, gap: Distr::Const(60.0) }),
    };
    let page = Content {
        life: Some(life.clone()),
        mime_type: Some("text/html".into()),
        checksum: 1.0,
        ..Content::plain("page", Distr::Const(1000.0), 1.0)
    };
    let hidden = Content { life: Some(LifeCycle { with_lmt: 0.0, ..life }), ..page.clone() };
    let private = Content { cachable: 0.0, checksum: 0.0, ..page.clone() };
    let mut gzip = Content { life: None, ..page.clone() };
    gzip.encodings.gzip = true;
    let only_gzip = Content {
        encodings: polygraph_traffic::content::Encodings { identity: false, gzip: true },
        ..gzip.clone()
    };
    persistent(config_of(vec![page, hidden, private, gzip, only_gzip]))
}

#[test]
fn settings_travel_to_other_processes() {
    let mut config = living();
    config.profiles[0].redirects = Some(Redirects { share: 0.1, popularity: PopModel::default() });
    config.profiles[0].http_minors = Selector::weighted([(0, 0.3), (1, 0.7)]);
    let bytes = postcard::to_stdvec(&config).unwrap();
    assert_eq!(postcard::from_bytes::<OriginConfig>(&bytes).unwrap(), config);
}

#[test]
fn thousands_of_servers_are_cheap() {
    let config = Arc::new(persistent(classic(10.0)));
    let origin = Origin::new(link(), Arc::clone(&config), 0, Recorder::new());
    let server = |number: u64| ServerSpec {
        profile: 0,
        number,
        address: format!("10.{}.{}.1:80", number / 256, number % 256),
        names: Vec::new(),
    };
    let servers: Vec<_> = (0..5_000).map(|number| Server::new(&origin, server(number))).collect();
    assert!(size_of_val(&*servers[0]) < 400, "{}", size_of_val(&*servers[0]));
}
