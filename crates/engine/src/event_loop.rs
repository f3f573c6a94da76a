//! Event loops: on epoll, or on io_uring.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use polygraph_link::Nanos;
use polygraph_uring::{Clock, Ring, Tasks, Unavailable};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, LocalRuntime};

use crate::net::Net;
use crate::ports::Ports;
use crate::timers;

/// How event loops wait for sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    /// epoll(7): a system call for each step of a socket that is ready.
    Epoll,
    /// io_uring(7): one system call for all steps that are due.
    Uring,
}

impl Engine {
    /// The name in options, logs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Epoll => "epoll",
            Engine::Uring => "uring",
        }
    }

    /// The better one that this host allows: robots need less processor time on io_uring (`bench/RESULTS.md`).
    pub fn best() -> Engine {
        match polygraph_uring::refusal() {
            None => Engine::Uring,
            Some(_) => Engine::Epoll,
        }
    }

    /// The engines that this host allows.
    pub fn available() -> Vec<Engine> {
        let uring = polygraph_uring::refusal().is_none().then_some(Engine::Uring);
        [Engine::Epoll].into_iter().chain(uring).collect()
    }
}

/// The engine that the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The best that the host allows.
    #[default]
    Auto,
    /// This one.
    Only(Engine),
}

impl EngineChoice {
    /// The engine to use.
    ///
    /// # Errors
    /// If the host does not allow the only one that the user wants.
    pub fn resolve(self) -> Result<Engine, Unavailable> {
        match self {
            EngineChoice::Auto => Ok(Engine::best()),
            EngineChoice::Only(Engine::Epoll) => Ok(Engine::Epoll),
            EngineChoice::Only(Engine::Uring) => match polygraph_uring::refusal() {
                None => Ok(Engine::Uring),
                Some(refusal) => Err(refusal),
            },
        }
    }
}

impl FromStr for EngineChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<EngineChoice, String> {
        match text {
            "auto" => Ok(EngineChoice::Auto),
            "epoll" => Ok(EngineChoice::Only(Engine::Epoll)),
            "uring" => Ok(EngineChoice::Only(Engine::Uring)),
            _ => Err("expected auto, epoll or uring".to_owned()),
        }
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineChoice::Auto => "auto",
            EngineChoice::Only(engine) => engine.name(),
        })
    }
}

/// How long a completion may wait for others on a busy loop on io_uring: half of the default quantum of timers. Times of replies
/// are late by this much at most.
const LINGER: Duration = Duration::from_micros(50);

/// The event loop of a thread.
#[derive(Debug)]
pub struct EventLoop {
    net: Net,
    runner: Runner,
}

#[derive(Debug)]
enum Runner {
    Epoll(LocalRuntime),
    Uring(Ring, Tasks),
}

impl EventLoop {
    /// An event loop of the current thread. Its timers that are less than `quantum` apart share a wake-up.
    ///
    /// # Errors
    /// If the system does not provide what the engine needs.
    pub fn new(engine: Engine, quantum: Nanos, ports: Option<Ports>) -> io::Result<EventLoop> {
        match engine {
            Engine::Epoll => {
                let runtime = Builder::new_current_thread().enable_io().build_local(Default::default())?;
                let net = runtime.block_on(async { Net::on_epoll(quantum, ports) })?;
                Ok(EventLoop { net, runner: Runner::Epoll(runtime) })
            }
            Engine::Uring => {
                let (ring, tasks) = (Ring::new()?, Tasks::new()?);
                let net = Net::on_ring(quantum, ports, ring.clone(), tasks.clone());
                Ok(EventLoop { net, runner: Runner::Uring(ring, tasks) })
            }
        }
    }

    /// What the loop offers to the code that runs on it.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Runs `main`, and the tasks of the loop meanwhile. Tasks that have not ended then are dropped with their connections.
    ///
    /// # Errors
    /// If the loop breaks down.
    pub fn run<R: 'static>(self, main: impl Future<Output = R> + 'static) -> io::Result<R> {
        match self.runner {
            Runner::Epoll(runtime) => Ok(runtime.block_on(main)),
            Runner::Uring(ring, tasks) => {
                let timers = self.net.timers().clone();
                let fire = || {
                    let now = timers::now();
                    Clock { now_ns: now.as_u64(), next_ns: timers.fire(now).map(Nanos::as_u64) }
                };
                let result = polygraph_uring::run(&ring, &tasks, LINGER, fire, main);
                tasks.end();
                result
            }
        }
    }
}
