//! From a workload to what the engine runs today.
//!
//! The language says more than the engine can do yet. Whatever a workload uses and the engine cannot do is named
//! as an [`Unsupported`]; nothing is left out silently. Every field of every record is decided on here: either it
//! is read, or a value other than its default is an error.

use std::net::SocketAddr;

use polygraph_addr::Addr;
use polygraph_pgl::Workload;
use polygraph_pgl::types::{
    Agent, Content as PglContent, Distribution, Drawn, ObjLifeCycle, Phase as PglPhase, Robot, Server,
};
use polygraph_pgl::value::{PopDistr, Shape};
use polygraph_traffic::{Distr, Popularity};

use crate::factor::Factors;
use crate::goal::Goal;
use crate::phases::{Phase, Schedule, WorkingSetLimit};
use crate::predict;
use crate::test::{Content, Rate, Robots, Servers, Test, settle_time};

/// Something that a workload asks for and the engine cannot do yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be run yet")]
pub struct Unsupported(pub String);

/// What was found that cannot be run.
#[derive(Default)]
struct Findings(Vec<Unsupported>);

impl Findings {
    fn add(&mut self, what: impl Into<String>) {
        self.0.push(Unsupported(what.into()));
    }

    fn unless(&mut self, fine: bool, what: impl Into<String>) {
        if !fine {
            self.add(what);
        }
    }
}

/// Complains about each of the named fields that has another value than in a record nobody touched.
macro_rules! only_defaults {
    ($found:expr, $owner:literal, $record:expr, $default:expr, [$($field:ident)+]) => {
        $( $found.unless($record.$field == $default.$field, format!("`{}` of a {}", stringify!($field), $owner)); )+
    };
}

/// Turns a workload into a test called `name`.
///
/// # Errors
/// Everything in the workload that cannot be run yet.
pub fn adopt(workload: &Workload, name: &str) -> Result<Test, Vec<Unsupported>> {
    let mut found = Findings::default();
    let robots = one(&workload.robots, "Robot", &mut found);
    let servers = one(&workload.servers, "Server", &mut found);
    let contents = one(&workload.contents, "Content", &mut found);
    rest(workload, &mut found);
    let (Some(robot), Some(server), Some(content)) = (robots, servers, contents) else {
        return Err(found.0);
    };
    let http_minor = version(&robot.agent, &mut found);
    let of_servers = version(&server.agent, &mut found);
    found.unless(http_minor == of_servers, "robots and servers with different `http_versions`");
    let servers = server_plan(server, &mut found);
    let test = Test {
        name: name.to_owned(),
        robots: robot_plan(robot, &servers, &mut found),
        servers,
        content: content_plan(content, &mut found),
        http_minor,
        schedule: schedule(workload, &mut found),
    };
    if found.0.is_empty() { Ok(test) } else { Err(found.0) }
}

/// The only record of its kind.
fn one<'a, T>(all: &'a [T], what: &str, found: &mut Findings) -> Option<&'a T> {
    match all {
        [only] => Some(only),
        [] => {
            found.add(format!("a test without any {what}"));
            None
        }
        several => {
            found.add(format!("a test with {} kinds of {what}", several.len()));
            None
        }
    }
}

/// The parts of a workload besides agents, contents and phases.
fn rest(workload: &Workload, found: &mut Findings) {
    found.unless(workload.proxies.is_empty(), "a Proxy agent");
    found.unless(workload.ssl_wraps.is_empty(), "TLS");
    found.unless(workload.addr_maps.is_empty(), "an AddrMap");
    found.unless(workload.membership_maps.is_empty(), "a MembershipMap");
    found.unless(workload.substitutes.is_empty(), "note_substitutes()");
    found.unless(workload.stats_samples.is_empty(), "a StatsSample");
}

/// The part that all agents have, besides what robots and servers read.
fn agent(agent: &Agent, found: &mut Findings) {
    let default = Agent::default();
    only_defaults!(found, "Robot or Server", agent, default,
        [ssl_wraps socket world abort_prob cookie_sender custom_stats_scope http_headers]);
}

fn version(agent: &Agent, found: &mut Findings) -> u8 {
    let versions: Vec<&str> = agent.http_versions.values().map(String::as_str).collect();
    match versions[..] {
        ["1.0"] => 0,
        ["1.1"] => 1,
        _ => {
            found.add("a mix of `http_versions`");
            1
        }
    }
}

fn robot_plan(robot: &Robot, servers: &Servers, found: &mut Findings) -> Robots {
    let default = Robot::default();
    agent(&robot.agent, found);
    only_defaults!(found, "Robot", robot.agent, default.agent, [xact_think idle_pconn_tout]);
    only_defaults!(found, "Robot", robot, default, [
        req_inter_arrival foreign_trace req_types req_methods post_contents upload_contents put_contents ranges
        req_body_recurrence req_body_pause_prob req_body_pause_start open_conn_lmt wait_xact_lmt pipeline_depth
        minimize_new_conn private_cache_cap unique_urls ftp_proxies socks_proxies socks_prob socks_chaining_prob
        passive_ftp dns_resolver credentials auth_error spnego_auth_ratio kerberos_wrap acl session cookies_keep_lmt
        accept_content_encodings container_tags raw_uri_thrower icp_port peer_http peer_icp
    ]);
    found.unless(robot.interests.prob("foreign") == 0.0, "foreign `interests` of a Robot");
    let rate = robot.req_rate.map(|rate| rate.0);
    found.unless(rate != Some(0.0), "a Robot that sends nothing by itself (`req_rate = 0/sec`)");
    let proxies = [&robot.http_proxies[..], &robot.proxies[..]].concat();
    found.unless(proxies.len() <= 1, "more than one proxy");
    let even = 1.0 / robot.origins.items.len().max(1) as f64;
    let uneven = robot.origins.items.iter().any(|(_, share)| (share - even).abs() > 1e-9);
    found.unless(!uneven, "`origins` with different probabilities");
    let dynamic = robot.origins.values().any(|name| name.new_prob.is_some());
    found.unless(!dynamic, "dynamic names in `origins`");
    let names: Vec<Addr> = robot.origins.values().map(|name| name.addr.clone()).collect();
    let origins = sockets(&names, "origins", found);
    let known = |origin: &SocketAddr| servers.listen.contains(origin);
    found.unless(origins.iter().all(known), "`origins` that are no addresses of servers");
    let addresses: Vec<_> = robot.agent.addresses.0.iter().filter_map(|addr| addr.host.ip()).collect();
    Robots {
        count: addresses.len(),
        rate: match rate {
            Some(rate) => Rate::Open(rate * addresses.len() as f64),
            None => Rate::BestEffort(None),
        },
        addresses,
        launch_window: 0.0,
        recurrence: robot.recurrence,
        popularity: popularity(robot, found),
        settle: settle_time(servers.think.as_ref()),
        requests_per_connection: requests_per_connection(&robot.agent, found),
        lifetime: lifetime(&robot.agent, found),
        proxy: sockets(&proxies, "http_proxies", found).first().map(SocketAddr::to_string),
        origins: origins.iter().map(SocketAddr::to_string).collect(),
    }
}

fn server_plan(server: &Server, found: &mut Findings) -> Servers {
    let default = Server::default();
    agent(&server.agent, found);
    only_defaults!(found, "Server", server.agent, default.agent, [pop_model xact_lifetime]);
    only_defaults!(found, "Server", server, default, [
        rep_types protocol accept_lmt cookie_set_prob cookie_set_count cookie_value_size req_body_allowed
    ]);
    // With one content type there is nothing to select, whatever `contents` and `direct_access` say.
    Servers {
        listen: sockets(&server.agent.addresses.0, "addresses", found),
        think: server.agent.xact_think.as_ref().and_then(|think| distr(think, "xact_think", found)),
        requests_per_connection: requests_per_connection(&server.agent, found),
        idle_timeout: server.agent.idle_pconn_tout.map(|time| time.secs()),
    }
}

fn content_plan(content: &PglContent, found: &mut Findings) -> Content {
    let default = PglContent::default();
    only_defaults!(found, "Content", content, default, [
        mime may_contain embedded_obj_cnt checksum unique generator content_db document_root inject_db inject_object
        infect_prob inject_gap encodings mime_headers client_behavior
    ]);
    if let Some(cycle) = &content.obj_life_cycle {
        found.unless(is_static(cycle), "`obj_life_cycle` of a Content that may change during the test");
    }
    let size = content.size.as_ref().and_then(|size| distr(size, "size", found));
    found.unless(size.is_some(), "a Content without `size`");
    Content { size, cachable: content.cachable }
}

/// Objects that live for a year or longer do not change during a test, and that is what servers say of them.
fn is_static(cycle: &ObjLifeCycle) -> bool {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    match cycle.length.as_ref().map(|length| &length.shape) {
        None => true,
        Some(Shape::Const(seconds)) => *seconds >= YEAR_S && cycle.variance == 0.0,
        Some(_) => false,
    }
}

fn popularity(robot: &Robot, found: &mut Findings) -> Popularity {
    let Some(model) = &robot.agent.pop_model else { return Popularity::Unif };
    found.unless(model.hot_set_prob == 0.0, "a hot set (`hot_set_prob`)");
    found.unless(model.bhr_discrimination == 0.0, "`bhr_discrimination`");
    match model.pop_distr {
        Some(PopDistr::Zipf { skew }) => Popularity::Zipf { skew },
        Some(PopDistr::Unif) | None => Popularity::Unif,
    }
}

fn requests_per_connection(agent: &Agent, found: &mut Findings) -> Distr {
    match &agent.pconn_use_lmt {
        None => Distr::Const(1.0),
        Some(limit) => distr(limit, "pconn_use_lmt", found).unwrap_or(Distr::Const(1.0)),
    }
}

fn lifetime(agent: &Agent, found: &mut Findings) -> Option<f64> {
    match agent.xact_lifetime.as_ref().map(|lifetime| &lifetime.shape) {
        None => None,
        Some(Shape::Const(seconds)) => Some(*seconds),
        Some(_) => {
            found.add("an `xact_lifetime` that is not constant");
            None
        }
    }
}

/// A distribution that both languages know.
fn distr<T: Drawn>(distribution: &Distribution<T>, field: &str, found: &mut Findings) -> Option<Distr> {
    Some(match distribution.shape {
        Shape::None => return None,
        Shape::Const(value) => Distr::Const(value),
        Shape::Unif { lo, hi } => Distr::Unif { min: lo, max: hi },
        Shape::Exp { mean } => Distr::Exp { mean },
        Shape::Norm { mean, sd } => Distr::Norm { mean, sd },
        Shape::Logn { mean, sd } => Distr::Logn { mean, sd },
        Shape::Zipf { n } => Distr::Zipf { n: n as u64 },
        _ => {
            found.add(format!("the distribution of `{field}`"));
            return None;
        }
    })
}

fn sockets(addresses: &[Addr], field: &str, found: &mut Findings) -> Vec<SocketAddr> {
    let socket = |addr: &Addr| Some(SocketAddr::new(addr.host.ip()?, addr.port?));
    let sockets: Option<Vec<SocketAddr>> = addresses.iter().map(socket).collect();
    found.unless(sockets.is_some(), format!("`{field}` that are not all IP addresses with ports"));
    sockets.unwrap_or_default()
}

fn schedule(workload: &Workload, found: &mut Findings) -> Schedule {
    let phases = workload.phases.iter().zip(predict::phase_plans(workload)).map(|(phase, plan)| {
        let default = PglPhase::default();
        only_defaults!(found, "Phase", phase, default, [rptmstat stats_samples script]);
        Phase {
            name: plan.name,
            primary: phase.primary,
            log_stats: phase.log_stats,
            goal: goal(phase),
            factors: Factors {
                populus: plan.populus,
                load: plan.load,
                recur: plan.recur,
                special_msg: plan.special_msg,
            },
            wait_wss_freeze: phase.wait_wss_freeze,
        }
    });
    let phases = phases.collect();
    let after = workload.working_set_length.map(|time| WorkingSetLimit::After(time.secs()));
    let fill = workload.working_set_cap.map(|count| WorkingSetLimit::Fill(u64::from(count)));
    let mut schedule = Schedule { phases, working_set: after.or(fill) };
    schedule.choose_primary();
    schedule
}

fn goal(phase: &PglPhase) -> Goal {
    let Some(goal) = &phase.goal else { return Goal::default() };
    let positive = |count: i64| u64::try_from(count).ok().filter(|&count| count > 0);
    Goal {
        duration: goal.duration.map(|time| time.secs()),
        xactions: goal.xactions.and_then(|count| positive(count.into())),
        fill_size: goal.fill_size.and_then(|size| positive(size.0)),
        errors: goal.errors,
    }
}
