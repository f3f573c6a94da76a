//! Authentication (RFC 9110, section 11): challenges of servers and proxies, and the credentials of clients.
//!
//! * [`challenge`]: the common grammar: schemes with parameters.
//! * [`basic`]: name and password in clear (RFC 7617).
//! * [`stored`]: the forms in which servers store passwords.
//! * [`digest`]: proof of the password by a hash (RFC 7616, also the form of RFC 2069).
//! * [`ntlm`]: proof of the password in a handshake (MS-NLMP); [`spnego`]: the choice of a mechanism (RFC 4178); [`handshake`]: both
//!   as a client sends them in the schemes `NTLM` and `Negotiate` (RFC 4559).
//! * [`access`]: the server's part of all schemes.

pub mod access;
pub mod basic;
pub mod challenge;
pub mod digest;
pub mod handshake;
pub mod ntlm;
pub mod spnego;
pub mod stored;

use base64::prelude::{BASE64_STANDARD, Engine};

pub use challenge::{Challenge, challenges};

/// Appends the name of a scheme and a token in base64.
pub fn write_token(scheme: &str, token: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(scheme.as_bytes());
    out.push(b' ');
    out.extend_from_slice(BASE64_STANDARD.encode(token).as_bytes());
}
