//! TLS as a step of opening a connection, on both sides.

use std::io;

use polygraph_link::{Conn, Link};
use polygraph_tls::failure::TlsFailure;
use polygraph_tls::handshake::TlsPeer;

use crate::Channel;

#[cfg(not(feature = "tls"))]
pub use self::without::{ClientConfigs, RobotTls, ServerConfigs, TlsServer};
#[cfg(feature = "tls")]
pub use polygraph_tls::client::{ClientConfigs, RobotTls};
#[cfg(feature = "tls")]
pub use polygraph_tls::server::{ServerConfigs, TlsServer};

/// Adds TLS to `channel` as a client. [`handshake`] follows.
///
/// # Errors
/// If the name is neither a host name nor an address.
pub fn secure<L: Link>(
    link: &L,
    channel: Channel<L::Conn>,
    tls: &mut RobotTls,
    wanted: &TlsPeer<'_>,
) -> Result<Channel<L::Conn>, TlsFailure> {
    #[cfg(feature = "tls")]
    return Ok(Channel::Tls(Box::new(tls.connect(link, channel, wanted)?)));
    #[cfg(not(feature = "tls"))]
    {
        let _ = (link, channel, wanted);
        match *tls {}
    }
}

/// Adds TLS to an accepted connection. [`handshake`] follows.
///
/// # Errors
/// If the library refuses the configuration.
pub fn accept<L: Link>(
    link: &L,
    channel: Channel<L::Conn>,
    tls: &TlsServer,
) -> Result<Channel<L::Conn>, TlsFailure> {
    #[cfg(feature = "tls")]
    return Ok(Channel::Tls(Box::new(tls.accept(link, channel)?)));
    #[cfg(not(feature = "tls"))]
    {
        let _ = (link, channel);
        match *tls {}
    }
}

/// Carries out the handshake of the topmost layer, or as much of it as must precede the first message.
///
/// # Errors
/// A [`TlsFailure`] in an `io::Error`, or an error of the connection below.
pub async fn handshake<C: Conn>(channel: &mut Channel<C>) -> io::Result<()> {
    match channel {
        Channel::Plain(_) | Channel::Stream(_) => Ok(()),
        #[cfg(feature = "tls")]
        Channel::Http3(_) => Ok(()),
        #[cfg(feature = "tls")]
        Channel::Tls(conn) => conn.handshake().await,
    }
}

/// The types of a build without TLS. No value of [`RobotTls`] and [`TlsServer`] exists.
#[cfg(not(feature = "tls"))]
mod without {
    use std::sync::Arc;

    use polygraph_tls::failure::{FailureKind, TlsFailure};
    use polygraph_tls::settings::{ClientTls, ServerTls};
    use polygraph_traffic::Stream;

    fn missing<T>() -> Result<T, TlsFailure> {
        Err(TlsFailure::new(FailureKind::Protocol, polygraph_tls::MISSING))
    }

    /// Makes no connections.
    #[derive(Debug, Default)]
    pub struct ClientConfigs {}

    impl ClientConfigs {
        /// Refuses: this build has no TLS.
        ///
        /// # Errors
        /// Always, because this build has no TLS.
        pub fn robot(
            &mut self,
            _: usize,
            _: &Arc<ClientTls>,
            _: usize,
            _: &mut Stream,
        ) -> Result<RobotTls, TlsFailure> {
            missing()
        }
    }

    /// The connections of a robot.
    #[derive(Debug)]
    pub enum RobotTls {}

    impl RobotTls {
        /// The settings.
        pub fn settings(&self) -> &Arc<ClientTls> {
            match *self {}
        }
    }

    /// Makes no connections.
    #[derive(Debug, Default)]
    pub struct ServerConfigs {}

    impl ServerConfigs {
        /// Refuses: this build has no TLS.
        ///
        /// # Errors
        /// Always, because this build has no TLS.
        pub fn server(
            &mut self,
            _: usize,
            _: &ServerTls,
            _: usize,
            _: &str,
            _: &mut Stream,
        ) -> Result<TlsServer, TlsFailure> {
            missing()
        }
    }

    /// The connections of a server.
    #[derive(Clone, Debug)]
    pub enum TlsServer {}
}
