//! Checks of the settings of smaller records.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, closest};
use crate::eval::UsedRecord;
use crate::hints::quoted_list;
use crate::source::Span;
use crate::types::{Goal, MembershipMap, Robot, SslWrap};
use crate::value::{Record, Value};
use crate::workload::{Checks, RecordContext};

pub(super) const TLS_PROTOCOLS: &[&str] = &["TLSv1.2", "TLSv1.3", "any"];
/// Names of earlier versions, which are not supported.
const OLD_TLS_PROTOCOLS: &[&str] = &["SSLv2", "SSLv3", "TLSv1", "TLSv1.0", "TLSv1.1"];

/// Checks the records below a robot.
pub fn of_robot(robot: &Robot, used: &UsedRecord, checks: &mut Checks<'_>) {
    let bad = |checks: &mut Checks<'_>, field: &str, text: &str| {
        if !used.record.is_bad(field) {
            let finding = checks.at(Code::BadPart, used, field, text);
            checks.push(finding);
        }
    };
    let advise = |checks: &mut Checks<'_>, field: &str, text: &str| {
        if !used.record.is_bad(field) {
            let finding = checks.at(Code::PartAdvice, used, field, text);
            checks.push(finding);
        }
    };
    if let Some(session) = &robot.session
        && (session.busy_period.is_none() != session.idle_period_duration.is_none())
    {
        bad(
            checks,
            "session",
            "a session must have both a busy_period and an idle_period_duration, or neither",
        );
    }
    if let Some(busy) = robot.session.as_ref().and_then(|session| session.busy_period.as_deref())
        && !ends(busy)
    {
        let text = "a busy period must have a positive duration, xactions or fill_size as its end";
        bad(checks, "session.busy_period", text);
    }
    if let Some(resolver) = &robot.dns_resolver {
        if resolver.servers.is_empty() {
            bad(checks, "dns_resolver.servers", "the DNS resolver has no servers");
        }
        if resolver.timeout.is_none() {
            advise(
                checks,
                "dns_resolver",
                "the DNS resolver has no timeout: robots wait up to 5 seconds for each server",
            );
        }
        if !matches!(resolver.query_type.as_deref(), None | Some("A" | "AAAA")) {
            bad(
                checks,
                "dns_resolver.query_type",
                "the query type of a DNS resolver must be \"A\" or \"AAAA\"",
            );
        }
        if resolver.cache.as_ref().is_some_and(|cache| cache.capacity.is_some_and(|count| count < 0)) {
            bad(checks, "dns_resolver.cache.capacity", "the capacity of a DNS cache must not be negative");
        }
    }
    if let Some(wrap) = &robot.kerberos_wrap {
        let split = !wrap.servers_tcp.is_empty() || !wrap.servers_udp.is_empty();
        if wrap.realm.is_none() {
            bad(checks, "kerberos_wrap", "Kerberos needs a realm");
        }
        if wrap.servers.is_empty() && !split {
            bad(checks, "kerberos_wrap", "Kerberos needs servers");
        }
        if !wrap.servers.is_empty() && split {
            bad(checks, "kerberos_wrap", "`servers` excludes `servers_tcp` and `servers_udp`");
        }
        if wrap.timeout.is_none() {
            advise(checks, "kerberos_wrap", "Kerberos has no timeout");
        }
        if robot.credentials.is_empty() {
            bad(checks, "kerberos_wrap", "Kerberos needs users: the robot has no `credentials`");
        }
        if wrap.service.as_ref().is_some_and(|service| service.is_empty() || service.contains('@')) {
            bad(
                checks,
                "kerberos_wrap",
                "`service` must be like \"HTTP/proxy.example.com\", without a realm",
            );
        }
    }
    super::content::headers(
        &robot.agent.http_headers,
        used.record.at("http_headers").or(Some(used.span)),
        checks,
    );
}

/// True if the goal of a busy period is set and all its parts can be reached. Errors do not end a busy period.
fn ends(busy: &Goal) -> bool {
    let positive = [
        busy.duration.map(|time| time.0 > 0),
        busy.xactions.map(|count| count > 0),
        busy.fill_size.map(|size| size.0 > 0),
    ];
    positive.contains(&Some(true)) && !positive.contains(&Some(false))
}

/// Checks a membership map.
pub fn membership(map: &MembershipMap, used: &UsedRecord, checks: &mut Checks<'_>) {
    for (field, missing) in [
        ("groups_per_member", map.groups_per_member.is_none()),
        ("group_space", map.group_space.is_empty()),
        ("member_space", map.member_space.is_empty()),
    ] {
        if missing && !used.record.is_bad(field) {
            let finding = checks.at(Code::BadPart, used, field, format!("a membership map needs `{field}`"));
            checks.push(finding);
        }
    }
}

/// Checks TLS settings.
pub fn ssl_wrap(wrap: &SslWrap, record: &Record, around: Option<Span>, checks: &mut Checks<'_>) {
    let bad = |checks: &mut Checks<'_>, code: Code, field: &str, text: String| {
        checks.push(Diagnostic::new(code, record.at(field).or(around), text));
    };
    for word in wrap.protocols.values().filter(|word| !TLS_PROTOCOLS.contains(&word.as_str())).take(3) {
        let at = record.at("protocols");
        let element = checks.element(at, &|value| matches!(value, Value::Str(text) if **text == **word));
        let at = element.or(at).or(around);
        let mut finding = Diagnostic::new(
            Code::UnknownWord,
            at,
            format!("\"{word}\" is not a possible value of `protocols`"),
        )
        .note(format!("the possible values are {}", quoted_list(TLS_PROTOCOLS)));
        if OLD_TLS_PROTOCOLS.contains(&word.as_str()) {
            finding = finding.help(format!(
                "{word} is obsolete and insecure; write \"any\" for the versions of today, \"TLSv1.2\" for the oldest of them"
            ));
        } else if let Some(guess) = closest(word, TLS_PROTOCOLS.iter().copied()) {
            finding = finding.help(format!("did you mean \"{guess}\"?"));
        }
        checks.push(finding);
    }
    if wrap.rsa_key_sizes.values().any(|size| ![256, 384, 512].contains(&size.0)) {
        let text = "an RSA key must have 2048, 3072 or 4096 bits (write `2048bit`)".to_owned();
        bad(checks, Code::BadPart, "rsa_key_sizes", text);
    }
    if wrap.compression.is_some_and(|prob| prob > 0.0) {
        let text =
            "TLS has no compression any more, because it gives secrets away; remove the field".to_owned();
        bad(checks, Code::BadPart, "compression", text);
    }
    if !wrap.certificates.is_empty() && wrap.generate_certificates == Some(true) {
        let text = "existing certificates and generated ones exclude each other".to_owned();
        bad(checks, Code::BadPart, "generate_certificates", text);
    }
    if wrap.verify_peer_certificate == Some(true) && wrap.root_certificate.is_none() {
        let text = "certificates can only be verified with a root_certificate".to_owned();
        bad(checks, Code::BadPart, "verify_peer_certificate", text);
    }
    if record.at("ssl_config_file").is_some() {
        let text = "`ssl_config_file` is no longer used".to_owned();
        bad(checks, Code::Deprecated, "ssl_config_file", text);
    }
    if wrap.session_cache.is_some_and(|count| count < 0) {
        bad(
            checks,
            Code::BadPart,
            "session_cache",
            "the size of the session cache must not be negative".to_owned(),
        );
    }
}

/// Checks a bench.
pub fn bench(record: &Record, around: Span, checks: &mut Checks<'_>) {
    for side_name in ["client_side", "server_side", "proxy_side"] {
        let Some(Value::Record(side)) = record.slot(side_name).map(|slot| &slot.value) else { continue };
        let count = |field: &str| {
            side.slot(field).filter(|slot| slot.value.is_container()).map(|slot| match &slot.value {
                // `cpu_cores` has one list per host, so lists are counted; other settings are counted by hosts.
                Value::Array(array) if field == "cpu_cores" => {
                    array.items().len() as u64 * u64::from(array.repeat())
                }
                value => value.len(),
            })
        };
        if let Some(cores) = count("cpu_cores").filter(|cores| *cores > 0) {
            let hosts = count("hosts").unwrap_or(0);
            if cores != hosts {
                let text = format!("{side_name}.cpu_cores has {cores} lists for {hosts} hosts");
                let place = RecordContext { record: side, around: Some(around), used: None };
                let finding = checks
                    .at(Code::BadPart, place, "cpu_cores", text)
                    .note("there must be one list of cores per element of hosts");
                checks.push(finding);
            }
        }
    }
}
