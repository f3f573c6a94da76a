//! Connections of HTTP/3, on both sides. Their streams are channels.

use std::net::{IpAddr, SocketAddr};

use polygraph_link::{Conn, ConnectError, Link};
use polygraph_multiplex::Http2Settings;
use polygraph_tls::failure::TlsFailure;
use polygraph_tls::handshake::TlsPeer;

use crate::Channel;
use crate::tls::{RobotTls, TlsServer};

/// The name of HTTP/3 among application protocols (RFC 9114, section 3.1).
pub const HTTP3: &str = "h3";

#[cfg(not(feature = "tls"))]
pub use self::without::{Http3Client, Http3Server, PathCounts};
#[cfg(feature = "tls")]
pub use polygraph_quic::{ClientConnection as Http3Client, PathCounts, ServerConnection as Http3Server};

/// Why a connection cannot be started.
#[derive(Debug)]
pub enum StartError {
    /// The system refuses.
    Connect(ConnectError),
    /// The settings of TLS do not allow it.
    Tls(TlsFailure),
}

/// Why a connection that arrived was lost before its handshake began.
#[derive(Debug)]
pub enum EarlyFailure {
    /// Its TLS cannot begin.
    Tls(TlsFailure),
    /// This side refused it, because too many other handshakes are under way.
    NoRoom,
    /// The client breaks a rule of QUIC.
    Broken(String),
}

/// Starts a connection to the second address, from the first one if given. Its handshake follows.
///
/// # Errors
/// If a local resource is missing, the system refuses at once, or the settings do not allow TLS 1.3.
pub fn connect<L: Link>(
    link: &L,
    way: (Option<IpAddr>, SocketAddr),
    tls: &mut RobotTls,
    wanted: &TlsPeer<'_>,
    settings: &Http2Settings,
) -> Result<Http3Client, StartError> {
    #[cfg(feature = "tls")]
    {
        let quic = tls.quic(link, wanted).map_err(StartError::Tls)?;
        Http3Client::connect(link, way, quic, settings).map_err(StartError::Connect)
    }
    #[cfg(not(feature = "tls"))]
    {
        let _ = (link, way, wanted, settings);
        match *tls {}
    }
}

/// Opens a stream on a connection.
pub fn open_stream<C: Conn>(connection: &Http3Client) -> Channel<C> {
    #[cfg(feature = "tls")]
    return connection.open_stream().into();
    #[cfg(not(feature = "tls"))]
    match *connection {}
}

/// Takes the connections that arrive at `socket` from now on.
///
/// # Errors
/// If the settings do not allow TLS 1.3.
pub fn listen<L: Link>(
    link: &L,
    socket: L::Datagrams,
    tls: &TlsServer,
    settings: &Http2Settings,
    accept: impl FnMut(Result<Http3Server, EarlyFailure>) + 'static,
) -> Result<(), TlsFailure> {
    #[cfg(feature = "tls")]
    {
        let mut accept = accept;
        polygraph_quic::listen(link, socket, tls, settings, move |accepted| {
            use polygraph_quic::Lost;
            accept(match accepted {
                Ok(connection) => Ok(connection),
                Err(Lost::Tls(failure)) => Err(EarlyFailure::Tls(failure)),
                Err(Lost::Refused) => Err(EarlyFailure::NoRoom),
                Err(Lost::Fault(_, text)) => Err(EarlyFailure::Broken(text)),
                // The client has gone: nothing was asked for.
                Err(Lost::Closed | Lost::Reset | Lost::Absent | Lost::Unreachable(_) | Lost::NoAnswer) => {
                    return;
                }
            });
        })
    }
    #[cfg(not(feature = "tls"))]
    {
        let _ = (link, socket, settings, accept);
        match *tls {}
    }
}

/// The types of a build without TLS. No value of [`Http3Client`] and [`Http3Server`] exists.
#[cfg(not(feature = "tls"))]
mod without {
    use std::io;

    use polygraph_link::{Conn, Link, Nanos};
    use polygraph_multiplex::{ServerEnd, ServerPolicy, WireBytes};
    use polygraph_tls::handshake::Handshake;

    use crate::Channel;

    /// What became of the packets of a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PathCounts {
        /// Packets that were sent.
        pub sent: u64,
        /// Those of them that count as lost.
        pub lost: u64,
    }

    /// A connection of a client.
    #[derive(Debug)]
    pub enum Http3Client {}

    impl Http3Client {
        /// Completes when requests can be sent.
        ///
        /// # Errors
        /// If the handshake fails.
        pub async fn ready<L: Link>(&self, _: &L, _: Option<Nanos>) -> io::Result<()> {
            match *self {}
        }

        /// The error with which the connection ended, if it did.
        pub fn failure(&self) -> Option<io::Error> {
            match *self {}
        }

        /// The facts of the handshake.
        pub fn take_handshake(&self) -> Option<Handshake> {
            match *self {}
        }

        /// Number of open streams.
        pub fn open_streams(&self) -> usize {
            match *self {}
        }

        /// Whether another stream may be opened.
        pub fn has_room(&self) -> bool {
            match *self {}
        }

        /// Whether requests can still be sent.
        pub fn is_usable(&self) -> bool {
            match *self {}
        }

        /// Whether the server has announced the end.
        pub fn has_goaway(&self) -> bool {
            match *self {}
        }

        /// The bytes since the last call.
        pub fn take_bytes(&self) -> WireBytes {
            match *self {}
        }

        /// What became of packets since the last call.
        pub fn take_path(&self) -> PathCounts {
            match *self {}
        }
    }

    /// A connection of a server.
    #[derive(Debug)]
    pub enum Http3Server {}

    impl Http3Server {
        /// Serves the connection.
        pub async fn serve<L: Link>(
            &self,
            _: &L,
            _: &ServerPolicy,
            _: impl FnMut(std::convert::Infallible),
            _: impl FnMut(Handshake),
        ) -> ServerEnd {
            match *self {}
        }

        /// What became of packets since the last call.
        pub fn take_path(&self) -> PathCounts {
            match *self {}
        }
    }

    impl<C: Conn> From<std::convert::Infallible> for Channel<C> {
        fn from(stream: std::convert::Infallible) -> Channel<C> {
            match stream {}
        }
    }
}

#[cfg(feature = "tls")]
impl<C: Conn> From<polygraph_quic::Http3Stream> for Channel<C> {
    fn from(stream: polygraph_quic::Http3Stream) -> Channel<C> {
        Channel::Http3(Box::new(stream))
    }
}
