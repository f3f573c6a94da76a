//! Messages to the thread that publishes.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use polygraph_stats::{Header, Record};

/// A message.
pub(crate) enum Event {
    /// A side waits for traffic.
    Waiting(Box<Header>),
    /// A record of a side.
    Record(Arc<Header>, Box<Record>),
    /// Somebody reads the messages, and waits until this is dropped.
    Read(Sender<()>),
}
