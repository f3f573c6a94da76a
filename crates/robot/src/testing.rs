//! Helpers for the tests of this crate: a virtual loop whose connections lead to a server that is a function.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_sim::{VirtualConn, VirtualLink};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::{Catalog, Distr, Oid, Selector};
use polygraph_wire::date;
use polygraph_wire::marks::XactMark;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Time of arrival.
    pub at: Nanos,
    /// Address at which it arrived.
    pub hop: SocketAddr,
    /// The head.
    pub head: String,
    /// Number of earlier requests on the connection.
    pub before: usize,
}

impl Ask {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let line =
            |line: &'_ str| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).is_some();
        self.head
            .lines()
            .find(|text| line(text))
            .and_then(|text| text.split_once(": "))
            .map(|(_, value)| value)
    }

    /// The path that is requested.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The object that is requested.
    pub fn oid(&self) -> Oid {
        polygraph_wire::url::parse(self.path().as_bytes()).unwrap()
    }
}

/// The server's reaction to a request.
pub enum Answer {
    /// Sends these bytes after a delay.
    Reply(Vec<u8>, Nanos),
    /// Sends the first part immediately and the second after a delay.
    Twice(Vec<u8>, Vec<u8>, Nanos),
    /// Closes the connection.
    Close,
}

/// The same contents with a life cycle, so that they can be validated.
pub fn with_life(mut catalog: Catalog) -> Catalog {
    let expires = Selector::only(Expiry { base: ExpiryBase::Now, gap: Distr::Const(60.0) });
    let life = LifeCycle { length: Distr::Const(1e6), variance: 0.0, with_lmt: 1.0, expires };
    catalog.contents.iter_mut().for_each(|content| content.life = Some(life.clone()));
    catalog
}

/// A first-hand reply with the complete requested object.
pub fn object(catalog: &Catalog, ask: &Ask, fields: &str) -> Vec<u8> {
    let oid = ask.oid();
    let cachable = if catalog.cachable(&oid) { "public" } else { "private,no-cache" };
    reply(ask, "200 OK", &format!("Cache-Control: {cachable}\r\n{fields}"), &catalog.body(&oid, b"").to_vec())
}

/// A first-hand reply with this body.
pub fn reply(ask: &Ask, status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 {status}\r\nDate: {}\r\nContent-Length: {}\r\n{fields}",
        date::format(EPOCH + ask.at / SECOND),
        body.len()
    )
    .into_bytes();
    let mark = XactMark::parse(ask.field("X-Xact").unwrap().as_bytes()).unwrap();
    out.extend_from_slice(b"X-Xact: ");
    XactMark { id: mark.id.mutant(), ..mark }.write(&mut out);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
    out
}

/// The loop.
pub struct TestLink {
    link: VirtualLink,
    asked: Rc<RefCell<Vec<Ask>>>,
}

/// The time of day when the clock starts: Sat, 21 Nov 2026 00:00:00 GMT.
pub const EPOCH: u64 = 1_795_219_200;

impl TestLink {
    /// A loop with this server at every address.
    pub fn new(server: impl FnMut(&Ask) -> Answer + 'static) -> TestLink {
        let (link, asked) = (VirtualLink::new(EPOCH), Rc::default());
        let server = Rc::new(RefCell::new(server));
        link.listen_anywhere({
            let (link, asked) = (link.clone(), Rc::clone(&asked));
            move |conn, hop| {
                link.spawn(serve(link.clone(), conn, hop, Rc::clone(&server), Rc::clone(&asked)));
            }
        });
        TestLink { link, asked }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Ask> {
        self.asked.borrow().clone()
    }
}

impl Deref for TestLink {
    type Target = VirtualLink;

    fn deref(&self) -> &VirtualLink {
        &self.link
    }
}

/// Answers the requests of a connection, and ignores their bodies.
async fn serve(
    link: VirtualLink,
    mut conn: VirtualConn,
    hop: SocketAddr,
    server: Rc<RefCell<impl FnMut(&Ask) -> Answer>>,
    asked: Rc<RefCell<Vec<Ask>>>,
) {
    let (mut received, mut before) = (Vec::new(), 0);
    loop {
        match conn.take().await {
            Ok(piece) if !piece.is_empty() => received.extend(piece),
            _ => return,
        }
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = received.drain(..end + 4).collect();
            let head = String::from_utf8(head).unwrap();
            let ask = Ask { at: link.now(), hop, head, before };
            let body = ask.field("Content-Length").map_or(0, |length| length.parse().unwrap());
            while received.len() < body {
                match conn.take().await {
                    Ok(piece) if !piece.is_empty() => received.extend(piece),
                    _ => return,
                }
            }
            received.drain(..body);
            before += 1;
            let answer = (server.borrow_mut())(&ask);
            asked.borrow_mut().push(ask);
            match answer {
                Answer::Reply(bytes, delay) => conn.send_at(link.now() + delay, bytes),
                Answer::Twice(bytes, more, delay) => {
                    conn.send_at(link.now(), bytes);
                    conn.send_at(link.now() + delay, more);
                }
                Answer::Close => return,
            }
        }
    }
}
