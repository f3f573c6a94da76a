//! Tunnels through proxies by CONNECT (RFC 9110, section 9.3.6).

use std::io;

use polygraph_link::{Conn, send_all};

/// The largest head of a reply that is accepted, in bytes.
const MAX_HEAD: usize = 64 * 1024;

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
                Some(status) => Err(TunnelFailure::Refused { authority: authority.to_owned(), status, size }),
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

    fn answered(pieces: &'static [&'static [u8]]) -> String {
        let link = VirtualLink::new(0);
        let (mut ours, mut theirs) = link.pair();
        let came = Rc::new(RefCell::new(String::new()));
        let result = Rc::clone(&came);
        link.spawn(async move {
            let made = connect(&mut ours, "a:443", b"X: y\r\n").await;
            *result.borrow_mut() = match made {
                Ok(size) => format!("ready after {size}"),
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
        assert!(answered(&[b"SSH-2.0-x"]).contains("not HTTP/1: `SSH"));
        assert!(answered(&[b"HTTP/1.1 200 OK\r\n\r\nhello"]).contains("not HTTP/1: `hello"));
        assert!(answered(&[b"HTTP/1.1 20"]).contains("after 11 bytes"));
        assert!(answered(&[]).contains("after 0 bytes"));
    }
}
