//! Counts the set-up of connections: tunnels and handshakes.

use std::io;

use polygraph_link::{Link, Nanos};
use polygraph_stats::{AuthScheme, ErrorKind};
use polygraph_tls::failure::TlsFailure;
use polygraph_tls::handshake::{Handshake, HandshakeKind};
use polygraph_transport::TunnelFailure;

use crate::context::RobotContext;

/// Counts a handshake that began at `started`.
pub fn handshake<L: Link>(cx: RobotContext<'_, L>, facts: &Handshake, started: Nanos) {
    cx.recorder.with(|block| facts.count(&mut block.tls, started));
    if facts.offered && facts.kind == HandshakeKind::Full {
        cx.recorder
            .error(ErrorKind::TlsNotResumed, facts.completed, || "the server began a new session".to_owned());
    }
    if let Some(staple) = &facts.staple
        && let Some(kind) = staple.status.class()
    {
        let of = || facts.issuer.as_ref().map_or(String::new(), |issuer| format!(" of {issuer}"));
        cx.recorder.error(kind, facts.completed, || format!("the OCSP response{} is {staple}", of()));
    }
}

/// Counts an alert of the peer, if an error of a connection came from one. Over TLS 1.3, the refusal of a client's certificate comes
/// when its handshake is already complete.
pub fn alert<L: Link>(cx: RobotContext<'_, L>, error: &io::Error) {
    if let Some(failure) = TlsFailure::of(error) {
        cx.recorder.with(|block| failure.count_alert(&mut block.tls));
    }
}

/// Counts a reply to a CONNECT request, sent at `started`, that demands credentials by `scheme`, with a head of `size` bytes.
pub fn connect_challenge<L: Link>(cx: RobotContext<'_, L>, scheme: AuthScheme, size: u64, started: Nanos) {
    let took_us = (cx.now() - started).as_micros();
    let custom = cx.profile().custom_scope.contains(407);
    cx.recorder.with(|block| block.challenge(scheme, 407, took_us, size, custom));
}

/// Counts the reply to a CONNECT request that was sent at `started`.
pub fn connect<L: Link>(cx: RobotContext<'_, L>, reply: &Result<u64, TunnelFailure>, started: Nanos) {
    let took_us = (cx.now() - started).as_micros();
    match reply {
        Ok(size) => cx.recorder.with(|block| block.tls.connects.record(took_us, *size)),
        Err(TunnelFailure::Refused { status, size, .. }) => {
            let custom = cx.profile().custom_scope.contains(*status);
            cx.recorder.fail(*status, took_us, *size, custom);
        }
        Err(_) => {}
    }
}
