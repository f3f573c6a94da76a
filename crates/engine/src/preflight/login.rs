//! The login of a preflight check, as robots will log in.

use polygraph_wire::auth::digest::{Credentials, Digest, DigestRequest};
use polygraph_wire::auth::{Challenge, basic, challenges};
use polygraph_wire::preflight::PreflightReply;

use super::ProbeUser;

/// The nonce of the client, of which there is one request.
const CNONCE: &str = "7072656631676874";

/// The field line with which `user` answers the challenge in a reply to a request with `method` for `uri`; `None` if there is none, or
/// if robots would begin a handshake of several messages, as they prefer to.
pub fn proof(user: &ProbeUser, reply: &PreflightReply, method: &str, uri: &str) -> Option<String> {
    let name = match reply.status {
        401 => "Authorization",
        407 => "Proxy-Authorization",
        _ => return None,
    };
    let all: Vec<Challenge<'_>> =
        reply.challenges.iter().flat_map(|field| challenges(field.as_bytes())).collect();
    let offers = |scheme: &str| all.iter().any(|challenge| challenge.is(scheme));
    if offers("Negotiate") || offers("NTLM") {
        return None;
    }
    let mut value = Vec::new();
    if let Some(digest) = all.iter().find_map(Digest::read) {
        let who = Credentials { user: &user.name, password: &user.password };
        digest.write_answer(who, DigestRequest { method, uri }, 1, CNONCE, &mut value);
    } else if offers("Basic") {
        basic::write(&user.name, &user.password, &mut value);
    }
    let value = String::from_utf8(value).ok().filter(|value| !value.is_empty())?;
    Some(format!("{name}: {value}\r\n"))
}
