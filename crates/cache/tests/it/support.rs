//! An origin that says exactly what a test tells it to, and a client that reads exactly what it gets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polygraph_cache::{Proxy, ProxyConfig};
use polygraph_wire::body::{reply_framing, request_framing};
use polygraph_wire::{BodyReader, Framing, parse_reply, parse_request};

/// What an origin does with a request, step by step.
pub enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits.
    Wait(Duration),
    /// Closes the connection.
    Close,
}

/// A request as an origin got it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Head and, decoded, body.
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The path in the request line.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// An origin on a port of its own.
pub struct Origin {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
}

impl Origin {
    /// Answers each request with what `script` says; connections persist unless a script closes them.
    pub fn start(script: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (seen, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (log, count, script) = (Arc::clone(&seen), Arc::clone(&connections), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                *count.lock().unwrap() += 1;
                let (log, script) = (Arc::clone(&log), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &log, &*script));
            }
        });
        Origin { address, seen, connections }
    }

    /// Answers each request with the same reply.
    pub fn with(reply: impl Into<Vec<u8>>) -> Origin {
        let reply = reply.into();
        Origin::start(move |_| vec![Act::Send(reply.clone())])
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    /// The URL of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `GET` of a path, with further lines of fields.
    pub fn get(&self, path: &str, fields: &[&str]) -> String {
        request("GET", &self.url(path), fields)
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Seen>>, script: &dyn Fn(&Seen) -> Vec<Act>) {
    let mut input = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut input) {
        log.lock().unwrap().push(request.clone());
        for act in script(&request) {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Act::Wait(time) => std::thread::sleep(time),
                Act::Close => return,
            }
        }
    }
}

fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<Seen> {
    let (len, framing) = loop {
        let parsed = parse_request(input, |head| (head.len, request_framing(head)));
        if let Some((len, framing)) = parsed.expect("the proxy sends well-formed heads") {
            break (len, framing.expect("the proxy frames bodies well"));
        }
        more(stream, input).ok().filter(|&n| n > 0)?;
    };
    let head = String::from_utf8(input.drain(..len).collect()).expect("an ASCII head");
    if head.contains("Expect: 100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let mut body = Vec::new();
    let complete = read_body(stream, input, framing, &mut body).ok()?;
    complete.then_some(Seen { head, body })
}

/// Reads a body; false if it ends too early.
fn read_body(
    stream: &mut TcpStream,
    input: &mut Vec<u8>,
    framing: Framing,
    body: &mut Vec<u8>,
) -> io::Result<bool> {
    let mut reader = BodyReader::new(framing);
    loop {
        let fed = reader.feed(input, |piece| body.extend_from_slice(piece)).map_err(io::Error::other)?;
        input.drain(..fed.consumed);
        if fed.done {
            return Ok(true);
        }
        if more(stream, input)? == 0 {
            return Ok(reader.ends_at_close());
        }
    }
}

fn more(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 16 * 1024];
    let n = stream.read(&mut buffer)?;
    input.extend_from_slice(&buffer[..n]);
    Ok(n)
}

/// A request for a proxy.
pub fn request(method: &str, url: &str, fields: &[&str]) -> String {
    let mut text = format!("{method} {url} HTTP/1.1\r\nHost: ignored\r\n");
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text + "\r\n"
}

/// A reply of an origin with a body of known length.
pub fn reply(fields: &[&str], body: &str) -> String {
    let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len());
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text + "\r\n" + body
}

/// A reply as a client got it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body came to its proper end.
    pub complete: bool,
}

impl Reply {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text body")
    }
}

/// A client's connection to a proxy.
pub struct Client {
    pub stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    /// Connects.
    pub fn of(proxy: &Proxy) -> Client {
        let stream = TcpStream::connect(proxy.local_addr()).expect("the proxy accepts");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Client { stream, input: Vec::new() }
    }

    /// Sends bytes.
    pub fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).expect("the proxy reads");
    }

    /// Reads a reply, to `HEAD` or to something else; `None` at the end of the connection.
    pub fn try_read(&mut self, to_head: bool) -> Option<Reply> {
        let (status, len, framing) = loop {
            let parsed =
                parse_reply(&self.input, |head| (head.status, head.len, reply_framing(head, to_head)));
            if let Some(found) = parsed.expect("the proxy sends well-formed heads") {
                break found;
            }
            more(&mut self.stream, &mut self.input).ok().filter(|&n| n > 0)?;
        };
        let framing = framing.expect("the proxy frames bodies well");
        let head = String::from_utf8(self.input.drain(..len).collect()).expect("an ASCII head");
        let mut body = Vec::new();
        let complete = read_body(&mut self.stream, &mut self.input, framing, &mut body).unwrap_or(false);
        Some(Reply { status, head, body, complete })
    }

    /// Reads a reply that must come.
    pub fn read(&mut self) -> Reply {
        self.try_read(false).expect("a reply")
    }

    /// Sends a request and reads its reply.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Reply {
        self.send(request);
        self.read()
    }

    /// True if the proxy has closed and nothing is left to read.
    pub fn is_at_end(&mut self) -> bool {
        self.input.is_empty() && matches!(more(&mut self.stream, &mut self.input), Ok(0))
    }
}

/// A proxy with usual settings and two loops.
pub fn proxy() -> Proxy {
    proxy_with(|_| ())
}

/// A proxy with changed settings.
pub fn proxy_with(change: impl FnOnce(&mut ProxyConfig)) -> Proxy {
    let mut config = ProxyConfig { loops: 2, cache_bytes: 8 << 20, ..ProxyConfig::default() };
    change(&mut config);
    Proxy::start(config).expect("a proxy")
}
