//! Where tests come from: options of generation 1.x, or a workload file.

use std::net::SocketAddr;

use polygraph_pgl::render::Style;
use polygraph_pgl::{DiskLoader, Options, compile};
use polygraph_plan::test::{Content, Rate, Robots, Servers, Test};
use polygraph_plan::{Schedule, adopt};
use polygraph_traffic::Distr;

use crate::options::{CommonOptions, ConfigOptions, RobotOptions};
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
    let rate = match (options.req_rate.and_then(|rate| rate.0), rest.robot_think) {
        (Some(_), Some(_)) => {
            let text = "--xact_think of robots has no meaning with --req_rate: leave one out";
            return Err(Failure::usage(text));
        }
        (Some(rate), None) => Rate::Open(rate),
        (None, think) => Rate::BestEffort(think),
    };
    let robots = Robots {
        count: options.robots as usize,
        addresses: options.local_addrs.clone().map(|list| list.0).unwrap_or_default(),
        rate,
        launch_window: options.launch_win.0.unwrap_or(0.0),
        recurrence: if options.rep_cachable > 0.0 { options.dhr / options.rep_cachable } else { 0.0 },
        popularity: options.pop_model,
        settle: options.settle_time.unwrap_or(rest.settle),
        requests_per_connection: common.pconn_use_lmt.clone(),
        lifetime: options.xact_lifetime.0,
        proxy: rest.proxy.map(str::to_owned),
        origins: rest.origin.map(str::to_owned).into_iter().collect(),
    };
    let servers = Servers {
        listen: rest.listen,
        think: rest.server_think,
        requests_per_connection: common.pconn_use_lmt.clone(),
        idle_timeout: None,
    };
    Ok(Test {
        name: rest.name.to_owned(),
        robots,
        servers,
        content: Content { size: rest.sizes, cachable: options.rep_cachable },
        http_minor: common.http_version,
        schedule: rest.schedule,
    })
}

/// The test that a workload file describes, if one is given. `proxy` is the one of the command line.
///
/// # Errors
/// If the file does not compile, or says what cannot be run yet.
pub fn workload(
    options: &ConfigOptions,
    common: &CommonOptions,
    proxy: Option<&str>,
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
    let Some(workload) = &compilation.workload else {
        return Err(Failure::usage(format!(
            "{file} cannot be used; `polygraph check` shows the same findings"
        )));
    };
    let name = std::path::Path::new(file).file_name().map_or(file.as_str().into(), |n| n.to_string_lossy());
    let mut test = adopt(workload, &name).map_err(|all| {
        let list: Vec<String> = all.iter().map(|unsupported| format!("\n  {unsupported}")).collect();
        Failure::usage(format!("{file} is right, but this version cannot run all of it:{}", list.concat()))
    })?;
    if let Some(proxy) = proxy {
        if test.robots.proxy.is_some() {
            return Err(Failure::usage("the workload names a proxy itself: leave --proxy out"));
        }
        test.robots.proxy = Some(proxy.to_owned());
    }
    Ok(Some(test))
}
