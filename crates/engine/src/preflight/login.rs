//! The login of a preflight check, as robots will log in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use polygraph_wire::auth::digest::{Credentials, Digest, DigestRequest};
use polygraph_wire::auth::{Challenge, basic, challenges};
use polygraph_wire::preflight::{METHOD, PreflightReply};
use polygraph_wire::socks::{Destination, Dialogue, DialogueStep, SocksCredentials, SocksError};

use super::{ProbeError, ProbeUser};

/// The nonce of the client, of which there is one request.
const CNONCE: &str = "7072656631676874";

/// The field line with which `user` answers the challenge in a reply to a request for `target`; `None` if there is none, or if robots
/// would begin a handshake of several messages, as they prefer to.
pub fn proof(user: &ProbeUser, reply: &PreflightReply, target: &str) -> Option<String> {
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
        digest.write_answer(who, DigestRequest { method: METHOD, uri: target }, 1, CNONCE, &mut value);
    } else if offers("Basic") {
        basic::write(&user.name, &user.password, &mut value);
    }
    let value = String::from_utf8(value).ok().filter(|value| !value.is_empty())?;
    Some(format!("{name}: {value}\r\n"))
}

/// Logs in to a SOCKS proxy, and asks it for no connection. What else the proxy may answer is up to the test.
///
/// # Errors
/// If the proxy refuses the user, or demands one and there is none.
pub fn to_socks(
    stream: &mut TcpStream,
    user: Option<&ProbeUser>,
    patience: Duration,
) -> Result<(), ProbeError> {
    let credentials =
        user.map(|user| SocksCredentials { user: user.name.clone(), password: user.password.clone() });
    let Ok(peer) = stream.peer_addr() else { return Ok(()) };
    let (mut dialogue, hello) = Dialogue::begin(Destination::Address(peer), credentials);
    let mut exchange = |bytes: &[u8]| {
        // The choice of a method and the answer to the password have two bytes each.
        let mut answer = [0; 2];
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(bytes)?;
        stream.read_exact(&mut answer).map(|()| answer)
    };
    let Ok(method) = exchange(&hello) else { return Ok(()) };
    let password = match (dialogue.advance(&method), user) {
        (Err(SocksError::NoMethod | SocksError::NoCredentials), None) => {
            return Err(ProbeError::UserDemanded);
        }
        (Ok(DialogueStep::Send(_, password)), Some(_)) if dialogue.is_authenticated() => password,
        _ => return Ok(()),
    };
    let Ok(status) = exchange(&password) else { return Ok(()) };
    match (dialogue.advance(&status), user) {
        (Err(SocksError::Denied(_)), Some(user)) => Err(ProbeError::UserRefused(user.name.clone())),
        _ => Ok(()),
    }
}
