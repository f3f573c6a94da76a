//! Requests that never have the form of HTTP/1, and what a robot learns of the heads of replies.

use std::future::poll_fn;

use polygraph_multiplex::message::request::{FieldName, RequestLine};

use super::*;

const LINE: RequestLine<'_> = RequestLine { method: "GET", authority: "www.example.com", path: b"/300" };

/// Sends a request with a field of this size. Returns what `send_request` did, and the reply, whose head must have an index.
async fn exchange(mut stream: Http3Stream, size: usize) -> (io::Result<Option<usize>>, Vec<u8>) {
    let sent = stream.send_request(&LINE, |fields| {
        fields.skip("Host", LINE.authority.len());
        fields.add(&FieldName::new("X-Xact"), |out| out.resize(size, b'x'));
    });
    if !matches!(sent, Ok(Some(_))) {
        return (sent, Vec::new());
    }
    let again = stream.send_request(&LINE, |_| {});
    assert!(matches!(again, Ok(None)), "{again:?}");
    let (mut all, mut indexed) = (Vec::new(), Vec::new());
    loop {
        let received = poll_fn(|cx| {
            stream.poll_recv_head(cx, |data, index| {
                indexed.push(index.is_some_and(|index| index.is_complete()));
                all.extend_from_slice(data);
                data.len()
            })
        });
        if received.await.unwrap() == 0 {
            break;
        }
    }
    assert!(indexed[0] && !indexed[1..].contains(&true), "{indexed:?}");
    (sent, all)
}

#[test]
fn requests_need_no_text_and_replies_have_an_index() {
    // The second server takes so little at once that the request follows in pieces.
    for (window, size) in [(65_536, 5), (2_000, 10_000)] {
        let settings = Http2Settings { window, ..Http2Settings::default() };
        let bench = Bench::new(tls(), ServerPolicy { settings, ..policy() }, Nanos::ZERO);
        let (connection, link) = (bench.connect("www.example.com"), bench.link.clone());
        let (sent, reply) = bench.run(async move {
            connection.ready(&link, None).await.unwrap();
            exchange(connection.open_stream(), size).await
        });
        let head =
            format!("GET /300 HTTP/1.1\r\nHost: www.example.com\r\nX-Xact: {}\r\n\r\n", "x".repeat(size));
        assert_eq!(sent.unwrap(), Some(head.len()));
        assert!(reply.starts_with(b"HTTP/1.1 200 ") && reply.ends_with(&content(300)));
    }
}

/// Whoever must wait for the server's limit writes the request as text.
#[test]
fn requests_that_must_wait_are_text() {
    let settings = Http2Settings { streams: 1, ..Http2Settings::default() };
    let bench = Bench::new(tls(), ServerPolicy { settings, ..policy() }, Nanos::from_millis(100));
    let (connection, link) = (bench.connect("www.example.com"), bench.link.clone());
    let (sent, size) = bench.run(async move {
        connection.ready(&link, None).await.unwrap();
        let mut first = connection.open_stream();
        let sent = first.send_request(&LINE, |_| {});
        assert!(matches!(sent, Ok(Some(_))), "{sent:?}");
        let mut second = connection.open_stream();
        let sent = second.send_request(&LINE, |_| {}).unwrap();
        let (_, body) = read_message(&mut first).await.unwrap();
        drop(first);
        assert_eq!(body, content(300));
        (sent, get(second, 20).await.unwrap())
    });
    assert_eq!((sent, size), (None, 20));
}
