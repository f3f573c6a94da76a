//! The records of a log.

use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::error::ErrorKind;
use crate::stall::Stall;
use crate::xacts::Xact;

/// Which side of the device a process simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The process runs robots.
    Client,
    /// The process runs origin servers.
    Server,
}

impl Side {
    /// `client` or `server`.
    pub fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// First record of every log: the description of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The side of the device that the process simulates.
    pub side: Side,
    /// Version of the program.
    pub version: String,
    /// Label of the run, may be empty.
    pub label: String,
    /// Time of day at the start of the run, in nanoseconds since 1970; all other times count from it.
    pub start_unix_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Kernel, host name, processor count, descriptor limit and the like, for people.
    pub environment: Vec<(String, String)>,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The effective settings, including defaults.
    pub settings: Vec<(String, String)>,
    /// Name of the workload, for example `PolyMix-1`.
    pub workload: String,
    /// Number of event loops.
    pub loops: u32,
    /// The planned phases.
    pub phases: Vec<PlannedPhase>,
    /// Offered request rate in transactions per second; `None` for a closed loop, for servers, for robots with sessions, and
    /// where the load is adjusted while the test runs.
    pub offered_rate: Option<f64>,
    /// The hit ratio that the workload offers (0 to 1), if it is known.
    pub offered_dhr: Option<f64>,
    /// Limits of the robots of the process; empty for servers.
    pub limits: RobotLimits,
    /// Names of the kinds of content by number (0 foreign, 1 bodiless, 2 unknown, 3.. of the workload); empty if
    /// kinds are not distinguished. See [`Block::kinds`].
    pub contents: Vec<String>,
    /// The compiled workload: the texts of all its files, and the values set by options. Empty for tests that
    /// options describe.
    pub workload_text: String,
}

/// Names of entries of [`Header::settings`] that rules of the verdict look at.
pub mod settings {
    /// The number of servers: of a server process those that it runs, of a client those of its workload.
    pub const SERVERS: &str = "servers";
    /// The mark of the accounts that robots log in with: sides with the same mark know the same users and passwords.
    pub const ACCOUNTS: &str = "accounts mark";
    /// The mark of no accounts.
    pub const NO_ACCOUNTS: &str = "none";
}

/// Names of entries of [`Header::environment`] that rules of the verdict look at.
pub mod environment {
    /// Name of the host.
    pub const HOST: &str = "host";
    /// The quota of processor time of the control group, for people; only if there is one.
    pub const QUOTA: &str = "processor quota";
    /// Directory of the control group with that quota.
    pub const CONTROL_GROUP: &str = "control group";
}

impl Header {
    /// An entry of the settings.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// An entry of the environment.
    pub fn environment(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The header with distinct names of phases: the second `top` is `top-n2`.
    pub(crate) fn with_distinct_phases(mut self: Box<Self>) -> Header {
        let names: Vec<String> = self.phases.iter().map(|phase| phase.name.clone()).collect();
        for (index, phase) in self.phases.iter_mut().enumerate() {
            let before = names[..index].iter().filter(|name| **name == phase.name).count();
            if before > 0 {
                phase.name = format!("{}-n{}", phase.name, before + 1);
            }
        }
        *self
    }
}

/// The load that a phase plans, as a share of the full rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedLoad {
    /// At its start.
    pub beg: f64,
    /// At its end.
    pub end: f64,
    /// On average, if the phase has a planned duration.
    pub mean: f64,
}

impl PlannedLoad {
    /// The full rate from start to end.
    pub const FULL: PlannedLoad = PlannedLoad { beg: 1.0, end: 1.0, mean: 1.0 };

    /// Whether it does not change.
    pub fn is_steady(&self) -> bool {
        self.beg == self.end && self.beg == self.mean
    }
}

/// Limits of the robots of a process, which the servers' think times may exceed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RobotLimits {
    /// The number of connections that the process may have open; `None` if only the system limits it.
    pub open_connections: Option<u64>,
    /// The limits of each kind of robots.
    pub kinds: Vec<KindLimits>,
}

/// Limits of the robots of one kind in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindLimits {
    /// The number of robots.
    pub robots: u64,
    /// Requests per second of all of them at full load; `None` if they wait for replies.
    pub rate: Option<f64>,
    /// Seconds after which they give up a transaction; of a distribution, a value that few are above. `None` if they never give up.
    pub lifetime_s: Option<f64>,
    /// The number of connections that they may have open together; `None` if there is no limit.
    pub open_connections: Option<u64>,
}

/// The plan of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedPhase {
    /// Name, for example `meas`.
    pub name: String,
    /// Whether results are taken from this phase.
    pub primary: bool,
    /// Whether its statistics are part of the results of the whole run.
    pub log_stats: bool,
    /// Planned duration in seconds, if it has one.
    pub duration_s: Option<f64>,
    /// Planned number of transactions, if it has one.
    pub xactions: Option<u64>,
    /// Planned fill of the device's cache in bytes, if it has one.
    pub fill_bytes: Option<u64>,
    /// Errors that end the whole test: a share of all transactions if below 1, otherwise a number.
    pub errors: Option<f64>,
    /// Planned load.
    pub load: PlannedLoad,
}

/// The merged blocks of all loops for one interval. Intervals never cross phase boundaries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Index of the phase in [`Header::phases`].
    pub phase: u32,
    /// Start of the interval, in nanoseconds since the start of the run.
    pub begin_ns: u64,
    /// End of the interval, in nanoseconds since the start of the run.
    pub end_ns: u64,
    /// Processor time that the event loops used in the interval, in nanoseconds, summed over loops.
    pub cpu_ns: u64,
    /// Processor time of the busiest loop in nanoseconds.
    pub busiest_loop_ns: u64,
    /// Time for which the kernel stopped the process because its control group had used its quota of processor time up, in nanoseconds:
    /// the sum over processors divided by the number of event loops, but at most the length of the interval.
    pub throttled_ns: u64,
    /// Resident memory of the process in bytes at the end of the interval.
    pub rss_bytes: u64,
    /// Difference between the passage of time by the time-of-day clock and by the monotonic clock, in nanoseconds:
    /// large values mean that the clock was changed.
    pub clock_step_ns: i64,
    /// The statistics of the interval.
    pub block: Block,
}

impl Interval {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.begin_ns) as f64 * 1e-9
    }

    /// Combines this interval with the following one.
    pub fn append(&mut self, later: &Interval) {
        self.end_ns = later.end_ns;
        self.cpu_ns += later.cpu_ns;
        self.busiest_loop_ns += later.busiest_loop_ns;
        self.throttled_ns += later.throttled_ns;
        self.rss_bytes = self.rss_bytes.max(later.rss_bytes);
        self.clock_step_ns += later.clock_step_ns;
        self.block.concatenate(&later.block);
    }
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// All phases met their goals.
    Finished,
    /// Too many transactions failed: a negative goal was reached in the named phase.
    ErrorGoal {
        /// Name of the phase.
        phase: String,
    },
    /// The user or the system asked the process to stop.
    Interrupted,
    /// No traffic for the idle time-out.
    Idle,
    /// A process or an event loop could not continue.
    Fatal {
        /// The side it belongs to; `None` if every process is well, but the test cannot be run as it was started.
        side: Option<Side>,
        /// What happened, in one line.
        why: String,
    },
    /// The test would never end as it is planned.
    NoEnd(String),
}

impl EndReason {
    /// A problem of a process or event loop of `side`.
    pub fn fatal(side: Side, why: impl Into<String>) -> EndReason {
        EndReason::Fatal { side: Some(side), why: why.into() }
    }

    /// The exit code of a process that runs one side without the other, and so knows only how its run ended
    /// (docs/exit-codes.md).
    pub fn exit_code(&self) -> u8 {
        match self {
            EndReason::Finished | EndReason::Idle => exit_code::OK,
            EndReason::ErrorGoal { .. } | EndReason::Fatal { .. } | EndReason::NoEnd(_) => exit_code::FAILED,
            EndReason::Interrupted => exit_code::INTERRUPTED,
        }
    }
}

/// Exit codes that tell how a run ended (`docs/exit-codes.md` has all of them).
pub mod exit_code {
    /// The run succeeded.
    pub const OK: u8 = 0;
    /// The run failed or is not valid, its error goal was reached, or it could not go on.
    pub const FAILED: u8 = 1;
    /// The user stopped the run; its results so far are kept.
    pub const INTERRUPTED: u8 = 130;
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// The description of the run; always the first record.
    Header(Box<Header>),
    /// A phase began.
    PhaseBegin {
        /// Time in nanoseconds since the start of the run.
        at_ns: u64,
        /// Index in [`Header::phases`].
        phase: u32,
    },
    /// The statistics of an interval.
    Interval(Box<Interval>),
    /// A phase ended.
    PhaseEnd {
        /// Time in nanoseconds since the start of the run.
        at_ns: u64,
        /// Index in [`Header::phases`].
        phase: u32,
        /// Whether its goal was met; otherwise it was cut short.
        complete: bool,
    },
    /// A message for people.
    Comment {
        /// Time in nanoseconds since the start of the run.
        at_ns: u64,
        /// Lowest verbosity level at which the console shows it.
        level: u8,
        /// The message.
        text: String,
    },
    /// An example of an error.
    ErrorSample {
        /// Time in nanoseconds since the start of the run.
        at_ns: u64,
        /// Its class.
        kind: ErrorKind,
        /// What was found, in one line.
        detail: String,
        /// Facts of both sides by name; see [`crate::evidence::fact`].
        facts: Vec<(String, String)>,
    },
    /// Last record of a log that was closed.
    End {
        /// Time in nanoseconds since the start of the run.
        at_ns: u64,
        /// Why the run ended.
        reason: EndReason,
        /// Number of unfinished transactions.
        unfinished: u64,
    },
    /// Single transactions of a sample of the workload, in the order of their ends. A sample may come in several
    /// records.
    Xacts {
        /// Name of the sample.
        sample: String,
        /// The transactions.
        xacts: Vec<Xact>,
    },
    /// Event loops of the process did not run for a time.
    Stall(Stall),
}
