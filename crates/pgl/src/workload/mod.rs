//! The result of a program as plain typed data, and the checks that need all of it.

mod agents;
mod behavior;
mod content;
mod files;
mod maps;
mod parts;
mod phases;
mod unsupported;
mod unused;

use std::sync::Arc;

use polygraph_addr::Addr;
use rustc_hash::FxHashSet;

use crate::check::hir::Program;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::eval::{Evaluation, UsedRecord};
use crate::script::Scripts;
use crate::source::{Loader, SourceMap, Span};
use crate::types::{
    AddrMap, AgentAddrs, Bench, Content, ContentId, Converter, FieldType, MembershipMap, NetPipe, Phase,
    Proxy, Rec, Robot, Server, SslWrap, StatsSample, Time,
};
use crate::value::{Record, Value};
use crate::{Compat, Options};

use behavior::{BehavingContent, RequestedContents};
use maps::VisibleServers;

/// The words that a field of agents or contents accepts; empty for other fields.
pub(crate) fn words_of(field: &str) -> &'static [&'static str] {
    match field {
        "req_types" => behavior::REQ_TYPES,
        "req_methods" => behavior::REQ_METHODS,
        "http_versions" => agents::HTTP_VERSIONS,
        "interests" => agents::INTERESTS,
        "rep_types" => agents::REP_TYPES,
        "protocol" => agents::PROTOCOLS,
        "auth_schemes" => agents::AUTH_SCHEMES,
        "generator" => content::GENERATORS,
        "inject_object" => content::INJECTED,
        "encodings" => content::ENCODINGS,
        "protocols" => parts::TLS_PROTOCOLS,
        _ => &[],
    }
}

/// Everything that a test needs from its program.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// Robots in the order of use; one agent per address.
    pub robots: Vec<Robot>,
    /// Servers in the order of use.
    pub servers: Vec<Server>,
    /// Proxies in the order of use.
    pub proxies: Vec<Proxy>,
    /// Content types; the index is the number that appears in URLs.
    pub contents: Vec<Content>,
    /// TLS settings.
    pub ssl_wraps: Vec<SslWrap>,
    /// The schedule; never empty.
    pub phases: Vec<Phase>,
    /// Samples scheduled from the start of the test.
    pub stats_samples: Vec<StatsSample>,
    /// The last bench used.
    pub bench: Option<Bench>,
    /// The rate that all robots should offer at the peak, per second: the peak_req_rate of the bench that is
    /// used, or else of the one that addresses of robots were computed from.
    pub peak_req_rate: Option<f64>,
    /// Address maps.
    pub addr_maps: Vec<AddrMap>,
    /// Maps of users to groups.
    pub membership_maps: Vec<MembershipMap>,
    /// Network pipes, which have no effect.
    pub net_pipes: Vec<NetPipe>,
    /// Groups of interchangeable addresses.
    pub substitutes: Vec<Vec<Addr>>,
    /// The time after which the working set is frozen.
    pub working_set_length: Option<Time>,
    /// The number of fill objects of a process at which the working set is frozen.
    pub working_set_cap: Option<u32>,
    /// The rules by which robots choose requests, if the workload sets them.
    pub compat: Option<Compat>,
    /// The phase scripts with everything that they can access.
    pub scripts: Arc<Scripts>,
}

impl Workload {
    /// The number of robots.
    pub fn robot_count(&self) -> usize {
        self.robots.iter().map(|robot| robot.agent.addresses.0.len()).sum()
    }

    /// The number of servers.
    pub fn server_count(&self) -> usize {
        self.servers.iter().map(|server| server.agent.addresses.0.len()).sum()
    }
}

/// Reports diagnostics about a workload.
pub(crate) struct Checks<'a> {
    pub(crate) out: &'a mut Diagnostics,
    program: &'a Program,
}

/// The settings that diagnostics are about.
#[derive(Clone, Copy)]
struct RecordContext<'a> {
    record: &'a Record,
    /// A position near them, for settings that were never assigned.
    around: Option<Span>,
    /// The use of the record, unless it is a part of others.
    used: Option<&'a UsedRecord>,
}

impl<'a> RecordContext<'a> {
    /// The context of a nested record.
    fn part(self, field: &str) -> Option<RecordContext<'a>> {
        match &self.record.slot(field)?.value {
            Value::Record(record) => {
                Some(RecordContext { record, around: self.record.at(field).or(self.around), ..self })
            }
            _ => None,
        }
    }
}

impl<'a> From<&'a UsedRecord> for RecordContext<'a> {
    fn from(used: &'a UsedRecord) -> Self {
        Self { record: &used.record, around: Some(used.span), used: Some(used) }
    }
}

impl Checks<'_> {
    /// A diagnostic about a field: at its assignment if there is one, else near it.
    fn at<'a>(
        &self,
        code: Code,
        place: impl Into<RecordContext<'a>>,
        field: &str,
        text: impl Into<String>,
    ) -> Diagnostic {
        let place = place.into();
        match (place.record.at(field), place.used) {
            (Some(at), Some(used)) => {
                let used_as = used.name.as_deref().unwrap_or("this");
                Diagnostic::new(code, at, text).also(used.span, format!("`{used_as}` is used here"))
            }
            (at, _) => Diagnostic::new(code, at.or(place.around), text),
        }
    }

    /// A diagnostic about an element of an array: at the element if it is written out.
    fn at_element<'a>(
        &self,
        code: Code,
        place: impl Into<RecordContext<'a>>,
        field: &str,
        text: impl Into<String>,
        test: &dyn Fn(&Value) -> bool,
    ) -> Diagnostic {
        let place = place.into();
        let finding = self.at(code, place, field, text);
        match self.element(place.record.at(field), test) {
            Some(at) => Diagnostic { span: Some(at), ..finding },
            None => finding,
        }
    }

    /// The position of an element of an array literal that was assigned at `at`.
    fn element(&self, at: Option<Span>, test: &dyn Fn(&Value) -> bool) -> Option<Span> {
        // The diagnostic would be dropped, and the search takes a walk through the program.
        if self.out.is_full() {
            return None;
        }
        self.program.expr_at(at?)?.element(test)
    }

    fn push(&mut self, finding: Diagnostic) {
        self.out.push(finding);
    }
}

/// Makes the workload of a program that has run; `None` if there were errors.
pub(crate) fn build(
    program: Program,
    outcome: &Evaluation,
    (sources, loader): (&SourceMap, &dyn Loader),
    options: &Options,
    out: &mut Diagnostics,
) -> Option<Workload> {
    let mut lower = Converter::new(options.limits.items);
    let mut checks = Checks { out, program: &program };
    let mut workload = Workload::default();
    let (mut robots, mut servers) = (Vec::new(), Vec::new());
    let mut bench_at: Option<Span> = None;
    let mut mapped = FxHashSet::default();
    // Servers come first: content types are numbered in the order of the servers.
    for used in outcome.used.iter().filter(|used| used.record.rec == Rec::Server) {
        if !has_addresses(&mut checks, used) {
            continue;
        }
        let server = Server::from_record(&used.record, &mut lower);
        workload.servers.push(server);
        servers.push(used);
    }
    for used in &outcome.used {
        let record = &used.record;
        match record.rec {
            Rec::Robot if has_addresses(&mut checks, used) => {
                workload.robots.push(agents::with_old_names(
                    Robot::from_record(record, &mut lower),
                    &mut checks,
                    used,
                ));
                robots.push(used);
            }
            Rec::Proxy if has_addresses(&mut checks, used) => {
                workload.proxies.push(Proxy::from_record(record, &mut lower));
            }
            Rec::AddrMap if is_poisoned(used, "names") || is_poisoned(used, "addresses") => {}
            Rec::AddrMap => {
                let map = AddrMap::from_record(record, &mut lower);
                maps::add(map, used, &mut mapped, &mut workload, &mut checks);
            }
            Rec::Bench => {
                if let Some(first) = bench_at.replace(used.span) {
                    let text = "a second Bench replaces the first";
                    checks.push(
                        Diagnostic::new(Code::UselessUse, used.span, text).also(first, "the first one"),
                    );
                }
                parts::bench(record, used.span, &mut checks);
                workload.bench = Some(Bench::from_record(record, &mut lower));
            }
            Rec::MembershipMap => {
                let map = MembershipMap::from_record(record, &mut lower);
                parts::membership(&map, used, &mut checks);
                unsupported::membership(used, &mut checks);
                workload.membership_maps.push(map);
            }
            Rec::NetPipe => workload.net_pipes.push(NetPipe::from_record(record, &mut lower)),
            Rec::SslWrap => {
                lower.ssl_wrap(record);
            }
            _ => {}
        }
    }
    drop(mapped);
    let used_rate = workload.bench.as_ref().and_then(|bench| bench.peak_req_rate);
    workload.peak_req_rate = used_rate.map(|rate| rate.0).or(outcome.planned_rate);
    for used in &outcome.scheduled {
        match used.record.rec {
            Rec::StatsSample => {
                let sample = StatsSample::from_record(&used.record, &mut lower);
                phases::scheduled_sample(&sample, used, &mut checks);
                workload.stats_samples.push(sample);
            }
            _ => workload.phases.push(Phase::from_record(&used.record, &mut lower)),
        }
    }
    for group in &outcome.substitutes {
        workload.substitutes.push(Vec::from_value(group, &mut lower));
    }
    if lower.exceeded() {
        let text = format!("the workload has more than {} addresses and other items", options.limits.items);
        checks.push(Diagnostic::new(Code::TooManyItems, None, text));
        return None;
    }
    workload.compat = outcome.compat;
    workload.working_set_length = outcome.working_set_length.map(|(us, _)| Time(us));
    workload.working_set_cap = outcome.working_set_cap.and_then(|(count, _)| u32::try_from(count).ok());
    if let (Some(_), Some((_, at))) = (&outcome.working_set_length, &outcome.working_set_cap) {
        let text = "the working set is limited both by time and by number of objects";
        checks.push(
            Diagnostic::new(Code::BadPart, *at, text).help("use working_set_length() or working_set_cap()"),
        );
    }
    let phase_uses: Vec<&UsedRecord> =
        outcome.scheduled.iter().filter(|used| used.record.rec == Rec::Phase).collect();
    let unscheduled = phases::schedule(&mut workload, &phase_uses, &mut checks);
    if robots.is_empty() && servers.is_empty() && !checks.out.has_errors() {
        checks.push(Diagnostic::new(Code::NothingUsed, None, "the program uses no robots and no servers"));
    }
    if let Some(first) = robots.first()
        && workload.robots.iter().all(|robot| robot.req_rate.is_some_and(|rate| rate.0 == 0.0))
    {
        let text = "no robot sends a request, because their rate is 0";
        let finding = checks.at(Code::PartAdvice, *first, "req_rate", text);
        checks.push(finding.help("give some robots a rate, e.g. `req_rate = 0.4/sec;`"));
    }
    let mut known = maps::visible(&workload, &servers, &mut checks);
    // Unknown records may have the names that seem to be missing.
    known.complete &= !outcome.unknown_use
        && !outcome.used.iter().any(|used| is_poisoned(used, "addresses") || is_poisoned(used, "names"));
    for (server, used) in workload.servers.iter().zip(&servers) {
        agents::server(server, used, &mut checks);
        unsupported::of_server(server, used, &mut checks);
    }
    let (contents, wraps) = lower.finish();
    let (contents, records): (Vec<Content>, Vec<Arc<Record>>) = contents.into_iter().unzip();
    workload.contents = contents;
    let special: Vec<BehavingContent<'_>> = workload
        .contents
        .iter()
        .zip(&records)
        .enumerate()
        .filter_map(|(at, (content, record))| {
            BehavingContent::of(ContentId(at as u32), content, record, content_use(record, &servers, &robots))
        })
        .collect();
    for (robot, used) in workload.robots.iter().zip(&robots) {
        let met = RequestedContents::by(robot, used, &special, &known, &workload);
        agents::robot(robot, used, &known, &met, &workload, &mut checks);
        unsupported::of_robot(robot, used, &mut checks);
    }
    let repeats = workload.robots.iter().any(|robot| robot.recurrence > 0.0);
    for (content, record) in workload.contents.iter().zip(&records) {
        let around = content_use(record, &servers, &robots);
        content::check(content, record, around, repeats, &mut checks);
        unsupported::sequences(record, around, &mut checks);
    }
    unsupported::contents(&records, |record| content_use(record, &servers, &robots), &mut checks);
    special.iter().for_each(|special| behavior::of_content(special, &mut checks));
    content::embedded(&workload, &records, &servers, &known, &mut checks);
    for (wrap, record) in &wraps {
        let around = outcome.used.first().map(|used| used.span);
        parts::ssl_wrap(wrap, record, around, &mut checks);
    }
    if checks.out.has_errors() {
        return None;
    }
    files::check(&workload, &records, &robots, loader, &mut checks);
    // Predictions are for programs that can run.
    if unscheduled {
        checks.push(phases::unscheduled());
    }
    // A program without agents or phases has its own finding.
    if !(robots.is_empty() && servers.is_empty()) {
        unused::check(!phase_uses.is_empty(), &mut checks);
    }
    workload.ssl_wraps = wraps.into_iter().map(|(wrap, _)| wrap).collect();
    if !program.scripts.is_empty() {
        let (vars, sources, options) = (outcome.vars.clone(), sources.clone(), options.clone());
        workload.scripts = Arc::new(Scripts { program, vars, sources, options });
    }
    Some(workload)
}

/// The position to report for a content whose field was never assigned.
fn content_use(record: &Record, servers: &[&UsedRecord], robots: &[&UsedRecord]) -> Option<Span> {
    let own = record.slots.iter().filter_map(|slot| slot.at).next();
    own.or_else(|| {
        servers.iter().chain(robots).map(|used| used.record.at("contents").unwrap_or(used.span)).next()
    })
}

/// True for this address with any interface and subnet.
fn is_addr(value: &Value, addr: &Addr) -> bool {
    matches!(value, Value::Addr(known) if known.host == addr.host && known.port == addr.port)
}

/// False, with a warning, for agents without addresses.
fn has_addresses(checks: &mut Checks<'_>, used: &UsedRecord) -> bool {
    let slot = used.record.slot("addresses");
    let some = slot.is_some_and(|slot| slot.value.is_container() && !slot.value.is_empty());
    if !some && !is_poisoned(used, "addresses") {
        let name = used.name.as_deref().unwrap_or("this agent");
        let text = format!("`{name}` has no addresses and is ignored");
        let example = if used.record.rec == Rec::Server { "[ '127.0.0.1:9090' ]" } else { "[ '127.0.0.1' ]" };
        checks.push(
            Diagnostic::new(Code::UselessUse, used.span, text)
                .help(format!("assign addresses, e.g. `{name}.addresses = {example};`")),
        );
    }
    some
}

/// True if a diagnostic was reported about the value of a field, so that its value is unknown.
fn is_poisoned(used: &UsedRecord, field: &str) -> bool {
    used.record.slot(field).is_some_and(|slot| slot.value == Value::Poison)
}

/// Reports agent addresses that are not IP addresses.
fn check_ips(addresses: &AgentAddrs, used: &UsedRecord, checks: &mut Checks<'_>, what: &str) {
    let wrong = addresses.0.iter().find(|addr| addr.host.ip().is_none());
    if let Some(addr) = wrong {
        let text = format!("{what} need IP addresses, but {} is a name", addr.host);
        let finding =
            checks.at_element(Code::BadAddresses, used, "addresses", text, &|value| is_addr(value, addr));
        checks.push(finding);
    }
}

/// Advice to set a field of an agent.
pub(super) fn set_field(used: &UsedRecord, field: &str) -> String {
    set_field_to(used, field, crate::hints::field_example(used.record.rec, field).as_deref())
}

/// Advice to set a field of an agent, with an example of its value.
pub(super) fn set_field_to(used: &UsedRecord, field: &str, example: Option<&str>) -> String {
    let name = used.name.as_ref().map_or(field.to_owned(), |name| format!("{name}.{field}"));
    match example {
        Some(example) => format!("set `{name}`, e.g. `{name} = {example};`"),
        None => format!("set `{name}`"),
    }
}
