//! Requests for embedded objects that wait for a connection on which they can be pipelined.

use std::collections::VecDeque;

use crate::connections::hop::Hop;
use crate::request::Request;

/// Requests of one robot that wait to be pipelined.
#[derive(Debug, Default)]
pub struct Backlog(VecDeque<Request>);

impl Backlog {
    /// Adds a request.
    pub fn push(&mut self, request: Request) {
        self.0.push_back(request);
    }

    /// Takes the first request that goes to `hop`, if there is any.
    pub fn pop(&mut self, hop: Hop) -> Option<Request> {
        let at = self.0.iter().position(|request| request.hop == Some(hop))?;
        self.0.remove(at)
    }
}
