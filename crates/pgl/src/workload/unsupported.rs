//! What the language has and this program does not implement. It is an error, so that no setting is ignored silently, and so that
//! what passes the checks can be run.

use std::sync::Arc;

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::UsedRecord;
use crate::source::Span;
use crate::types::{Agent, Rec, Robot, Server};
use crate::value::{Record, Shape, Value};
use crate::workload::{Checks, RecordContext};

/// Fields whose draws are numbered, so that a sequence distribution works there.
const NUMBERED: [&str; 5] =
    ["size", "embedded_obj_cnt", "inject_gap", "req_inter_arrival", "idle_period_duration"];

/// Kinds of contents are one byte in URLs, and the first three values are reserved.
const MAX_CONTENTS: usize = 253;

/// Refuses settings of a robot.
pub fn of_robot(robot: &Robot, used: &UsedRecord, checks: &mut Checks<'_>) {
    of_agent(&robot.agent, used, checks);
    let heartbeats = robot.session.as_ref().is_some_and(|session| session.heartbeat_notif_rate.is_some());
    let icp = "leave it out: robots ask no ICP peers";
    let ftp = "leave it out: FTP is obsolete";
    for (field, is_set, help) in [
        (
            "acl",
            !says_nothing(&robot.acl),
            "leave it out: robots count refused requests as errors, by status",
        ),
        ("ftp_proxies", robot.ftp_proxies.is_some(), ftp),
        ("passive_ftp", robot.passive_ftp != 1.0, ftp),
        ("icp_port", robot.icp_port.is_some(), icp),
        ("peer_http", robot.peer_http.is_some(), icp),
        ("peer_icp", robot.peer_icp.is_some(), icp),
        ("session.heartbeat_notif_rate", heartbeats, "leave it out: --notify sends notifications of status"),
    ] {
        checks.refuse_field(is_set, used, field, help);
    }
    if let Some(user) = robot.credentials.iter().find(|user| user.contains("${target_ip}")) {
        let is_it = |value: &Value| matches!(value, Value::Str(text) if **text == **user);
        let text = "`${target_ip}` in `credentials` is not implemented";
        let finding = checks.at_element(Code::NotSupported, used, "credentials", text, &is_it);
        checks.push(finding.help("list the users, or write `${worker}` for a number of the robot"));
    }
    if let Some(name) = robot.origins.values().find(|name| name.new_prob.is_some()) {
        let is_it = |value: &Value| matches!(value, Value::DynName(..)) || super::is_addr(value, &name.addr);
        let text = "dynamic names (`dynamicName()`, `dynamize()`) are not implemented";
        let finding = checks.at_element(Code::NotSupported, used, "origins", text, &is_it);
        checks.push(finding.help("list the names without `dynamize()`, in an AddrMap"));
    }
    sequences(&used.record, Some(used.span), checks);
}

/// Refuses settings of a server.
pub fn of_server(server: &Server, used: &UsedRecord, checks: &mut Checks<'_>) {
    of_agent(&server.agent, used, checks);
    let help = "leave it out: servers accept all connections that wait";
    checks.refuse_field(server.accept_lmt != -1, used, "accept_lmt", help);
    if server.protocol.prob("FTP") > 0.0 {
        let is_ftp = |value: &Value| matches!(value, Value::Str(text) if **text == *"FTP");
        let text = "the protocol FTP is not implemented";
        let finding = checks.at_element(Code::NotSupported, used, "protocol", text, &is_ftp);
        checks.push(finding.help("leave \"FTP\" out: it is obsolete"));
    }
    sequences(&used.record, Some(used.span), checks);
}

fn of_agent(agent: &Agent, used: &UsedRecord, checks: &mut Checks<'_>) {
    let socket = "leave it out: sockets send small packets at once, and have the linger time of the system";
    checks.refuse_field(!says_nothing(&agent.socket), used, "socket", socket);
    checks.refuse_field(
        agent.world.is_some(),
        used,
        "world",
        "leave it out: each agent has an id of its own",
    );
}

/// Refuses a membership map.
pub fn membership(used: &UsedRecord, checks: &mut Checks<'_>) {
    let text = "a MembershipMap is not implemented";
    checks.push(Diagnostic::new(Code::NotSupported, used.span, text).help("remove it from `use(...)`"));
}

/// Refuses more contents than URLs can tell apart. `around` is a position near each.
pub fn contents(records: &[Arc<Record>], around: impl Fn(&Record) -> Option<Span>, checks: &mut Checks<'_>) {
    if let Some(record) = records.get(MAX_CONTENTS) {
        let text = format!("the workload has {} contents, but {MAX_CONTENTS} are possible", records.len());
        let finding = Diagnostic::new(Code::NotSupported, around(record), text);
        checks.push(finding.label("one too many").help("let contents share a type, or leave some out"));
    }
}

/// Refuses sequence distributions in a record and its parts, besides contents, which have a separate check.
pub fn sequences(record: &Record, around: Option<Span>, checks: &mut Checks<'_>) {
    for (slot, field) in record.slots.iter().zip(&record.rec.def().fields) {
        let around = slot.at.or(around);
        let has_sequence = within(&slot.value, &mut |part| match part {
            Value::Distr(distr) => matches!(distr.shape, Shape::Seq { .. }),
            Value::Record(part) if part.rec != Rec::Content => {
                sequences(part, around, checks);
                false
            }
            _ => false,
        });
        if has_sequence && !NUMBERED.contains(&field.name) {
            let text = format!("the distribution seq() of `{}` is not implemented", field.name);
            let place = RecordContext { record, around, used: None };
            let finding = checks.at(Code::NotSupported, place, field.name, text);
            checks.push(finding.help(format!("seq() is possible for {}", NUMBERED.join(", "))));
        }
    }
}

/// Whether `test` is true of a value, or of an element of an array.
fn within(value: &Value, test: &mut dyn FnMut(&Value) -> bool) -> bool {
    match value {
        // Each element is tested, because the test has effects.
        Value::Array(array) => array.items().iter().filter(|item| within(&item.value, test)).count() > 0,
        value => test(value),
    }
}

/// True for a part that is missing or has default values only.
fn says_nothing<T: Default + PartialEq>(part: &Option<Box<T>>) -> bool {
    part.as_deref().is_none_or(|part| *part == T::default())
}

impl Checks<'_> {
    /// Refuses a field if it is set to something else than its default.
    fn refuse_field(&mut self, is_set: bool, used: &UsedRecord, field: &str, help: &str) {
        if is_set && !used.record.is_bad(field) {
            let name = field.rsplit('.').next().unwrap_or(field);
            let finding = self.at(Code::NotSupported, used, field, format!("`{name}` is not implemented"));
            self.push(finding.help(help));
        }
    }
}
