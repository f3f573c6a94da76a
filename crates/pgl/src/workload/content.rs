//! Checks of the settings of contents.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, closest};
use crate::eval::UsedRecord;
use crate::hints::quoted_list;
use crate::source::Span;
use crate::types::{Content, ContentId, HeaderRule};
use crate::value::{Record, Value};
use crate::workload::behavior::direct;
use crate::workload::maps::VisibleServers;
use crate::workload::{Checks, Workload};

pub(super) const GENERATORS: &[&str] = &["random_text", "random_data"];
pub(super) const INJECTED: &[&str] = &["db_text", "request_uri"];
pub(super) const ENCODINGS: &[&str] = &["identity", "gzip"];

/// Checks a content; `around` is a position near it, for missing settings. `repeats` tells whether robots request objects again.
pub fn check(
    content: &Content,
    record: &Record,
    around: Option<Span>,
    repeats: bool,
    checks: &mut Checks<'_>,
) {
    let kind = content.kind.as_deref().unwrap_or("some-content");
    let report = |checks: &mut Checks<'_>, code: Code, field: &str, text: String| {
        let finding = Diagnostic::new(code, record.at(field).or(around), text);
        checks.push(finding);
    };
    let has_size = content.size.is_some();
    let (db, root) = (content.content_db.is_some(), content.document_root.is_some());
    let unknown_body = ["size", "content_db", "document_root"].iter().any(|field| record.is_bad(field));
    if !has_size && !db && !root && !unknown_body {
        let text = format!("the content \"{kind}\" has no size, database or document root");
        let finding = Diagnostic::new(Code::ContentIncomplete, record.at("size").or(around), text)
            .help("give it a size distribution: `size = exp(13KB);`");
        checks.push(finding);
    }
    if db && root {
        let text = format!("the content \"{kind}\" has both a database and a document root");
        report(checks, Code::ContentConflict, "document_root", text);
    }
    let container = (!content.may_contain.is_empty(), content.embedded_obj_cnt.is_some());
    if container.0 != container.1 && !record.is_bad("may_contain") && !record.is_bad("embedded_obj_cnt") {
        let (has, lacks) = if container.0 {
            ("may_contain", "embedded_obj_cnt")
        } else {
            ("embedded_obj_cnt", "may_contain")
        };
        let text = format!("the content \"{kind}\" has `{has}` but no `{lacks}`");
        report(checks, Code::ContentIncomplete, has, text);
    }
    for (field, value) in [
        ("cachable", Some(content.cachable)),
        ("checksum", Some(content.checksum)),
        ("unique", content.unique),
        ("infect_prob", content.infect_prob),
    ] {
        if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
            let percent = crate::value::significant(value * 100.0, 6);
            let text = format!("`{field}` is a share, from 0% to 100%, but it is {percent}%");
            report(checks, Code::BadPart, field, text);
        }
    }
    injection(content, record, around, checks);
    let words =
        [("generator", &content.generator, GENERATORS), ("inject_object", &content.inject_object, INJECTED)];
    for (field, word, known) in words {
        if let Some(word) = word.as_deref().filter(|word| !known.contains(word)) {
            unknown(field, word, known, record.at(field).or(around), checks);
        }
    }
    for word in content.encodings.values().filter(|word| !ENCODINGS.contains(&word.as_str())).take(3) {
        let at = record.at("encodings");
        let element = checks.element(at, &|value| matches!(value, Value::Str(text) if **text == **word));
        unknown("encodings", word, ENCODINGS, element.or(at).or(around), checks);
    }
    // Header fields of the workload's own may say it.
    let says_nothing = content.obj_life_cycle.is_none() && content.mime_headers.is_empty();
    if repeats && content.cachable > 0.0 && says_nothing && !record.is_bad("obj_life_cycle") {
        let text = format!(
            "objects of the content \"{kind}\" are cachable, but without `obj_life_cycle`, replies do not say how long they are fresh, \
             so caches may store none of them"
        );
        let finding = Diagnostic::new(Code::PartAdvice, record.at("cachable").or(around), text).help(
            "for objects that stay fresh, add `obj_life_cycle = { length = const(7day); with_lmt = 100%; expires = [ nmt + const(0sec) ]; };`, \
             or write `cachable = 0%`",
        );
        checks.push(finding);
    }
    life_cycle(content, record, around, checks);
    headers(&content.mime_headers, record.at("mime_headers").or(around), checks);
    if record.at("choice_space").is_some() {
        report(checks, Code::PartAdvice, "choice_space", "`choice_space` has no effect".to_owned());
    }
}

/// Reports embedded objects that robots request from the server of their page, which does not have them.
pub fn embedded(
    workload: &Workload,
    records: &[Arc<Record>],
    servers: &[&UsedRecord],
    visible: &VisibleServers,
    checks: &mut Checks<'_>,
) {
    let follow = workload.robots.iter().filter(|robot| robot.embed_recur > 0.0);
    let places: BTreeSet<usize> = follow.flat_map(|robot| visible.behind_origins(robot)).collect();
    for here in places.into_iter().map(|at| &visible.behind[at]) {
        let all = || here.iter().map(|at| &workload.servers[*at]);
        let has: BTreeSet<ContentId> = all().flat_map(|server| server.contents.values()).copied().collect();
        let mut asked: Vec<ContentId> = all().flat_map(|server| direct(server).values()).copied().collect();
        let mut seen: BTreeSet<ContentId> = asked.iter().copied().collect();
        while let Some(page) = asked.pop() {
            for part in workload.contents[page.0 as usize].may_contain.values() {
                if !has.contains(part) {
                    lacks(workload, records, servers[here[0]], (page, *part), checks);
                } else if seen.insert(*part) {
                    asked.push(*part);
                }
            }
        }
    }
}

fn lacks(
    workload: &Workload,
    records: &[Arc<Record>],
    server: &UsedRecord,
    (page, part): (ContentId, ContentId),
    checks: &mut Checks<'_>,
) {
    if server.record.is_bad("contents") {
        return;
    }
    let kind = |id: ContentId| workload.contents[id.0 as usize].kind.as_deref().unwrap_or("some-content");
    let text = format!(
        "pages of the content \"{}\" contain objects of \"{}\", which their server does not have",
        kind(page),
        kind(part)
    );
    let finding = checks
        .at(Code::ServerIncomplete, server, "contents", text)
        .also_at(records[page.0 as usize].at("may_contain"), "what pages contain is set here")
        .note("two contents are the same only if all their fields are equal; assignment makes a copy, so a content that is \
               changed afterwards is a different content")
        .help("list it in `contents` too; `direct_access` can limit direct requests to other contents");
    checks.push(finding);
}

fn unknown(field: &str, word: &str, known: &[&str], at: Option<Span>, checks: &mut Checks<'_>) {
    let mut finding =
        Diagnostic::new(Code::UnknownWord, at, format!("\"{word}\" is not a possible value of `{field}`"))
            .note(format!("the possible values are {}", quoted_list(known)));
    if let Some(guess) = closest(word, known.iter().copied()) {
        finding = finding.help(format!("did you mean \"{guess}\"?"));
    }
    checks.push(finding);
}

fn injection(content: &Content, record: &Record, around: Option<Span>, checks: &mut Checks<'_>) {
    if ["inject_db", "inject_gap", "inject_object", "infect_prob"].iter().any(|field| record.is_bad(field)) {
        return;
    }
    let (db, gap, prob) =
        (content.inject_db.is_some(), content.inject_gap.is_some(), content.infect_prob.is_some());
    let object = content.inject_object.as_deref();
    let wrong = if (db || gap || object.is_some()) && !prob {
        Some((
            Code::ContentIncomplete,
            "inject_db",
            "injection needs `infect_prob`, the share of injected objects",
        ))
    } else if prob && !db && object.is_none() {
        Some((
            Code::ContentIncomplete,
            "infect_prob",
            "`infect_prob` needs something to inject: inject_db or inject_object",
        ))
    } else if db && !gap {
        Some((
            Code::ContentIncomplete,
            "inject_db",
            "`inject_db` needs `inject_gap`, the distance between injections",
        ))
    } else if gap && !db {
        Some((Code::ContentIncomplete, "inject_gap", "`inject_gap` needs an `inject_db`"))
    } else if object == Some("db_text") && !db {
        Some((Code::ContentIncomplete, "inject_object", "injecting db_text needs an `inject_db`"))
    } else if object == Some("request_uri") && db {
        Some((Code::ContentConflict, "inject_object", "request_uri is injected without a database"))
    } else {
        None
    };
    if let Some((code, field, text)) = wrong {
        checks.push(Diagnostic::new(code, record.at(field).or(around), text));
    }
}

fn life_cycle(content: &Content, record: &Record, around: Option<Span>, checks: &mut Checks<'_>) {
    let Some(cycle) = &content.obj_life_cycle else { return };
    let Some(Value::Record(cycle_record)) = record.slot("obj_life_cycle").map(|slot| &slot.value) else {
        return;
    };
    if cycle.expires.values().any(|distr| distr.qualifier.is_none()) {
        let finding = Diagnostic::new(
            Code::UnqualifiedExpires,
            cycle_record.at("expires").or(around),
            "an expiration time has no base",
        )
        .help("add the base from which it is counted: `lmt + d`, `now + d` or `nmt + d`");
        checks.push(finding);
    }
    if cycle.birthday.is_some() {
        let text = "`birthday` is ignored: objects are created at a random point of their first cycle";
        checks.push(Diagnostic::new(Code::Deprecated, cycle_record.at("birthday").or(around), text));
    }
    for (field, value) in [("with_lmt", cycle.with_lmt), ("variance", cycle.variance)] {
        if !(0.0..=1.0).contains(&value) {
            let percent = crate::value::significant(value * 100.0, 6);
            let text = format!("`{field}` is a share, from 0% to 100%, but it is {percent}%");
            checks.push(Diagnostic::new(Code::BadPart, cycle_record.at(field).or(around), text));
        }
    }
}

/// Reports headers without names.
pub(super) fn headers(rules: &[HeaderRule], at: Option<Span>, checks: &mut Checks<'_>) {
    for rule in rules {
        match &rule.what {
            crate::types::HeaderChoice::One(header) if header.name.is_none() => {
                checks.push(Diagnostic::new(Code::BadPart, at, "a MIME header has no name"));
            }
            crate::types::HeaderChoice::One(_) => {}
            crate::types::HeaderChoice::Group(rules) => headers(rules, at, checks),
        }
    }
}
