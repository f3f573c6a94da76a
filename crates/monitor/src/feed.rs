//! Brings the messages of all sources together: attaches to processes, notices new ones, and attaches again.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use polygraph_live::LiveStatistics;
use polygraph_live::subscription::{LiveSource, Subscription, local_sources};

use crate::watched::ProcessKey;

/// How often directories are read and lost sources tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Messages that may wait for the view; sources wait after that.
const BACKLOG: usize = 4096;

/// What a feed brings.
#[derive(Debug)]
pub enum FeedEvent {
    /// A message.
    Statistics(Box<LiveStatistics>),
    /// The connection to these processes has ended.
    Lost(Vec<ProcessKey>),
    /// A source cannot be used, in words.
    Problem(String),
    /// A source can be used now.
    Attached(LiveSource),
}

/// Where a feed looks for processes.
#[derive(Clone, Debug, Default)]
pub struct FeedSources {
    /// Directories with the sockets of processes on this host.
    pub directories: Vec<PathBuf>,
    /// Other sources.
    pub sources: Vec<LiveSource>,
}

/// Messages of all sources.
#[derive(Debug)]
pub struct Feed {
    /// The events, which never end.
    pub events: Receiver<FeedEvent>,
    to_view: SyncSender<FeedEvent>,
}

impl Feed {
    /// Starts threads that read the sources, until the feed is dropped.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(sources: FeedSources) -> std::io::Result<Feed> {
        let (to_view, events) = sync_channel(BACKLOG);
        for source in sources.sources {
            let to_view = to_view.clone();
            thread::Builder::new().name("source".into()).spawn(move || keep_following(&source, &to_view))?;
        }
        let own = to_view.clone();
        let attached = Arc::<Mutex<BTreeSet<LiveSource>>>::default();
        thread::Builder::new().name("discovery".into()).spawn(move || {
            while discover(&sources.directories, &attached, &to_view).is_continue() {
                thread::sleep(RETRY);
            }
        })?;
        Ok(Feed { events, to_view: own })
    }

    /// Where others add events. Sending fails when the feed is gone.
    pub fn sender(&self) -> SyncSender<FeedEvent> {
        self.to_view.clone()
    }
}

/// Follows a source again and again.
fn keep_following(source: &LiveSource, to_view: &SyncSender<FeedEvent>) {
    let mut problem = None;
    loop {
        let found = follow(source, to_view).err().map(|e| format!("{source}: {e}"));
        if found != problem
            && let Some(text) = &found
            && to_view.send(FeedEvent::Problem(text.clone())).is_err()
        {
            return;
        }
        // A view that is gone is noticed by an event that nobody needs.
        if to_view.send(FeedEvent::Lost(Vec::new())).is_err() {
            return;
        }
        problem = found;
        thread::sleep(RETRY);
    }
}

/// Attaches to the processes in the directories that are new. Breaks if the view is gone.
fn discover(
    directories: &[PathBuf],
    attached: &Arc<Mutex<BTreeSet<LiveSource>>>,
    to_view: &SyncSender<FeedEvent>,
) -> ControlFlow<()> {
    for source in directories.iter().flat_map(|directory| local_sources(directory)) {
        if !attached.lock().unwrap_or_else(PoisonError::into_inner).insert(source.clone()) {
            continue;
        }
        let (of_thread, to_thread) = (Arc::clone(attached), to_view.clone());
        let work = move || {
            // Sockets of processes that died, or of other users, are no news.
            let ended = follow(&source, &to_thread);
            let is_foreign = ended.as_ref().is_err_and(|e| e.kind() == ErrorKind::InvalidData);
            if let Err(e) = ended
                && is_foreign
            {
                let _ = to_thread.send(FeedEvent::Problem(format!("{source}: {e}")));
                // It would not get better.
                return;
            }
            of_thread.lock().unwrap_or_else(PoisonError::into_inner).remove(&source);
        };
        if thread::Builder::new().name("source".into()).spawn(work).is_err() {
            let _ = to_view.send(FeedEvent::Problem("no more threads".into()));
        }
    }
    match to_view.send(FeedEvent::Lost(Vec::new())) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// Reads a source to its end.
fn follow(source: &LiveSource, to_view: &SyncSender<FeedEvent>) -> std::io::Result<()> {
    let subscription = Subscription::attach(source)?;
    let _ = to_view.send(FeedEvent::Attached(source.clone()));
    let mut keys = BTreeSet::new();
    let ended = subscription.follow(|message| {
        keys.insert(ProcessKey::of(&message));
        match to_view.send(FeedEvent::Statistics(Box::new(message))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    let _ = to_view.send(FeedEvent::Lost(keys.into_iter().collect()));
    ended
}
