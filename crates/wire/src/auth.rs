//! Authentication (RFC 9110, section 11): challenges of servers and proxies, and the credentials of clients.
//!
//! * [`challenge`]: the common grammar: schemes with parameters.
//! * [`basic`]: name and password in clear (RFC 7617).
//! * [`stored`]: the forms in which servers store passwords.
//! * [`digest`]: proof of the password by a hash (RFC 7616, also the form of RFC 2069).

pub mod basic;
pub mod challenge;
pub mod digest;
pub mod stored;

pub use challenge::{Challenge, challenges};
