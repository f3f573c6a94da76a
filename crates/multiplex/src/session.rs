//! What the streams of a connection share with the task that drives it.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use polygraph_link::{Capture, Conn};

use crate::deadlines::Deadlines;
use crate::http2::connection::{Connection, Side};
use crate::settings::Http2Settings;

/// A connection, and what belongs to it.
#[derive(Debug)]
pub struct Http2Session {
    /// The state of the protocol.
    pub connection: RefCell<Connection>,
    /// The deadlines of the streams.
    pub deadlines: Deadlines,
    /// An empty capture for each stream, if the connection keeps captures.
    pub capture: Option<Capture>,
    /// Whether the connection stays open without streams.
    pub is_kept: Cell<bool>,
    driver: RefCell<Option<Waker>>,
    /// Whether the driver was woken since its last turn.
    is_woken: Cell<bool>,
}

impl Http2Session {
    /// The session of a connection that begins on `conn`.
    pub fn new(conn: &mut impl Conn, side: Side, settings: &Http2Settings) -> Http2Session {
        let mut capture = conn.take_capture();
        if let Some(capture) = &mut capture {
            capture.take();
        }
        Http2Session {
            connection: RefCell::new(Connection::new(side, settings)),
            deadlines: Deadlines::default(),
            capture,
            is_kept: Cell::new(true),
            driver: RefCell::default(),
            is_woken: Cell::new(false),
        }
    }

    /// A turn of the driver begins, which `waker` wakes.
    pub fn begin_turn(&self, waker: &Waker) {
        self.is_woken.set(false);
        let mut kept = self.driver.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }

    /// Wakes the driver.
    pub fn wake_driver(&self) {
        if !self.is_woken.replace(true)
            && let Some(driver) = &*self.driver.borrow()
        {
            driver.wake_by_ref();
        }
    }

    /// Wakes the driver if there is something to send.
    pub fn wake_to_send(&self) {
        if !self.is_woken.get() && !self.connection.borrow().unsent().is_empty() {
            self.wake_driver();
        }
    }
}
