//! The coordinator's end of a worker process: a thread that stands for its loops, so that nobody else has to know
//! where they live.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use polygraph_stats::Side;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::live_counters::LiveCounters;
use crate::loop_driver::{Delivery, Ready};
use crate::protocol::{Assignment, WorkerMessage, read_frame, write_frame};
use crate::timeline::{Decisions, Timeline};

/// The first status after the program's name that makes it a worker process: the program must then call
/// [`crate::process::work`] and nothing else.
pub const WORKER: &str = "worker";

/// Decisions reach the worker so much later than they are made, at most (nanoseconds): a small part of the notice
/// that loops are given.
const DELAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Where the relay meets the coordinator.
#[derive(Debug)]
pub struct RelayChannels {
    /// Which side the loops belong to.
    pub side: Side,
    /// What is decided.
    pub timeline: Arc<Timeline>,
    /// Counts of each loop.
    pub live_counters: Vec<Arc<LiveCounters>>,
    /// Full blocks of all loops go out here.
    pub filled: Sender<Delivery>,
    /// Told once, when all loops are there.
    pub ready: Sender<Ready>,
}

/// Starts this program once more as a worker process with an assignment. The thread ends when the
/// process has told everything.
///
/// Must be called on a thread that outlives the process: the kernel ends the process with its parent thread.
///
/// # Errors
/// If there can be no further process or thread.
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
            // Whoever waits for it waits in vain; if nobody does, nobody needs to know.
            let _ = ready.send(Err(io::Error::new(e.kind(), e.to_string())));
        }
        ended
    })
}

/// What a worker said last.
enum WorkerEnd {
    None,
    Done,
    Failed(String),
}

/// Relays until the worker has told everything or closes its end.
fn relay(
    assignment: &Assignment,
    mut to: ChildStdin,
    mut from: ChildStdout,
    ends: RelayChannels,
) -> io::Result<WorkerEnd> {
    write_frame(&mut to, assignment)?;
    let mut told = Decisions::default();
    loop {
        let decisions = ends.timeline.decisions();
        if decisions != told {
            write_frame(&mut to, &decisions)?;
            told = decisions;
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
            // The coordinator outlives its relays; if it is gone there is nobody left to tell.
            Some(WorkerMessage::Ready) => drop(ends.ready.send(Ok(()))),
            Some(WorkerMessage::Delivery(delivery)) => drop(ends.filled.send(*delivery)),
        }
    }
}

/// How the work of the process ended.
fn conclude(name: &str, relayed: io::Result<WorkerEnd>, mut child: Child) -> io::Result<()> {
    let broken = match relayed {
        Ok(WorkerEnd::Done) => {
            // It closes its connections, which nobody needs to wait for.
            std::thread::Builder::new().name("reaper".into()).spawn(move || child.wait())?;
            return Ok(());
        }
        Ok(WorkerEnd::Failed(why)) => Some(why),
        Ok(WorkerEnd::None) => None,
        // A pipe breaks when the process dies; how it died is the better explanation.
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
