//! Kerberos 5 (RFC 4120), as clients and services of HTTP need it: messages and tickets, without input or output.
//!
//! * [`login`]: from a password to a ticket-granting ticket.
//! * [`ticket`]: from there to the ticket for a service, and the token for the service.
//! * [`service`]: what a service makes of a token, with its keys ([`keytab`]).
//! * [`etype`]: encryption types, keys and ciphers; [`der`]: how messages are written.
//!
//! Who asks a KDC sends the bytes and hands in those of the reply. The tokens are those of GSSAPI (RFC 4121); the scheme
//! `Negotiate` of HTTP carries them in SPNEGO.

pub mod der;
pub mod etype;
pub mod keytab;
pub mod login;
mod message;
mod request;
pub mod service;
pub mod ticket;

pub use etype::{CipherError, CipherKey, EncryptionType};
pub use message::{KdcError, Moment, Principal, code, error_code};
pub use request::Fresh;

/// Why Kerberos cannot be used in a build without its ciphers.
pub const MISSING: &str = "this program was built without Kerberos: build it with `--features kerberos`";

/// The port of KDCs (RFC 4120, section 7.2.3).
pub const PORT: u16 = 88;

/// Object identifier of the mechanism: 1.2.840.113554.1.2.2.
pub const MECHANISM: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];

/// Whether this program has the ciphers.
///
/// # Errors
/// If it has not.
pub fn available() -> Result<(), &'static str> {
    if cfg!(feature = "ciphers") { Ok(()) } else { Err(MISSING) }
}
