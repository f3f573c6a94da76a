//! The live statistics of one side of a process: the one message that all views of running tests are made of.
//!
//! A message is complete in itself. It says which process and side it is about, what was counted since the message before,
//! and what was counted since the start. Counts and sums of several processes add up; rates, means and ratios are
//! computed by whoever shows them, so those of a whole side are exact.
//!
//! On a stream, each message is a line of JSON.

use polygraph_stats::Side;
use serde::{Deserialize, Serialize};

/// The version of the message. Readers reject others.
pub const FORMAT: u32 = 1;
/// The longest line that a reader accepts, in bytes.
pub const LONGEST_LINE: usize = 64 * 1024;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// It waits for the first traffic.
    Waiting,
    /// A phase is running.
    Running,
    /// The run is over.
    Ended,
}

impl LiveState {
    /// The name in views and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LiveState::Waiting => "waiting",
            LiveState::Running => "running",
            LiveState::Ended => "ended",
        }
    }
}

/// The phase that is running, or the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LivePhase {
    /// Its name.
    pub name: String,
    /// Its number, from 0 on.
    pub index: u32,
    /// The number of planned phases.
    pub planned: u32,
    /// Seconds since it began.
    pub elapsed_s: f64,
    /// Its planned length in seconds, if it has one.
    pub duration_s: Option<f64>,
    /// Whether results are taken from it.
    pub primary: bool,
}

/// What was counted in a time. All values are sums, so those of several processes add up. Sums that came as rates (see
/// [`notification`](crate::notification)) need not be whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveCounts {
    /// The length of the time in seconds. Of concurrent processes, the longest counts.
    pub seconds: f64,
    /// Transactions that were started.
    pub started: f64,
    /// Transactions that succeeded.
    pub ok: f64,
    /// Transactions that failed.
    pub failed: f64,
    /// Sum of the response times of successful transactions in microseconds.
    pub rptm_us: f64,
    /// Basic transactions, the denominator of hit ratios.
    pub basic: f64,
    /// Transactions that were hits.
    pub hits: f64,
    /// Hits that a perfect cache would have had.
    pub offered_hits: f64,
    /// Reply bytes of successful transactions.
    pub reply_bytes: f64,
    /// Processor time of event loops in seconds.
    pub cpu_s: f64,
    /// Processor time of the busiest event loop in seconds. Of concurrent processes, the largest counts.
    pub busiest_s: f64,
}

impl LiveCounts {
    /// Adds what was counted afterwards.
    pub fn append(&mut self, later: &LiveCounts) {
        let (seconds, busiest_s) = (self.seconds + later.seconds, self.busiest_s + later.busiest_s);
        self.merge(later);
        (self.seconds, self.busiest_s) = (seconds, busiest_s);
    }

    /// Adds what another process counted at the same time.
    pub fn merge(&mut self, other: &LiveCounts) {
        self.seconds = self.seconds.max(other.seconds);
        self.busiest_s = self.busiest_s.max(other.busiest_s);
        self.started += other.started;
        self.ok += other.ok;
        self.failed += other.failed;
        self.rptm_us += other.rptm_us;
        self.basic += other.basic;
        self.hits += other.hits;
        self.offered_hits += other.offered_hits;
        self.reply_bytes += other.reply_bytes;
        self.cpu_s += other.cpu_s;
    }

    /// `count` per second; `None` if no time has passed.
    pub fn per_second(&self, count: f64) -> Option<f64> {
        (self.seconds > 0.0).then(|| count / self.seconds)
    }

    /// Mean response time in milliseconds.
    pub fn mean_rptm_ms(&self) -> Option<f64> {
        (self.ok > 0.0).then(|| self.rptm_us / self.ok / 1000.0)
    }

    /// Document hit ratio in percent.
    pub fn hit_percent(&self) -> Option<f64> {
        (self.basic > 0.0).then(|| self.hits / self.basic * 100.0)
    }

    /// Failed transactions in percent of those that ended.
    pub fn error_percent(&self) -> Option<f64> {
        let ended = self.ok + self.failed;
        (ended > 0.0).then(|| self.failed / ended * 100.0)
    }
}

/// How often an error occurred since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveError {
    /// The number of its class, for example `c12`.
    pub number: String,
    /// The class in words.
    pub text: String,
    /// How often.
    pub count: u64,
    /// Whether it fails its transaction.
    pub fails: bool,
}

/// The verdict so far: the one that the run would get if it ended now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveVerdict {
    /// The outcome and the limit, for example `INVALID (client)`.
    pub word: String,
    /// What it means.
    pub meaning: String,
    /// The reasons and warnings, the most severe first.
    pub findings: Vec<String>,
}

/// The live statistics of one side of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveStatistics {
    /// The version of the message, see [`FORMAT`].
    pub format: u32,
    /// The name of the host.
    pub host: String,
    /// The process id; for notifications, the port from which they come.
    pub pid: u32,
    /// Client or server.
    #[serde(with = "side_name")]
    pub side: Side,
    /// The label of the run.
    pub label: String,
    /// The name of the workload.
    pub workload: String,
    /// The version of the program; empty if it is not known.
    pub version: String,
    /// When the run started, in microseconds since 1970; 0 if it has not.
    pub start_unix_us: u64,
    /// Seconds since then.
    pub elapsed_s: f64,
    /// What the process does.
    pub state: LiveState,
    /// Why the run ended.
    pub end: Option<String>,
    /// The phase.
    pub phase: Option<LivePhase>,
    /// The planned rate of requests per second, if the workload has one.
    pub planned_rate: Option<f64>,
    /// What was counted since the message before.
    pub interval: LiveCounts,
    /// What was counted since the start.
    pub total: LiveCounts,
    /// The 95th percentile of response times since the message before, in microseconds.
    pub rptm_p95_us: Option<u64>,
    /// Open connections.
    pub open_connections: u64,
    /// Concurrent transactions.
    pub transactions: u64,
    /// Live robots or servers.
    pub agents: u64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// The most frequent errors since the start.
    pub errors: Vec<LiveError>,
    /// The verdict so far; `None` if too little is known.
    pub verdict: Option<LiveVerdict>,
}

/// Why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub enum LiveLineError {
    /// It is too long.
    #[error("a line of {0} bytes")]
    Length(usize),
    /// It is not the expected JSON.
    #[error("not live statistics: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version of this program.
    #[error(
        "live statistics of format {0}; this program reads format {FORMAT}: use the same version on all hosts"
    )]
    Format(u32),
}

impl LiveStatistics {
    /// The message as a line, with the line end.
    ///
    /// # Panics
    /// Never: all fields can be written as JSON.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("fields are strings, numbers and lists of them");
        line.push('\n');
        line
    }

    /// Reads a line. Control characters are left out of texts, because monitors show them on terminals.
    ///
    /// # Errors
    /// If the line is not a message of this version.
    pub fn read(line: &[u8]) -> Result<LiveStatistics, LiveLineError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        if line.len() > LONGEST_LINE {
            return Err(LiveLineError::Length(line.len()));
        }
        let Version { format } = serde_json::from_slice(line)?;
        if format != FORMAT {
            return Err(LiveLineError::Format(format));
        }
        let mut found: LiveStatistics = serde_json::from_slice(line)?;
        found.texts_mut().for_each(|text| text.retain(|c| !c.is_control()));
        Ok(found)
    }

    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let verdict = self
            .verdict
            .iter_mut()
            .flat_map(|verdict| verdict.findings.iter_mut().chain([&mut verdict.word, &mut verdict.meaning]));
        let errors = self.errors.iter_mut().flat_map(|error| [&mut error.number, &mut error.text]);
        let phase = self.phase.iter_mut().map(|phase| &mut phase.name);
        let own = [&mut self.host, &mut self.label, &mut self.workload, &mut self.version];
        own.into_iter().chain(self.end.iter_mut()).chain(phase).chain(errors).chain(verdict)
    }
}

/// A side as `client` or `server`.
mod side_name {
    use polygraph_stats::Side;
    use serde::de::{Deserialize as _, Error as _};
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(side: &Side, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(side.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Side, D::Error> {
        match String::deserialize(from)?.as_str() {
            "client" => Ok(Side::Client),
            "server" => Ok(Side::Server),
            other => Err(D::Error::custom(format!("`{other}` is neither client nor server"))),
        }
    }
}
