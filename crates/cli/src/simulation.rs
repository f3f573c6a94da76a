//! A test in virtual time: from a test and a model of a device to logs and figures.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_dns::Zone;
use polygraph_dns::reply::{Transport, reply};
use polygraph_engine::simulation::simulate;
use polygraph_engine::{Layout, ReservedAddress, RunOutcome, RunSetup, StartRule};
use polygraph_link::{Nanos, nanos};
use polygraph_plan::{Test, values};
use polygraph_sim::device::{Cache, Device, Figures, Model};
use polygraph_stats::{Header, Record};
use polygraph_traffic::{IdSource, UniqId};

use crate::options::{CommonOptions, FAIL_TIMEOUT, Optional};
use crate::working_set::Files;
use crate::{Failure, jobs};

/// Where a device is that the workload does not name. Addresses of simulations need not exist.
const DEVICE: ([u8; 4], u16) = ([192, 0, 2, 1], 3128);
/// Servers without an address of their own get ports from here on.
const FIRST_PORT: u16 = 8001;
/// Seconds for which names are good.
const NAME_TTL: u32 = 300;

/// Reads a model of a device: `none`, or what it keeps and how long it takes, as in `lru:4GB,hit=2ms,miss=5ms,rate=300/s`.
///
/// # Errors
/// If it is none.
pub fn device(text: &str) -> Result<Optional<Model>, String> {
    let wrong = |why: &str| {
        format!(
            "`{text}` is no model of a device: {why}; write none, ideal, lru:4GB, fifo:4GB, s3fifo:4GB or tinylfu:4GB, \
             and behind it, if you like, ,hit=2ms ,miss=5ms and ,rate=300/s"
        )
    };
    if values::is_none(text) {
        return Ok(Optional(None));
    }
    let (cache, rest) = text.split_once(',').unwrap_or((text, ""));
    let (policy, size) = cache.split_once(':').map_or((cache, None), |(policy, size)| (policy, Some(size)));
    let sized = |make: fn(u64) -> Cache| {
        let bytes = values::size(size.ok_or_else(|| wrong("it needs a size"))?)?;
        if bytes > 0 { Ok(make(bytes)) } else { Err(wrong("it needs a size")) }
    };
    let cache = match policy.to_ascii_lowercase().as_str() {
        "ideal" if size.is_none() => Cache::Ideal,
        "ideal" => return Err(wrong("an ideal cache has no size")),
        "lru" => sized(Cache::Lru)?,
        "fifo" => sized(Cache::Fifo)?,
        "s3fifo" => sized(Cache::S3Fifo)?,
        "tinylfu" => sized(Cache::TinyLfu)?,
        _ => return Err(wrong(&format!("there is no policy `{policy}`"))),
    };
    let mut model = Model::instant(cache);
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong(&format!("`{part}` has no value")))?;
        match key {
            "hit" => model.hit = nanos(values::time(value)?),
            "miss" => model.miss = nanos(values::time(value)?),
            "rate" => model.rate = Some(values::rate(value)?),
            _ => return Err(wrong(&format!("`{key}` is unknown"))),
        }
    }
    Ok(Optional(Some(model)))
}

/// The identities of a run, on which everything about its objects depends.
#[derive(Clone, Debug)]
pub struct Identities {
    /// Sources of ids, by loop of robots.
    pub robots: Vec<IdSource>,
    /// The group of all robots.
    pub client: UniqId,
    /// The group of all servers.
    pub server: UniqId,
}

/// What is simulated.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The test. Robots that are told of no proxy go through the device, if there is one.
    pub test: Test,
    /// Where its servers are, in order; `None`: where the test says.
    pub places: Option<Vec<SocketAddr>>,
    /// Options of both sides.
    pub common: &'a CommonOptions,
    /// The device; `None`: robots connect to servers.
    pub device: Option<Model>,
    /// Time from one end of the network to the other.
    pub delay: Nanos,
    /// What robots put up with.
    pub tolerance: polygraph_robot::Tolerance,
    /// What servers put up with.
    pub server_tolerance: jobs::Tolerance,
    /// Working sets to go on with and to store.
    pub working_set: &'a Files,
    /// The identities of another run: its objects are asked for, at the same times. `None`: those of the seed.
    pub identities: Option<Identities>,
    /// Time of day at the start, in seconds since 1970.
    pub epoch: u64,
}

/// A test that is ready to be simulated.
#[derive(Debug)]
pub struct Simulation {
    /// The test with all addresses.
    pub test: Test,
    job: RunSetup,
    device: Option<(Model, Vec<SocketAddr>)>,
    delay: Nanos,
    epoch: u64,
}

impl Simulation {
    /// Prepares a test. Logs go to `directory`, if there is one.
    ///
    /// # Errors
    /// If the test does not fit the device.
    pub fn new(setup: Setup<'_>, directory: Option<&Path>) -> Result<Simulation, Failure> {
        let Setup { mut test, common, working_set, .. } = setup;
        let places = setup.places.unwrap_or_else(|| places(&test));
        test.serve_at(&places);
        let device = match setup.device {
            Some(model) => Some((model, put_between(&mut test)?)),
            None => {
                connect_directly(&test, &places)?;
                None
            }
        };
        // Everything has to be the same in every simulation with the same seed.
        let common = CommonOptions { unique_world: false, ..common.clone() };
        let log = |name: &str| directory.map(|directory| directory.join(name));
        let reserved = places.into_iter().map(ReservedAddress::elsewhere).collect();
        let (one, robots) = (Layout::threads(1), Layout::threads(common.loops.unwrap_or(1) as usize));
        let mut server =
            jobs::server_job(&test, &common, setup.server_tolerance, reserved, one, log("server.log"));
        let mut client = jobs::client_job_within(
            &test,
            &common,
            (None, jobs::OpenLimit::NONE),
            robots,
            log("client.log"),
            working_set,
            setup.tolerance,
        );
        // Nobody else is there to fill the cache with the objects of this test.
        client.settings.others_fill = working_set.earlier.is_some();
        if let Some(identities) = setup.identities {
            (client.ids, client.settings.group) = (identities.robots, identities.client);
            Arc::make_mut(&mut server.config).group = identities.server;
        }
        for header in [&mut client.header, &mut server.header] {
            let fact = |name: &str, value: String| (name.to_owned(), value);
            header.pid = 0;
            header.command.clear();
            header.environment = vec![
                fact("host", "simulation".into()),
                fact("device", device.as_ref().map_or("none".into(), |(model, _)| describe(model))),
                fact("network delay", format!("{} ms", setup.delay as f64 / 1e6)),
            ];
        }
        let job = RunSetup {
            schedule: test.schedule.clone(),
            start: StartRule::Now,
            client: Some(client),
            server: Some(server),
            interval: nanos(common.stats_cycle),
            quantum: nanos(common.timer_quantum),
            sync_timeout: None,
            fail_timeout: FAIL_TIMEOUT,
            idle_timeout: common.idle_tout.0,
        };
        Ok(Simulation { test, job, device, delay: setup.delay, epoch: setup.epoch })
    }

    /// What the logs will say about the run: the client's header and the server's.
    pub fn headers(&mut self) -> [&mut Header; 2] {
        let (client, server) = (self.job.client.as_mut(), self.job.server.as_mut());
        // Both sides are always there, see `new`.
        [&mut client.expect("a client side").header, &mut server.expect("a server side").header]
    }

    /// Simulates it, up to `limit` nanoseconds if there is one; `observer` sees all records.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn run(
        self,
        limit: Option<Nanos>,
        observer: impl FnMut(&Header, &Record),
    ) -> Result<(RunOutcome, Option<Figures>), Failure> {
        let Simulation { test, job, device, delay, epoch } = self;
        let zone = Rc::new(zone(&test)?);
        let started: RefCell<Option<Device>> = RefCell::default();
        let outcome = simulate(
            job,
            epoch,
            limit,
            |link| {
                link.set_delay(delay);
                for server in
                    test.robots.iter().filter_map(|robot| robot.dns.as_ref()).flat_map(|dns| &dns.servers)
                {
                    let zone = Rc::clone(&zone);
                    let answer = move |query: &[u8]| {
                        reply(&zone, NAME_TTL, query, Transport::Udp).map(|reply| reply.message)
                    };
                    link.answer_at(*server, answer);
                }
                if let Some((model, addresses)) = &device {
                    let catalog = test.field.catalog.clone();
                    let servers = test.field.servers.iter();
                    let servers: Vec<_> = servers
                        .filter_map(|server| Some((server.authority.clone(), *server.addresses.first()?)))
                        .collect();
                    let device = Device::start(link, addresses, *model, catalog, &test.names, &servers);
                    *started.borrow_mut() = Some(device);
                }
            },
            observer,
        )
        .map_err(Failure::setup)?;
        Ok((outcome, started.take().map(|device| device.figures())))
    }
}

/// A model in words.
pub fn describe(model: &Model) -> String {
    let size = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1024.0 / 1024.0);
    let (policy, bytes) = match model.cache {
        Cache::Ideal => ("ideal cache", None),
        Cache::Lru(bytes) => ("LRU", Some(bytes)),
        Cache::Fifo(bytes) => ("FIFO", Some(bytes)),
        Cache::S3Fifo(bytes) => ("S3-FIFO", Some(bytes)),
        Cache::TinyLfu(bytes) => ("W-TinyLFU", Some(bytes)),
    };
    let mut text = policy.to_owned();
    if let Some(bytes) = bytes {
        text += &format!(", {}", size(bytes));
    }
    for (what, time) in [("hits", model.hit), ("others", model.miss)] {
        if time > 0 {
            text += &format!(", {what} take {} ms", time as f64 / 1e6);
        }
    }
    model.rate.map_or(text.clone(), |rate| format!("{text}, {rate} requests/s at most"))
}

/// Where servers listen; those without a port get one.
fn places(test: &Test) -> Vec<SocketAddr> {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    let mut free = FIRST_PORT..;
    sites
        .map(|site| match site.listen.port() {
            0 => SocketAddr::new(site.listen.ip(), free.next().unwrap_or(FIRST_PORT)),
            _ => site.listen,
        })
        .collect()
}

/// Leads robots through the device and says where it is.
fn put_between(test: &mut Test) -> Result<Vec<SocketAddr>, Failure> {
    let mut named: Vec<SocketAddr> = test.robots.iter().flat_map(|robot| robot.proxies.clone()).collect();
    if named.is_empty() {
        let device = SocketAddr::from(DEVICE);
        test.through_proxies(&[device]);
        return Ok(vec![device]);
    }
    if test.robots.iter().any(|robot| robot.proxies.is_empty()) {
        let text =
            "some robots of the workload have a proxy and others have none: --device cannot stand for both";
        return Err(Failure::usage(text));
    }
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// Without a device there must be servers where robots connect to.
fn connect_directly(test: &Test, places: &[SocketAddr]) -> Result<(), Failure> {
    if test.robots.iter().any(|robot| !robot.proxies.is_empty()) {
        let text =
            "the robots of the workload go through a proxy: simulate one with --device, for example ideal";
        return Err(Failure::usage(text));
    }
    if let Some(text) = test.misdirection() {
        return Err(Failure::usage(text));
    }
    let is_there = |address: &SocketAddr| {
        places
            .iter()
            .any(|place| place == address || place.ip().is_unspecified() && place.port() == address.port())
    };
    let lost = test.field.servers.iter().flat_map(|server| &server.addresses).find(|at| !is_there(at));
    match lost {
        None => Ok(()),
        Some(address) => Err(Failure::usage(format!(
            "robots of the workload connect to {address}, where none of its servers is: only proxies can be simulated"
        ))),
    }
}

/// The names of a test, for robots that ask.
fn zone(test: &Test) -> Result<Zone, Failure> {
    let mut zone = Zone::default();
    for (name, addresses) in &test.names {
        zone.add(name, addresses).map_err(Failure::usage)?;
    }
    Ok(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_and_described() {
        let lru = Model::instant(Cache::Lru(4 << 30));
        let slow = Model { hit: 2_000_000, miss: 5_000_000, rate: Some(300.0), cache: Cache::Lru(1 << 30) };
        for (text, model, said) in [
            ("ideal", Model::instant(Cache::Ideal), "ideal cache"),
            ("lru:4GB", lru, "LRU, 4096 MB"),
            ("FIFO:1MB", Model::instant(Cache::Fifo(1 << 20)), "FIFO, 1 MB"),
            ("s3fifo:1MB", Model::instant(Cache::S3Fifo(1 << 20)), "S3-FIFO, 1 MB"),
            ("tinylfu:1MB", Model::instant(Cache::TinyLfu(1 << 20)), "W-TinyLFU, 1 MB"),
            (
                "lru:1GB,hit=2ms,miss=5ms,rate=300/s",
                slow,
                "LRU, 1024 MB, hits take 2 ms, others take 5 ms, 300 requests/s at most",
            ),
        ] {
            assert_eq!(device(text), Ok(Optional(Some(model))), "{text}");
            assert_eq!(describe(&model), said);
        }
        assert_eq!(device("none"), Ok(Optional(None)));
        for text in [
            "",
            "lru",
            "lru:",
            "lru:0",
            "lru:x",
            "ideal:1GB",
            "mru:1GB",
            "ideal,hit",
            "ideal,hit=1",
            "ideal,x=1",
        ] {
            assert!(device(text).is_err(), "{text}");
        }
    }
}
