//! Checks of the settings of robots and servers: contradictions and missing settings.

use polygraph_addr::{Addr, compact, join};

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, closest};
use crate::eval::UsedRecord;
use crate::hints::quoted_list;
use crate::types::{Agent, Robot, Selector, Server, Tree};
use crate::value::{Shape, Value};
use crate::workload::behavior::{self, RequestedContents};
use crate::workload::{Checks, RecordContext, VisibleServers, Workload, check_ips, set_field};

/// The HTTP versions that selectors accept.
pub(super) const HTTP_VERSIONS: &[&str] = &["1.0", "1.1", "2", "3"];
/// The smallest and the largest flow-control window (RFC 9113, sections 6.9.1 and 6.9.2).
const WINDOWS: std::ops::RangeInclusive<i64> = 65_535..=(1 << 31) - 1;
pub(super) const INTERESTS: &[&str] = &["public", "private", "foreign"];
pub(super) const REP_TYPES: &[&str] = &["Basic", "302 Found"];
pub(super) const PROTOCOLS: &[&str] = &["HTTP", "FTP"];

pub(super) const AUTH_SCHEMES: &[&str] = &["basic", "digest", "digest-sha256", "ntlm", "negotiate"];

/// Moves values of old fields to the current fields.
pub fn with_old_names(mut robot: Robot, checks: &mut Checks<'_>, used: &UsedRecord) -> Robot {
    for (old, new) in [("proxies", "http_proxies"), ("put_contents", "upload_contents")] {
        if used.record.at(old).is_some() {
            let text = format!("`{old}` is the old name of `{new}`");
            let finding = checks.at(Code::Deprecated, used, old, text);
            checks.push(finding.help(format!("write `{new}`")));
        }
    }
    if robot.http_proxies.is_empty() {
        robot.http_proxies = std::mem::take(&mut robot.proxies);
    }
    if robot.upload_contents.is_empty() {
        robot.upload_contents = std::mem::take(&mut robot.put_contents);
    }
    robot
}

impl Checks<'_> {
    /// Reports words that a selector does not accept.
    pub(super) fn words<'p, M>(
        &mut self,
        place: impl Into<RecordContext<'p>>,
        field: &str,
        selector: &Selector<String, M>,
        known: &[&str],
    ) {
        let values: Vec<&String> = selector.values().collect();
        self.listed_words(place, field, &values, known);
    }

    /// Reports words of a list that are not `known`.
    pub(super) fn listed_words<'p>(
        &mut self,
        place: impl Into<RecordContext<'p>>,
        field: &str,
        words: &[&String],
        known: &[&str],
    ) {
        let place = place.into();
        if words.len() > crate::types::MAX_WORDS {
            let finding = self.at(Code::UnknownWord, place, field, format!("`{field}` lists too many words"));
            self.push(finding);
            return;
        }
        for word in words.iter().filter(|word| !known.contains(&word.as_str())) {
            let text = format!("\"{word}\" is not a possible value of `{field}`");
            let test = |value: &Value| matches!(value, Value::Str(text) if **text == ***word);
            let mut finding = self
                .at_element(Code::UnknownWord, place, field, text, &test)
                .note(format!("the possible values are {}", quoted_list(known)));
            if let Some(guess) = closest(word, known.iter().copied()) {
                finding = finding.help(format!("did you mean \"{guess}\"?"));
            }
            self.push(finding);
        }
    }

    pub(super) fn share<'p>(&mut self, place: impl Into<RecordContext<'p>>, field: &str, value: f64) {
        if !(0.0..=1.0).contains(&value) {
            let percent = crate::value::significant(value * 100.0, 6);
            let text = format!("`{field}` is a probability, from 0% to 100%, but it is {percent}%");
            let finding = self.at(Code::BadPart, place, field, text);
            self.push(finding);
        }
    }

    /// Reports a field that is missing `because` another one is set, unless a diagnostic was reported about one
    /// of them.
    pub(super) fn missing(&mut self, code: Code, used: &UsedRecord, because: &str, field: &str, text: &str) {
        self.missing_with(code, used, because, field, text, set_field(used, field));
    }

    /// Reports a field that is missing `because` another one is set, with this advice.
    pub(super) fn missing_with<'p>(
        &mut self,
        code: Code,
        place: impl Into<RecordContext<'p>>,
        because: &str,
        field: &str,
        text: &str,
        help: String,
    ) {
        let place = place.into();
        if !place.record.is_bad(because) && !place.record.is_bad(field) {
            let finding = self.at(code, place, because, text);
            self.push(finding.help(help));
        }
    }

    /// Advises to choose a popularity model where there is none.
    pub(super) fn choose_popularity<'p>(
        &mut self,
        code: Code,
        place: impl Into<RecordContext<'p>>,
        because: &str,
        text: &str,
        otherwise: &str,
    ) {
        let place = place.into();
        let field = "pop_model.pop_distr";
        let owner = place.used.and_then(|used| used.name.as_ref());
        let name = owner.map_or(field.to_owned(), |name| format!("{name}.{field}"));
        let help = format!(
            "choose how popular the objects are, e.g. `{name} = popUnif();` or `{name} = popZipf(1);`, or {otherwise}"
        );
        self.missing_with(code, place, because, field, text, help);
    }

    fn common(&mut self, agent: &Agent, used: &UsedRecord) {
        self.versions(agent, used);
        self.share(used, "abort_prob", agent.abort_prob);
        if let Some(prob) = agent.cookie_sender {
            self.share(used, "cookie_sender", prob);
        }
        for scope in &agent.custom_stats_scope {
            if !is_status_scope(scope) {
                let text = format!("\"{scope}\" is not a possible entry of `custom_stats_scope`");
                let finding = self
                    .at(Code::UnknownWord, used, "custom_stats_scope", text)
                    .note("entries are \"all\", or a sign and a status such as 404, 40x or 4xx");
                self.push(finding);
            }
        }
    }
}

impl Checks<'_> {
    /// Checks the versions of HTTP, and what belongs to them.
    fn versions(&mut self, agent: &Agent, used: &UsedRecord) {
        let versions = &agent.http_versions;
        self.words(used, "http_versions", versions, HTTP_VERSIONS);
        if versions.values().any(|word| word == "3") && agent.ssl_wraps.items.is_empty() {
            let is_3 = |value: &Value| matches!(value, Value::Str(text) if **text == *"3");
            let text = "HTTP/3 is always encrypted, but there are no `ssl_wraps`";
            let finding = self.at_element(Code::BadPart, used, "http_versions", text.to_owned(), &is_3);
            self.push(finding.help("add an SslWrap to `ssl_wraps`, or leave out \"3\""));
        }
        if let Some(streams) = agent.h2_streams.filter(|streams| *streams < 1) {
            let text = format!("a connection needs at least one stream, but `h2_streams` is {streams}");
            let finding = self.at(Code::BadPart, used, "h2_streams", text);
            self.push(finding);
        }
        if let Some(window) = agent.h2_window.filter(|window| !WINDOWS.contains(&window.0)) {
            let (least, most) = (WINDOWS.start(), WINDOWS.end());
            let text =
                format!("a flow-control window has {least} to {most} bytes, but `h2_window` is {}", window.0);
            let finding = self.at(Code::BadPart, used, "h2_window", text);
            self.push(finding);
        }
        for (field, is_set) in
            [("h2_streams", agent.h2_streams.is_some()), ("h2_window", agent.h2_window.is_some())]
        {
            if is_set && !versions.values().any(|word| word == "2" || word == "3") {
                let text = format!("`{field}` has no effect without HTTP/2 or HTTP/3");
                let finding = self.at(Code::BadPart, used, field, text);
                self.push(finding.help("add \"2\" to `http_versions`"));
            }
        }
    }
}

fn is_status_scope(scope: &str) -> bool {
    let digits = scope.strip_prefix(['+', '-']).unwrap_or(scope).as_bytes();
    let form = |c: &u8| if c.is_ascii_digit() { 'N' } else { *c as char };
    scope == "all" || matches!(digits.iter().map(form).collect::<String>().as_str(), "NNN" | "NNx" | "Nxx")
}

/// Largest number of objects in the private cache of a robot.
const MOST_PRIVATE_COPIES: i32 = 21_845;

/// Checks a robot.
pub fn robot(
    robot: &Robot,
    used: &UsedRecord,
    visible: &VisibleServers,
    met: &RequestedContents<'_>,
    workload: &Workload,
    checks: &mut Checks<'_>,
) {
    use Code::{RobotConflict as Conflict, RobotIncomplete as Incomplete};
    checks.common(&robot.agent, used);
    check_ips(&robot.agent.addresses, used, checks, "robots");
    if let Some(addr) = robot.agent.addresses.0.iter().find(|addr| addr.port.is_some()) {
        let text = format!("robots have no ports, but {addr} has one");
        let finding = checks.at(Code::BadAddresses, used, "addresses", text);
        checks.push(finding.help("remove the port with setAddrPort(addresses, -1)"));
    }
    if robot.req_rate.is_some() && robot.req_inter_arrival.is_some() {
        let text = "a request rate and an inter-arrival distribution exclude each other";
        let mut finding = checks.at(Conflict, used, "req_inter_arrival", text);
        finding = finding.also_at(used.record.at("req_rate"), "the rate is set here");
        checks.push(finding.help("remove one of them, or set it to undef()"));
    }
    if robot.req_rate.is_some_and(|rate| rate.0 < 0.0) {
        let finding = checks.at(Code::BadPart, used, "req_rate", "the request rate is negative");
        checks.push(finding);
    }
    if robot.agent.xact_think.is_some() {
        let text = "`xact_think` has no effect on robots";
        let finding = checks.at(Code::RobotIgnores, used, "xact_think", text);
        checks.push(finding.help("use req_inter_arrival for gaps between requests"));
    }
    for (field, limit, least, text) in [
        ("open_conn_lmt", robot.open_conn_lmt, 1, "a robot without connections cannot send requests"),
        ("wait_xact_lmt", robot.wait_xact_lmt, 0, "with 0, no transaction waits"),
    ] {
        if let Some(limit) = limit.filter(|limit| *limit < least) {
            let text = format!("`{field}` must be at least {least}, but it is {limit}: {text}");
            let finding = checks.at(Code::BadPart, used, field, text);
            checks.push(finding.help(format!("leave `{field}` out for no limit")));
        }
    }
    if !(0..=MOST_PRIVATE_COPIES).contains(&robot.private_cache_cap) {
        let text = format!("a private cache has 0 to {MOST_PRIVATE_COPIES} entries");
        checks.push(checks.at(Code::BadPart, used, "private_cache_cap", text));
    }
    if robot.minimize_new_conn > 0.0 && workload.substitutes.is_empty() {
        let text = "minimize_new_conn needs note_substitutes(), which names interchangeable addresses";
        checks.push(checks.at(Incomplete, used, "minimize_new_conn", text));
    }
    for (field, value) in [
        ("embed_recur", robot.embed_recur),
        ("req_body_recurrence", robot.req_body_recurrence),
        ("minimize_new_conn", robot.minimize_new_conn),
        ("socks_chaining_prob", robot.socks_chaining_prob),
        ("passive_ftp", robot.passive_ftp),
        ("auth_error", robot.auth_error),
    ] {
        checks.share(used, field, value);
    }
    checks.words(used, "interests", &robot.interests, INTERESTS);
    let foreign = robot.interests.prob("foreign") > 0.0;
    // An empty name means no trace.
    let trace = robot.foreign_trace.as_ref().filter(|name| !name.is_empty());
    match (foreign, trace) {
        (true, None) => {
            let text = "foreign interest needs a trace of foreign URLs";
            checks.missing(Incomplete, used, "interests", "foreign_trace", text);
        }
        (false, _) if robot.foreign_trace.is_some() && !used.record.is_bad("interests") => {
            let text = "without foreign interest, no URL of the trace is requested";
            let finding = checks.at(Code::RobotIgnores, used, "foreign_trace", text);
            let help = "write its share of the traffic, e.g. `interests = [ \"public\", \"foreign\": 10% ];`";
            checks.push(finding.help(help));
        }
        _ => {}
    }
    behavior::of_robot(robot, used, met, checks);
    if robot.req_body_pause_prob.is_some() && robot.req_body_pause_start.is_some() {
        let text = "req_body_pause_prob and req_body_pause_start exclude each other";
        let finding = checks.at(Conflict, used, "req_body_pause_start", text);
        checks.push(finding.also_at(used.record.at("req_body_pause_prob"), "the probability is set here"));
    }
    if robot.follow_alt_svc && robot.agent.ssl_wraps.items.is_empty() {
        let text =
            "HTTP/3 is always encrypted, but the robot has no `ssl_wraps`, so it cannot follow Alt-Svc";
        let finding = checks.at(Code::BadPart, used, "follow_alt_svc", text);
        checks.push(finding.help("add an SslWrap to `ssl_wraps`, or leave out `follow_alt_svc`"));
    }
    proxies(robot, used, checks);
    origins(robot, used, visible, workload, foreign, checks);
    super::parts::of_robot(robot, used, checks);
}

fn proxies(robot: &Robot, used: &UsedRecord, checks: &mut Checks<'_>) {
    if robot.socks_prob.is_some_and(|prob| prob > 0.0) && robot.socks_proxies.is_empty() {
        let text = "a share of robots uses SOCKS proxies, but there are none";
        checks.missing(Code::RobotIncomplete, used, "socks_prob", "socks_proxies", text);
    }
    if robot.socks_names && robot.socks_proxies.is_empty() {
        let text = "SOCKS proxies resolve names, but there are none";
        checks.missing(Code::RobotIncomplete, used, "socks_names", "socks_proxies", text);
    }
    if robot.socks_chaining_prob > 0.0 && (robot.socks_proxies.is_empty() || robot.http_proxies.is_empty()) {
        let text = "chaining of proxies needs both SOCKS and HTTP proxies";
        checks.missing(Code::RobotIncomplete, used, "socks_chaining_prob", "socks_proxies", text);
    }
}

fn origins(
    robot: &Robot,
    used: &UsedRecord,
    visible: &VisibleServers,
    workload: &Workload,
    foreign: bool,
    checks: &mut Checks<'_>,
) {
    let passive = robot.req_rate.is_some_and(|rate| rate.0 == 0.0);
    let foreign_only =
        foreign && robot.interests.items.iter().all(|(word, prob)| word == "foreign" || *prob <= 0.0);
    if robot.origins.is_empty() {
        if !passive && !foreign_only {
            let text = "the robot has no origins to which it could send requests";
            match &visible.variables[..] {
                [server] => {
                    let name = used.name.as_deref().map_or(String::new(), |name| format!("{name}."));
                    let help = format!("set `{name}origins`, e.g. `{name}origins = {server}.addresses;`");
                    checks.missing_with(Code::RobotIncomplete, used, "origins", "origins", text, help);
                }
                _ => checks.missing(Code::RobotIncomplete, used, "origins", "origins", text),
            }
        }
        return;
    }
    let mut seen = rustc_hash::FxHashSet::default();
    let mut reported = 0;
    for name in robot.origins.values() {
        let key = (&name.addr.host, name.addr.port);
        let known = visible.names.contains_key(&(name.addr.host.clone(), name.addr.port));
        let addr = &name.addr;
        let finding = |text: String| {
            checks.at_element(Code::BadOrigins, used, "origins", text, &|value| super::is_addr(value, addr))
        };
        let finding = if !seen.insert(key) {
            finding(format!("the origin {addr} is listed twice")).help("list each origin once")
        } else if !known && visible.complete {
            let text =
                format!("the origin {addr} is neither the address of a server nor a name in an address map");
            unknown_origin(finding(text), used, visible, workload)
        } else {
            continue;
        };
        let finding = if name.addr.port.is_none() { finding.help("origins have ports") } else { finding };
        checks.push(finding);
        // A wrong port makes many origins wrong; a few diagnostics suffice.
        reported += 1;
        if reported == 3 {
            return;
        }
    }
}

/// Reports an unknown origin, with the known ones.
fn unknown_origin(
    finding: Diagnostic,
    used: &UsedRecord,
    visible: &VisibleServers,
    workload: &Workload,
) -> Diagnostic {
    let addrs = workload.servers.iter().flat_map(|server| &server.agent.addresses.0);
    // Interface and subnet belong to the machine of the server and are invisible to robots.
    let addrs = addrs.map(|addr| Addr { interface: None, subnet: None, ..addr.clone() });
    // The first ones show what they look like; there may be millions.
    let ranges = compact(addrs.take(1000));
    let few = &ranges[..ranges.len().min(4)];
    let more = if ranges.len() > few.len() || workload.server_count() > 1000 { " and more" } else { "" };
    let origins = used.name.as_ref().map_or("origins".to_owned(), |name| format!("{name}.origins"));
    let finding = match few {
        [] => finding.note("the workload uses no server that could be an origin"),
        few => finding.note(format!("the server addresses are {}{more}", join(few, ", "))),
    };
    match &visible.variables[..] {
        [] if few.is_empty() => finding.help("name a Server with addresses in `use(...)`"),
        [server] => finding.help(format!("write `{origins} = {server}.addresses;` to follow the server")),
        _ => finding,
    }
}

/// Checks a server.
pub fn server(server: &Server, used: &UsedRecord, checks: &mut Checks<'_>) {
    use Code::ServerIncomplete as Incomplete;
    checks.common(&server.agent, used);
    if server.contents.is_empty() {
        checks.missing(Incomplete, used, "contents", "contents", "the server has no contents");
    }
    checks.words(used, "rep_types", &server.rep_types, REP_TYPES);
    checks.words(used, "protocol", &server.protocol, PROTOCOLS);
    if server.alt_svc.is_some() && server.agent.http_versions.prob("3") == 0.0 {
        let text = "the server does not accept HTTP/3, so it cannot announce it";
        let finding = checks.at(Code::BadPart, used, "alt_svc", text);
        checks.push(finding.help("add \"3\" to `http_versions`, or leave out `alt_svc`"));
    }
    let schemes: Vec<&String> = server.auth_schemes.iter().collect();
    checks.listed_words(used, "auth_schemes", &schemes, AUTH_SCHEMES);
    if server.keytab.is_some() && !schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case("negotiate")) {
        let text = "the server has a keytab, but does not offer `negotiate`, the scheme of Kerberos";
        checks.missing(Incomplete, used, "keytab", "auth_schemes", text);
    }
    for (field, value) in
        [("cookie_set_prob", server.cookie_set_prob), ("req_body_allowed", server.req_body_allowed)]
    {
        checks.share(used, field, value);
    }
    let cookies = server.cookie_set_prob > 0.0;
    for (field, set) in [
        ("cookie_set_count", server.cookie_set_count.is_some()),
        ("cookie_value_size", server.cookie_value_size.is_some()),
    ] {
        if cookies && !set {
            checks.missing(
                Incomplete,
                used,
                "cookie_set_prob",
                field,
                &format!("setting cookies needs `{field}`"),
            );
        }
        if set && !cookies {
            let text = format!("`{field}` is set, but the server sets no cookies");
            checks.missing(Incomplete, used, field, "cookie_set_prob", &text);
        }
    }
    if server.rep_types.prob("302 Found") > 0.0
        && server.agent.pop_model.as_ref().is_none_or(|model| model.pop_distr.is_none())
    {
        let text = "redirections need a popularity model for their targets";
        checks.choose_popularity(Code::ServerAdvice, used, "rep_types", text, "leave \"302 Found\" out");
    }
    direct_access(&server.direct_access, &server.contents, used, checks);
    if let Some(distr) = &server.agent.pconn_use_lmt
        && matches!(distr.shape, Shape::Const(value) if value < 1.0)
    {
        let text = "a connection must carry at least one transaction";
        let finding = checks.at(Code::BadPart, used, "pconn_use_lmt", text);
        checks.push(finding);
    }
}

fn direct_access(
    direct: &Selector<crate::types::ContentId, Tree>,
    contents: &Selector<crate::types::ContentId, Tree>,
    used: &UsedRecord,
    checks: &mut Checks<'_>,
) {
    if used.record.is_bad("contents") || used.record.is_bad("direct_access") {
        return;
    }
    for content in direct.values() {
        let count = contents.values().filter(|known| *known == content).count();
        if count == 1 || (direct.weighted && count > 0) {
            continue;
        }
        let text = match count {
            0 => "direct_access has an entry that is not in contents",
            _ => "direct_access has an entry that is in contents more than once",
        };
        let finding = checks
            .at(Code::DirectAccess, used, "direct_access", text)
            .also_at(used.record.at("contents"), "the contents are set here")
            .note("two contents are the same only if all their fields are equal; assignment makes a copy, so a content that is \
                   changed afterwards is a different content");
        checks.push(finding);
        return;
    }
}
