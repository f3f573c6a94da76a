//! Connections through SOCKS proxies: the first step on a fresh connection.

use std::io;
use std::net::{IpAddr, SocketAddr};

use polygraph_link::Link;
use polygraph_stats::ErrorKind;
use polygraph_transport::Channel;
use polygraph_transport::socks::{self, SocksFailure};
use polygraph_wire::socks::{Destination, SocksCredentials};
use polygraph_wire::uri;

use super::hop::Hop;
use crate::context::RobotContext;
use crate::failure::{TransactionFailure, connect_error, socks_class};

/// Asks the SOCKS proxy behind a fresh connection for a connection to `hop`. Returns whether it demanded name and password.
///
/// # Errors
/// If the proxy does not open the connection before the deadline of `channel`.
pub async fn through_socks<L: Link>(
    cx: RobotContext<'_, L>,
    channel: &mut Channel<L::Conn>,
    hop: Hop,
    account: Option<SocksCredentials>,
) -> Result<bool, TransactionFailure> {
    let started = cx.now();
    let opened = socks::connect(channel, destination(cx, hop), account).await;
    let took_us = (cx.now() - started).as_micros();
    cx.recorder.with(|block| match &opened {
        Ok(with_password) => {
            block.socks.opened_us.record(took_us);
            block.socks.with_password += u64::from(*with_password);
        }
        Err(_) => block.socks.refused += 1,
    });
    opened.map_err(|failure| failed(&failure))
}

/// Where the connection is to lead: an address, or a name that the SOCKS proxy resolves.
fn destination<L: Link>(cx: RobotContext<'_, L>, hop: Hop) -> Destination {
    if !cx.sends_names() {
        return Destination::Address(hop.address);
    }
    let (host, port) = match (cx.proxy(), hop.server) {
        (Some(proxy), _) => (cx.proxy_name(), proxy.port()),
        (None, Some(server)) => {
            let authority = cx.authority(server);
            let parts = uri::host_port(authority.as_bytes());
            let (host, port) = parts.unwrap_or((authority.as_bytes(), None));
            let default = if cx.has_tls(hop) { 443 } else { 80 };
            (String::from_utf8_lossy(host).into_owned(), port.unwrap_or(default))
        }
        (None, None) => return Destination::Address(hop.address),
    };
    match host.parse::<IpAddr>() {
        Ok(ip) => Destination::Address(SocketAddr::new(ip, port)),
        Err(_) => Destination::Name(host, port),
    }
}

fn failed(failure: &SocksFailure) -> TransactionFailure {
    use ErrorKind as K;
    let kind = match failure {
        SocksFailure::Closed(_) => K::SocksClosed,
        SocksFailure::Send(error) | SocksFailure::Receive(error) => match error.kind() {
            io::ErrorKind::TimedOut if error.raw_os_error().is_none() => K::Timeout,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => K::Reset,
            why => connect_error(why),
        },
        SocksFailure::Refused { error, .. } => socks_class(error),
    };
    TransactionFailure::new(kind, failure.to_string())
}
