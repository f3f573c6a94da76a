//! A device that answers as a test wants it to: with its own bytes, or with what it makes of the origin's reply.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long one side of a connection may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a gateway waits for its server.
const SOON: Duration = Duration::from_millis(250);

/// What a proxy says that demands a password.
pub const DEMAND: &[u8] =
    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

/// What a device does with a request.
#[derive(Clone, Copy)]
pub enum Deed {
    /// Sends these bytes and closes.
    Say(&'static [u8]),
    /// Sends these bytes and keeps the connection open.
    SayAndHold(&'static [u8]),
    /// Sends these bytes, then those again and again with a pause after each time, until the client gives up.
    Repeat(&'static [u8], &'static [u8], Duration),
    /// Gets the reply from the origin and sends what this makes of it. The number is that of the request.
    Relay(fn(Reply, u64) -> Vec<u8>),
    /// Gets the reply to what this makes of the head of a request, with its body if the head still names one.
    Rewrite(fn(&str) -> String),
    /// Gets the reply to a request, and to what this makes of its head, which nobody wants.
    AskBesides(fn(&str) -> String),
    /// Answers uploads with this status and no body, as other servers than those of the test do, and passes on all other requests.
    AnswerUploads(&'static str),
    /// Answers uploads with its copies of the objects, and passes on what it has none for.
    AnswerUploadsFromCopies,
    /// Passes requests on, and answers with 504 what its server does not answer soon.
    Gateway,
    /// Passes requests on, and uses old copies of public objects if their server does not answer soon.
    UseOldCopies {
        /// It does not ask the server for what it has.
        always: bool,
    },
    /// Passes requests on to these ports of this host in turn, and to the other one if no server answers.
    Balance([u16; 2]),
    /// Demands a password for requests to this port, and passes on all others.
    Protect(u16),
    /// Asks the origin this many times, and passes on the last reply.
    AskAgain(usize),
    /// Opens another connection to the origin for each request, and keeps it without sending anything.
    Leak,
    /// Passes on one request after the other, each after this time.
    Queue(Duration),
    /// Passes requests on, but never answers the first of so many.
    Ignore(u64),
    /// Passes so many requests on, and answers none after them.
    FallSilent(u64),
    /// Breaks the connection with a reset, before the request is read or after.
    Reset {
        /// The request is read first.
        after_request: bool,
    },
}

/// A reply of an origin.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status line and fields, with the empty line.
    pub head: String,
    pub body: Vec<u8>,
    /// The reply before it on its way to robots, if there is one.
    pub last: Option<Box<Reply>>,
}

impl Reply {
    /// As it came.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }

    /// Without this field, or with another value.
    pub fn with(mut self, name: &str, value: Option<&str>) -> Reply {
        let prefix = format!("{}:", name.to_ascii_lowercase());
        let kept: Vec<&str> = self
            .head
            .lines()
            .filter(|line| !line.is_empty() && !line.to_ascii_lowercase().starts_with(&prefix))
            .collect();
        let added = value.map_or_else(String::new, |value| format!("{name}: {value}\r\n"));
        self.head = kept.join("\r\n") + "\r\n" + &added + "\r\n";
        self
    }

    /// With another status line.
    pub fn status(mut self, line: &str) -> Reply {
        let rest = self.head.split_once("\r\n").map_or("", |(_, rest)| rest).to_owned();
        self.head = format!("HTTP/1.1 {line}\r\n{rest}");
        self
    }

    /// With another body and its length.
    pub fn body(mut self, body: Vec<u8>) -> Reply {
        let length = body.len().to_string();
        self.body = body;
        self.with("Content-Length", Some(&length))
    }
}

/// A device. It ends when it is dropped.
pub struct Device {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Device {
    pub fn start(deed: Deed) -> Device {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let (told, requests) = (Arc::clone(&ends), Arc::new(AtomicU64::new(0)));
        let memory = Arc::default();
        let acceptor = std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let (requests, memory, ends) =
                    (Arc::clone(&requests), Arc::clone(&memory), Arc::clone(&told));
                // Clients that leave early are no business of a device.
                std::thread::spawn(move || drop(serve(client, deed, &requests, &memory, &ends)));
            }
        });
        Device { address, ends, acceptor: Some(acceptor) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// What a device remembers.
#[derive(Default)]
struct Memory {
    /// The last reply.
    last: Option<Reply>,
    /// Replies by the first line, or the URL, of their requests.
    copies: HashMap<String, Reply>,
}

fn serve(
    mut client: TcpStream,
    deed: Deed,
    requests: &AtomicU64,
    memory: &Mutex<Memory>,
    ends: &AtomicBool,
) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    if matches!(deed, Deed::Reset { after_request: false }) {
        return reset(&client);
    }
    let Some(request) = read_request(&mut client)? else { return Ok(()) };
    let number = requests.fetch_add(1, Ordering::Relaxed);
    match deed {
        Deed::Say(bytes) => client.write_all(bytes)?,
        Deed::SayAndHold(bytes) => {
            client.write_all(bytes)?;
            hold(&mut client);
        }
        Deed::Repeat(first, bytes, pause) => {
            client.write_all(first)?;
            while !ends.load(Ordering::Relaxed) {
                client.write_all(bytes)?;
                std::thread::sleep(pause);
            }
        }
        Deed::Relay(make) => {
            let reply = fetch(&request)?;
            let before = memory.lock().unwrap().last.replace(reply.clone());
            let made = make(Reply { last: before.map(Box::new), ..reply }, number);
            client.write_all(&made)?;
        }
        Deed::AskAgain(times) => {
            let replies: Vec<Reply> = (0..times).map(|_| fetch(&request)).collect::<Result<_, _>>()?;
            client.write_all(&replies[times - 1].bytes())?;
        }
        Deed::Leak => {
            let unused = TcpStream::connect(parts(&request.head).ok_or(ErrorKind::InvalidData)?.authority)?;
            client.write_all(&fetch(&request)?.bytes())?;
            client.shutdown(Shutdown::Write)?;
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(unused);
        }
        Deed::Queue(takes) => {
            let _turn = memory.lock().unwrap();
            std::thread::sleep(takes);
            client.write_all(&fetch(&request)?.bytes())?;
        }
        Deed::AnswerUploads(status) => client.write_all(&match upload(&request.head) {
            Some(target) => empty(status, target),
            None => fetch(&request)?.bytes(),
        })?,
        Deed::AnswerUploadsFromCopies => {
            let url = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
            let copy = upload(&request.head).and_then(|_| memory.lock().unwrap().copies.get(&url).cloned());
            let reply = copy.map_or_else(|| fetch(&request), Ok)?;
            client.write_all(&reply.bytes())?;
            memory.lock().unwrap().copies.insert(url, reply);
        }
        Deed::Rewrite(make) => client.write_all(&fetch(&request.rewritten(make))?.bytes())?,
        Deed::AskBesides(make) => {
            fetch(&request.rewritten(make))?;
            client.write_all(&fetch(&request)?.bytes())?;
        }
        Deed::Gateway => client.write_all(&fetch_within(&request, SOON).map_or_else(
            |_| b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            |reply| reply.bytes(),
        ))?,
        Deed::UseOldCopies { always } => {
            let wanted = request.head.lines().next().unwrap_or_default().to_owned();
            let copy = memory.lock().unwrap().copies.get(&wanted).cloned();
            let reply = match copy {
                Some(copy) if always => copy,
                Some(copy) => fetch_within(&request, SOON).unwrap_or(copy),
                None => fetch(&request)?,
            };
            if reply.head.contains("Cache-Control: public") {
                memory.lock().unwrap().copies.insert(wanted, reply.clone());
            }
            client.write_all(&reply.bytes())?;
        }
        Deed::Balance(ports) => {
            let order = if number.is_multiple_of(2) { ports } else { [ports[1], ports[0]] };
            let ask = |port: &u16| ask(TcpStream::connect(("127.0.0.1", *port))?, &request);
            let mut tried = order.iter().map(ask);
            let reply = tried.find_map(Result::ok).ok_or(ErrorKind::ConnectionRefused)?;
            client.write_all(&reply.bytes())?;
        }
        Deed::Protect(port) => {
            let wanted =
                parts(&request.head).is_some_and(|parts| parts.authority.ends_with(&format!(":{port}")));
            client.write_all(&if wanted { DEMAND.to_vec() } else { fetch(&request)?.bytes() })?;
        }
        Deed::FallSilent(from) if number >= from => hold(&mut client),
        Deed::Ignore(every) if number.is_multiple_of(every) => hold(&mut client),
        Deed::Ignore(_) | Deed::FallSilent(_) => client.write_all(&fetch(&request)?.bytes())?,
        Deed::Reset { .. } => return reset(&client),
    }
    client.shutdown(Shutdown::Write)?;
    hold(&mut client);
    Ok(())
}

/// Waits until the client closes its side.
fn hold(client: &mut TcpStream) {
    let mut bytes = [0; 1024];
    while client.read(&mut bytes).is_ok_and(|n| n > 0) {}
}

fn reset(client: &TcpStream) -> std::io::Result<()> {
    let now = rustix::net::sockopt::set_socket_linger(client, Some(Duration::ZERO));
    now.map_err(std::io::Error::from)
}

/// A request of a robot.
struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    /// With what this makes of its head, and with its body if the head still names one.
    fn rewritten(&self, make: fn(&str) -> String) -> Request {
        let head = make(&self.head);
        let body = if body_length(&head) > 0 { self.body.clone() } else { Vec::new() };
        Request { head, body }
    }
}

/// A request; `None` if the client closes without one.
fn read_request(from: &mut TcpStream) -> std::io::Result<Option<Request>> {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    let end = loop {
        if let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
        match from.read(&mut bytes)? {
            0 => return Ok(None),
            n => head.extend_from_slice(&bytes[..n]),
        }
    };
    let mut body = head.split_off(end);
    let head = String::from_utf8_lossy(&head).into_owned();
    let missing = body_length(&head).saturating_sub(body.len());
    from.take(missing as u64).read_to_end(&mut body)?;
    Ok(Some(Request { head, body }))
}

/// The length of the body that a head names.
fn body_length(head: &str) -> usize {
    let named = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse().ok());
    named.unwrap_or(0)
}

/// The server that an upload is for; `None` for other requests.
fn upload(request: &str) -> Option<&str> {
    let parts = parts(request)?;
    matches!(parts.method, "PUT" | "POST").then_some(parts.authority)
}

/// A reply without content, with the mark of this server.
fn empty(status: &str, target: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nX-Target: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .into_bytes()
}

/// Asks the origin that the request names.
fn fetch(request: &Request) -> std::io::Result<Reply> {
    fetch_within(request, PATIENCE)
}

/// Asks the origin that the request names, and waits no longer than this for each part of its reply.
fn fetch_within(request: &Request, patience: Duration) -> std::io::Result<Reply> {
    let origin = TcpStream::connect(parts(&request.head).ok_or(ErrorKind::InvalidData)?.authority)?;
    origin.set_read_timeout(Some(patience))?;
    ask(origin, request)
}

/// A request as a proxy gets it, or a server.
struct Parts<'a> {
    method: &'a str,
    authority: &'a str,
    path: &'a str,
    fields: &'a str,
}

fn parts(request: &str) -> Option<Parts<'_>> {
    let (line, fields) = request.split_once("\r\n")?;
    let mut words = line.split(' ');
    let (method, url) = (words.next()?, words.next()?);
    let (authority, path) = match url.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find('/')?),
        None => (fields.lines().find_map(|field| field.strip_prefix("Host: "))?, url),
    };
    Some(Parts { method, authority, path, fields })
}

/// Sends a request to an origin, and waits for the reply.
fn ask(mut origin: TcpStream, request: &Request) -> std::io::Result<Reply> {
    let wrong = || std::io::Error::from(ErrorKind::InvalidData);
    let Parts { method, path, fields, .. } = parts(&request.head).ok_or_else(wrong)?;
    let fields: Vec<&str> =
        fields.lines().filter(|field| !field.to_ascii_lowercase().contains("connection:")).collect();
    let sent = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{}\r\n", fields.join("\r\n"));
    origin.write_all(&[sent.as_bytes(), &request.body].concat())?;
    let mut reply = Vec::new();
    origin.read_to_end(&mut reply)?;
    let end = reply.windows(4).position(|end| end == b"\r\n\r\n").ok_or_else(wrong)? + 4;
    let body = reply.split_off(end);
    Ok(Reply { head: String::from_utf8_lossy(&reply).into_owned(), body, last: None })
}
