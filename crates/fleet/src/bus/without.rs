//! The bus of a program that was built without the client of NATS: there is none.

use std::path::Path;

use super::{BusMessage, BusOptions};
use crate::error::{FleetError, Result};

/// A connection, which does not exist.
#[derive(Clone, Debug)]
pub enum Bus {}

/// Messages of a subject, which do not exist.
#[derive(Debug)]
pub enum Inbox {}

#[allow(clippy::unused_async, reason = "the functions are those of the bus that exists")]
impl Bus {
    /// Explains how to get a program with fleets.
    ///
    /// # Errors
    /// Always.
    pub async fn connect(_options: &BusOptions, _patient: bool) -> Result<Bus> {
        Err(FleetError::NotBuilt)
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        match *self {}
    }

    /// The server that this process is connected to.
    pub fn server(&self) -> String {
        match *self {}
    }

    /// A new subject for answers.
    pub fn new_inbox(&self) -> String {
        match *self {}
    }

    /// Publishes a message.
    pub async fn publish(&self, _subject: String, _reply: Option<String>, _bytes: Vec<u8>) {
        match *self {}
    }

    /// Receives the messages of a subject.
    ///
    /// # Errors
    /// If the server refuses that.
    pub async fn subscribe(&self, _subject: String) -> Result<Inbox> {
        match *self {}
    }

    /// Makes a bucket for files, unless it exists.
    ///
    /// # Errors
    /// If the server refuses that.
    pub async fn make_bucket(&self, _bucket: &str) -> Result<()> {
        match *self {}
    }

    /// Removes a bucket with all files.
    pub async fn remove_bucket(&self, _bucket: &str) {
        match *self {}
    }

    /// Stores a file, and returns its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or the server refuses it.
    pub async fn put_file(&self, _bucket: &str, _object: &str, _path: &Path) -> Result<u64> {
        match *self {}
    }

    /// Fetches a file, and returns its size in bytes. Its digest is checked.
    ///
    /// # Errors
    /// If the file is not there, or cannot be written.
    pub async fn get_file(&self, _bucket: &str, _object: &str, _path: &Path) -> Result<u64> {
        match *self {}
    }

    /// Removes a file from a bucket.
    pub async fn remove_file(&self, _bucket: &str, _object: &str) {
        match *self {}
    }
}

impl Inbox {
    /// The next message; `None` if the connection was closed for good.
    pub async fn next(&mut self) -> Option<BusMessage> {
        match *self {}
    }
}
