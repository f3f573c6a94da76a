//! Where messages meet those who read them: keeps the history of a process, and passes on what comes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::statistics::LiveStatistics;

/// Messages in the history of a side. When there are so many, every other one of the older half goes, so that the
/// history reaches back to the start of the run, with fewer messages for earlier times.
const MOST_LINES: usize = 3600;
/// Messages that may wait for a reader. One that falls further behind is disconnected, so that it costs no memory.
const BACKLOG: usize = 256;
/// The most readers at a time.
const MOST_READERS: usize = 64;

/// The messages of a process.
#[derive(Debug, Default)]
pub struct Hub(Mutex<HubState>);

#[derive(Debug, Default)]
struct HubState {
    histories: BTreeMap<&'static str, VecDeque<Arc<str>>>,
    latest: BTreeMap<&'static str, LiveStatistics>,
    readers: Vec<SyncSender<Arc<str>>>,
}

/// What a reader gets: all lines so far, then those that come.
#[derive(Debug)]
pub struct HubReader {
    /// The lines of the history, side by side.
    pub history: Vec<Arc<str>>,
    /// Later lines. The channel ends with the process, or if the reader is too slow.
    pub lines: Receiver<Arc<str>>,
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a message to all readers.
    pub fn publish(&self, statistics: &LiveStatistics) {
        let line: Arc<str> = statistics.line().into();
        let mut state = self.state();
        let side = statistics.side.name();
        state.latest.insert(side, statistics.clone());
        let history = state.histories.entry(side).or_default();
        history.push_back(Arc::clone(&line));
        if history.len() > MOST_LINES {
            thin(history);
        }
        state.readers.retain(|reader| match reader.try_send(Arc::clone(&line)) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        });
    }

    /// A new reader; `None` if there are too many.
    pub fn subscribe(&self) -> Option<HubReader> {
        let mut state = self.state();
        if state.readers.len() >= MOST_READERS {
            return None;
        }
        let (to_reader, lines) = sync_channel(BACKLOG);
        state.readers.push(to_reader);
        Some(HubReader { history: state.histories.values().flatten().cloned().collect(), lines })
    }

    /// The last message of each side.
    pub fn latest(&self) -> Vec<LiveStatistics> {
        self.state().latest.values().cloned().collect()
    }

    /// Ends the channels of all readers.
    pub fn close(&self) {
        self.state().readers.clear();
    }
}

/// Removes every other line of the older half.
fn thin(history: &mut VecDeque<Arc<str>>) {
    let half = history.len() / 2;
    let mut at = 0;
    history.retain(|_| {
        at += 1;
        at > half || at % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_histories_reach_back_to_the_start() {
        let mut history: VecDeque<Arc<str>> = VecDeque::new();
        for number in 0..50_000 {
            history.push_back(number.to_string().into());
            if history.len() > MOST_LINES {
                thin(&mut history);
            }
        }
        assert!(history.len() <= MOST_LINES && history.len() > MOST_LINES / 2, "{}", history.len());
        let numbers: Vec<u32> = history.iter().map(|line| line.parse().unwrap()).collect();
        assert_eq!((numbers[0], numbers[numbers.len() - 1]), (0, 49_999));
        let gaps: Vec<u32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (1..20_000).contains(gap)));
        assert_eq!(gaps[gaps.len() - 1000..], [1; 1000], "recent times are complete");
    }
}
