//! Tests from options: those that describe a workload (generation 1.x), or a workload file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use polygraph_origin::ServerProfile;
use polygraph_pgl::compile;
use polygraph_pgl::render::Style;
use polygraph_plan::accounts::Accounts;
use polygraph_plan::{BenchNeeds, Endpoint, Schedule, ServerGroup, Test, TestShare, lower, plain_tls};
use polygraph_robot::{Field, Load, Profile, Rules, Server, ToldFreshness, Verify};
use polygraph_runner::Failure;
use polygraph_runner::environment::{Machine, WorkloadLoader};
use polygraph_stats::HttpVersion;
use polygraph_tls::settings::{ClientTls, ServerTls};
use polygraph_traffic::{Behavior, Catalog, ContentKind, Distr, PopModel, Seed, Selector};

use super::path::DevicePath;
use super::values::resolve;
use super::{CommonOptions, ConfigOptions, RobotOptions, SourceOptions, VariantOptions};
use crate::output;

/// The default of `--settle_time` in seconds if the servers' think time is unknown.
pub const DEFAULT_SETTLE: f64 = 10.0;

/// The parts of a test that differ between commands.
#[derive(Debug)]
pub struct TestParts<'a> {
    /// Name of the workload.
    pub name: &'a str,
    /// The device that robots use, if it is known by now.
    pub path: Option<DevicePath<'a>>,
    /// The origin server, `host:port` as in URLs; `None`: the servers of this test, wherever they will listen.
    pub origin: Option<&'a str>,
    /// Where servers listen.
    pub listen: Vec<SocketAddr>,
    /// Think time of best-effort robots.
    pub robot_think: Option<Distr>,
    /// Think time of servers.
    pub server_think: Option<Distr>,
    /// Reply sizes; `None` if this side does not know them.
    pub sizes: Option<Distr>,
    /// Age in seconds from which objects may be requested again, unless an option says otherwise.
    pub settle: f64,
    /// The phases.
    pub schedule: Schedule,
}

/// The test that options describe.
///
/// # Errors
/// If options contradict each other.
pub fn of_options(
    options: &RobotOptions,
    common: &CommonOptions,
    global_seed: u64,
    parts: TestParts<'_>,
) -> Result<Test, Failure> {
    if options.dhr > options.rep_cachable {
        return Err(Failure::usage(format!(
            "--dhr {:.0}p needs --rep_cachable of at least the same share: uncachable replies cannot be hits",
            options.dhr * 100.0
        )));
    }
    let load = match (options.req_rate.and_then(|rate| rate.0), parts.robot_think) {
        (Some(_), Some(_)) => {
            let text =
                "robots with a rate (--req_rate) do not think (--xact_think): leave out one of the options";
            return Err(Failure::usage(text));
        }
        (Some(rate), None) => Load::Open { rate: rate / f64::from(options.robots) },
        (None, think) => Load::Closed { think },
    };
    let behavior = Behavior {
        recurrence: if options.rep_cachable > 0.0 { options.dhr / options.rep_cachable } else { 0.0 },
        popularity: PopModel::plain(options.pop_model),
        ..Behavior::default()
    };
    let local_addrs = options.local_addrs.clone().map(|list| list.0).unwrap_or_default();
    let robots = Profile {
        credentials: options.credentials.iter().cloned().collect(),
        addresses: local_addrs.iter().filter_map(|addr| addr.host.ip()).collect(),
        // Replaced by all servers when their ports are known.
        origins: Selector::only(0),
        http_version: Selector::only(common.http_version),
        http2: common.http2(),
        requests_per_connection: common.pconn_use_lmt.clone(),
        lifetime: options.xact_lifetime.0.map(Distr::Const),
        ..Profile::plain("robots", options.robots as usize, load, behavior)
    };
    let device_tls = &options.device_tls;
    let robots_use_tls = common.uses_tls() || device_tls.device_tls == Some(true);
    let machine = if parts.listen.is_empty() { Machine::WITHOUT_SERVERS } else { Machine::WITH_SERVERS };
    let tls = robots_use_tls.then(|| plain(global_seed, machine)).transpose()?;
    let (client_tls, server_tls) = tls.unzip();
    let robots = Profile { tls: client_tls.map(Selector::only).unwrap_or_default(), ..robots };
    let origin = parts.origin.map(|authority| {
        // With a device, this host need not know the origin's name.
        let addresses = match parts.path {
            None => vec![resolve(authority)?],
            Some(_) => Vec::new(),
        };
        Ok(Server {
            authority: authority.to_owned(),
            addresses,
            behind: Vec::new(),
            bad_certificate: None,
            direct: 0,
            tls: common.uses_tls(),
        })
    });
    let known = parts.sizes.is_some();
    let mut test = Test {
        name: parts.name.to_owned(),
        robots: vec![Arc::new(robots)],
        field: Arc::new(Field {
            servers: origin.transpose()?.into_iter().collect(),
            marks_cachable: Some(options.rep_cachable),
            settle: options.settle_time.unwrap_or(parts.settle),
            verify: if known { Verify::Full } else { Verify::Bytes },
            ..field(global_seed, parts.sizes)
        }),
        servers: servers(common, parts.listen, parts.server_think, server_tls.filter(|_| common.uses_tls())),
        classic: true,
        accounts: Accounts::listed(&options.credentials),
        schedule: parts.schedule,
        launch_window: options.launch_win.0.unwrap_or(0.0),
        needs: Ok(BenchNeeds::of_one_client(local_addrs)),
        names: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
        device_tls: None,
        share: TestShare::default(),
    };
    device_tls.apply(&mut test)?;
    parts.path.map_or(Ok(()), |device| device.apply(&mut test))?;
    Ok(test)
}

/// The TLS settings of robots and servers, if options say no more than that they use it.
fn plain(seed: u64, machine: Machine) -> Result<(Arc<ClientTls>, Arc<ServerTls>), Failure> {
    let made = plain_tls(&machine, Seed(seed)).map_err(|e| Failure::usage(format!("--tls: {e}")))?;
    Ok((Arc::new(made.0), Arc::new(made.1)))
}

/// The server side of a test that options describe. Servers do not know the robots.
///
/// # Errors
/// If servers cannot use TLS.
pub fn servers_of_options(
    common: &CommonOptions,
    listen: Vec<SocketAddr>,
    think: Option<Distr>,
    sizes: Distr,
    schedule: Schedule,
) -> Result<Test, Failure> {
    let tls =
        if common.uses_tls() { Some(plain(common.global_rng_seed, Machine::WITH_SERVERS)?.1) } else { None };
    Ok(Test {
        name: "command line".into(),
        robots: Vec::new(),
        field: Arc::new(field(common.global_rng_seed, Some(sizes))),
        servers: servers(common, listen, think, tls),
        classic: true,
        accounts: Accounts::default(),
        schedule,
        launch_window: 0.0,
        needs: Ok(BenchNeeds::default()),
        names: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
        device_tls: None,
        share: TestShare::default(),
    })
}

/// What both sides agree on: one type of content, see [`Catalog::classic`].
fn field(global_seed: u64, sizes: Option<Distr>) -> Field {
    let catalog = Catalog::classic(Seed(global_seed), sizes.unwrap_or(Distr::Const(0.0)));
    Field {
        servers: Vec::new(),
        direct: vec![Selector::even(kinds(&catalog))],
        catalog,
        marks_cachable: None,
        rules: Rules::default(),
        page_delay: 0.0,
        settle: 0.0,
        verify: Verify::Full,
        share_worlds: false,
        redirects: false,
        freshness: ToldFreshness::Classic,
        substitutes: Vec::new(),
    }
}

/// The servers of a test that options describe.
fn servers(
    common: &CommonOptions,
    listen: Vec<SocketAddr>,
    think: Option<Distr>,
    tls: Option<Arc<ServerTls>>,
) -> Vec<ServerGroup> {
    let kinds = kinds(&Catalog::classic(Seed(0), Distr::Const(0.0)));
    let farm = ServerProfile {
        think,
        http_minors: Selector::only(common.http_version.minor()),
        // Devices may speak another version to servers than robots to them.
        http2: Some(common.http2()),
        http3: (common.http_version == HttpVersion::Http3 && tls.is_some()).then(|| common.http2()),
        requests_per_connection: common.pconn_use_lmt.clone(),
        tls: tls.map(Selector::only).unwrap_or_default(),
        ..ServerProfile::plain("servers", kinds)
    };
    let site = |listen| Endpoint { listen, names: Vec::new() };
    vec![ServerGroup { farm, sites: listen.into_iter().map(site).collect() }]
}

fn kinds(catalog: &Catalog) -> Vec<ContentKind> {
    (0..catalog.contents.len()).map(ContentKind::of_index).collect()
}

/// Makes the robots of a test connect through a SOCKS proxy, `host:port`, if there is one. It gets `names` or addresses.
///
/// # Errors
/// If the workload names SOCKS proxies, or the name of the proxy cannot be resolved.
pub fn apply_socks(proxy: Option<&str>, names: Option<bool>, test: &mut Test) -> Result<(), Failure> {
    let Some(proxy) = proxy else { return Ok(()) };
    if test.robots.iter().any(|profile| profile.socks.is_some()) {
        return Err(Failure::usage("the workload names a SOCKS proxy: leave out --socks_proxy"));
    }
    test.through_socks(&[resolve(proxy)?], names.unwrap_or(false));
    Ok(())
}

impl ConfigOptions {
    /// The test of the workload file, if there is one; see [`of_workload`].
    ///
    /// # Errors
    /// If the file does not compile, or uses a feature that this program does not support.
    pub fn test(
        &self,
        global_seed: u64,
        share_worlds: bool,
        machine: Machine,
    ) -> Result<Option<Test>, Failure> {
        let Some(file) = &self.config else { return Ok(None) };
        let sharing = (self.share_worlds, share_worlds);
        of_workload(file, &self.source, self.variant, sharing, global_seed, machine).map(Some)
    }
}

/// The test that a workload file describes. Processes share knowledge about objects if the user says so, or else by default
/// or if the workload needs it: `sharing` is the user's choice and the default.
///
/// # Errors
/// If the file does not compile, or uses a feature that this program does not support.
pub fn of_workload(
    file: &str,
    source: &SourceOptions,
    variant: VariantOptions,
    sharing: (Option<bool>, bool),
    global_seed: u64,
    machine: Machine,
) -> Result<Test, Failure> {
    let compilation = compile(file, &WorkloadLoader, &source.compiler(global_seed));
    compilation.script_output.iter().for_each(|line| output::print(&format!("script output: {line}\n")));
    output::note_raw(&compilation.render(Style::Plain));
    let Some(mut workload) = compilation.workload else {
        let example = match polygraph_assets::is_builtin(Path::new(file)) {
            true => ". docs/workloads.md has a command with all its settings for one machine",
            false => "",
        };
        return Err(Failure::usage(format!(
            "{file} cannot be used; `polygraph check` shows the same findings{example}"
        )));
    };
    workload.compat = variant.compat.or(workload.compat);
    let name = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
    let mut test = lower(&workload, &name, Seed(global_seed), &machine).map_err(|all| {
        let list: Vec<String> = all.iter().map(|obstacle| format!("\n  {obstacle}")).collect();
        Failure::usage(format!("{file} is correct, but cannot be run here:{}", list.concat()))
    })?;
    test.notes.iter().for_each(|text| output::note(text));
    if let Some(factor) = variant.scale {
        test.schedule = test.schedule.scaled(factor);
    }
    test.text = compilation.sources.listing();
    let field = Arc::make_mut(&mut test.field);
    field.share_worlds = sharing.0.unwrap_or(sharing.1 || field.share_worlds);
    Ok(test)
}
