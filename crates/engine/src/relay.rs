//! The coordinator's end of a worker process: a thread that represents the loops of the worker, so that no other code
//! depends on where loops run.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use polygraph_stats::Side;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::channels::{Delivery, Ready};
use crate::live_counters::LiveCounters;
use crate::protocol::{Assignment, WorkerMessage, read_frame, write_frame};
use crate::timeline::{Decisions, Timeline};

/// The first argument that makes this program a worker process. The program must then call [`crate::process::work`]
/// and nothing else.
pub const WORKER: &str = "worker";

/// The longest delay, in nanoseconds, before a decision reaches the worker: a small part of the notice that loops
/// get.
const DELAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The channels between a relay and the coordinator.
#[derive(Debug)]
pub struct RelayChannels {
    /// The side of the loops.
    pub side: Side,
    /// The decisions to send.
    pub timeline: Arc<Timeline>,
    /// The counters of each loop.
    pub live_counters: Vec<Arc<LiveCounters>>,
    /// The channel for deliveries of all loops.
    pub deliveries: Sender<Delivery>,
    /// The channel for the one message that all loops are ready.
    pub ready: Sender<Ready>,
}

/// Starts this program again as a worker process with an assignment. The thread ends when the process has sent
/// everything.
///
/// This function must be called on a thread that outlives the process, because the kernel kills the process when its
/// parent thread ends.
///
/// # Errors
/// If the system cannot start another process or thread.
pub fn start(assignment: Assignment, ends: RelayChannels) -> io::Result<JoinHandle<io::Result<()>>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(WORKER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("a worker process without pipes"));
    };
    std::thread::Builder::new().name(format!("relay-{}", child.id())).spawn(move || {
        let name = format!("worker process {} of the {}", child.id(), ends.side.name());
        let ready = ends.ready.clone();
        let relayed = relay(&assignment, to, from, ends);
        let ended = conclude(&name, relayed, child);
        if let Err(e) = &ended {
            // Tells the coordinator if it is still waiting for the start.
            let _ = ready.send(Err(io::Error::new(e.kind(), e.to_string())));
        }
        ended
    })
}

/// How a worker ended.
enum WorkerEnd {
    None,
    Done,
    Failed(String),
}

/// Relays until the worker has sent everything or closes its output.
fn relay(
    assignment: &Assignment,
    mut to: ChildStdin,
    mut from: ChildStdout,
    ends: RelayChannels,
) -> io::Result<WorkerEnd> {
    write_frame(&mut to, assignment)?;
    let mut sent = Decisions::default();
    loop {
        let decisions = ends.timeline.decisions();
        if decisions != sent {
            write_frame(&mut to, &decisions)?;
            sent = decisions;
        }
        let mut readable = [PollFd::new(&from, PollFlags::IN)];
        match poll(&mut readable, Some(&DELAY)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        match read_frame(&mut from)? {
            None => return Ok(WorkerEnd::None),
            Some(WorkerMessage::Done) => return Ok(WorkerEnd::Done),
            Some(WorkerMessage::Failed(why)) => return Ok(WorkerEnd::Failed(why)),
            Some(WorkerMessage::Counts(counts)) => {
                ends.live_counters.iter().zip(counts).for_each(|(live, counts)| live.publish(counts));
            }
            Some(WorkerMessage::Deltas(delta)) => {
                ends.live_counters.iter().zip(delta).for_each(|(live, delta)| live.add_delta(&delta));
            }
            // The coordinator outlives its relays. If it is gone, nobody needs the message.
            Some(WorkerMessage::Ready) => drop(ends.ready.send(Ok(()))),
            Some(WorkerMessage::Delivery(delivery)) => drop(ends.deliveries.send(*delivery)),
        }
    }
}

/// Waits for the process and returns its error.
fn conclude(name: &str, relayed: io::Result<WorkerEnd>, mut child: Child) -> io::Result<()> {
    let broken = match relayed {
        Ok(WorkerEnd::Done) => {
            // The process is still closing connections, and nobody needs to wait for that.
            std::thread::Builder::new().name("reaper".into()).spawn(move || child.wait())?;
            return Ok(());
        }
        Ok(WorkerEnd::Failed(why)) => Some(why),
        Ok(WorkerEnd::None) => None,
        // A broken pipe means that the process has died; its exit status is the better explanation.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe || e.kind() == io::ErrorKind::UnexpectedEof => None,
        Err(e) => {
            child.kill()?;
            Some(e.to_string())
        }
    };
    let status = child.wait()?;
    let how = broken.map_or_else(|| format!(" {}", death(status)), |why| format!(": {why}"));
    Err(io::Error::other(format!("{name}{how}")))
}

fn death(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
