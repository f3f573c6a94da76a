//! Where tests come from: options of generation 1.x, or a workload file.

use std::net::SocketAddr;
use std::sync::Arc;

use polygraph_origin::ServerProfile;
use polygraph_pgl::render::Style;
use polygraph_pgl::{DiskLoader, Options, compile};
use polygraph_plan::{Endpoint, Schedule, ServerGroup, Test, lower};
use polygraph_robot::{Field, Load, Profile, Rules, Server, Verify};
use polygraph_traffic::{Behavior, Catalog, ContentKind, Distr, PopModel, Seed, Selector};

use crate::environment::Machine;
use crate::options::{CommonOptions, ConfigOptions, RobotOptions, resolve};
use crate::{Failure, console};

/// Repeats are held back so many seconds if the servers' think time is not known.
pub const DEFAULT_SETTLE: f64 = 10.0;

/// What the options of a side do not say by themselves.
#[derive(Debug)]
pub struct Rest<'a> {
    /// Name of the workload.
    pub name: &'a str,
    /// The proxy, `host:port`.
    pub proxy: Option<&'a str>,
    /// The origin, `host:port` as in URLs; `None`: the servers of this test, wherever they will listen.
    pub origin: Option<&'a str>,
    /// Where servers listen.
    pub listen: Vec<SocketAddr>,
    /// Pause of best-effort robots.
    pub robot_think: Option<Distr>,
    /// Think time of servers.
    pub server_think: Option<Distr>,
    /// Reply sizes, if they are known.
    pub sizes: Option<Distr>,
    /// Age at which repeats begin, unless an option says otherwise.
    pub settle: f64,
    /// The phases.
    pub schedule: Schedule,
}

/// The test that options describe.
///
/// # Errors
/// If they contradict each other.
pub fn classic(options: &RobotOptions, common: &CommonOptions, rest: Rest<'_>) -> Result<Test, Failure> {
    if options.dhr > options.rep_cachable {
        return Err(Failure::usage(format!(
            "--dhr {:.0}p needs --rep_cachable of at least as much: uncachable replies cannot be hits",
            options.dhr * 100.0
        )));
    }
    let load = match (options.req_rate.and_then(|rate| rate.0), rest.robot_think) {
        (Some(_), Some(_)) => {
            let text = "--xact_think of robots has no meaning with --req_rate: leave one out";
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
    let proxies: Vec<SocketAddr> = rest.proxy.map(resolve).transpose()?.into_iter().collect();
    let robots = Profile {
        addresses: options.local_addrs.clone().map(|list| list.0).unwrap_or_default(),
        // All servers at first; which they are is known when they have ports.
        origins: Selector::only(0),
        http_minor: Selector::only(common.http_version),
        requests_per_connection: common.pconn_use_lmt.clone(),
        lifetime: options.xact_lifetime.0.map(Distr::Const),
        ..Profile::plain("robots", options.robots as usize, load, behavior)
    };
    let robots = Profile { proxies, ..robots };
    let origin = rest.origin.map(|authority| {
        // Through a proxy the origin's name is the proxy's business and need not mean anything here.
        let addresses = match rest.proxy {
            Some(_) => Vec::new(),
            None => vec![resolve(authority)?],
        };
        Ok(Server { authority: authority.to_owned(), addresses, direct: 0 })
    });
    let known = rest.sizes.is_some();
    Ok(Test {
        name: rest.name.to_owned(),
        robots: vec![Arc::new(robots)],
        field: Arc::new(Field {
            servers: origin.transpose()?.into_iter().collect(),
            marks_cachable: Some(options.rep_cachable),
            settle: options.repeat_delay.unwrap_or(rest.settle),
            verify: if known { Verify::Full } else { Verify::Bytes },
            ..field(common, rest.sizes)
        }),
        servers: servers(common, rest.listen, rest.server_think),
        classic: true,
        schedule: rest.schedule,
        launch_window: options.launch_win.0.unwrap_or(0.0),
        names: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
    })
}

/// The server side of 1.x alone, as far as servers need to know the test: who asks them for what is the business of
/// clients.
pub fn classic_servers(
    common: &CommonOptions,
    listen: Vec<SocketAddr>,
    think: Option<Distr>,
    sizes: Distr,
    schedule: Schedule,
) -> Test {
    Test {
        name: "command line".into(),
        robots: Vec::new(),
        field: Arc::new(field(common, Some(sizes))),
        servers: servers(common, listen, think),
        classic: true,
        schedule,
        launch_window: 0.0,
        names: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
    }
}

/// What the sides of 1.x agree on: one type of content, see [`Catalog::classic`].
fn field(common: &CommonOptions, sizes: Option<Distr>) -> Field {
    let catalog = Catalog::classic(Seed(common.global_rng_seed), sizes.unwrap_or(Distr::Const(0.0)));
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
        substitutes: Vec::new(),
    }
}

/// Servers of 1.x.
fn servers(common: &CommonOptions, listen: Vec<SocketAddr>, think: Option<Distr>) -> Vec<ServerGroup> {
    let kinds = kinds(&Catalog::classic(Seed(0), Distr::Const(0.0)));
    let farm = ServerProfile {
        think,
        http_minors: Selector::only(common.http_version),
        requests_per_connection: common.pconn_use_lmt.clone(),
        ..ServerProfile::plain("servers", kinds)
    };
    let site = |listen| Endpoint { listen, names: Vec::new() };
    vec![ServerGroup { farm, sites: listen.into_iter().map(site).collect() }]
}

fn kinds(catalog: &Catalog) -> Vec<ContentKind> {
    (0..catalog.contents.len()).map(ContentKind::of_index).collect()
}

/// How robots reach the servers of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Route<'a> {
    /// Through this proxy, `host:port`.
    pub proxy: Option<&'a str>,
    /// Through this device, `host:port`, which poses as all servers.
    pub surrogate: Option<&'a str>,
}

impl Route<'_> {
    /// Sends the robots of a test this way.
    ///
    /// # Errors
    /// If they have another way already, or the device cannot be found.
    pub fn apply(self, test: &mut Test) -> Result<(), Failure> {
        let named = test.robots.iter().any(|profile| !profile.proxies.is_empty());
        let (option, device) = match (self.proxy, self.surrogate) {
            (Some(proxy), _) => ("--proxy", resolve(proxy)?),
            (None, Some(device)) => ("--surrogate", resolve(device)?),
            (None, None) => return Ok(()),
        };
        if named {
            return Err(Failure::usage(format!("the workload names a proxy itself: leave {option} out")));
        }
        match self.proxy {
            Some(_) => test.through_proxies(&[device]),
            None => test.through_surrogate(device),
        }
        Ok(())
    }
}

/// The test that a workload file describes, if one is given. Knowledge of objects is shared with others if the options
/// say so; without a word from them, if that is usual (`share_worlds`) or the workload cannot do without.
///
/// # Errors
/// If the file does not compile, or says what cannot be run.
pub fn workload(
    options: &ConfigOptions,
    common: &CommonOptions,
    share_worlds: bool,
) -> Result<Option<Test>, Failure> {
    let Some(file) = &options.config else { return Ok(None) };
    let compiling = Options {
        search_path: options.cfg_dirs.clone(),
        settings: options.settings.clone(),
        allow_exec: options.allow_exec,
        global_seed: common.global_rng_seed,
        ..Options::default()
    };
    let compilation = compile(file, &DiskLoader, &compiling);
    compilation.script_output.iter().for_each(|line| console::print(&format!("script output: {line}\n")));
    console::note_raw(&compilation.render(Style::Plain));
    let Some(mut workload) = compilation.workload else {
        return Err(Failure::usage(format!(
            "{file} cannot be used; `polygraph check` shows the same findings"
        )));
    };
    workload.compat = options.compat.or(workload.compat);
    let name = std::path::Path::new(file).file_name().map_or(file.as_str().into(), |n| n.to_string_lossy());
    let test = lower(&workload, &name, Seed(common.global_rng_seed), &Machine).map_err(|all| {
        let list: Vec<String> = all.iter().map(|obstacle| format!("\n  {obstacle}")).collect();
        Failure::usage(format!("{file} is right, but it cannot be run here:{}", list.concat()))
    })?;
    test.notes.iter().for_each(|text| console::note(text));
    let schedule = options.scale.map_or(test.schedule.clone(), |factor| test.schedule.scaled(factor));
    let mut test = Test { schedule, text: compilation.sources.listing(), ..test };
    let field = Arc::make_mut(&mut test.field);
    field.share_worlds = options.share_worlds.unwrap_or(share_worlds || field.share_worlds);
    Ok(Some(test))
}
