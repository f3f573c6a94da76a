//! Connections through SOCKS proxies (RFC 1928).

use std::io;

use polygraph_link::{Conn, send_all};
use polygraph_wire::socks::{Destination, Dialogue, DialogueStep, SocksCredentials, SocksError};

/// Why a SOCKS proxy opened no connection.
#[derive(Debug, thiserror::Error)]
pub enum SocksFailure {
    /// The proxy refused, or does not follow the protocol.
    #[error("no connection to {to}: {error}")]
    Refused {
        /// Where the connection was to lead.
        to: Destination,
        /// The reason.
        error: SocksError,
    },
    /// The proxy closed the connection in the middle of the dialogue.
    #[error("the proxy closed the connection before it was open to {0}")]
    Closed(Destination),
    /// Sending failed.
    #[error("while sending to the SOCKS proxy: {0}")]
    Send(io::Error),
    /// Receiving failed.
    #[error("while waiting for the SOCKS proxy: {0}")]
    Receive(io::Error),
}

/// Asks the SOCKS proxy behind `conn` for a connection to `to`. Afterwards the bytes of `conn` are those of that connection. Returns
/// whether the proxy demanded name and password.
///
/// # Errors
/// If the proxy does not open the connection, or the connection to the proxy fails.
pub async fn connect<C: Conn>(
    conn: &mut C,
    to: Destination,
    credentials: Option<SocksCredentials>,
) -> Result<bool, SocksFailure> {
    let (mut dialogue, mut next) = Dialogue::begin(to, credentials);
    let mut inbox = Vec::new();
    loop {
        send_all(conn, &next).await.map_err(SocksFailure::Send)?;
        next = loop {
            let progress = dialogue
                .advance(&inbox)
                .map_err(|error| SocksFailure::Refused { to: dialogue.destination().clone(), error })?;
            match progress {
                DialogueStep::Send(used, bytes) => {
                    inbox.drain(..used);
                    break bytes;
                }
                // Nobody speaks through the connection before this side does.
                DialogueStep::Open(_) => return Ok(dialogue.is_authenticated()),
                DialogueStep::More => {}
            }
            let ended = conn
                .recv(|bytes| {
                    inbox.extend_from_slice(bytes);
                    bytes.is_empty()
                })
                .await
                .map_err(SocksFailure::Receive)?;
            if ended {
                return Err(SocksFailure::Closed(dialogue.destination().clone()));
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use polygraph_link::{Link, SECOND};
    use polygraph_sim::VirtualLink;

    use super::*;

    /// The outcome with a proxy that sends these pieces, one after each message of the client.
    fn outcome(pieces: &[&[u8]], with_password: bool) -> String {
        let link = VirtualLink::new(0);
        let (mut ours, mut theirs) = link.pair();
        let came = Rc::new(RefCell::new(String::new()));
        let result = Rc::clone(&came);
        link.spawn(async move {
            let credentials = SocksCredentials { user: "joe".into(), password: "pw".into() };
            let to = Destination::Address("10.0.0.9:80".parse().unwrap());
            let made = connect(&mut ours, to, with_password.then_some(credentials)).await;
            *result.borrow_mut() = match made {
                Ok(authenticated) => format!("open, {authenticated}"),
                Err(e) => e.to_string(),
            };
        });
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let of_proxy = link.clone();
        link.spawn(async move {
            for piece in pieces {
                theirs.take().await.unwrap();
                // Bytes that arrive one by one are the same.
                for byte in piece {
                    if send_all(&mut theirs, &[byte]).await.is_err() {
                        return;
                    }
                    of_proxy.sleep_until(of_proxy.now() + SECOND / 1000).await;
                }
            }
        });
        link.run(100 * SECOND);
        came.take()
    }

    #[test]
    fn a_proxy_opens_a_connection_or_says_why_not() {
        let open = &[5, 0, 0, 1, 127, 0, 0, 1, 0, 80];
        assert_eq!(outcome(&[&[5, 0], open], false), "open, false");
        assert_eq!(outcome(&[&[5, 2], &[1, 0], open], true), "open, true");
        let closed = "the proxy closed the connection before it was open to 10.0.0.9:80";
        assert_eq!(outcome(&[&[5, 0], &open[..5]], false), closed);
        assert_eq!(outcome(&[], false), closed);
        let refused = outcome(&[&[5, 0], &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]], false);
        assert!(
            refused.starts_with("no connection to 10.0.0.9:80: reply code 5, connection refused"),
            "{refused}"
        );
        let denied = outcome(&[&[5, 2], &[1, 1]], true);
        assert!(denied.contains("refuses name and password"), "{denied}");
    }
}
