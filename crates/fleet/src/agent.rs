//! The agent: it waits on a host for the requests of controllers, and runs the processes of tests there.
//!
//! Processes do not depend on the agent. What they print goes to files, and they go on if the agent is killed or NATS is gone. An
//! agent that starts finds the processes that an earlier one left, and looks after them.
//!
//! * this file: options, the loop, and the end.
//! * `service`: what is done for each request.
//! * `inventory`: what the agent says about its host.
//! * `process`: one process of a run.
//! * `console`: what a process has printed.
//! * `live`: live statistics of processes, for monitors.
//! * `runs`: the runs on the disk of the agent.

mod console;
mod inventory;
mod live;
mod process;
mod runs;
mod service;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use polygraph_addr::AddrRange;
use tokio::task::LocalSet;

use crate::bus::{Bus, BusMessage, BusOptions};
use crate::error::{FleetError, Result};
use crate::names::{AgentName, RunId};
use crate::protocol::{ALL_AGENTS, HISTORY, agent_subject, encode, joined_subject, state_subject};

use self::runs::Runs;

pub use self::inventory::host_name;

/// How often processes are looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How often the state of a run is published, even if nothing changes.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long an answer waits for a connection.
const ANSWER: Duration = Duration::from_secs(10);
/// How long processes may take to end in order when the agent ends.
const END: Duration = Duration::from_secs(60);

/// What an agent is, and may do.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// How it connects to NATS.
    pub bus: BusOptions,
    /// Its name.
    pub name: AgentName,
    /// Whether it runs robots.
    pub client: bool,
    /// Whether it runs servers.
    pub server: bool,
    /// Its strength compared to others.
    pub weight: f64,
    /// The directory with the files of its runs.
    pub logs: PathBuf,
    /// Addresses that its processes can use, besides those that the host has now.
    pub addresses: Vec<AddrRange>,
    /// Whether workloads may run commands.
    pub allow_exec: bool,
    /// The directory in which processes of this user publish live statistics.
    pub live: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// The version of the program, with the formats on which processes must agree.
    pub version: String,
    /// Whether processes on this host can use an address.
    pub is_local: fn(IpAddr) -> bool,
}

/// What happens to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// It is connected to this, and ready for requests.
    Connected(String),
    /// The connection was lost. Processes go on.
    Disconnected,
    /// A process was started or has ended, or files were fetched or sent.
    Note(String),
}

/// Shows what happens.
pub type Tell = fn(AgentEvent);

/// The connection to NATS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    /// There was none yet.
    Awaited,
    Made,
    Lost,
}

/// An agent at work.
struct Agent {
    options: AgentOptions,
    bus: Bus,
    instance: u64,
    runs: RefCell<Runs>,
    /// The runs whose files are on their way.
    preparing: RefCell<BTreeSet<RunId>>,
    tell: Tell,
}

/// Serves requests until `stop` is ready, then ends all processes in order.
///
/// # Errors
/// If the directory for logs cannot be used, or NATS refuses the credentials.
pub async fn serve(options: AgentOptions, stop: Pin<Box<dyn Future<Output = ()>>>, tell: Tell) -> Result<()> {
    // The clock makes agents with the same name on different hosts differ, the process id those of one host.
    let instance = unix_ns() ^ (u64::from(std::process::id()) << 32);
    let runs = Runs::open(&options.logs, options.name.clone(), instance)?;
    let adopted = runs.active().len();
    if adopted > 0 {
        tell(AgentEvent::Note(format!("runs of an earlier agent that continue: {adopted}")));
    }
    let bus = Bus::connect(&options.bus, true).await?;
    let agent = Rc::new(Agent {
        options,
        bus,
        instance,
        runs: RefCell::new(runs),
        preparing: RefCell::default(),
        tell,
    });
    LocalSet::new().run_until(agent.serve(stop)).await
}

impl Agent {
    async fn serve(self: Rc<Self>, mut stop: Pin<Box<dyn Future<Output = ()>>>) -> Result<()> {
        let mut own = self.bus.subscribe(agent_subject(&self.options.name)).await?;
        let mut all = self.bus.subscribe(ALL_AGENTS.to_owned()).await?;
        let mut history = self.bus.subscribe(HISTORY.to_owned()).await?;
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heartbeat = Instant::now();
        let mut connection = Connection::Awaited;
        loop {
            let message = tokio::select! {
                message = own.next() => Some(message),
                message = all.next() => Some(message),
                Some(asked) = history.next() => {
                    if let Some(reply) = asked.reply {
                        self.send_history(&reply);
                    }
                    continue;
                }
                _ = look.tick() => None,
                () = &mut stop => break,
            };
            match message {
                Some(Some(message)) => drop(tokio::task::spawn_local(Rc::clone(&self).answer(message))),
                Some(None) if self.bus.ends_with_controller() => {
                    (self.tell)(AgentEvent::Disconnected);
                    return Ok(());
                }
                Some(None) => {
                    self.end().await;
                    return Err(FleetError::Nats("the connection was closed for good".to_owned()));
                }
                None => {
                    self.note_connection(&mut connection).await;
                    let is_due = heartbeat.elapsed() >= HEARTBEAT;
                    if is_due {
                        heartbeat = Instant::now();
                    }
                    self.look(is_due).await;
                    for process in self.runs.borrow_mut().new_publishers() {
                        drop(tokio::task::spawn_local(live::forward(Rc::clone(&self), process)));
                    }
                }
            }
        }
        self.end().await;
        Ok(())
    }

    async fn answer(self: Rc<Self>, message: BusMessage) {
        let answer = self.carry_out(&message.bytes).await;
        let Some(reply) = message.reply else { return };
        // Who asked may still wait when the connection is back.
        let begin = Instant::now();
        while !self.bus.is_connected() && begin.elapsed() < ANSWER {
            tokio::time::sleep(LOOK).await;
        }
        self.bus.publish(reply, None, encode(&answer)).await;
    }

    async fn note_connection(&self, connection: &mut Connection) {
        let now = if self.bus.is_connected() { Connection::Made } else { Connection::Lost };
        match (*connection, now) {
            (Connection::Awaited, Connection::Made) => {
                // Runs that go on without this agent should say so.
                let inventory = encode(&self.inventory());
                self.bus.publish(joined_subject(&self.options.name), None, inventory).await;
                (self.tell)(AgentEvent::Connected(self.bus.peer()));
            }
            (Connection::Lost, Connection::Made) => (self.tell)(AgentEvent::Connected(self.bus.peer())),
            (Connection::Made, Connection::Lost) => (self.tell)(AgentEvent::Disconnected),
            (Connection::Awaited, Connection::Lost) => return,
            _ => {}
        }
        *connection = now;
    }

    /// Sends what the processes here have published so far to a monitor.
    fn send_history(self: &Rc<Self>, reply: &str) {
        for process in self.runs.borrow().publishers() {
            drop(tokio::task::spawn_local(live::send_history(Rc::clone(self), process, reply.to_owned())));
        }
    }

    /// Looks after all processes, and publishes what has changed; with `all`, the states of all runs that controllers wait for.
    async fn look(&self, all: bool) {
        let changed = self.runs.borrow_mut().look();
        for text in &changed.events {
            (self.tell)(AgentEvent::Note(text.clone()));
        }
        let mut due: Vec<RunId> = if all { self.runs.borrow().awaited() } else { Vec::new() };
        due.extend(changed.runs.into_iter().filter(|run| !due.contains(run)).collect::<Vec<_>>());
        for run in due {
            self.publish_state(&run).await;
        }
    }

    async fn publish_state(&self, run: &RunId) {
        let state = self.runs.borrow().state(run);
        if let Some(state) = state {
            self.bus.publish(state_subject(&self.options.name), None, encode(&state)).await;
        }
    }

    /// Ends all processes in order.
    async fn end(&self) {
        let begin = Instant::now();
        self.runs.borrow_mut().stop(None);
        while !self.runs.borrow().active().is_empty() {
            if begin.elapsed() > END {
                self.runs.borrow_mut().kill();
            }
            tokio::time::sleep(LOOK).await;
            self.look(false).await;
        }
    }
}

/// The clock of this host in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
