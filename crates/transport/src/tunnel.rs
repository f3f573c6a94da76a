//! Tunnels through proxies by CONNECT (RFC 9110, section 9.3.6).

use std::io;

use polygraph_link::{Conn, send_all};
use polygraph_wire::body::reply_framing;
use polygraph_wire::head::{is_named, items, parse_reply};
use polygraph_wire::{BodyReader, Framing};

/// The largest head of a reply that is accepted, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The largest body of a refusal that is read, in bytes.
const MAX_BODY: usize = 1 << 20;

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum TunnelFailure {
    /// The proxy answered with an error status.
    #[error("the proxy answered CONNECT {authority} with status {status}")]
    Refused {
        /// Where the tunnel was to lead.
        authority: String,
        /// The status.
        status: u16,
        /// Size of the head of the reply in bytes.
        size: u64,
        /// What it demands, if the status is 407.
        demand: Demand,
    },
    /// The proxy closed the connection without a complete reply.
    #[error("the proxy closed the connection after {0} bytes of a reply to CONNECT")]
    Closed(usize),
    /// The reply is not HTTP/1.
    #[error("the reply to CONNECT is not HTTP/1: `{0}`")]
    NotHttp(String),
    /// The connection failed.
    #[error("during CONNECT: {0}")]
    Io(#[from] io::Error),
}

/// What a proxy demands before it opens a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Values of `Proxy-Authenticate`.
    pub challenges: Vec<Vec<u8>>,
    /// Whether the connection can be used for another request.
    pub keep_alive: bool,
}

/// Asks the proxy behind `conn` for a tunnel to `authority` (`host:port`). `lines` are further header lines, each with its end.
/// Returns the size of the head of the reply in bytes. The tunnel is ready afterwards.
///
/// # Errors
/// If the proxy refuses, or sends no usable reply.
pub async fn connect<C: Conn>(conn: &mut C, authority: &str, lines: &[u8]) -> Result<u64, TunnelFailure> {
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
    request.extend_from_slice(lines);
    request.extend_from_slice(b"\r\n");
    send_all(conn, &request).await?;
    let mut head = Vec::new();
    loop {
        let ended = conn
            .recv(|bytes| {
                head.extend_from_slice(bytes);
                bytes.is_empty()
            })
            .await?;
        let not_http = |head: &[u8]| {
            let first = &head[..head.len().min(60)];
            Err(TunnelFailure::NotHttp(first.escape_ascii().to_string()))
        };
        let Some(status) = status(&head) else { return not_http(&head) };
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let size = end as u64 + 4;
            return match status {
                // Nobody speaks through the tunnel before this side does.
                Some(200..=299) if head.len() as u64 > size => not_http(&head[end + 4..]),
                Some(200..=299) => Ok(size),
                Some(status) => {
                    let demand = match status {
                        407 => read_demand(conn, &head, ended).await,
                        _ => Demand::default(),
                    };
                    Err(TunnelFailure::Refused { authority: authority.to_owned(), status, size, demand })
                }
                None => not_http(&head),
            };
        }
        if ended {
            return Err(TunnelFailure::Closed(head.len()));
        }
        if head.len() > MAX_HEAD {
            return not_http(&head);
        }
    }
}

/// What a reply 407 demands. `bytes` are the head and the start of the body; the rest of the body is read.
async fn read_demand<C: Conn>(conn: &mut C, bytes: &[u8], ended: bool) -> Demand {
    let read = parse_reply(bytes, |head| {
        let values = |name: &'static str| {
            head.headers.iter().filter(move |header| is_named(header.name, name)).map(|header| header.value)
        };
        let has = |token: &str| {
            let fields = values("Connection").chain(values("Proxy-Connection"));
            fields.flat_map(items).any(|item| item.eq_ignore_ascii_case(token.as_bytes()))
        };
        let keep_alive = if head.minor_version == 0 { has("keep-alive") } else { !has("close") };
        let challenges = values("Proxy-Authenticate").map(<[u8]>::to_vec).collect();
        (Demand { challenges, keep_alive }, reply_framing(head, false).ok(), head.len)
    });
    let Ok(Some((mut demand, framing, len))) = read else { return Demand::default() };
    let framing = framing.filter(|framing| demand.keep_alive && *framing != Framing::UntilClose);
    // The connection is of use only if the body has an end that does not end the connection.
    demand.keep_alive = match framing {
        Some(framing) if !ended => skip_body(conn, BodyReader::new(framing), &bytes[len..]).await,
        _ => false,
    };
    demand
}

/// Reads a body to its end; `first` is its start. False if the connection cannot be used after it.
async fn skip_body<C: Conn>(conn: &mut C, mut body: BodyReader, first: &[u8]) -> bool {
    let mut total = first.len();
    // Bytes after the body belong to no request.
    let mut fed = body.feed(first, |_| {}).is_ok_and(|fed| fed.consumed == first.len());
    while fed && !body.is_done() && total <= MAX_BODY {
        let took = conn.recv(|bytes| {
            total += bytes.len();
            !bytes.is_empty() && body.feed(bytes, |_| {}).is_ok_and(|fed| fed.consumed == bytes.len())
        });
        fed = took.await.unwrap_or(false);
    }
    fed && body.is_done()
}

/// The status in the first line of a reply: `Some(None)` if more bytes are needed, `None` if it is no reply.
#[expect(clippy::option_option, reason = "the three cases are used in one place")]
fn status(head: &[u8]) -> Option<Option<u16>> {
    const FORM: &[u8] = b"HTTP/1.x ddd";
    for (&byte, form) in head.iter().zip(FORM) {
        let fits = match form {
            b'x' | b'd' => byte.is_ascii_digit(),
            other => byte == *other,
        };
        if !fits {
            return None;
        }
    }
    let digits = head.get(9..12);
    Some(digits.map(|digits| digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use polygraph_link::{Link, SECOND};
    use polygraph_sim::VirtualLink;

    use super::*;

    fn answered(pieces: &[&'static [u8]]) -> String {
        let pieces = pieces.to_vec();
        let link = VirtualLink::new(0);
        let (mut ours, mut theirs) = link.pair();
        let came = Rc::new(RefCell::new(String::new()));
        let result = Rc::clone(&came);
        link.spawn(async move {
            let made = connect(&mut ours, "a:443", b"X: y\r\n").await;
            *result.borrow_mut() = match made {
                Ok(size) => format!("ready after {size}"),
                Err(TunnelFailure::Refused { demand, .. }) if !demand.challenges.is_empty() => {
                    format!("{}, {}", demand.challenges.concat().escape_ascii(), demand.keep_alive)
                }
                Err(e) => e.to_string(),
            };
        });
        let of_proxy = link.clone();
        link.spawn(async move {
            let asked = theirs.take().await.unwrap();
            assert_eq!(asked, b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nX: y\r\n\r\n");
            for piece in pieces {
                of_proxy.sleep_until(of_proxy.now() + SECOND).await;
                theirs.send_at(of_proxy.now(), piece.to_vec());
            }
        });
        link.run(100 * SECOND);
        came.take()
    }

    #[test]
    fn replies_are_read_in_pieces_and_refused_if_they_are_none() {
        assert_eq!(answered(&[b"HTTP/1.1 200 OK\r\n\r\n"]), "ready after 19");
        assert_eq!(
            answered(&[b"HTT", b"P/1.0 2", b"00 established\r\nVia: x\r\n", b"\r\n"]),
            "ready after 36"
        );
        assert_eq!(
            answered(&[b"HTTP/1.1 403 No\r\n\r\n<html>"]),
            "the proxy answered CONNECT a:443 with status 403"
        );
        let demand: &'static [u8] =
            b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: NTLM\r\nContent-Length: 5\r\n\r\n12";
        assert_eq!(answered(&[demand, b"345"]), "NTLM, true");
        assert_eq!(answered(&[demand, b"3456"]), "NTLM, false");
        assert_eq!(answered(&[demand]), "NTLM, false");
        let closing = b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=x\r\nConnection: close\r\n\r\n";
        assert_eq!(answered(&[closing]), "Basic realm=x, false");
        let chunked: &'static [u8] = b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Negotiate\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
        assert_eq!(answered(&[chunked, b"0\r\n\r\n"]), "Negotiate, true");
        assert!(answered(&[b"SSH-2.0-x"]).contains("not HTTP/1: `SSH"));
        assert!(answered(&[b"HTTP/1.1 200 OK\r\n\r\nhello"]).contains("not HTTP/1: `hello"));
        assert!(answered(&[b"HTTP/1.1 20"]).contains("after 11 bytes"));
        assert!(answered(&[]).contains("after 0 bytes"));
    }
}
