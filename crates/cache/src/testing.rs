//! Helpers of several unit tests: a proxy without connections, and texts similar to messages.

use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use polygraph_link::{Conn, ConnectError, IdleState, Link, Nanos, NoDatagrams};
use proptest::prelude::*;

use crate::config::ProxyConfig;
use crate::proxy::{Identity, Proxy, Shared};

/// A link on which time does not advance and no connection can be opened.
#[derive(Clone)]
pub struct NoLink;

impl Link for NoLink {
    type Conn = NoConn;
    type Datagrams = NoDatagrams;

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn http_date(&self) -> [u8; 29] {
        *b"Sat, 21 Nov 2026 00:00:00 GMT"
    }

    fn unix_seconds(&self) -> i64 {
        1_795_219_200
    }

    fn unix_millis(&self) -> u64 {
        1_795_219_200_000
    }

    fn sleep_until(&self, _: Nanos) -> impl Future<Output = ()> {
        ready(())
    }

    fn connect(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<NoConn, ConnectError> {
        Err(ConnectError::NoPort)
    }

    async fn exchange_datagram<R>(
        &self,
        _: Option<IpAddr>,
        _: SocketAddr,
        _: &[u8],
        _: Option<Nanos>,
        _: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect_datagrams(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<NoDatagrams, ConnectError> {
        Err(ConnectError::Refused(io::ErrorKind::Unsupported))
    }

    fn spawn(&self, _: impl Future<Output = ()> + 'static) {}
}

/// A connection that is never created.
pub enum NoConn {}

impl Conn for NoConn {
    fn try_send(&mut self, _: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    fn poll_writable(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_recv<R>(&mut self, _: &mut Context<'_>, _: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        match *self {}
    }

    fn idle_state(&mut self) -> IdleState {
        match *self {}
    }

    fn set_deadline(&mut self, _: Option<Nanos>) {}

    fn finish(&mut self) {}

    fn reset(&mut self) {}
}

/// A proxy with a small store.
pub fn proxy() -> Proxy<NoLink> {
    let config = ProxyConfig { cache_bytes: 100_000, ..ProxyConfig::default() };
    let identity = Identity { name: "me".to_owned(), secret: 1 };
    let shared = Shared::new(config, identity, Nanos::ZERO, None).expect("settings that make sense");
    let resolver = |_: &str, _| -> std::pin::Pin<Box<dyn Future<Output = _>>> {
        Box::pin(ready(Err(io::ErrorKind::NotFound.into())))
    };
    Proxy::new(NoLink, Arc::new(shared), 0, Box::new(resolver))
}

/// Texts similar to messages: a message with some bytes replaced, repeated or cut off.
pub fn mangled(base: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((0..base.len(), any::<u8>(), any::<bool>()), 0..6);
    // Half of the cases are cut off somewhere.
    (edits, 0..=2 * base.len()).prop_map(move |(edits, end)| {
        let mut text = base.to_vec();
        for (at, byte, insert) in edits {
            if insert {
                text.insert(at, byte);
            } else {
                text[at] = byte;
            }
        }
        text.truncate(end);
        text
    })
}
