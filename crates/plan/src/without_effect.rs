//! Settings that other settings leave without effect, so that `check` and runs can say so.

use polygraph_pgl::types::{Agent, Robot, Server, SslWrap};
use polygraph_pgl::{Code, Diagnostic, Workload};
use polygraph_stats::HttpVersion;
use polygraph_tls::settings::KeyKind;

/// Warnings about settings of a workload that none of the agents with them reads. A setting with its default value is none.
pub fn settings_without_effect(workload: &Workload) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let default = Robot::default();
    let robots = workload.robots.iter().filter_map(|robot| of_robot(robot, &default));
    let wraps = workload.ssl_wraps.iter().enumerate();
    for finding in robots.chain(wraps.flat_map(|(id, wrap)| of_wrap(id, wrap, workload))) {
        // Agents of a workload are often copies of each other.
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
    found
}

/// Whether agents speak one of the versions that `is_wanted`.
fn speaks(agent: &Agent, is_wanted: impl Fn(HttpVersion) -> bool) -> bool {
    let mut drawn = agent.http_versions.items.iter().filter(|(_, prob)| *prob > 0.0);
    drawn.any(|(word, _)| HttpVersion::from_word(word).is_some_and(&is_wanted))
}

fn of_robot(robot: &Robot, default: &Robot) -> Option<Diagnostic> {
    let is_set = robot.pipeline_depth.is_some() && robot.pipeline_depth != default.pipeline_depth;
    if !is_set || speaks(&robot.agent, |version| !version.is_multiplexed()) {
        return None;
    }
    let name = kind(&robot.agent, "Robot");
    let text = format!(
        "`pipeline_depth` of the robots {name} has no effect: there is no pipelining over HTTP/2 and HTTP/3"
    );
    let help = "leave it out, or add \"1.1\" to `http_versions`";
    Some(Diagnostic::new(Code::RobotIgnores, None, text).help(help))
}

/// The label of agents.
fn kind<'a>(agent: &'a Agent, otherwise: &'a str) -> &'a str {
    agent.kind.as_deref().unwrap_or(otherwise)
}

/// Warnings about the SslWrap with this number. The device under test replaces Proxy agents, which therefore read nothing.
fn of_wrap(id: usize, wrap: &SslWrap, workload: &Workload) -> Vec<Diagnostic> {
    let uses =
        |agent: &Agent| agent.ssl_wraps.items.iter().any(|(used, prob)| used.0 as usize == id && *prob > 0.0);
    let robots: Vec<&Robot> = workload.robots.iter().filter(|robot| uses(&robot.agent)).collect();
    let servers: Vec<&Server> = workload.servers.iter().filter(|server| uses(&server.agent)).collect();
    if robots.is_empty() && servers.is_empty() {
        return Vec::new();
    }
    let kinds = robots.iter().map(|robot| kind(&robot.agent, "Robot"));
    let mut users: Vec<&str> = Vec::new();
    for name in kinds.chain(servers.iter().map(|server| kind(&server.agent, "Server"))) {
        if !users.contains(&name) {
            users.push(name);
        }
    }
    let users = users.join(", ");
    let mut found = Vec::new();
    let mut add = |field: &str, why: &str, help: &str| {
        let text = format!("`{field}` in the `ssl_wraps` of {users} has no effect: {why}");
        found.push(Diagnostic::new(Code::PartAdvice, None, text).help(help));
    };
    if wrap.session_resumption > 0.0 && robots.is_empty() {
        let help = "leave it out, or set it in an SslWrap of robots";
        add("session_resumption", "only robots offer to resume a session", help);
    }
    if wrap.early_data && servers.is_empty() && wrap.session_resumption == 0.0 {
        let why = "only resumed sessions have early data, and robots resume none";
        add("early_data", why, "leave it out, or set `session_resumption`");
    }
    if wrap.certificate_fault.is_some() && servers.is_empty() {
        let help = "leave it out, or set it in an SslWrap of servers";
        add("certificate_fault", "only servers show bad certificates on purpose", help);
    }
    let default = SslWrap::default();
    let has_certificates = !wrap.generate_certificates.unwrap_or(wrap.certificates.is_empty());
    for (field, is_set) in [
        ("key_types", wrap.key_types != default.key_types),
        ("rsa_key_sizes", wrap.rsa_key_sizes != default.rsa_key_sizes),
        ("sharing_group", wrap.sharing_group.is_some()),
    ] {
        if !is_set {
            continue;
        }
        if servers.is_empty() {
            add(field, "only servers generate keys", "leave it out, or set it in an SslWrap of servers");
        } else if has_certificates {
            let why = "servers with `certificates` generate no keys";
            add(field, why, "leave it out, or leave out `certificates`");
        } else if field == "rsa_key_sizes" && !generates_rsa(wrap) {
            let why = "no key of `key_types` is an RSA key without a size";
            add(field, why, "leave it out, or add \"RSA\" to `key_types`");
        }
    }
    found
}

/// Whether servers generate RSA keys whose size `rsa_key_sizes` tells.
fn generates_rsa(wrap: &SslWrap) -> bool {
    let mut drawn = wrap.key_types.items.iter().filter(|(_, prob)| *prob > 0.0);
    // Unknown words are errors elsewhere.
    drawn.any(|(word, _)| word.eq_ignore_ascii_case("RSA") || KeyKind::parse(word).is_err())
}
