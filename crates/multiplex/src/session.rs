//! What the streams of a connection share with the task that drives it.

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Poll, Waker};

use polygraph_link::{Capture, Conn, Nanos};

use crate::below::Below;
use crate::deadlines::Deadlines;
use crate::http2::connection::{Connection, Side};
use crate::relay::Relay;
use crate::settings::Http2Settings;

/// How many times a turn receives, so that streams can read in between.
const RECEIVES: usize = 16;

/// Once the only stream has so many bytes to read, it reads them before more is received.
const READ_SOON: usize = 16 * 1024;

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
    below: Box<dyn Below>,
    relay: Relay,
    /// Why the connection below failed for a stream, until the driver learns it.
    failure: RefCell<Option<io::Error>>,
    /// Whether the driver was woken since its last turn.
    is_woken: Cell<bool>,
}

impl Http2Session {
    /// The session of a connection that begins on `conn`.
    pub fn new(mut conn: impl Conn, side: Side, settings: &Http2Settings) -> Http2Session {
        let mut capture = conn.take_capture();
        if let Some(capture) = &mut capture {
            capture.take();
        }
        Http2Session {
            connection: RefCell::new(Connection::new(side, settings)),
            deadlines: Deadlines::default(),
            capture,
            is_kept: Cell::new(true),
            below: Box::new(RefCell::new(Some(conn))),
            relay: Relay::default(),
            failure: RefCell::default(),
            is_woken: Cell::new(false),
        }
    }

    /// A turn of the driver begins at this time, which `waker` wakes.
    pub fn begin_turn(&self, now: Nanos, waker: &Waker) {
        self.connection.borrow_mut().now = now;
        self.is_woken.set(false);
        self.relay.set_driver(waker);
    }

    /// Wakes the driver.
    pub fn wake_driver(&self) {
        if !self.is_woken.replace(true) {
            self.relay.wake_driver();
        }
    }

    /// Wakes the driver if there is something to send.
    pub fn wake_to_send(&self) {
        if !self.is_woken.get() && !self.connection.borrow().unsent().is_empty() {
            self.wake_driver();
        }
    }

    /// Receives what has arrived, as far as the answers to it have room. Returns whether some was left for want of room.
    ///
    /// # Errors
    /// If the connection below has failed.
    pub fn receive(&self) -> io::Result<bool> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.receive_until(|_| false),
        }
    }

    fn receive_until(&self, is_enough: impl Fn(&Connection) -> bool) -> io::Result<bool> {
        if !self.relay.take_news() {
            return Ok(false);
        }
        let mut cx = self.relay.context();
        for _ in 0..RECEIVES {
            let connection = self.connection.borrow();
            let (is_over, has_buffer) = (connection.end().is_some(), connection.has_buffer());
            if is_over || !has_buffer || is_enough(&connection) {
                self.relay.keep_news();
                return Ok(!is_over && !has_buffer);
            }
            drop(connection);
            let received = self.below.poll_recv(&mut cx, &mut |data| {
                let mut connection = self.connection.borrow_mut();
                match data {
                    [] => connection.receive_end(),
                    data => connection.receive(data),
                }
            });
            match received {
                Poll::Ready(result) => result?,
                Poll::Pending => return Ok(false),
            }
        }
        self.relay.wake();
        Ok(false)
    }

    /// Sends what the connection below takes. For the rest, the driver is woken.
    ///
    /// # Errors
    /// If the connection below has failed.
    pub fn send(&self) -> io::Result<()> {
        let mut connection = self.connection.borrow_mut();
        while !connection.unsent().is_empty() {
            match self.below.try_send(connection.unsent()) {
                Ok(size) => connection.note_sent(size),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    match self.below.poll_writable(&mut self.relay.context()) {
                        Poll::Ready(result) => result?,
                        Poll::Pending => {
                            self.relay.give_to_driver();
                            break;
                        }
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Ends what this side sends.
    pub fn finish(&self) {
        self.below.finish();
    }

    /// Drops the connection below.
    pub fn close(&self) {
        self.below.close();
    }
}

/// What a client's stream does itself as long as it is the only one, so that an exchange does not need a turn of the driver.
impl Http2Session {
    /// Whether there is one stream only.
    pub fn is_alone(&self) -> bool {
        self.deadlines.streams() == 1
    }

    /// Sends what the stream has to send.
    pub fn send_alone(&self) {
        let connection = self.connection.borrow();
        if connection.unsent().is_empty() || connection.end().is_some() {
            return;
        }
        drop(connection);
        if let Err(error) = self.send() {
            self.fail(error);
        }
    }

    /// Receives for the stream at `place` if it has nothing to read.
    pub fn receive_alone(&self, place: usize) {
        // What was read may have opened windows.
        self.send_alone();
        let mut connection = self.connection.borrow_mut();
        if !self.relay.has_news() || !connection.unsent().is_empty() || connection.end().is_some() {
            return;
        }
        // Whoever reads does not wake itself.
        let reader = connection.streams[place].reader.take();
        drop(connection);
        let received = self.receive_until(|connection| connection.streams[place].inbox.len() >= READ_SOON);
        let mut connection = self.connection.borrow_mut();
        connection.streams[place].reader = reader;
        let concerns_driver = connection.end().is_some() || connection.has_goaway();
        drop(connection);
        match received {
            Ok(_) => self.send_alone(),
            Err(error) => self.fail(error),
        }
        if concerns_driver {
            self.wake_driver();
        }
    }

    /// The stream waits for something to read, or has left something: `waker` wakes it.
    pub fn wait_alone(&self, waker: &Waker, is_pending: bool) {
        let has_news = self.relay.has_news();
        // The driver also receives while the connection below takes nothing.
        match self.connection.borrow().unsent().is_empty() {
            true if is_pending || has_news => return self.relay.give_to_reader(waker),
            false if has_news => self.wake_driver(),
            _ => {}
        }
        self.relay.give_to_driver();
    }

    /// The stream does something other than reading, or is not alone.
    pub fn stop_reading(&self) {
        self.relay.give_to_driver();
    }

    fn fail(&self, error: io::Error) {
        *self.failure.borrow_mut() = Some(error);
        self.wake_driver();
    }
}
