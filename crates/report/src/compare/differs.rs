//! Differences between runs in things that should be equal: workload, seeds, program, host.

use similar::TextDiff;

use crate::facts::RunFacts;
use crate::run_dir::Run;
use crate::verdict::VerdictOutcome;

/// What follows from a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceSeverity {
    /// The runs cannot be compared.
    Refuse,
    /// The runs can be compared with care.
    Warn,
    /// An expected difference, such as another device.
    Note,
}

impl DifferenceSeverity {
    /// A word for lists.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceSeverity::Refuse => "not comparable",
            DifferenceSeverity::Warn => "warning",
            DifferenceSeverity::Note => "note",
        }
    }
}

/// A difference.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDifference {
    /// What follows from the difference.
    pub weight: DifferenceSeverity,
    /// What differs.
    pub what: String,
    /// The run that differs from the first one.
    pub run: String,
    /// Value in the first run and in this one.
    pub values: Option<(String, String)>,
    /// Lines that differ, as a unified diff.
    pub diff: Option<String>,
}

impl RunDifference {
    /// The difference in one line.
    pub fn text(&self) -> String {
        match &self.values {
            Some((first, this)) => format!("{}: {} instead of {} ({})", self.what, this, first, self.run),
            None => format!("{} ({})", self.what, self.run),
        }
    }
}

/// Settings that identify devices, hosts and processes: they may differ between comparable runs.
const WHERE: [&str; 11] = [
    "device",
    "process group",
    "origins",
    "addresses",
    "proxy",
    "local addresses",
    "local ports",
    "name servers",
    "ids",
    "users",
    "processor limit",
];
/// Settings of the bench rather than of the load.
const BENCH: [&str; 5] =
    ["engine", "limit of open connections", "statistics interval", "timer quantum", "idle time-out"];
/// Facts of the host that change from run to run.
const FLEETING: [&str; 1] = ["file descriptors"];

/// The differences of `run`, which has the name `name`, from `first`.
pub(super) fn differ(first: &Run, run: &Run, name: &str) -> Vec<RunDifference> {
    let mut found = DifferenceCollector { name, all: Vec::new() };
    let (a, b) = (&first.facts, &run.facts);
    let (one, other) = (a.main_side().header(), b.main_side().header());
    found.value(DifferenceSeverity::Refuse, "side", one.side.name(), other.side.name());
    found.value(DifferenceSeverity::Refuse, "workload", &one.workload, &other.workload);
    found.text(&one.workload_text, &other.workload_text);
    let rate = |facts: &RunFacts| {
        facts.main_side().offered_rate().map_or("best effort".into(), |r| format!("{r}/s"))
    };
    found.value(DifferenceSeverity::Refuse, "planned rate", &rate(a), &rate(b));
    found.value(DifferenceSeverity::Warn, "program version", &one.version, &other.version);
    let sides = [(&a.client, &b.client), (&a.server, &b.server)];
    for (one, other) in sides {
        let (Some(one), Some(other)) = (one, other) else { continue };
        let side = one.side.name();
        found.pairs(&format!("{side} setting "), &one.header().settings, &other.header().settings, setting);
        found.pairs(
            &format!("{side} host "),
            &one.header().environment,
            &other.header().environment,
            |name| (!FLEETING.contains(&name)).then_some(DifferenceSeverity::Warn),
        );
        let count = |n: usize| n.to_string();
        let what = format!("{side} processes");
        found.value(
            DifferenceSeverity::Warn,
            &what,
            &count(one.processes.len()),
            &count(other.processes.len()),
        );
    }
    if a.server.is_some() != b.server.is_some() {
        found.add(DifferenceSeverity::Note, "only one of the runs has server logs".into(), None);
    }
    let device = |run: &Run| run.device().unwrap_or_else(|| "unknown".into());
    found.value(DifferenceSeverity::Note, "device", &device(first), &device(run));
    found.pairs("device option ", &first.device_options(), &run.device_options(), |_| {
        Some(DifferenceSeverity::Note)
    });
    found.all
}

/// Problems of a single run.
pub(super) fn unusable(run: &Run, name: &str) -> Vec<RunDifference> {
    let mut found = DifferenceCollector { name, all: Vec::new() };
    let verdict = &run.facts.verdict;
    match verdict.outcome {
        VerdictOutcome::Valid => {}
        VerdictOutcome::Invalid => {
            let why = verdict.findings.first().map_or("", |finding| &finding.text);
            found.add(DifferenceSeverity::Refuse, format!("the run is {}: {why}", verdict.word()), None);
        }
        VerdictOutcome::Failed => {
            let why = verdict.findings.first().map_or("", |finding| &finding.text);
            found.add(DifferenceSeverity::Warn, format!("the run is {}: {why}", verdict.word()), None);
        }
    }
    let trends = verdict.findings.iter().filter(|finding| finding.rule == "trend");
    trends.for_each(|finding| found.add(DifferenceSeverity::Warn, finding.text.clone(), None));
    found.all
}

/// The severity of a different value of a setting of the client or server.
fn setting(name: &str) -> Option<DifferenceSeverity> {
    // Settings of one kind of robots or servers start with its name.
    let plain = name.rsplit(": ").next().unwrap_or(name);
    Some(match plain {
        _ if WHERE.contains(&plain) => return None,
        _ if plain.ends_with("seed") => DifferenceSeverity::Warn,
        _ if BENCH.contains(&plain) => DifferenceSeverity::Warn,
        _ => DifferenceSeverity::Refuse,
    })
}

struct DifferenceCollector<'a> {
    name: &'a str,
    all: Vec<RunDifference>,
}

impl DifferenceCollector<'_> {
    fn add(&mut self, weight: DifferenceSeverity, what: String, values: Option<(String, String)>) {
        self.all.push(RunDifference { weight, what, run: self.name.to_owned(), values, diff: None });
    }

    fn value(&mut self, weight: DifferenceSeverity, what: &str, first: &str, this: &str) {
        if first != this {
            self.add(weight, what.to_owned(), Some((first.to_owned(), this.to_owned())));
        }
    }

    /// Compares named values; `weigh` returns the severity of a difference, if it matters.
    fn pairs(
        &mut self,
        prefix: &str,
        first: &[(String, String)],
        this: &[(String, String)],
        weigh: impl Fn(&str) -> Option<DifferenceSeverity>,
    ) {
        let value = |pairs: &[(String, String)], wanted: &str| {
            let found = pairs.iter().find(|(name, _)| name == wanted);
            found.map_or("none".to_owned(), |(_, value)| value.clone())
        };
        let mut names: Vec<&String> = first.iter().chain(this).map(|(name, _)| name).collect();
        names.dedup();
        let mut seen: Vec<&String> = Vec::new();
        for name in names {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            if let Some(weight) = weigh(name) {
                self.value(weight, &format!("{prefix}`{name}`"), &value(first, name), &value(this, name));
            }
        }
    }

    /// Compares workload texts. Comments and blank lines are ignored.
    fn text(&mut self, first: &str, this: &str) {
        let meant = |text: &str| {
            let lines = text.lines().map(str::trim_end);
            let kept: Vec<&str> =
                lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with("//")).collect();
            kept.join("\n") + "\n"
        };
        let (a, b) = (meant(first), meant(this));
        if a == b {
            return;
        }
        let what = match (first.is_empty(), this.is_empty()) {
            (true, false) => "a workload file instead of the options of the first run",
            (false, true) => "options instead of the workload file of the first run",
            _ => "workload text",
        };
        let (a, b) =
            if first.is_empty() || this.is_empty() { (String::new(), String::new()) } else { (a, b) };
        let diff = TextDiff::from_lines(&a, &b).unified_diff().context_radius(1).to_string();
        self.add(DifferenceSeverity::Refuse, what.to_owned(), None);
        if let Some(last) = self.all.last_mut().filter(|_| !diff.is_empty()) {
            last.diff = Some(diff);
        }
    }
}
