//! A power failure of the device during a test: a thread kills the device and starts it again.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_device::RunningDevice;
use polygraph_stats::{Header, Record};
use serde_json::{Value, json};

/// A command for the thread.
enum PowerCommand {
    Kill,
    Restore,
}

/// The times of a power failure, in nanoseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct PowerFailureTimes {
    /// When the device was killed.
    pub killed: Option<u64>,
    /// When the device was restarted.
    pub restarted: Option<u64>,
    /// When the device listened again.
    pub listening: Option<u64>,
    /// Why the device did not restart.
    pub failure: Option<String>,
}

impl PowerFailureTimes {
    /// The part of the manifest about it.
    pub fn manifest(&self) -> Value {
        json!({
            "killed_unix_ns": self.killed,
            "restarted_unix_ns": self.restarted,
            "listening_unix_ns": self.listening,
            "failure": self.failure,
        })
    }
}

/// Switches a device off and on. A device that the thread has started ends with the thread, and the thread ends when this is
/// dropped: stop the device before.
#[derive(Debug)]
pub struct PowerFailure {
    /// Name of the phase in which the device is off.
    dark: String,
    commands: Option<Sender<PowerCommand>>,
    times: Arc<Mutex<PowerFailureTimes>>,
    thread: Option<JoinHandle<()>>,
}

impl PowerFailure {
    /// Switches `device` off at the start of the phase called `dark`, and on again at the start of the next phase.
    pub fn new(device: &Arc<Mutex<RunningDevice>>, dark: String) -> PowerFailure {
        let (commands, received) = channel();
        let times = Arc::<Mutex<PowerFailureTimes>>::default();
        let (device, noted) = (Arc::clone(device), Arc::clone(&times));
        let thread = std::thread::spawn(move || carry_out(&received, &device, &noted));
        PowerFailure { dark, commands: Some(commands), times, thread: Some(thread) }
    }

    /// Watches the records of a run for these phases.
    pub fn watch(&mut self, header: &Header, record: &Record) {
        let Record::PhaseBegin { phase, .. } = record else { return };
        let is_dark = |at: usize| header.phases.get(at).is_some_and(|plan| plan.name == self.dark);
        let phase = *phase as usize;
        let command = if is_dark(phase) {
            PowerCommand::Kill
        } else if phase > 0 && is_dark(phase - 1) {
            PowerCommand::Restore
        } else {
            return;
        };
        // Both sides log each phase; the thread carries out each command once.
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// The times so far.
    pub fn times(&self) -> PowerFailureTimes {
        lock(&self.times).clone()
    }
}

impl Drop for PowerFailure {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_out(
    received: &Receiver<PowerCommand>,
    device: &Mutex<RunningDevice>,
    times: &Mutex<PowerFailureTimes>,
) {
    while let Ok(command) = received.recv() {
        let done = lock(times).clone();
        match command {
            PowerCommand::Kill if done.killed.is_none() => {
                let mut device = lock(device);
                lock(times).killed = Some(time_of_day());
                device.kill();
            }
            PowerCommand::Restore if done.killed.is_some() && done.restarted.is_none() => {
                lock(times).restarted = Some(time_of_day());
                let resumed = lock(device).resume();
                let mut times = lock(times);
                match resumed {
                    Ok(()) => times.listening = Some(time_of_day()),
                    Err(e) => times.failure = Some(e.to_string()),
                }
            }
            PowerCommand::Kill | PowerCommand::Restore => {}
        }
    }
}

/// Locks a mutex even if a thread panicked while it held the lock, because the device must be stopped in any case.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn time_of_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
