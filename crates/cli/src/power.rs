//! A power failure of the device in the middle of a test: a thread that kills it and starts it again.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_device::RunningDevice;
use polygraph_stats::{Header, Record};
use serde_json::{Value, json};

/// What to do next.
enum Order {
    Kill,
    Restore,
}

/// When what was done, as times of day in nanoseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// The device was killed.
    pub killed: Option<u64>,
    /// It was started again.
    pub restarted: Option<u64>,
    /// It listened again.
    pub listening: Option<u64>,
    /// Why it did not.
    pub failure: Option<String>,
}

impl Moments {
    /// For the manifest.
    pub fn manifest(&self) -> Value {
        json!({
            "killed_unix_ns": self.killed,
            "restarted_unix_ns": self.restarted,
            "listening_unix_ns": self.listening,
            "failure": self.failure,
        })
    }
}

/// The power of a device. The thread lives until this is dropped, and the device, which it has started, no longer:
/// stop the device before.
#[derive(Debug)]
pub struct Power {
    /// Name of the phase in which the device is off.
    dark: String,
    orders: Option<Sender<Order>>,
    moments: Arc<Mutex<Moments>>,
    thread: Option<JoinHandle<()>>,
}

impl Power {
    /// Will switch `device` off when the phase called `dark` begins, and on again when the next one does.
    pub fn new(device: &Arc<Mutex<RunningDevice>>, dark: String) -> Power {
        let (orders, inbox) = channel();
        let moments = Arc::<Mutex<Moments>>::default();
        let (device, noted) = (Arc::clone(device), Arc::clone(&moments));
        let thread = std::thread::spawn(move || obey(&inbox, &device, &noted));
        Power { dark, orders: Some(orders), moments, thread: Some(thread) }
    }

    /// Looks for the phase in the records of a run.
    pub fn watch(&mut self, header: &Header, record: &Record) {
        let Record::PhaseBegin { phase, .. } = record else { return };
        let is_dark = |at: usize| header.phases.get(at).is_some_and(|plan| plan.name == self.dark);
        let phase = *phase as usize;
        let order = if is_dark(phase) {
            Order::Kill
        } else if phase > 0 && is_dark(phase - 1) {
            Order::Restore
        } else {
            return;
        };
        // Both sides tell of each phase; the thread does everything once.
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// What was done so far.
    pub fn moments(&self) -> Moments {
        lock(&self.moments).clone()
    }
}

impl Drop for Power {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn obey(inbox: &Receiver<Order>, device: &Mutex<RunningDevice>, moments: &Mutex<Moments>) {
    while let Ok(order) = inbox.recv() {
        let done = lock(moments).clone();
        match order {
            Order::Kill if done.killed.is_none() => {
                let mut device = lock(device);
                lock(moments).killed = Some(time_of_day());
                device.kill();
            }
            Order::Restore if done.killed.is_some() && done.restarted.is_none() => {
                lock(moments).restarted = Some(time_of_day());
                let resumed = lock(device).resume();
                let mut moments = lock(moments);
                match resumed {
                    Ok(()) => moments.listening = Some(time_of_day()),
                    Err(e) => moments.failure = Some(e.to_string()),
                }
            }
            Order::Kill | Order::Restore => {}
        }
    }
}

/// What a thread that panicked has left is still the device.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn time_of_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
