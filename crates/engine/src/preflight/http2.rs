//! Answers preflight requests of devices that speak HTTP/2 to servers.

use std::future::Future;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use polygraph_link::{Conn, Link, Nanos, send_all};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{Http2Settings, ServerPolicy, Stream, serve};

use crate::net::Net;

/// Serves a request on a connection that starts with the bytes `received`, or waits for it for `patience`. `reply_to` makes the
/// reply to the request in its HTTP/1 form.
///
/// # Errors
/// If the system has no resources left.
pub fn answer(
    stream: TcpStream,
    received: &[u8],
    patience: Nanos,
    reply_to: impl Fn(&[u8]) -> Vec<u8>,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
    runtime.block_on(async {
        let net = Net::on_epoll(Nanos::from_millis(1), None)?;
        let conn = net.accepted(OwnedFd::from(stream));
        let policy = ServerPolicy {
            settings: Http2Settings::default(),
            form: TargetForm::Origin,
            // Later requests are for the servers of the test, which listen at the same address.
            use_limit: 1,
            idle_timeout: Some(patience),
        };
        serve(&net, conn, received, &policy, |mut stream: Stream| {
            let mut head = Vec::new();
            // The head of a request is there when its stream is.
            let taken = std::pin::pin!(stream.recv(|data| head.extend_from_slice(data)))
                .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
            if taken.is_ready() {
                let reply = reply_to(&head);
                net.spawn(async move {
                    // If the reply does not arrive, the probe reports that.
                    let _ = send_all(&mut stream, &reply).await;
                });
            }
        })
        .await;
        Ok(())
    })
}
