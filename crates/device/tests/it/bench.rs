//! A client and an origin that do as little as devices can be tried with.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polygraph_device::{Device, DeviceRole, Params, RunningDevice};

/// Bytes in the body of every reply.
pub const BODY: usize = 5000;

/// A server for any path: with `uncachable` in it, replies may not be stored, else for an hour.
pub struct Origin {
    pub address: SocketAddr,
    requests: Arc<AtomicU64>,
}

impl Origin {
    pub fn start() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                // A device that goes away takes its connections with it: no failure of the origin.
                std::thread::spawn(move || drop(serve(stream, &count)));
            }
        });
        Origin { address, requests }
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn serve(mut stream: TcpStream, count: &AtomicU64) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    loop {
        let mut first = String::new();
        if lines.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut line = String::new();
        while lines.read_line(&mut line)? > 2 {
            line.clear();
        }
        count.fetch_add(1, Ordering::Relaxed);
        let control = if first.contains("uncachable") { "no-store" } else { "max-age=3600" };
        let mut reply = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\nCache-Control: {control}\r\n\
             Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nDate: {}\r\n\r\n",
            http_date()
        )
        .into_bytes();
        reply.resize(reply.len() + BODY, b'x');
        stream.write_all(&reply)?;
    }
}

/// Now, as caches need it to tell an object's age.
fn http_date() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    polygraph_wire::date::format(now)
}

/// A device between a client and two origins.
pub struct Bench {
    pub device: RunningDevice,
    pub origins: [Origin; 2],
    role: DeviceRole,
}

impl Bench {
    pub fn start(name: &str, params: Params) -> Bench {
        let device = Device::find(name).unwrap();
        let origins = [Origin::start(), Origin::start()];
        let role = device.role();
        let behind = if role == DeviceRole::Forward {
            Vec::new()
        } else {
            origins.each_ref().map(|o| o.address).into()
        };
        let device = device.start(&Params { origins: behind, ..params }).unwrap_or_else(|e| panic!("{e}"));
        Bench { device, origins, role }
    }

    /// Asks for paths one after another over one connection. Returns how many requests the origins saw meanwhile.
    pub fn get(&self, paths: &[&str]) -> u64 {
        self.get_from(&self.origins[0].address.to_string(), paths)
    }

    /// The same with this authority in the URLs.
    pub fn get_from(&self, authority: &str, paths: &[&str]) -> u64 {
        self.ask(authority, paths, "", WHOLE)
    }

    /// Asks for a path as a browser does whose user wants a new copy. Returns how many requests the origins saw.
    pub fn reload(&self, path: &str) -> u64 {
        let fields = "Cache-Control: no-cache\r\nPragma: no-cache\r\n";
        self.ask(&self.origins[0].address.to_string(), &[path], fields, WHOLE)
    }

    /// Asks for the first ten bytes of a path, and gets a reply with this status and length. Returns how many requests the origins
    /// saw.
    pub fn part(&self, path: &str, expected: (u16, usize)) -> u64 {
        self.ask(&self.origins[0].address.to_string(), &[path], "Range: bytes=0-9\r\n", expected)
    }

    fn ask(&self, authority: &str, paths: &[&str], fields: &str, expected: (u16, usize)) -> u64 {
        let before = self.origin_requests();
        let mut stream = TcpStream::connect(self.device.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for path in paths {
            let target = match self.role {
                DeviceRole::Forward => format!("http://{authority}{path}"),
                _ => (*path).to_owned(),
            };
            let request = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            read_reply(&mut stream, path, expected);
        }
        self.origin_requests() - before
    }

    fn origin_requests(&self) -> u64 {
        self.origins.iter().map(Origin::requests).sum()
    }
}

/// Status and length of a reply with the whole object.
pub const WHOLE: (u16, usize) = (200, BODY);

fn read_reply(stream: &mut TcpStream, path: &str, (status, length): (u16, usize)) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut byte).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(read == 1 && head.len() < 10_000, "{path}: {}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {head}");
    assert!(head.to_ascii_lowercase().contains(&format!("content-length: {length}\r\n")), "{path}: {head}");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap_or_else(|e| panic!("body of {path}: {e}"));
    assert!(body.iter().all(|byte| *byte == b'x'), "{path}");
}
