//! HTTP messages as bytes: heads, body framing, benchmark URLs and headers. No I/O, no clock.
//!
//! * [`head`]: views of request and reply heads, read in place (RFC 9112).
//! * [`body`]: how long a body is and where it ends (RFC 9112, section 6).
//! * [`url`]: the benchmark's URL grammar: object id to path and back.
//! * [`uri`]: any URL taken apart, references resolved (RFC 3986).
//! * [`foreign`]: traces of URLs that are not ours.
//! * [`marks`]: the benchmark's `X-` headers, by which hits are known from first hand; [`worlds`] and
//!   [`target`] are the values of some.
//! * [`auth`]: challenges and answers of Basic, Digest, NTLM and Negotiate (RFC 7617, 7616, 4559).
//! * [`alt_svc`]: where else an origin can be reached (RFC 7838).
//! * [`socks`]: the dialogue with a SOCKS proxy (RFC 1928, RFC 1929).
//! * [`checksum`]: the digest in `Content-MD5`.
//! * [`coding`]: which content coding a reply gets.
//! * [`cookie`]: cookies (RFC 6265).
//! * [`markup`], [`raw_uris`], [`entities`]: links in bodies.
//! * [`preflight`]: the request that is sent before a test.
//! * [`date`]: HTTP dates; [`decimal`]: numbers.
//! * [`range`]: byte ranges in requests and replies (RFC 9110, section 14).
//! * [`multipart`]: several ranges in one body.

pub mod alt_svc;
pub mod auth;
pub mod body;
pub mod checksum;
pub mod coding;
pub mod cookie;
pub mod date;
pub mod decimal;
pub mod entities;
pub mod foreign;
pub mod head;
pub mod marks;
pub mod markup;
pub mod multipart;
pub mod preflight;
pub mod range;
pub mod raw_uris;
pub mod socks;
pub mod target;
pub mod upload;
pub mod uri;
pub mod url;
pub mod worlds;

pub use body::{BodyError, BodyReader, Framing};
pub use head::{HeadError, ReplyHead, RequestHead, parse_reply, parse_request};
