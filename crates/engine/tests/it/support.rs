//! A bench in one process: robots, origin servers and, if wanted, the built-in proxy between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use polygraph_cache::{ProxyConfig, Snapshot};
use polygraph_engine::proxy::ProxyServer;
use polygraph_engine::simulation::simulate;
use polygraph_engine::{
    ClientSetup, Engine, Layout, ReservedAddress, RunOutcome, RunSetup, ServerSetup, StartRule, run,
};
use polygraph_link::{Nanos, SECOND};
use polygraph_origin::{OriginConfig, ServerProfile};
use polygraph_plan::{Goal, Phase, Schedule};
use polygraph_robot::{Field, Profile, Verify};
use polygraph_stats::{Block, DumpPlan, ErrorKind, Header, ReadLog, Record, Side};
use polygraph_traffic::{Catalog, ContentKind, IdSource, Seed, Selector};

pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A bench with one server.
pub struct Bench {
    pub catalog: Catalog,
    pub profiles: Vec<Profile>,
    pub farm: ServerProfile,
    /// The share of cachable objects if the client marks them, as in generation 1.x.
    pub marks_cachable: Option<f64>,
    pub settle: f64,
    pub schedule: Schedule,
    pub loops: usize,
    pub ports: Option<(u16, u16)>,
    pub open_limit: usize,
    /// That limit stands for the host's.
    pub limited_by_host: bool,
    /// Robots connect there instead of to the server.
    pub elsewhere: Option<SocketAddr>,
    /// Robots connect to a proxy like this.
    pub proxy: Option<ProxyConfig>,
}

/// What came out: the outcome, and everything in the two logs as one block each.
pub struct Run {
    pub outcome: RunOutcome,
    pub client: Block,
    pub server: Block,
    pub logs: [ReadLog; 2],
    /// What the proxy counted.
    pub proxy: Option<Snapshot>,
}

impl Run {
    /// Examples of an error that the client side kept: what was seen, and the facts by name.
    pub fn examples(&self, wanted: ErrorKind) -> Vec<(&str, &[(String, String)])> {
        let examples = self.logs[0].records.iter().filter_map(|record| match record {
            Record::ErrorSample { kind, detail, facts, .. } if *kind == wanted => {
                Some((detail.as_str(), facts.as_slice()))
            }
            _ => None,
        });
        examples.collect()
    }
}

impl Bench {
    /// Robots of these kinds and a server of all contents of the catalog; 2,000 transactions.
    pub fn new(catalog: Catalog, profiles: Vec<Profile>) -> Bench {
        let kinds = (0..catalog.contents.len()).map(ContentKind::of_index).collect();
        Bench {
            farm: ServerProfile::plain("servers", kinds),
            catalog,
            profiles,
            marks_cachable: None,
            settle: 0.0,
            schedule: Bench::only(Goal { xactions: Some(2000), ..Goal::default() }),
            loops: 1,
            ports: None,
            open_limit: 1000,
            limited_by_host: false,
            elsewhere: None,
            proxy: None,
        }
    }

    /// A schedule of one phase.
    pub fn only(goal: Goal) -> Schedule {
        let phases = vec![Phase { name: "meas".into(), log_stats: true, goal, ..Phase::default() }];
        Schedule { phases, working_set: None }
    }

    /// Runs the test to its end on loops of an engine.
    pub fn run(mut self, engine: Engine) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { folder.path().join(name) };
        let reserved = ReservedAddress::new(ANY_PORT).unwrap();
        let origin = reserved.address();
        let mut proxy = self.proxy.take().map(|config| ProxyServer::start(config, engine).unwrap());
        if let Some(proxy) = &proxy {
            self.profiles.iter_mut().for_each(|profile| profile.proxies = vec![proxy.local_addr()]);
        }
        let mut job = self.job(origin, reserved, path("client.log"), path("server.log"));
        job.engine = engine;
        let mut seen = [0, 0];
        let outcome = run(job, |header, _| seen[header.side as usize] += 1).unwrap();
        let snapshot = proxy.as_mut().map(|proxy| {
            proxy.stop();
            proxy.snapshot()
        });
        let logs = ["client.log", "server.log"].map(|name| ReadLog::open(&path(name)).unwrap());
        for (log, seen) in logs.iter().zip(seen) {
            assert!(log.missing.is_empty(), "{:?}", log.missing);
            assert_eq!(log.records.len() + 1, seen, "observers see what is logged");
            let edges: Vec<_> = log.intervals().map(|i| (i.begin_ns, i.end_ns)).collect();
            assert!(edges.windows(2).all(|w| w[0].1 == w[1].0), "intervals follow each other: {edges:?}");
        }
        Run { outcome, client: sum(&logs[0]), server: sum(&logs[1]), logs, proxy: snapshot }
    }

    /// Runs the test to its end in virtual time, without a proxy.
    pub fn simulate(self) -> Run {
        self.simulate_for(None)
    }

    /// The same, for so many nanoseconds at most.
    pub fn simulate_for(self, limit: Option<Nanos>) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { folder.path().join(name) };
        let origin = SocketAddr::from(([10, 0, 0, 1], 80));
        let job =
            self.job(origin, ReservedAddress::elsewhere(origin), path("client.log"), path("server.log"));
        let outcome = simulate(job, 1_000_000_000, limit, |_| {}, |_, _| {}).unwrap();
        let logs = ["client.log", "server.log"].map(|name| ReadLog::open(&path(name)).unwrap());
        Run { outcome, client: sum(&logs[0]), server: sum(&logs[1]), logs, proxy: None }
    }

    fn job(
        self,
        origin: SocketAddr,
        reserved: ReservedAddress,
        client_log: PathBuf,
        server_log: PathBuf,
    ) -> RunSetup {
        let mut ids: Vec<IdSource> = (0..self.loops as u32).map(|i| IdSource::reproducible(1, i)).collect();
        let group = ids[0].fresh();
        let kinds = self.farm.contents.clone();
        let direct = match self.marks_cachable {
            Some(_) => Selector::only(ContentKind::FIRST),
            None => kinds,
        };
        let field = Field {
            servers: vec![polygraph_robot::Server {
                authority: origin.to_string(),
                addresses: vec![self.elsewhere.unwrap_or(origin)],
                behind: Vec::new(),
                bad_certificate: None,
                direct: 0,
                tls: false,
            }],
            direct: vec![direct],
            catalog: self.catalog.clone(),
            marks_cachable: self.marks_cachable,
            rules: polygraph_robot::Rules::default(),
            page_delay: 0.0,
            settle: self.settle,
            verify: Verify::Full,
            share_worlds: false,
            redirects: true,
            freshness: match self.marks_cachable {
                Some(_) => polygraph_robot::ToldFreshness::Classic,
                None => polygraph_robot::ToldFreshness::LifeCycle,
            },
            substitutes: Vec::new(),
        };
        let config = OriginConfig {
            catalog: Arc::new(self.catalog),
            profiles: vec![self.farm],
            seed: Seed(1),
            group: IdSource::reproducible(1, 99).fresh(),
            classic: self.marks_cachable.is_some(),
            ignore_urls: false,
            accept_foreign_msgs: false,
            share_worlds: false,
            all_names: Vec::new(),
        };
        let server = polygraph_origin::ServerSpec {
            profile: 0,
            number: 0,
            address: origin.to_string(),
            names: Vec::new(),
        };
        let settings = polygraph_robot::Settings {
            first_robot: 0,
            robots: self.profiles.iter().map(|profile| profile.count).sum(),
            profiles: self.profiles.into_iter().map(Arc::new).collect(),
            share: None,
            field: Arc::new(field),
            launch_window: 0.0,
            open_limit: self.open_limit,
            limited_by_host: self.limited_by_host,
            seed: Seed(1),
            group,
            tolerance: Default::default(),
            share_phases: false,
            others_fill: false,
        };
        RunSetup {
            client: Some(ClientSetup {
                settings,
                ports: self.ports,
                layout: Layout::threads(self.loops),
                ids,
                earlier: None,
                stores: false,
                header: header(Side::Client, &self.schedule),
                log: Some(client_log),
                sample_log: None,
                dump: DumpPlan::default(),
            }),
            server: Some(ServerSetup {
                config: Arc::new(config),
                servers: vec![(server, reserved)],
                layout: Layout::threads(self.loops),
                header: header(Side::Server, &self.schedule),
                log: Some(server_log),
                sample_log: None,
                dump: DumpPlan::default(),
            }),
            schedule: self.schedule,
            start: StartRule::Now,
            interval: SECOND / 4,
            quantum: Nanos::new(100_000),
            engine: Engine::Epoll,
            idle_timeout: None,
            fail_timeout: None,
            sync_timeout: None,
        }
    }
}

/// Everything in a log as one block.
fn sum(log: &ReadLog) -> Block {
    log.intervals().fold(Block::new(), |mut all, interval| {
        all.concatenate(&interval.block);
        all
    })
}

fn header(side: Side, schedule: &Schedule) -> Header {
    Header {
        side,
        version: "test".into(),
        label: String::new(),
        start_unix_ns: 0,
        pid: 0,
        environment: vec![],
        command: vec![],
        settings: vec![],
        workload: "test".into(),
        loops: 0,
        phases: schedule.plans(),
        offered_rate: None,
        offered_dhr: None,
        limits: Default::default(),
        contents: Vec::new(),
        workload_text: String::new(),
    }
}
