use polygraph_multiplex::message::outgoing::OutgoingMessage;

use super::*;

/// Whichever way a request is passed on, its frame and its size are the same.
#[test]
fn requests_need_no_text() {
    let long = "x".repeat(20_000);
    let usual = "/a/path/of/usual/length/that/needs/two/bytes/for/the/length/of/its/frame";
    for (method, path) in [("GET", "/"), ("GET", usual), ("PURGE", "/b"), ("GET", &long)] {
        let path = format!("/{}", path.trim_start_matches('/'));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nAccept: */*\r\nHost: h:1\r\nX-Xact:  1 \r\nX-Rem-World: 2\r\nPriority: u=1\r\nVary: Origin\r\nConnection: close\r\n\r\n"
        );
        for limit in [u64::MAX, 100] {
            let (mut frame, mut message) = (b"before".to_vec(), OutgoingMessage::request("https"));
            let (_, to) = message
                .take_head(head.as_bytes(), |section| encode(section, limit, &mut frame))
                .expect("a head");
            let line = RequestLine { method, authority: "h:1", path: path.as_bytes() };
            let mut buffers = Buffers { frames: b"before".to_vec(), ..Buffers::default() };
            let size = encode_request(&line, ("https", limit), &mut buffers, |fields| {
                let mut add = |name, value: &[u8]| {
                    fields.add(&FieldName::new(name), |out| out.extend_from_slice(value));
                };
                add("Accept", b"*/*");
                add("X-Xact", b" 1 ");
                add("X-Rem-World", b"2");
                add("Priority", b"u=1");
                add("Vary", b"Origin");
                fields.skip("Host", 3);
                fields.skip("Connection", 5);
            });
            if limit == u64::MAX {
                assert_eq!((to, size), (Some(Ok(Some(ReplyTo::Other))), Ok(head.len())));
                assert_eq!(frame, buffers.frames);
            } else {
                let refused = Err(MessageError::HeadTooLarge);
                assert_eq!((to, size), (Some(refused.map(|()| None)), refused.map(|()| 0)));
            }
        }
    }
}

#[test]
fn fields_that_cannot_be_sent_are_refused() {
    let line = RequestLine { method: "GET", authority: "h", path: b"/" };
    let sent = encode_request(&line, ("https", u64::MAX), &mut Buffers::default(), |fields| {
        fields.add(&FieldName::new("Accept"), |out| out.extend_from_slice(b"a\r\nb"));
    });
    assert_eq!(sent, Err(MessageError::FieldValue));
}
