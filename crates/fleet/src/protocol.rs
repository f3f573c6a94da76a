//! The messages between a controller and its agents, and the subjects that they travel on.
//!
//! A message is JSON: the number of the protocol, and the body. Decoding accepts any bytes; what it cannot use becomes an error
//! with a reason, never a panic. Requests carry all that an agent needs, and states are complete, so that a lost message costs
//! nothing but time.

use std::fmt;
use std::path::Path;

use polygraph_stats::Side;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::names::{AgentName, RelativePath, RunId};

/// The protocol of this program. Agents and controllers with another one refuse each other.
pub const PROTOCOL: u32 = 1;
/// No message is longer than this; servers of NATS have the same limit by default.
pub const LONGEST: usize = 1 << 20;

/// The subject on which all agents listen.
pub const ALL_AGENTS: &str = "polygraph.agents";
/// The subject of the states of all agents.
pub const ALL_STATES: &str = "polygraph.state.*";

/// The subject of the live statistics of all processes.
pub const ALL_LIVE: &str = "polygraph.live.*";

/// The subject on which an agent passes on the live statistics of its processes.
pub fn live_subject(name: &AgentName) -> String {
    format!("polygraph.live.{name}")
}

/// The subject of agents that are there for the first time.
pub const ALL_JOINED: &str = "polygraph.joined.*";
/// The subject on which monitors ask for the history of all processes.
pub const HISTORY: &str = "polygraph.history";

/// The subject on which an agent says that it is there, once after its start.
pub fn joined_subject(name: &AgentName) -> String {
    format!("polygraph.joined.{name}")
}

/// The subject on which one agent listens.
pub fn agent_subject(name: &AgentName) -> String {
    format!("polygraph.agent.{name}")
}

/// The subject on which an agent publishes its state.
pub fn state_subject(name: &AgentName) -> String {
    format!("polygraph.state.{name}")
}

/// The bucket of the object store for the files of a run.
pub fn bucket(run: &RunId) -> String {
    format!("polygraph-{run}")
}

/// What a controller asks of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AgentRequest {
    /// Describe yourself.
    Inventory,
    /// Read your clock.
    Clock,
    /// Which of these addresses can your processes use? Ranges as in workloads.
    Owns {
        /// Ranges of addresses without ports.
        addresses: Vec<String>,
    },
    /// Carry out the quick checks of the doctor.
    Doctor {
        /// Options that describe the planned load.
        words: Vec<String>,
    },
    /// Fetch the files of a run, and remember your part of it.
    Prepare(Box<Assignment>),
    /// Compile the workload of a prepared run, as its processes will.
    Check {
        /// The run, which was prepared.
        run: RunId,
    },
    /// Start one side of a prepared run.
    Start {
        /// The run, which was prepared.
        run: RunId,
        /// The side to start.
        side: Side,
        /// The start of its first phase, in nanoseconds since 1970.
        start_unix_ns: u64,
    },
    /// What do the processes of this run do?
    State {
        /// The run.
        run: RunId,
    },
    /// End your processes in order: those of one run, or all.
    Stop {
        /// The run; `None`: whichever there is.
        run: Option<RunId>,
    },
    /// Which files of a run have you for controllers?
    Files {
        /// The run.
        run: RunId,
    },
    /// Put a file of a run into the object store.
    Send {
        /// The run.
        run: RunId,
        /// The name of the file.
        name: RelativePath,
    },
    /// Which runs are there on your disk?
    Runs,
}

/// What an agent replies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// It was done.
    Done,
    /// It could not be done, for this reason.
    Refused(String),
    /// What the agent is.
    Inventory(Box<Inventory>),
    /// The agent's clock, in nanoseconds since 1970.
    Clock(u64),
    /// The addresses that its processes can use, as ranges.
    Owned(Vec<String>),
    /// What a command printed.
    Output {
        /// Its exit code; `None` if a signal ended it.
        code: Option<i32>,
        /// Standard output, and standard error behind it.
        text: String,
    },
    /// The state of a run.
    State(RunState),
    /// The files of a run for controllers.
    Files(Vec<StoredFile>),
    /// The runs on an agent's disk, the newest first.
    Runs(Vec<RunState>),
}

/// What an agent is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its name.
    pub name: AgentName,
    /// A number that tells two agents with the same name apart.
    pub instance: u64,
    /// Its host.
    pub host: String,
    /// The version of the program, with the formats on which processes must agree.
    pub version: String,
    /// Whether it runs robots.
    pub client: bool,
    /// Whether it runs servers.
    pub server: bool,
    /// Its strength compared to others.
    pub weight: f64,
    /// Number of processors that the program may use.
    pub cores: u32,
    /// Memory of the host in bytes.
    pub memory: u64,
    /// Free bytes on the disk for logs.
    pub disk_free: u64,
    /// The run that its processes carry out now.
    pub busy: Option<RunId>,
}

/// The part that an agent has in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The run.
    pub run: RunId,
    /// The files that its processes read. Each is in the bucket of the run, under its path.
    pub files: Vec<RelativePath>,
    /// The directory in which processes work, from which the other paths lead on.
    pub directory: RelativePath,
    /// The workload file.
    pub config: RelativePath,
    /// Directories with files that it includes.
    pub cfg_dirs: Vec<RelativePath>,
    /// Values that are set in the workload, by their names.
    pub settings: Vec<(String, String)>,
    /// Whether the workload may run commands.
    pub allow_exec: bool,
    /// The processes.
    pub sides: Vec<SideAssignment>,
}

impl Assignment {
    /// A path of the run, from the directory in which processes work. It is the same on all hosts, and so are the texts in which it
    /// occurs.
    pub fn as_seen_by_processes(&self, path: &RelativePath) -> String {
        let depth = Path::new(&self.directory.to_string()).components().count();
        let path = format!("{}{path}", "../".repeat(depth));
        if path.is_empty() { ".".to_owned() } else { path }
    }
}

/// One process of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideAssignment {
    /// Robots or servers.
    pub side: Side,
    /// The addresses of its agents, as ranges separated by commas.
    pub addresses: String,
    /// Further options of its command.
    pub words: Vec<String>,
}

/// What the processes of an agent do in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// The agent.
    pub agent: AgentName,
    /// The number of the agent's inventory, which changes when the agent is restarted.
    pub instance: u64,
    /// The run.
    pub run: RunId,
    /// Its processes.
    pub sides: Vec<SideState>,
}

/// What a process does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideState {
    /// Robots or servers.
    pub side: Side,
    /// How far it is.
    pub stage: ProcessStage,
    /// Number of lines that it has printed.
    pub lines: u64,
    /// The last of these lines.
    pub last_lines: Vec<String>,
    /// Bytes of its log.
    pub log_bytes: u64,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessStage {
    /// It has not been started.
    Prepared,
    /// It was started.
    Started,
    /// Its servers accept connections.
    Listening,
    /// It has ended, with this exit code; `None`: a signal ended it, or it ended while no agent was there to see it.
    Ended(Option<i32>),
}

/// The exit code of a process that was asked to stop.
pub const INTERRUPTED: i32 = polygraph_stats::exit_code::INTERRUPTED as i32;
/// The exit code of a process whose error goal was reached, or which could not go on.
pub const FAILED: i32 = polygraph_stats::exit_code::FAILED as i32;

impl ProcessStage {
    /// Whether the process has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, ProcessStage::Ended(_))
    }

    /// Whether the process runs.
    pub fn runs(self) -> bool {
        matches!(self, ProcessStage::Started | ProcessStage::Listening)
    }
}

impl fmt::Display for ProcessStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessStage::Prepared => f.pad("prepared"),
            ProcessStage::Started => f.pad("started"),
            ProcessStage::Listening => f.pad("listening"),
            ProcessStage::Ended(Some(code)) => f.pad(&format!("ended ({code})")),
            ProcessStage::Ended(None) => f.pad("ended"),
        }
    }
}

/// A file of a run that an agent has for controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Its name on the agent's disk.
    pub name: RelativePath,
    /// Its name in the bucket of the run, when it is sent.
    pub object: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Why a message cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is too long.
    #[error("a message of {0} bytes is too long: {LONGEST} is the limit")]
    TooLong(usize),
    /// It belongs to another version of the protocol.
    #[error(
        "the other side has fleet protocol {0}, and this program has {PROTOCOL}: install the same version on all hosts"
    )]
    Protocol(u32),
    /// It is no message of this protocol.
    #[error("not a message of the fleet: {0}")]
    Body(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    protocol: u32,
    body: &'a T,
}

/// What every version of the protocol has.
#[derive(Deserialize)]
struct Preamble {
    protocol: u32,
}

#[derive(Deserialize)]
struct Incoming<T> {
    body: T,
}

/// A message as bytes.
pub fn encode<T: Serialize>(body: &T) -> Vec<u8> {
    // Maps with keys that are not text, the only values that JSON cannot have, do not occur in messages.
    serde_json::to_vec(&Outgoing { protocol: PROTOCOL, body }).unwrap_or_default()
}

/// The message in these bytes.
///
/// # Errors
/// If the bytes are no message of this protocol.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    if bytes.len() > LONGEST {
        return Err(DecodeError::TooLong(bytes.len()));
    }
    let Preamble { protocol } = serde_json::from_slice(bytes)?;
    if protocol != PROTOCOL {
        return Err(DecodeError::Protocol(protocol));
    }
    Ok(serde_json::from_slice::<Incoming<T>>(bytes)?.body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_come_back() {
        let run: RunId = "r-1".parse().unwrap();
        let assignment = Assignment {
            run: run.clone(),
            files: vec!["a/b.pg".to_owned().try_into().unwrap()],
            directory: RelativePath::default(),
            config: "a/b.pg".to_owned().try_into().unwrap(),
            cfg_dirs: Vec::new(),
            settings: Vec::new(),
            allow_exec: false,
            sides: vec![SideAssignment {
                side: Side::Client,
                addresses: "127.0.0.1-9".to_owned(),
                words: vec!["--label".to_owned(), "x y".to_owned()],
            }],
        };
        assert_eq!(assignment.as_seen_by_processes(&assignment.config), "a/b.pg");
        assert_eq!(assignment.as_seen_by_processes(&RelativePath::default()), ".");
        let deeper = Assignment { directory: "x/y".to_owned().try_into().unwrap(), ..assignment.clone() };
        assert_eq!(deeper.as_seen_by_processes(&deeper.config), "../../a/b.pg");
        for request in [
            AgentRequest::Inventory,
            AgentRequest::Prepare(Box::new(assignment)),
            AgentRequest::Start { run: run.clone(), side: Side::Server, start_unix_ns: u64::MAX },
            AgentRequest::Stop { run: None },
        ] {
            assert_eq!(decode::<AgentRequest>(&encode(&request)).unwrap(), request);
        }
        let side = SideState {
            side: Side::Server,
            stage: ProcessStage::Ended(None),
            lines: 7,
            last_lines: vec!["listening".to_owned()],
            log_bytes: 1 << 40,
        };
        let state = RunState { agent: "a".parse().unwrap(), instance: u64::MAX, run, sides: vec![side] };
        let answer = Answer::State(state);
        assert_eq!(decode::<Answer>(&encode(&answer)).unwrap(), answer);
    }

    #[test]
    fn what_is_no_message_is_refused_with_a_reason() {
        let error = |bytes: &[u8]| decode::<AgentRequest>(bytes).unwrap_err().to_string();
        assert!(error(b"").contains("not a message of the fleet"));
        assert!(error(br#"{"protocol":2,"body":{"new":1}}"#).contains("has fleet protocol 2"));
        assert!(error(br#"{"protocol":1,"body":"dance"}"#).contains("unknown variant `dance`"));
        assert!(error(br#"{"protocol":1}"#).contains("missing field `body`"));
        let outside = br#"{"protocol":1,"body":{"state":{"run":"../x"}}}"#;
        assert!(error(outside).contains("is not the name of a run"), "{}", error(outside));
        assert!(error(&vec![b' '; LONGEST + 1]).contains("too long"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,200}") {
            let _ = decode::<AgentRequest>(&bytes);
            let _ = decode::<Answer>(&bytes);
            let _ = decode::<RunState>(format!("{{\"protocol\":1,\"body\":{text}}}").as_bytes());
        }
    }
}
