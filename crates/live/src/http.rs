//! A small HTTP server for pages and figures about a test. It runs on its own thread, so that no event loop of a
//! test waits for it.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;

/// The most connections at a time.
const MOST_CONNECTIONS: usize = 128;
/// How long a client may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// What a client asks for. Only GET is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The path, with its slash.
    pub path: String,
    /// What follows the question mark; empty if there is none.
    pub query: String,
    /// The host that the client addresses, with its port if it names one.
    pub host: Option<String>,
}

/// What a client gets.
#[derive(Debug)]
pub struct PageReply {
    status: StatusCode,
    content_type: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: PageBody,
}

/// The body of a reply.
#[derive(Debug)]
enum PageBody {
    Whole(Option<Bytes>),
    /// Parts that come over time; the reply ends with the channel.
    Parts(Receiver<Bytes>),
}

impl PageReply {
    /// A whole page.
    pub fn page(content_type: &'static str, text: impl Into<Bytes>) -> PageReply {
        PageReply {
            status: StatusCode::OK,
            content_type,
            headers: Vec::new(),
            body: PageBody::Whole(Some(text.into())),
        }
    }

    /// A stream of server-sent events, each part one or more of them.
    pub fn events(parts: Receiver<Bytes>) -> PageReply {
        PageReply { body: PageBody::Parts(parts), ..PageReply::page("text/event-stream", "") }
    }

    /// A short explanation why there is no page.
    pub fn refusal(status: StatusCode, text: &'static str) -> PageReply {
        PageReply { status, ..PageReply::page("text/plain; charset=utf-8", text) }
    }

    /// The reply with another header field.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> PageReply {
        self.headers.push((HeaderName::from_static(name), HeaderValue::from_static(value)));
        self
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = match self.get_mut() {
            PageBody::Whole(all) => Poll::Ready(all.take()),
            PageBody::Parts(parts) => parts.poll_recv(context),
        };
        part.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, PageBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            PageBody::Whole(all) => SizeHint::with_exact(all.as_ref().map_or(0, |all| all.len() as u64)),
            PageBody::Parts(_) => SizeHint::default(),
        }
    }
}

/// Serves `answer` on a listener, on a thread that ends with the process.
///
/// # Errors
/// If the system cannot start a thread.
pub fn serve(
    listener: TcpListener,
    answer: impl Fn(&PageRequest) -> PageReply + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer: Arc<dyn Fn(&PageRequest) -> PageReply + Send + Sync> = Arc::new(answer);
    thread::Builder::new().name("http".into()).spawn(move || runtime.block_on(accept(listener, answer)))?;
    Ok(address)
}

async fn accept(listener: TcpListener, answer: Arc<dyn Fn(&PageRequest) -> PageReply + Send + Sync>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // It is never closed.
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors may have run out; connections that end make room.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let reply = reply(&request, &*answer);
                async move { Ok::<_, Infallible>(reply) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // Whatever a client does wrong is its own affair.
            let _ = connection.await;
            drop(permit);
        });
    }
}

fn reply(
    request: &Request<Incoming>,
    answer: &(dyn Fn(&PageRequest) -> PageReply + Send + Sync),
) -> Response<PageBody> {
    let made = if request.method() == Method::GET {
        answer(&PageRequest {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            host: request.headers().get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned),
        })
    } else {
        PageReply::refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET is possible\n")
            .with_header("allow", "GET")
    };
    let mut response = Response::new(made.body);
    *response.status_mut() = made.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(made.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(made.headers);
    response
}
