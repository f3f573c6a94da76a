//! A worker process: runs loops for a coordinator in another process.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_stats::Window;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::channels::{Delivery, IntervalReport, LoopChannels, LoopEnd};
use crate::host::Host;
use crate::live_counters::Counts;
use crate::protocol::{Assignment, WorkerMessage, read_frame, write_frame};
use crate::setup::RunContext;
use crate::timeline::{Decisions, Timeline};
use crate::worker::{self, await_ready};
use crate::{limits, signals};

/// How often counters are sent to the coordinator.
const COUNTERS_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the assigned loops. The coordinator is at the other end of standard input and output. The process ends with
/// the run, is killed when its coordinator ends, and ignores signals from the terminal.
///
/// # Errors
/// If the coordinator is gone, or a loop could not start or failed. The coordinator receives the error if it is still
/// there.
pub fn work() -> io::Result<()> {
    signals::ignore_stop_signals();
    set_parent_process_death_signal(Some(Signal::KILL))?;
    limits::raise_descriptor_limit();
    // Frames bypass the buffers of the standard library: its standard output is line-buffered.
    let mut from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut to = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let Some(assignment) = read_frame::<Assignment>(&mut from)? else { return Ok(()) };
    let Err(e) = carry_out(assignment, from, &mut to);
    // If the message cannot be sent, the exit code tells the coordinator.
    let _ = write_frame(&mut to, &WorkerMessage::Failed(e.to_string()));
    Err(e)
}

fn carry_out(assignment: Assignment, from: File, to: &mut File) -> io::Result<Infallible> {
    let panicked = signals::watch_panics();
    let timeline = Arc::new(Timeline::new(&assignment.schedule));
    let context = RunContext {
        host: Host::Real,
        schedule: Arc::new(assignment.schedule),
        timeline: Arc::clone(&timeline),
        interval: assignment.interval,
        quantum: assignment.quantum,
        engine: assignment.engine,
    };
    let (deliveries, inbox) = channel();
    let (ready, all_ready) = channel();
    let mut ends: Vec<(usize, LoopEnd)> = Vec::new();
    let mut threads: Vec<JoinHandle<io::Result<()>>> = Vec::new();
    for (index, spec) in assignment.loops {
        let (channels, end) = LoopChannels::open(index, &deliveries, &ready);
        ends.push((index, end));
        threads.push(worker::start(spec, context.clone(), channels)?);
    }
    drop(deliveries);
    await_ready(&all_ready, &threads)?;
    write_frame(to, &WorkerMessage::Ready)?;
    let followed = Arc::clone(&timeline);
    std::thread::Builder::new().name("decisions".into()).spawn(move || follow_decisions(from, &followed))?;

    let all_counts = || -> Vec<Counts> { ends.iter().map(|(_, end)| end.live.counts()).collect() };
    let mut sent = Vec::new();
    loop {
        let counts = all_counts();
        if counts != sent {
            write_frame(to, &WorkerMessage::Counts(counts.clone()))?;
            sent = counts;
        }
        if timeline.deltas_wanted() {
            let delta: Vec<Window> = ends.iter().map(|(_, end)| end.live.take_delta()).collect();
            if delta.iter().any(|delta| delta.seconds() > 0.0) {
                write_frame(to, &WorkerMessage::Deltas(delta))?;
            }
        }
        let received = inbox.recv_timeout(COUNTERS_INTERVAL);
        if panicked.is_set() {
            return Err(io::Error::other("a panic, see the message on standard error"));
        }
        match received {
            Ok(delivery) => {
                let report = WorkerMessage::Delivery(Box::new(delivery));
                write_frame(to, &report)?;
                if let WorkerMessage::Delivery(delivery) = report
                    && let Delivery::Interval(interval_report) = *delivery
                {
                    give_back(interval_report, &ends);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // All loops have delivered their last statistics and dropped their senders.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // A thread that has ended normally returns no error, one that panicked does.
        if let Some(at) = threads.iter().position(JoinHandle::is_finished) {
            worker::join(threads.swap_remove(at))?;
        }
    }
    write_frame(to, &WorkerMessage::Counts(all_counts()))?;
    write_frame(to, &WorkerMessage::Done)?;
    // Closing thousands of connections takes time, and the system does it as well.
    std::process::exit(0);
}

/// Returns a used statistics block to its loop.
fn give_back(interval_report: IntervalReport, ends: &[(usize, LoopEnd)]) {
    let IntervalReport { index, block, .. } = interval_report;
    if let Some((_, end)) = ends.iter().find(|(of, _)| *of == index) {
        // A loop that has ended does not need the block.
        let _ = end.recycle.send(block);
    }
}

/// Adopts the decisions of the coordinator, and ends the process when the coordinator is gone.
fn follow_decisions(mut from: impl Read, timeline: &Timeline) {
    while let Ok(Some(decisions)) = read_frame::<Decisions>(&mut from) {
        timeline.adopt(&decisions);
    }
    std::process::exit(1);
}
