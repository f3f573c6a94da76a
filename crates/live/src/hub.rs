//! Where messages meet those who read them: keeps the history of a process, and passes on what comes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::Event;
use crate::statistics::LiveStatistics;

/// Messages in the history of a side. When there are more, at least half of the older half goes: the history reaches back to
/// the start of the run, at even but longer distances for earlier times.
const MOST_LINES: usize = 3600;
/// Messages that may wait for a reader. One that falls further behind is disconnected, so that it costs no memory.
const BACKLOG: usize = 256;
/// The most readers at a time.
const MOST_READERS: usize = 64;

/// The messages of a process.
#[derive(Debug, Default)]
pub struct Hub {
    state: Mutex<HubState>,
    /// The thread that wants to know of the first reader, until there is one.
    unread: Mutex<Option<Sender<Event>>>,
}

#[derive(Debug, Default)]
struct HubState {
    histories: BTreeMap<&'static str, History>,
    latest: BTreeMap<&'static str, LiveStatistics>,
    readers: Vec<SyncSender<Arc<str>>>,
    /// Whether nothing more comes.
    closed: bool,
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
    /// A hub that tells this thread of its first reader.
    pub(crate) fn of(thread: Sender<Event>) -> Hub {
        Hub { unread: Mutex::new(Some(thread)), ..Hub::default() }
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readers that come from now on find what is there.
    pub(crate) fn forget_thread(&self) {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Before the first reader gets anything, the thread adds what it does only for readers.
    fn be_read(&self) {
        let thread = self.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let (ready, is_ready) = channel();
        if thread.send(Event::Read(ready)).is_ok() {
            // The thread drops its end when it is ready, or when it ends.
            let _ = is_ready.recv();
        }
    }

    /// Passes a message to all readers.
    pub fn publish(&self, statistics: &LiveStatistics) {
        let line: Arc<str> = statistics.line().into();
        let mut state = self.state();
        let side = statistics.side.name();
        state.latest.insert(side, statistics.clone());
        let history = state.histories.entry(side).or_default();
        history.push(Arc::clone(&line));
        state.readers.retain(|reader| match reader.try_send(Arc::clone(&line)) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        });
    }

    /// Puts a message in the place of the last one of its side.
    pub(crate) fn amend(&self, statistics: &LiveStatistics) {
        let mut state = self.state();
        let side = statistics.side.name();
        if let Some((_, line)) = state.histories.get_mut(side).and_then(|history| history.lines.back_mut()) {
            *line = statistics.line().into();
            state.latest.insert(side, statistics.clone());
        }
    }

    /// A new reader; `None` if there are too many. After the end, it gets the history only.
    pub fn subscribe(&self) -> Option<HubReader> {
        self.be_read();
        let mut state = self.state();
        if state.readers.len() >= MOST_READERS {
            return None;
        }
        let (to_reader, lines) = sync_channel(BACKLOG);
        if !state.closed {
            state.readers.push(to_reader);
        }
        Some(HubReader {
            history: state.histories.values().flat_map(History::lines).cloned().collect(),
            lines,
        })
    }

    /// The last message of each side.
    pub fn latest(&self) -> Vec<LiveStatistics> {
        self.be_read();
        self.state().latest.values().cloned().collect()
    }

    /// Ends the channels of all readers.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.readers.clear();
    }
}

/// The lines of a side, each with its number from the start of the run.
#[derive(Debug, Default)]
struct History {
    lines: VecDeque<(u64, Arc<str>)>,
    next: u64,
}

impl History {
    fn push(&mut self, line: Arc<str>) {
        self.lines.push_back((self.next, line));
        self.next += 1;
        if self.lines.len() > MOST_LINES {
            self.thin();
        }
    }

    fn lines(&self) -> impl Iterator<Item = &Arc<str>> {
        self.lines.iter().map(|(_, line)| line)
    }

    /// Removes at least half of the older half. Of that half, only lines whose number is a multiple of a power of two stay: the
    /// next time finds what it wants to keep.
    fn thin(&mut self) {
        let half = self.lines.len() / 2;
        let recent = self.lines[half].0;
        let step = (2 * recent.div_ceil(half as u64)).next_power_of_two();
        self.lines.retain(|(number, _)| *number >= recent || number % step == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_attaches_after_the_end_does_not_wait() {
        let hub = Hub::default();
        hub.close();
        assert_eq!(hub.subscribe().map(|reader| reader.lines.recv().is_err()), Some(true));
    }

    #[test]
    fn long_histories_reach_back_to_the_start() {
        let mut history = History::default();
        for number in 0..50_000 {
            history.push(number.to_string().into());
        }
        let numbers: Vec<u32> = history.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.len() <= MOST_LINES && numbers.len() > MOST_LINES / 2, "{}", numbers.len());
        assert_eq!((numbers[0], numbers[numbers.len() - 1]), (0, 49_999));
        let gaps: Vec<u32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // 1,800 lines at even distances would be 28 apart.
        assert!(gaps.iter().all(|gap| (1..=64).contains(gap)), "{gaps:?}");
        assert_eq!(gaps[gaps.len() - 1000..], [1; 1000], "recent times are complete");
    }
}
