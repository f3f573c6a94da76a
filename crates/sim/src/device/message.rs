//! Reading messages from connections, and writing bodies to them.

use std::io::{self, IoSlice};

use polygraph_link::Conn;
use polygraph_traffic::Body;
use polygraph_wire::body::BodyReader;

use crate::conn::VirtualConn;

/// A connection and what came on it but is not used yet.
#[derive(Debug)]
pub struct Peer {
    /// The connection.
    pub conn: VirtualConn,
    inbox: Vec<u8>,
    used: usize,
}

impl Peer {
    /// A peer that has sent nothing yet.
    pub fn new(conn: VirtualConn) -> Peer {
        Peer { conn, inbox: Vec::new(), used: 0 }
    }

    /// What came and is not used yet.
    pub fn unread(&self) -> &[u8] {
        &self.inbox[self.used..]
    }

    /// Uses `n` bytes of it.
    pub fn consume(&mut self, n: usize) {
        self.used += n;
        if self.used >= self.inbox.len() {
            self.inbox.clear();
            self.used = 0;
        }
    }

    /// Waits for more; false if there will be none.
    ///
    /// # Errors
    /// As connections do.
    pub async fn fill(&mut self) -> io::Result<bool> {
        let piece = self.conn.take().await?;
        if piece.is_empty() {
            return Ok(false);
        }
        if self.inbox.is_empty() {
            self.inbox = piece;
        } else {
            self.inbox.drain(..self.used);
            self.used = 0;
            self.inbox.extend(piece);
        }
        Ok(true)
    }

    /// Reads a body to its end into `content`. False if it breaks off before.
    pub async fn body(&mut self, reader: &mut BodyReader, content: &mut Vec<u8>) -> bool {
        while !reader.is_done() {
            let Ok(fed) = reader.feed(self.unread(), |piece| content.extend_from_slice(piece)) else {
                return false;
            };
            let (consumed, done) = (fed.consumed, fed.done);
            self.consume(consumed);
            if done {
                break;
            }
            match self.fill().await {
                Ok(true) => {}
                Ok(false) => return reader.ends_at_close(),
                Err(_) => return false,
            }
        }
        true
    }

    /// Sends a head and a body behind it.
    ///
    /// # Errors
    /// As connections do.
    pub async fn send(&mut self, mut head: &[u8], mut body: Body) -> io::Result<()> {
        while !(head.is_empty() && body.is_empty()) {
            let mut slices = [IoSlice::new(&[]); 16];
            slices[0] = IoSlice::new(head);
            let used = 1 + body.slices(&mut slices[1..]);
            match self.conn.try_send(&slices[..used]) {
                Ok(n) => {
                    let of_head = n.min(head.len());
                    head = &head[of_head..];
                    body.advance((n - of_head) as u64);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.conn.writable().await?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
