//! What fuzzers run: any bytes as what a client sends to a server, as what a server sends to a client, and as an HTTP/1 message
//! that is to be translated. Nothing may panic, and no connection may go on for ever.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Conn, Link, SECOND, send_all};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::message::outgoing::OutgoingMessage;
use polygraph_multiplex::{ClientConnection, Http2Settings, ReplyTo, ServerPolicy, server};
use polygraph_sim::VirtualLink;
use polygraph_testing::mutation::{Mutator, Random};

/// Runs `data`: its first byte selects what the others are. Returns whether a message came through.
pub fn run(data: &[u8]) -> bool {
    let Some((kind, rest)) = data.split_first() else { return false };
    match kind % 4 {
        0 | 1 => as_client(rest, usize::from(kind / 4) + 1),
        2 => as_server(rest),
        _ => as_message(rest, usize::from(kind / 4) + 1),
    }
}

fn as_client(data: &[u8], step: usize) -> bool {
    let link = VirtualLink::new(0);
    let (ours, theirs) = link.pair();
    let served: Rc<Cell<u32>> = Rc::default();
    let (count, task) = (Rc::clone(&served), link.clone());
    link.spawn(async move {
        let policy = ServerPolicy {
            settings: Http2Settings { streams: 4, window: 65_535 },
            form: TargetForm::Absolute,
            use_limit: 20,
            idle_timeout: Some(10 * SECOND),
        };
        let accept = |mut stream: polygraph_multiplex::Stream| {
            let count = Rc::clone(&count);
            task.spawn(async move {
                stream.set_deadline(Some(5 * SECOND));
                if stream.recv(|data| data.len()).await.is_ok() {
                    count.set(count.get() + 1);
                    let _ = send_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc").await;
                }
            });
        };
        server::serve(&task, theirs, &[], &policy, accept).await;
    });
    talk(&link, ours, false, [server::PREFACE, data].concat(), step);
    assert!(link.run(100 * SECOND), "the server never rests");
    link.end();
    served.get() > 0
}

fn as_server(data: &[u8]) -> bool {
    let link = VirtualLink::new(0);
    link.listen(SocketAddr::from(([10, 0, 0, 1], 80)), |_, _| ());
    let (ours, theirs) = link.pair();
    let answered: Rc<Cell<bool>> = Rc::default();
    let (given, task) = (Rc::clone(&answered), link.clone());
    link.spawn(async move {
        let client = ClientConnection::start(&task, theirs, "http", &Http2Settings::default());
        for _ in 0..2 {
            let mut stream = client.open_stream();
            stream.set_deadline(Some(task.now() + 5 * SECOND));
            let request = b"GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n";
            if send_all(&mut stream, request).await.is_ok() {
                while stream.recv(|data| data.len()).await.is_ok_and(|n| n > 0) {
                    given.set(true);
                }
            }
        }
    });
    talk(&link, ours, true, data.to_vec(), usize::MAX);
    assert!(link.run(100 * SECOND), "the client never rests");
    link.end();
    answered.get()
}

/// Sends bytes in pieces, if it `waits` after something has come, and reads what comes until the end.
fn talk(link: &VirtualLink, mut conn: impl Conn, waits: bool, data: Vec<u8>, step: usize) {
    conn.set_deadline(Some(50 * SECOND));
    link.spawn(async move {
        if waits {
            let _ = conn.recv(|data| data.len()).await;
        }
        for piece in data.chunks(step.max(data.len() / 50 + 1)) {
            if send_all(&mut conn, piece).await.is_err() {
                return;
            }
            polygraph_link::yield_now().await;
        }
        while conn.recv(|data| data.len()).await.is_ok_and(|n| n > 0) {}
    });
}

fn as_message(data: &[u8], step: usize) -> bool {
    let mut done = false;
    for mut message in [OutgoingMessage::request("http"), OutgoingMessage::reply(ReplyTo::Other)] {
        let mut pieces = data.chunks(step);
        done |= pieces.all(|piece| {
            let mut piece = piece;
            while !piece.is_empty() {
                let used = if message.expects_head() {
                    message.take_head(piece, |section| section.fields().count()).map(|(used, _)| used)
                } else {
                    message.take_content(piece, |_| ())
                };
                match used {
                    Ok(used) => piece = &piece[used..],
                    Err(_) => return false,
                }
            }
            true
        }) && message.finish().is_ok();
        let _ = message.trailers(|_, _| ());
    }
    done
}

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_be_bytes();
    [&size[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Valid sessions and messages, each with the byte that selects what it is.
pub fn corpus() -> Vec<Vec<u8>> {
    // RFC 7541, appendix A: GET or POST, http, /, and :authority.
    let (get, post): (&[u8], &[u8]) =
        (&[0x82, 0x86, 0x84, 0x41, 1, b'h'], &[0x83, 0x86, 0x84, 0x41, 1, b'h']);
    let (settings, ack) = (frame(4, 0, 0, &[0, 4, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9]), frame(4, 1, 0, &[]));
    let length = [post, &[0x5c, 1, b'3']].concat();
    let clients = [
        vec![settings.clone(), ack.clone(), frame(1, 5, 1, get), frame(1, 5, 3, get)],
        vec![
            settings.clone(),
            frame(1, 4, 1, &length),
            frame(0, 1, 1, b"abc"),
            frame(8, 0, 0, &[0, 0, 1, 0]),
        ],
        vec![
            settings.clone(),
            frame(1, 4, 1, post),
            frame(0, 0, 1, b"ab"),
            frame(1, 5, 1, &[0, 1, b'x', 1, b'y']),
        ],
        vec![
            settings.clone(),
            frame(1, 1, 1, &get[..3]),
            frame(9, 4, 1, &get[3..]),
            frame(3, 0, 1, &[0, 0, 0, 8]),
        ],
        vec![
            settings.clone(),
            frame(6, 0, 0, &[7; 8]),
            frame(2, 0, 1, &[0, 0, 0, 0, 9]),
            frame(1, 5, 1, get),
        ],
        vec![settings.clone(), frame(1, 5, 1, get), frame(7, 0, 0, &[0; 8])],
    ];
    let ok = [0x88, 0x5c, 1, b'3'];
    let servers = [
        vec![
            settings.clone(),
            ack.clone(),
            frame(1, 4, 1, &ok),
            frame(0, 1, 1, b"abc"),
            frame(1, 5, 3, &[0x89]),
        ],
        vec![
            settings.clone(),
            frame(1, 4, 1, &[0x08, 3, b'1', b'0', b'0']),
            frame(1, 4, 1, &[0x88]),
            frame(0, 1, 1, b"x"),
        ],
        vec![settings.clone(), frame(3, 0, 1, &[0, 0, 0, 7]), frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])],
        vec![
            settings,
            frame(1, 4, 1, &[0x88]),
            frame(0, 0, 1, b"ab"),
            frame(1, 5, 1, &[0, 1, b'x', 1, b'y']),
        ],
    ];
    let messages = [
        "POST http://h/x HTTP/1.1\r\nConnection: a\r\nA: b\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    ];
    let kinds = clients.into_iter().map(|frames| (0, frames.concat()));
    let kinds = kinds.chain(servers.into_iter().map(|frames| (2, frames.concat())));
    let kinds = kinds.chain(messages.into_iter().map(|text| (3, text.as_bytes().to_vec())));
    kinds.map(|(kind, bytes)| [vec![kind], bytes].concat()).collect()
}

/// A member of the corpus with a few changes.
pub fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = Mutator { changes: 5, longest: 4096, ..Mutator::default() }.mutate(corpus, random);
    if data.is_empty() {
        data.push(0);
    }
    data
}
