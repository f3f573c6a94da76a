//! Answers preflight requests for servers that do not listen yet.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::{Conn, Link, Nanos, send_all};
use polygraph_multiplex::Http2Settings;
use polygraph_tls::failure::TlsFailure;
use polygraph_tls::settings::ServerTls;
use polygraph_traffic::Seed;
use polygraph_transport::Channel;
use polygraph_transport::http3::{self, EarlyFailure, Http3Server};
use polygraph_transport::tls::{self, ServerConfigs, TlsServer};
use polygraph_wire::preflight;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketFlags;
use socket2::Socket;

use super::exchange::until;
use super::http2;
use crate::listen::listen;
use crate::net::Net;
use crate::udp::{self, UdpSocket};

/// How often the thread checks whether it must stop while nobody connects.
const LOOK: Duration = Duration::from_millis(20);
/// How long a client may take to send its request.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// An address at which a server of the test will listen.
#[derive(Clone, Debug)]
pub struct ResponderPlace {
    /// The address.
    pub address: SocketAddr,
    /// The TLS of the server, if it has any.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether the server accepts HTTP/3.
    pub http3: bool,
}

/// What answers at an address.
#[derive(Debug)]
struct Place {
    of: ResponderPlace,
    /// Made for the first client, because making keys takes time.
    tls: OnceLock<Result<TlsServer, TlsFailure>>,
}

impl Place {
    /// TLS for its clients; `None` if its server has none.
    fn tls(&self) -> Result<Option<&TlsServer>, TlsFailure> {
        let Some(settings) = &self.of.tls else { return Ok(None) };
        let made = self.tls.get_or_init(|| {
            let (own, mut rng) = (self.of.address.ip().to_string(), Seed(0).stream("preflight", 0));
            ServerConfigs::default().server(0, settings, 0, &own, &mut rng)
        });
        made.as_ref().map(Some).map_err(TlsFailure::clone)
    }
}

/// Answers probes at some addresses until it is dropped. Any other request gets an empty reply with status 200,
/// because devices check the health of their servers.
#[derive(Debug)]
pub struct Responder {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<String>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Responder {
    /// Listens on all these addresses, with the TLS of their servers.
    ///
    /// # Errors
    /// If an address cannot be used.
    pub fn start(places: &[ResponderPlace]) -> io::Result<Responder> {
        let listeners = places.iter().map(|place| listen(place.address)).collect::<io::Result<Vec<_>>>()?;
        let place = |of: &ResponderPlace| Arc::new(Place { of: of.clone(), tls: OnceLock::new() });
        let places: Vec<Arc<Place>> = places.iter().map(place).collect();
        let with_http3 = places.iter().filter(|place| place.of.http3 && place.of.tls.is_some());
        let bound = |place: &Arc<Place>| Ok((udp::bind(place.of.address)?, Arc::clone(place)));
        let sockets = with_http3.map(bound).collect::<io::Result<Vec<_>>>()?;
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let mut responder = Responder { stop, seen, threads: Vec::new() };
        responder.run("preflight", move |until, tokens| {
            while !until.load(Ordering::Relaxed) {
                accept(&listeners, &places, tokens);
            }
        })?;
        if !sockets.is_empty() {
            // If it cannot answer, the probe reports that.
            responder.run("preflight-udp", move |until, tokens| drop(answer_quic(sockets, until, tokens)))?;
        }
        Ok(responder)
    }

    /// Starts a thread, which ends when the responder stops.
    fn run(
        &mut self,
        name: &str,
        body: impl FnOnce(&AtomicBool, &Arc<Mutex<Vec<String>>>) + Send + 'static,
    ) -> io::Result<()> {
        let (until, tokens) = (Arc::clone(&self.stop), Arc::clone(&self.seen));
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || body(&until, &tokens))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Whether a probe with this token was received.
    pub fn has_seen(&self, token: &str) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|seen| seen == token)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// Accepts the clients that connect within [`LOOK`] and answers each on a thread.
fn accept(listeners: &[OwnedFd], places: &[Arc<Place>], tokens: &Arc<Mutex<Vec<String>>>) {
    let mut waiting: Vec<PollFd<'_>> = listeners.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    if poll(&mut waiting, Some(&limit)).is_err() {
        return std::thread::sleep(LOOK);
    }
    let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
    for ((listener, place), _) in listeners.iter().zip(places).zip(ready).filter(|(_, ready)| *ready) {
        if let Ok(fd) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
            let (stream, place, tokens) = (TcpStream::from(fd), Arc::clone(place), Arc::clone(tokens));
            // A silent client must not delay the others. If the system has no resources left, the probe reports that.
            std::thread::spawn(move || answer(stream, &place, &tokens));
        }
    }
}

fn answer(stream: TcpStream, place: &Place, tokens: &Mutex<Vec<String>>) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
    runtime.block_on(async {
        let net = Net::on_epoll(Nanos::from_millis(1), None)?;
        let mut conn = Channel::Plain(net.accepted(OwnedFd::from(stream)));
        if let Some(server) = place.tls()? {
            conn = tls::accept(&net, conn, server)?;
            until(&net, net.now() + PATIENCE, tls::handshake(&mut conn)).await?;
        }
        let Some(data) = read_head(&net, &mut conn).await? else { return Ok(()) };
        if polygraph_multiplex::may_be_http2(&data) {
            http2::answer(&net, conn, &data, PATIENCE, |request| reply_to(request, tokens)).await;
        } else {
            send_all(&mut conn, &reply_to(&data, tokens)).await?;
            // Some clients take an end without a farewell for an attack.
            conn.finish();
        }
        Ok(())
    })
}

/// Answers the connections that arrive at these sockets, over HTTP/3.
fn answer_quic(
    sockets: Vec<(Socket, Arc<Place>)>,
    stop: &AtomicBool,
    tokens: &Arc<Mutex<Vec<String>>>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
    runtime.block_on(async {
        let net = Net::on_epoll(Nanos::from_millis(1), None)?;
        for (socket, place) in sockets {
            let Some(server) = place.tls()? else { continue };
            let socket = UdpSocket::new(net.state().clone(), None, socket)?;
            let (link, tokens) = (net.clone(), Arc::clone(tokens));
            let accept = move |accepted: Result<Http3Server, EarlyFailure>| {
                if let Ok(connection) = accepted {
                    link.spawn(serve_quic(link.clone(), connection, Arc::clone(&tokens)));
                }
            };
            http3::listen(&net, socket, server, &Http2Settings::default(), accept)?;
        }
        while !stop.load(Ordering::Relaxed) {
            net.sleep_until(net.now() + Nanos::new(LOOK.as_nanos() as u64)).await;
        }
        Ok(())
    })
}

async fn serve_quic(net: Net, connection: Http3Server, tokens: Arc<Mutex<Vec<String>>>) {
    let answer =
        async |mut stream: Channel<<Net as Link>::Conn>, link: Net, tokens: Arc<Mutex<Vec<String>>>| {
            if let Ok(Some(head)) = read_head(&link, &mut stream).await {
                // If the reply does not arrive, the probe reports that.
                let _ = send_all(&mut stream, &reply_to(&head, &tokens)).await;
            }
        };
    let policy = http2::policy(PATIENCE);
    let accept = |stream| net.spawn(answer(Channel::from(stream), net.clone(), Arc::clone(&tokens)));
    connection.serve(&net, &policy, accept, |_| ()).await;
}

/// The head of a request, or the start of something else; `None` if the client has left.
async fn read_head<C: Conn>(net: &Net, conn: &mut C) -> io::Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    while !data.windows(4).any(|end| end == b"\r\n\r\n") && data.len() < 64 * 1024 {
        let part = conn.recv(|part| {
            data.extend_from_slice(part);
            part.is_empty()
        });
        if until(net, net.now() + PATIENCE, part).await? {
            return Ok(None);
        }
    }
    Ok(Some(data))
}

/// The reply to a request, whose token is kept if it is a probe.
fn reply_to(request: &[u8], tokens: &Mutex<Vec<String>>) -> Vec<u8> {
    match preflight::token(request) {
        Some(token) => {
            tokens.lock().unwrap_or_else(PoisonError::into_inner).push(token.to_owned());
            preflight::reply(token)
        }
        None => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
    }
}
