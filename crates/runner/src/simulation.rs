//! A test in virtual time, with a model of a device.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_dns::reply::{Transport, reply};
use polygraph_engine::simulation::simulate;
use polygraph_engine::{Layout, ReservedAddress, RunOutcome, RunSetup, StartRule};
use polygraph_link::{Nanos, nanos};
use polygraph_plan::Test;
use polygraph_sim::device::{Device, Model, Snapshot};
use polygraph_stats::{Header, Record};
use polygraph_traffic::{IdSource, UniqId};

use crate::jobs::{ClientSettings, ServerTolerance, client_job_within, server_job};
use crate::name_server::zone;
use crate::open_limit::OpenLimit;
use crate::run_settings::FAIL_TIMEOUT_S;
use crate::working_set::WorkingSetFiles;
use crate::{Failure, RunSettings, device_model};

/// The time of day at the start of simulations, in seconds since 1970: Thu, 01 Nov 2001 00:00:00 GMT.
pub const EPOCH: u64 = 1_004_572_800;

/// The address of a device that the workload does not name. Simulated addresses need not exist.
const DEVICE: ([u8; 4], u16) = ([192, 0, 2, 1], 3128);
/// Servers without a port get ports from this one on.
const FIRST_PORT: u16 = 8001;
/// Time to live of names in seconds.
const NAME_TTL: u32 = 300;

/// The identities of a run, from which the ids of its objects and transactions follow.
#[derive(Clone, Debug)]
pub struct RunIdentities {
    /// Sources of ids, by loop of robots.
    pub robots: Vec<IdSource>,
    /// The process group of the robots.
    pub client: UniqId,
    /// The process group of the servers.
    pub server: UniqId,
}

/// The setup of a simulation.
#[derive(Debug)]
pub struct SimulationSetup<'a> {
    /// The test. Robots without a proxy use the device, if there is one.
    pub test: Test,
    /// Addresses of its servers, in order; `None`: those in the test.
    pub places: Option<Vec<SocketAddr>>,
    /// Settings of both sides. Ids are always reproducible.
    pub settings: &'a RunSettings,
    /// The model of the device; `None`: robots connect to servers.
    pub device: Option<Model>,
    /// Network delay in one direction, in nanoseconds.
    pub delay: Nanos,
    /// Unexpected replies that robots do not count as errors.
    pub tolerance: polygraph_robot::Tolerance,
    /// Unexpected requests that servers accept.
    pub server_tolerance: ServerTolerance,
    /// Working sets to continue with and to store.
    pub working_set: &'a WorkingSetFiles,
    /// The identities of another run, whose requests the simulation repeats; `None`: those of the seed.
    pub identities: Option<RunIdentities>,
    /// Time of day at the start, in seconds since 1970.
    pub epoch: u64,
}

impl<'a> SimulationSetup<'a> {
    /// A simulation without network delay that starts at [`EPOCH`].
    pub fn new(
        test: Test,
        settings: &'a RunSettings,
        device: Option<Model>,
        working_set: &'a WorkingSetFiles,
    ) -> SimulationSetup<'a> {
        SimulationSetup {
            test,
            places: None,
            settings,
            device,
            delay: Nanos::ZERO,
            tolerance: polygraph_robot::Tolerance::default(),
            server_tolerance: ServerTolerance::default(),
            working_set,
            identities: None,
            epoch: EPOCH,
        }
    }
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
    /// Prepares a test. Logs are written to `directory`, if there is one.
    ///
    /// # Errors
    /// If the test does not fit the device.
    pub fn new(setup: SimulationSetup<'_>, directory: Option<&Path>) -> Result<Simulation, Failure> {
        let SimulationSetup { mut test, working_set, .. } = setup;
        let places = setup.places.unwrap_or_else(|| places(&test));
        test.serve_at(&places);
        test.without_socks();
        test.without_tls();
        let device = match setup.device {
            Some(model) => {
                test.serve_http1();
                Some((model, insert_device(&mut test)?))
            }
            None => {
                check_direct(&test, &places)?;
                None
            }
        };
        // Simulations with the same seeds must be identical.
        let settings = RunSettings { unique_ids: false, engine: None, ..setup.settings.clone() };
        let log = |name: &str| directory.map(|directory| directory.join(name));
        let reserved = places.into_iter().map(ReservedAddress::elsewhere).collect();
        let (one, robots) = (Layout::threads(1), Layout::threads(settings.loops.unwrap_or(1)));
        let mut server = server_job(&test, &settings, setup.server_tolerance, reserved, one);
        server.log = log("server.log");
        let client = ClientSettings { tolerance: setup.tolerance, ..ClientSettings::default() };
        let mut client = client_job_within(&test, &settings, &client, OpenLimit::NONE, robots, working_set);
        client.log = log("client.log");
        // No other test fills the cache with the objects of this test.
        client.settings.others_fill = working_set.earlier.is_some();
        if let Some(identities) = setup.identities {
            (client.ids, client.settings.group) = (identities.robots, identities.client);
            Arc::make_mut(&mut server.config).group = identities.server;
        }
        for header in [&mut client.header, &mut server.header] {
            let described = |name: &str, value: String| (name.to_owned(), value);
            header.pid = 0;
            header.environment = vec![
                described("host", "simulation".into()),
                described(
                    "device",
                    device.as_ref().map_or("none".into(), |(model, _)| device_model::describe(model)),
                ),
                described("network delay", format!("{} ms", setup.delay.as_f64() / 1e6)),
            ];
        }
        let job = RunSetup {
            schedule: test.schedule.clone(),
            start: StartRule::Now,
            client: Some(client),
            server: Some(server),
            interval: nanos(settings.interval_s),
            quantum: nanos(settings.timer_quantum_s),
            engine: settings.engine(),
            sync_timeout: None,
            fail_timeout: FAIL_TIMEOUT_S,
            idle_timeout: settings.idle_timeout_s,
        };
        Ok(Simulation { test, job, device, delay: setup.delay, epoch: setup.epoch })
    }

    /// The headers of the logs: the client's and the server's.
    pub fn headers(&self) -> [&Header; 2] {
        let (client, server) = (self.job.client.as_ref(), self.job.server.as_ref());
        // `new` makes both sides.
        [&client.expect("a client side").header, &server.expect("a server side").header]
    }

    /// Simulates the test, up to `limit` nanoseconds of virtual time if there is a limit. `observer` sees all records.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn run(
        self,
        limit: Option<Nanos>,
        observer: impl FnMut(&Header, &Record),
    ) -> Result<(RunOutcome, Option<Snapshot>), Failure> {
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
        Ok((outcome, started.take().map(|device| device.snapshot())))
    }
}

/// The addresses of servers; those without a port get one.
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

/// Makes robots use the device, and returns its addresses.
fn insert_device(test: &mut Test) -> Result<Vec<SocketAddr>, Failure> {
    let mut named: Vec<SocketAddr> = test.robots.iter().flat_map(|robot| robot.proxies.clone()).collect();
    if named.is_empty() {
        let device = SocketAddr::from(DEVICE);
        test.through_proxies(&[device]);
        return Ok(vec![device]);
    }
    if test.robots.iter().any(|robot| robot.proxies.is_empty()) {
        let text = "some robots of the workload have a proxy, and others have none: --device cannot act both as a proxy and as \
                    the servers in one test";
        return Err(Failure::usage(text));
    }
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// Checks that, without a device, there are servers at the addresses that robots connect to.
fn check_direct(test: &Test, places: &[SocketAddr]) -> Result<(), Failure> {
    if test.robots.iter().any(|robot| !robot.proxies.is_empty()) {
        let text = "the robots of the workload use a proxy: simulate one with --device, for example ideal";
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
            "robots of the workload connect to {address}, which is not the address of any of its servers; a simulation supports \
             only proxies"
        ))),
    }
}
