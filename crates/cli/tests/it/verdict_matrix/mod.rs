//! The verdict matrix: what is provoked, and what the program has to say of it: outcome, who was the limit, the rule and the exit
//! code. Each row is a run of the real binary against a device, a server or a machine that is broken in one way.
//! `docs/verdict.md` has the table.

mod bench;
mod device;
mod replies;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::sandbox::Sandbox;
use device::{Deed, Device};

/// Rows that are tried at the same time. They wait more than they compute.
const ABREAST: usize = 6;
/// A machine that is busy with other work may spoil a row so many times.
const ATTEMPTS: usize = 4;
/// Findings of a machine that is busy with other work, if they are not what a row provokes.
const NOISE: [&str; 5] = ["late", "saturated", "gaps", "stalls", "offered"];

/// Stands for the exit code of a process that was killed.
pub const KILLED: i32 = -1;

/// What is to come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    outcome: &'static str,
    limit: Option<&'static str>,
    /// The rule that decides.
    rule: Option<&'static str>,
    /// The headline contains it.
    says: &'static str,
    code: i32,
}

impl Want {
    pub const VALID: Want = Want { outcome: "VALID", limit: None, rule: None, says: "", code: 0 };

    pub const fn failed(rule: &'static str, says: &'static str) -> Want {
        Want { outcome: "FAILED", limit: Some("device"), rule: Some(rule), says, code: 1 }
    }

    pub const fn invalid(limit: &'static str, rule: &'static str) -> Want {
        Want { outcome: "INVALID", limit: Some(limit), rule: Some(rule), says: "", code: 1 }
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

    fn rule(&self) -> Option<&str> {
        let first = self.verdict["findings"].get(0)?;
        first["rule"].as_str().filter(|_| first["weight"] != "warning")
    }

    fn is(&self, want: Want) -> bool {
        self.text("outcome") == Some(want.outcome)
            && self.text("limit") == want.limit
            && self.rule() == want.rule
            && self.text("meaning").is_some_and(|meaning| meaning.contains(want.says))
            && self.code == want.code
    }

    fn is_noise(&self) -> bool {
        self.rule().is_some_and(|rule| NOISE.contains(&rule))
    }
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
        Row::new("the device answers with", name, want, move |sandbox| {
            let device = Device::start(deed);
            let done =
                sandbox.polygraph(&format!("run --proxy 127.0.0.1:{} {}", device.port(), bench::SHORT));
            Got::of_run(sandbox, &done)
        })
    }

    /// What came out, if it is not what has to.
    fn check(&self) -> Option<String> {
        let mut got = Vec::new();
        for _ in 0..ATTEMPTS {
            let sandbox = Sandbox::new();
            let one = (self.provoke)(&sandbox);
            if one.is(self.want) {
                return None;
            }
            let again = one.is_noise();
            got.push(one);
            if !again {
                break;
            }
        }
        let printed = got.last().map_or("", |got| &got.printed);
        Some(format!("{}: {}: wanted {:?}, got {got:#?}\n{printed}", self.group, self.name, self.want))
    }
}

fn rows() -> Vec<Row> {
    let all = [
        replies::canned(),
        replies::spoiled(),
        bench::faults(),
        bench::signals(),
        bench::limits(),
        bench::names(),
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
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..ABREAST {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(text) = row.check() {
                        eprintln!("{text}");
                        wrong.lock().unwrap().push(format!("{}: {}", row.group, row.name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(!rows.is_empty() && wrong.is_empty(), "{} of {} rows: {wrong:#?}", wrong.len(), rows.len());
}

/// The matrix as the table of the documentation.
fn table() -> String {
    let row = |row: &Row| {
        let Want { outcome, limit, rule, code, .. } = row.want;
        let rule = rule.map_or("-".to_owned(), |rule| format!("`{rule}`"));
        let code = if code == KILLED { "-".to_owned() } else { code.to_string() };
        format!("| {}: {} | {outcome} | {} | {rule} | {code} |\n", row.group, row.name, limit.unwrap_or("-"))
    };
    let rows: String = rows().iter().map(row).collect();
    format!("| provoked | verdict | limit | rule | exit code |\n|---|---|---|---|---|\n{rows}")
}

#[test]
fn the_matrix_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdict.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = (page.find("| provoked |").unwrap(), page.find("\n\n## Precedence").unwrap());
    let now = format!("{}{}{}", &page[..begin], table().trim_end(), &page[end..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &now).unwrap();
    } else {
        assert!(page == now, "docs/verdict.md is stale: run the tests once with UPDATE_DOCS=1");
    }
}
