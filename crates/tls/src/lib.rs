//! TLS as a layer over a connection of the event loop.
//!
//! The library rustls carries out handshakes, and hands over the keys; from then on, records are encrypted and decrypted where they
//! are. [`TlsConn`] moves them over any [`polygraph_link::Conn`] and is one itself. TLS therefore works on sockets and on the virtual
//! link alike, and in another TLS connection.
//!
//! * [`settings`], [`names`]: what a workload says, as data.
//! * [`pem`], [`certificate`], [`staple`]: reading certificates, and OCSP responses about them.
//! * [`failure`], [`handshake`]: what came of a connection.
//! * `client`, `server`: connections of robots and servers, with their sessions.
//! * `conn`, `session`: moving records.
//! * `library`: the handshake, carried out by rustls.
//! * `traffic`, `record`, `buffer`: records after the handshake.
//! * `quic`: the handshakes of QUIC, which moves no records.
//! * `authority`, `minted`: making certificates.
//!
//! Without the feature `rustls`, there are only the modules that need no TLS library.

#[cfg(feature = "rustls")]
mod authority;
#[cfg(feature = "rustls")]
mod buffer;
pub mod certificate;
#[cfg(feature = "rustls")]
pub mod client;
#[cfg(feature = "rustls")]
mod clock;
#[cfg(feature = "rustls")]
mod conn;
pub mod failure;
pub mod handshake;
#[cfg(feature = "rustls")]
mod library;
#[cfg(feature = "rustls")]
mod minted;
pub mod names;
pub mod pem;
#[cfg(feature = "rustls")]
mod provider;
#[cfg(feature = "rustls")]
pub mod quic;
#[cfg(feature = "rustls")]
mod record;
#[cfg(feature = "rustls")]
pub mod server;
#[cfg(feature = "rustls")]
mod session;
#[cfg(all(test, feature = "rustls"))]
mod session_tests;
pub mod settings;
pub mod staple;
#[cfg(all(test, feature = "rustls"))]
mod tests;
#[cfg(feature = "rustls")]
mod ticket;
#[cfg(feature = "rustls")]
mod traffic;
#[cfg(feature = "rustls")]
mod verify;

/// Whether this build has TLS.
pub const BUILT_IN: bool = cfg!(feature = "rustls");

/// What to say where a build without TLS needs it.
pub const MISSING: &str = "this program was built without TLS; build it with `cargo build --release --features tls`, or install it with `make install`";

#[cfg(feature = "rustls")]
pub use authority::{Authority, make_authority, make_key, sign};
#[cfg(feature = "rustls")]
pub use conn::TlsConn;
pub use settings::Validity;
#[cfg(not(feature = "rustls"))]
pub use without::{make_authority, make_key, sign};

/// Making certificates in a build without TLS.
#[cfg(not(feature = "rustls"))]
mod without {
    use crate::settings::{Identity, KeyKind, Validity};

    /// Refuses: this build has no TLS.
    ///
    /// # Errors
    /// Always, because this build has no TLS.
    pub fn make_authority(_: &str, _: KeyKind) -> Result<Identity, String> {
        Err(crate::MISSING.to_owned())
    }

    /// Refuses: this build has no TLS.
    ///
    /// # Errors
    /// Always, because this build has no TLS.
    pub fn sign(_: &Identity, _: &[String], _: &[u8], _: Validity) -> Result<Identity, String> {
        Err(crate::MISSING.to_owned())
    }

    /// Refuses: this build has no TLS.
    ///
    /// # Errors
    /// Always, because this build has no TLS.
    pub fn make_key(_: KeyKind) -> Result<Vec<u8>, String> {
        Err(crate::MISSING.to_owned())
    }
}
