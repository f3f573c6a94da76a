//! The verdict matrix: what is provoked, and what the program has to say of it: outcome, who was the limit, the rule and the exit
//! code. Each row is a run of the real binary against a device, a server or a machine that is broken in one way.
//! `docs/verdict.md` has the table.

mod bench;
mod certificates;
mod clocks;
mod control_group;
mod device;
mod old_copies;
mod replies;
mod routing;
mod setups;
mod starved;
mod streams;
mod tickets;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::sandbox::Sandbox;
use device::{Deed, Device};

/// Rows that are tried at the same time. They wait more than they compute.
const ABREAST: usize = 5;
/// A machine that is busy with other work may spoil a row so many times.
const ATTEMPTS: usize = 4;
/// Findings of a machine that is busy with other work, if they are not what a row provokes.
const NOISE: [&str; 6] = ["late", "saturated", "gaps", "stalls", "throttled", "offered"];

/// Stands for the exit code of a process that was killed.
pub const KILLED: i32 = -1;

/// What is to come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    outcome: &'static str,
    limit: Option<&'static str>,
    /// The rule that decides.
    rule: Option<&'static str>,
    /// A rule of the same limit that may decide instead; chance says which.
    or_rule: Option<&'static str>,
    /// The headline contains it.
    says: &'static str,
    /// A rule that warns.
    warns: Option<&'static str>,
    /// A rule that is broken, too, and comes later.
    before: Option<&'static str>,
    code: i32,
}

impl Want {
    pub const VALID: Want = Want {
        outcome: "VALID",
        limit: None,
        rule: None,
        or_rule: None,
        says: "",
        warns: None,
        before: None,
        code: 0,
    };

    pub const fn failed(rule: &'static str, says: &'static str) -> Want {
        Want {
            outcome: "FAILED",
            limit: Some("device"),
            rule: Some(rule),
            or_rule: None,
            says,
            warns: None,
            before: None,
            code: 1,
        }
    }

    pub const fn invalid(limit: &'static str, rule: &'static str) -> Want {
        Want {
            outcome: "INVALID",
            limit: Some(limit),
            rule: Some(rule),
            or_rule: None,
            says: "",
            warns: None,
            before: None,
            code: 1,
        }
    }

    pub const fn or(self, rule: &'static str) -> Want {
        Want { or_rule: Some(rule), ..self }
    }

    pub const fn warning(self, rule: &'static str) -> Want {
        Want { warns: Some(rule), ..self }
    }

    pub const fn before(self, rule: &'static str) -> Want {
        Want { before: Some(rule), ..self }
    }

    pub const fn code(self, code: i32) -> Want {
        Want { code, ..self }
    }
}

/// What came out.
#[derive(Debug)]
pub struct Got {
    verdict: Value,
    code: i32,
    /// All that was printed, for a person who wants to know why.
    printed: String,
}

impl Got {
    /// Of a `run` in this folder that ended in a result.
    pub fn of_run(sandbox: &Sandbox, done: &crate::sandbox::Done) -> Got {
        assert!(sandbox.path().join("runs").exists(), "{done:?}");
        let manifest = sandbox.read(sandbox.result().join("manifest.json"));
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        Got {
            verdict: manifest["verdict"].clone(),
            code: done.code().unwrap_or(KILLED),
            printed: format!("{done:?}"),
        }
    }

    /// Of logs, after the process whose exit code counts has ended.
    pub fn of_logs(sandbox: &Sandbox, logs: &str, done: &crate::sandbox::Done) -> Got {
        let report = sandbox.polygraph(&format!("report --json {logs}"));
        let verdict = serde_json::from_str(&report.out).unwrap_or_else(|_| panic!("{report:?}: {done:?}"));
        Got { verdict, code: done.code().unwrap_or(KILLED), printed: format!("{done:?}") }
    }

    fn text<'a>(&'a self, name: &str) -> Option<&'a str> {
        self.verdict[name].as_str()
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.verdict["findings"].as_array().into_iter().flatten()
    }

    /// Compares it with what is wanted.
    fn against(&self, want: Want) -> Match {
        let is_noise = |finding: &&Value| {
            let rule = finding["rule"].as_str();
            finding["weight"] == "invalid"
                && rule != want.rule
                && rule != want.before
                && rule.is_some_and(|rule| NOISE.contains(&rule))
        };
        let noisy = self.findings().any(|finding| is_noise(&finding));
        let first = self.findings().find(|finding| !is_noise(finding) && finding["weight"] != "warning");
        let of_first = |name: &str| first.and_then(|finding| finding[name].as_str());
        let rule = of_first("rule");
        let decided = (rule == want.rule || (rule.is_some() && rule == want.or_rule))
            && of_first("limit") == want.limit;
        let warned =
            |rule| self.findings().any(|found| found["rule"] == rule && found["weight"] == "warning");
        let later =
            |rule| self.findings().skip(1).any(|found| found["rule"] == rule && found["weight"] == "invalid");
        let exact = decided
            && want.before.is_none_or(later)
            && want.warns.is_none_or(warned)
            && self.text("outcome") == Some(want.outcome)
            && self.text("limit") == want.limit
            && self.text("meaning").is_some_and(|meaning| meaning.contains(want.says))
            && self.code == want.code;
        match (exact, noisy) {
            (true, _) => Match::Right,
            (false, true) => Match::Noisy,
            (false, false) => Match::Wrong,
        }
    }
}

/// How what came out fits what was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Right,
    /// The machine was too busy with other work to tell.
    Noisy,
    Wrong,
}

/// A row of the matrix.
pub struct Row {
    name: String,
    /// What is done to whom; the same for rows that stand in a table together.
    group: &'static str,
    provoke: Box<dyn Fn(&Sandbox) -> Got + Send + Sync>,
    want: Want,
}

impl Row {
    pub fn new(
        group: &'static str,
        name: impl Into<String>,
        want: Want,
        provoke: impl Fn(&Sandbox) -> Got + Send + Sync + 'static,
    ) -> Row {
        Row { name: name.into(), group, provoke: Box::new(provoke), want }
    }

    /// A short run through a device that does this.
    pub fn evil(name: &'static str, deed: Deed, want: Want) -> Row {
        Row::short("the device answers with", name, deed, want)
    }

    /// A short run through a device that does this to requests.
    pub fn through(name: &'static str, deed: Deed, want: Want) -> Row {
        Row::short("a run", name, deed, want)
    }

    fn short(group: &'static str, name: &'static str, deed: Deed, want: Want) -> Row {
        Row::new(group, name, want, move |sandbox| {
            let device = Device::start(deed);
            // Who waits for an answer that does not come has to give up; all others have all the time there is.
            let patience = if want == replies::SILENT { "--xact_lifetime 700ms" } else { "" };
            let words = format!("run --proxy 127.0.0.1:{} {} {patience}", device.port(), bench::SHORT);
            let done = sandbox.polygraph(&words);
            Got::of_run(sandbox, &done)
        })
    }

    /// Tries it, again if the machine was too busy; says what came out last, if it is not what has to.
    fn check(&self) -> (Match, String) {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let got = (self.provoke)(&Sandbox::new());
            let printed = got.printed.clone();
            last = format!("{}: {}: wanted {:?}, got {got:#?}\n{printed}", self.group, self.name, self.want);
            match got.against(self.want) {
                Match::Noisy => {}
                decided => return (decided, last),
            }
        }
        (Match::Noisy, last)
    }
}

fn rows() -> Vec<Row> {
    let all = [
        replies::canned(),
        replies::spoiled(),
        replies::requests(),
        bench::faults(),
        bench::signals(),
        clocks::apart(),
        bench::client_alone(),
        bench::limits(),
        bench::queues(),
        old_copies::copies(),
        control_group::quotas(),
        starved::devices(),
        setups::workloads(),
        setups::processes(),
        setups::credentials(),
        setups::altered(),
        setups::short(),
        setups::socks(),
        setups::foreign(),
        setups::mixed(),
        routing::servers(),
        routing::demands(),
        streams::resets(),
        bench::names(),
        tickets::tickets(),
        certificates::faults(),
    ];
    all.into_iter().flatten().collect()
}

#[test]
fn every_row_has_its_verdict() {
    let rows = rows();
    // For one who looks for a single row.
    let wanted = std::env::var("MATRIX_ROW").unwrap_or_default();
    let rows: Vec<&Row> =
        rows.iter().filter(|row| format!("{}: {}", row.group, row.name).contains(&wanted)).collect();
    let (next, wrong, noisy) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..ABREAST {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (found, text) = row.check();
                    let (list, told) = match found {
                        Match::Right => continue,
                        Match::Noisy => (&noisy, format!("{}: {}", row.group, row.name)),
                        Match::Wrong => (&wrong, text),
                    };
                    list.lock().unwrap().push(told);
                }
            });
        }
    });
    let (wrong, noisy) = (wrong.into_inner().unwrap(), noisy.into_inner().unwrap());
    assert!(
        !rows.is_empty() && wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
    assert!(noisy.len() <= rows.len() / 10, "the machine is too busy for {} rows: {noisy:#?}", noisy.len());
}

/// The matrix as the table of the documentation.
fn table() -> String {
    let row = |row: &Row| {
        let Want { outcome, limit, rule, or_rule, warns, before, code, .. } = row.want;
        let rules = rule.iter().chain(&or_rule).map(|rule| format!("`{rule}`"));
        let rules: Vec<String> = rules.chain(warns.map(|rule| format!("`{rule}` (warning)"))).collect();
        let before = before.map_or_else(String::new, |rule| format!(" before `{rule}`"));
        let rule = if rules.is_empty() { "-".to_owned() } else { rules.join(" or ") + &before };
        let code = if code == KILLED { "-".to_owned() } else { code.to_string() };
        format!("| {}: {} | {outcome} | {} | {rule} | {code} |\n", row.group, row.name, limit.unwrap_or("-"))
    };
    let rows: String = rows().iter().map(row).collect();
    format!("| case | verdict | limit | rule | exit code |\n|---|---|---|---|---|\n{rows}")
}

#[test]
fn the_matrix_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdict.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = (page.find("| case |").unwrap(), page.find("\n\n## Precedence").unwrap());
    let now = format!("{}{}{}", &page[..begin], table().trim_end(), &page[end..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &now).unwrap();
    } else {
        assert!(
            page == now,
            "docs/verdict.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph --test it the_matrix_is_documented`"
        );
    }
}
