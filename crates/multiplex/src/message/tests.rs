//! The translation by example, and its properties.

use proptest::prelude::*;

use super::fields::is_connection_specific;
use super::heads::{ReplyHeadWriter, RequestHeadWriter};
use super::incoming::{IncomingMessage, Placed, TargetForm};
use super::outgoing::{OutgoingMessage, Start};
use super::{MessageError, ReplyTo};

type Fields = Vec<(String, Vec<u8>)>;

/// A message as a stream carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Carried {
    /// Pseudo-header fields and fields of each field section before the content.
    sections: Vec<Fields>,
    content: Vec<u8>,
    trailers: Option<Fields>,
    /// Whether the last field section ended the stream.
    is_last: bool,
    /// Whether the message was complete when its bytes ended, without the end of the connection.
    is_done: bool,
}

fn pseudo(start: &Start<'_>) -> Fields {
    let field = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    match start {
        Start::Reply { status } => vec![field(":status", &status.to_string())],
        Start::Request { method, scheme, authority, path } => {
            let optional = [
                (":scheme", scheme.map(str::to_owned)),
                (":authority", authority.map(str::to_owned)),
                (":path", path.as_ref().map(|path| path.to_string())),
            ];
            let mut fields = vec![field(":method", method)];
            fields.extend(optional.iter().filter_map(|(name, value)| Some(field(name, value.as_ref()?))));
            fields
        }
    }
}

/// Takes `text` apart, in pieces of `step` bytes.
fn carry(mut message: OutgoingMessage, text: &[u8], step: usize) -> Result<Carried, MessageError> {
    let mut carried = Carried::default();
    for mut piece in text.chunks(step) {
        while !piece.is_empty() {
            let used = if message.expects_head() {
                let (used, section) = message.take_head(piece, |section| {
                    let mut fields = pseudo(&section.start);
                    fields.extend(
                        section.fields().map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec())),
                    );
                    (fields, section.is_last)
                })?;
                if let Some((fields, is_last)) = section {
                    carried.sections.push(fields);
                    carried.is_last = is_last;
                }
                used
            } else {
                message.take_content(piece, |bytes| carried.content.extend_from_slice(bytes))?
            };
            piece = &piece[used..];
        }
    }
    carried.is_done = message.is_done();
    message.finish()?;
    if message.has_trailers() {
        let mut trailers = Fields::new();
        message.trailers(|name, value| trailers.push((name.to_ascii_lowercase(), value.to_vec())))?;
        carried.trailers = Some(trailers);
    }
    Ok(carried)
}

fn request(text: &str) -> Result<Carried, MessageError> {
    carry(OutgoingMessage::request("http"), text.as_bytes(), usize::MAX)
}

fn reply(text: &str, to: ReplyTo) -> Result<Carried, MessageError> {
    carry(OutgoingMessage::reply(to), text.as_bytes(), usize::MAX)
}

/// Field sections as text, one line for each field.
fn lines(sections: &[Fields]) -> Vec<String> {
    let line = |(name, value): &(String, Vec<u8>)| format!("{name}={}", String::from_utf8_lossy(value));
    sections.iter().flatten().map(line).collect()
}

fn pairs(fields: &Fields) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields.iter().map(|(name, value)| (name.as_bytes(), &value[..]))
}

fn request_head<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    is_last: bool,
    form: TargetForm,
    out: &mut Vec<u8>,
) -> Result<IncomingMessage, MessageError> {
    let mut memory = Vec::new();
    let mut head = RequestHeadWriter::new(form, &mut memory);
    fields.for_each(|(name, value)| head.field(name, value, out));
    head.end(is_last, out).map(|(message, _)| message)
}

fn reply_head(
    fields: &Fields,
    is_last: bool,
    to: ReplyTo,
    out: &mut Vec<u8>,
) -> Result<Option<IncomingMessage>, MessageError> {
    let mut head = ReplyHeadWriter::new(to, None);
    pairs(fields).for_each(|(name, value)| head.field(name, value, out));
    head.end(is_last, out)
}

/// Puts a message together again, its content in pieces of `step` bytes.
fn put_together(
    carried: &Carried,
    to: ReplyTo,
    form: TargetForm,
    step: usize,
) -> Result<Vec<u8>, MessageError> {
    let mut out = Vec::new();
    let (last, interim) = carried.sections.split_last().expect("a message has a field section");
    for section in interim {
        let end = reply_head(section, false, to, &mut out)?;
        assert!(end.is_none(), "an interim reply");
    }
    let is_last = carried.is_last;
    let mut message = match last[0].0.as_str() {
        ":status" => reply_head(last, is_last, to, &mut out)?.expect("a final reply"),
        _ => request_head(pairs(last), is_last, form, &mut out)?,
    };
    if !is_last {
        for piece in carried.content.chunks(step.max(1)) {
            if message.content(piece, &mut out)? == Placed::AsIs {
                out.extend_from_slice(piece);
            }
        }
        message.end(pairs(carried.trailers.as_ref().unwrap_or(&Vec::new())), &mut out)?;
    }
    Ok(out)
}

#[test]
fn requests_become_field_sections() {
    let carried = request(
        "GET http://www.a.test:8080/x?y HTTP/1.1\r\nAccept: */*\r\nHOST: other\r\nConnection: close, X-Hop\r\n\
         X-Hop: 1\r\nProxy-Connection: close\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nTE: gzip\r\nX-Xact:  a b \r\n\r\n",
    )
    .unwrap();
    let expected = [
        ":method=GET",
        ":scheme=http",
        ":authority=www.a.test:8080",
        ":path=/x?y",
        "accept=*/*",
        "x-xact=a b",
    ];
    assert_eq!(lines(&carried.sections), expected);
    assert!(carried.is_last && carried.is_done);
    for (text, expected) in [
        (
            "GET /a HTTP/1.0\r\nHost: h\r\nTE: trailers\r\n\r\n",
            ":scheme=http|:authority=h|:path=/a|te=trailers",
        ),
        ("GET /a HTTP/1.1\r\n\r\n", ":scheme=http|:path=/a"),
        ("GET https://h HTTP/1.1\r\n\r\n", ":scheme=https|:authority=h|:path=/"),
        ("GET http://h?q HTTP/1.1\r\n\r\n", ":scheme=http|:authority=h|:path=/?q"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", ":scheme=http|:authority=h|:path=*"),
        ("OPTIONS http://h HTTP/1.1\r\n\r\n", ":scheme=http|:authority=h|:path=*"),
        ("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nContent-Length: 3\r\n\r\n", ":authority=h:443"),
    ] {
        assert_eq!(lines(&request(text).unwrap().sections)[1..].join("|"), expected, "{text}");
    }
}

#[test]
fn content_crosses_without_its_framing() {
    let carried =
        request("POST /u HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
            .unwrap();
    assert_eq!((&carried.content[..], carried.is_last, carried.is_done), (&b"hello"[..], false, true));
    assert_eq!(lines(&carried.sections)[4..], ["content-length=5", "expect=100-continue"]);
    let chunks = "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 9\r\nContent-Length: 7\r\n\r\n";
    let carried =
        request(&format!("PUT /u HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"))
            .unwrap();
    assert_eq!(carried.content, b"abcde");
    assert_eq!(lines(&carried.sections).len(), 4, "no framing crosses");
    assert_eq!(carried.trailers, Some(vec![("x-sum".to_owned(), b"9".to_vec())]));
    let carried = reply("HTTP/1.0 200 OK\r\nServer: s\r\n\r\nuntil the end", ReplyTo::Other).unwrap();
    assert_eq!(
        (carried.content.len(), carried.is_done),
        (13, false),
        "only the end of the connection ends it"
    );
}

#[test]
fn replies_without_content() {
    let length = "Content-Length: 7\r\n\r\n";
    for (status, to, keeps_length) in
        [(200, ReplyTo::Head, true), (304, ReplyTo::Other, true), (204, ReplyTo::Other, false)]
    {
        let carried = reply(&format!("HTTP/1.1 {status} X\r\n{length}"), to).unwrap();
        assert!(carried.is_last && carried.is_done, "{status}");
        assert_eq!(lines(&carried.sections).len(), 1 + usize::from(keeps_length), "{status}");
        let together = put_together(&carried, to, TargetForm::Origin, 1).unwrap();
        let field = if keeps_length { "content-length: 7\r\n" } else { "" };
        assert_eq!(String::from_utf8(together).unwrap(), format!("HTTP/1.1 {status} \r\n{field}\r\n"));
    }
    let carried = reply(&format!("HTTP/1.1 200 OK\r\n{length}tunnel"), ReplyTo::Connect).unwrap();
    assert_eq!(
        (lines(&carried.sections), carried.content),
        (vec![":status=200".to_owned()], b"tunnel".to_vec())
    );
    assert_eq!(reply(&format!("HTTP/1.1 200 OK\r\n{length}"), ReplyTo::Other), Err(MessageError::Incomplete));
}

#[test]
fn interim_replies_come_first() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let carried = reply(text, ReplyTo::Other).unwrap();
    let expected = [":status=100", ":status=103", "link=</a>", ":status=200", "content-length=0"];
    assert_eq!((carried.sections.len(), lines(&carried.sections)), (3, expected.map(str::to_owned).to_vec()));
    let together = put_together(&carried, ReplyTo::Other, TargetForm::Origin, 1).unwrap();
    let expected =
        "HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 \r\nlink: </a>\r\n\r\nHTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n";
    assert_eq!(String::from_utf8(together).unwrap(), expected);
    assert_eq!(reply("HTTP/1.1 101 Switching\r\n\r\n", ReplyTo::Other), Err(MessageError::Malformed));
}

#[test]
fn what_is_no_message_is_an_error() {
    for (text, error) in [
        ("nonsense\r\n\r\n", MessageError::Malformed),
        ("GET ftp:x HTTP/1.1\r\n\r\n", MessageError::Pseudo(":path")),
        ("GET / HTTP/1.1\r\n\r\nmore", MessageError::Excess),
        ("GET / HTTP/1.1\r\nHost", MessageError::Incomplete),
        ("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nx", MessageError::Incomplete),
        ("POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", MessageError::Malformed),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx", MessageError::Malformed),
    ] {
        assert_eq!(request(text), Err(error), "{text}");
    }
    let endless = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(super::outgoing::MAX_HEAD));
    assert_eq!(request(&endless), Err(MessageError::HeadTooLarge));
}

fn receive(
    pseudo: [Option<&str>; 4],
    fields: &[(&str, &str)],
    form: TargetForm,
) -> Result<String, MessageError> {
    let pseudo = [":method", ":scheme", ":authority", ":path"].into_iter().zip(pseudo);
    let pseudo = pseudo.filter_map(|(name, value)| Some((name, value?)));
    let all = pseudo.chain(fields.iter().copied());
    let mut out = Vec::new();
    request_head(all.map(|(name, value)| (name.as_bytes(), value.as_bytes())), true, form, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn received_requests_are_checked() {
    let get = [Some("GET"), Some("http"), Some("h"), Some("/x")];
    for (pseudo, fields, expected) in [
        (get, vec![], "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"),
        (get, vec![("host", "H"), ("a", "b")], "GET /x HTTP/1.1\r\nHost: h\r\na: b\r\n\r\n"),
        (
            [Some("GET"), Some("http"), None, Some("/")],
            vec![("host", "h")],
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        (
            get,
            vec![("cookie", "a=1"), ("b", "c"), ("cookie", "d=2")],
            "GET /x HTTP/1.1\r\nHost: h\r\nb: c\r\ncookie: a=1; d=2\r\n\r\n",
        ),
        (
            [Some("OPTIONS"), Some("http"), Some("h"), Some("*")],
            vec![],
            "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        ([Some("CONNECT"), None, Some("h:1"), None], vec![], "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n"),
        (
            get,
            vec![("content-length", "0"), ("content-length", "0")],
            "GET /x HTTP/1.1\r\nHost: h\r\ncontent-length: 0\r\n\r\n",
        ),
    ] {
        assert_eq!(receive(pseudo, &fields, TargetForm::Origin).as_deref(), Ok(expected));
    }
    let absolute = receive(get, &[], TargetForm::Absolute);
    assert_eq!(absolute.as_deref(), Ok("GET http://h/x HTTP/1.1\r\nHost: h\r\n\r\n"));
    for (pseudo, fields, error) in [
        ([None, get[1], get[2], get[3]], vec![], MessageError::Pseudo(":method")),
        ([Some("G T"), get[1], get[2], get[3]], vec![], MessageError::Pseudo(":method")),
        ([get[0], None, get[2], get[3]], vec![], MessageError::Pseudo(":scheme")),
        ([get[0], Some("h/"), get[2], get[3]], vec![], MessageError::Pseudo(":scheme")),
        ([get[0], get[1], Some("h\r\nA: b"), get[3]], vec![], MessageError::Pseudo(":authority")),
        ([get[0], get[1], get[2], None], vec![], MessageError::Pseudo(":path")),
        ([get[0], get[1], get[2], Some("")], vec![], MessageError::Pseudo(":path")),
        ([get[0], get[1], get[2], Some("/ HTTP/1.1")], vec![], MessageError::Pseudo(":path")),
        ([get[0], get[1], get[2], Some("*")], vec![], MessageError::Pseudo(":path")),
        ([Some("CONNECT"), get[1], get[2], get[3]], vec![], MessageError::Pseudo(":path")),
        (get, vec![("host", "other")], MessageError::Host),
        (get, vec![("A", "b")], MessageError::FieldName),
        (get, vec![("a b", "b")], MessageError::FieldName),
        (get, vec![("", "b")], MessageError::FieldName),
        (get, vec![(":path", "/")], MessageError::Pseudo(":path")),
        (get, vec![("a", "b\nc")], MessageError::FieldValue),
        (get, vec![("a", " b")], MessageError::FieldValue),
        (get, vec![("connection", "close")], MessageError::ConnectionField),
        (get, vec![("transfer-encoding", "chunked")], MessageError::ConnectionField),
        (get, vec![("te", "gzip")], MessageError::ConnectionField),
        (get, vec![("content-length", "1"), ("content-length", "2")], MessageError::Length),
        (get, vec![("content-length", "-1")], MessageError::Length),
        (get, vec![("content-length", "1")], MessageError::Length),
    ] {
        assert_eq!(receive(pseudo, &fields, TargetForm::Origin), Err(error), "{pseudo:?} {fields:?}");
    }
}

#[test]
fn content_must_have_the_announced_length() {
    let with_length = |content: &str| Carried {
        sections: vec![vec![
            (":status".to_owned(), b"200".to_vec()),
            ("content-length".to_owned(), b"3".to_vec()),
        ]],
        content: content.into(),
        ..Carried::default()
    };
    let check = |content: &str, to, expected: Result<&str, MessageError>| {
        let together = put_together(&with_length(content), to, TargetForm::Origin, 2);
        let body = together
            .map(|text| String::from_utf8(text).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned());
        assert_eq!(body.as_deref(), expected.as_ref().map(|text| *text), "{content}");
    };
    check("abc", ReplyTo::Other, Ok("abc"));
    check("ab", ReplyTo::Other, Err(MessageError::Length));
    check("abcd", ReplyTo::Other, Err(MessageError::Length));
    check("", ReplyTo::Head, Ok(""));
    check("a", ReplyTo::Head, Err(MessageError::Content));
    check("any", ReplyTo::Connect, Ok("any"));
}

fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z][A-Za-z0-9-]{0,12}",
        Just("Connection".to_owned()),
        Just("X-Xact".to_owned()),
        Just("Cookie".to_owned()),
        Just("Keep-Alive".to_owned()),
    ]
}

/// Header fields that leave the framing alone.
fn header_lines() -> impl Strategy<Value = Vec<(String, String)>> {
    let is_framing = |name: &str| {
        ["content-length", "transfer-encoding", "host", "te"].contains(&&*name.to_ascii_lowercase())
    };
    prop::collection::vec((field_name(), "[!-~]([ -~]{0,20}[!-~])?"), 0..8)
        .prop_map(move |fields| fields.into_iter().filter(|(name, _)| !is_framing(name)).collect())
}

fn text_of(start: &str, fields: &[(String, String)], body: &[u8], chunk: Option<usize>) -> Vec<u8> {
    let mut text = format!("{start}\r\n").into_bytes();
    for (name, value) in fields {
        text.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    match chunk {
        None => {
            text.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            text.extend_from_slice(body);
        }
        Some(size) => {
            text.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in body.chunks(size) {
                text.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
                text.extend_from_slice(piece);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
        }
    }
    text
}

proptest! {
    #[test]
    fn messages_survive_the_way_there_and_back(
        is_request in any::<bool>(),
        fields in header_lines(),
        body in prop::collection::vec(any::<u8>(), 0..200),
        chunk in prop::option::of(1usize..50),
        steps in (1usize..300, 1usize..100),
        absolute in any::<bool>(),
    ) {
        let (start, message) = match (is_request, absolute) {
            (true, true) => ("POST http://h.test:81/a?b HTTP/1.1", OutgoingMessage::request("http")),
            (true, false) => ("POST /a?b HTTP/1.1\r\nHost: h.test:81", OutgoingMessage::request("http")),
            (false, _) => ("HTTP/1.1 200 OK", OutgoingMessage::reply(ReplyTo::Other)),
        };
        let text = text_of(start, &fields, &body, chunk);
        let carried = carry(message, &text, steps.0).unwrap();
        prop_assert_eq!(&carried.content, &body);
        prop_assert!(carried.is_done);
        let section = &carried.sections[0];
        prop_assert!(section.iter().all(|(name, _)| *name == name.to_ascii_lowercase()));
        prop_assert!(section.iter().all(|(name, _)| !is_connection_specific(name) && name != "host"));
        let form = if absolute { TargetForm::Absolute } else { TargetForm::Origin };
        let together = put_together(&carried, ReplyTo::Other, form, steps.1).unwrap();
        // What the other side would send on is the same message again.
        let again = match is_request {
            true => OutgoingMessage::request("http"),
            false => OutgoingMessage::reply(ReplyTo::Other),
        };
        let again = carry(again, &together, steps.1).unwrap();
        prop_assert_eq!(&again.content, &carried.content);
        let sorted = |section: &Fields| {
            let cookies: Vec<_> = section.iter().filter(|(name, _)| name == "cookie").map(|(_, value)| &value[..]).collect();
            let mut fields: Fields = section.iter().filter(|(name, _)| name != "cookie").cloned().collect();
            fields.push(("cookie".to_owned(), cookies.join(&b"; "[..])));
            fields.sort();
            fields
        };
        prop_assert_eq!(sorted(&again.sections[0]), sorted(section));
    }

    #[test]
    fn cutting_a_message_anywhere_changes_nothing(step in 1usize..40, chunk in prop::option::of(1usize..20)) {
        let text = text_of("HTTP/1.1 200 OK", &[("A".into(), "b".into())], b"some content here", chunk);
        let whole = carry(OutgoingMessage::reply(ReplyTo::Other), &text, usize::MAX);
        prop_assert_eq!(carry(OutgoingMessage::reply(ReplyTo::Other), &text, step), whole);
    }

    #[test]
    fn no_field_can_become_a_line_of_its_own(
        name in prop::collection::vec(any::<u8>(), 0..12),
        value in prop::collection::vec(any::<u8>(), 0..24),
        path in prop::collection::vec(any::<u8>(), 0..24),
        authority in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let start: [(&[u8], &[u8]); 4] =
            [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", &authority), (b":path", &path)];
        let mut out = Vec::new();
        let fields = start.into_iter().chain([(&name[..], &value[..])]);
        if request_head(fields, true, TargetForm::Absolute, &mut out).is_ok() {
            let read = polygraph_wire::parse_request(&out, |head| (head.headers.len(), head.len));
            let expected = 1 + usize::from(name != b"host");
            prop_assert_eq!(read, Ok(Some((expected, out.len()))), "{}", out.escape_ascii());
        }
    }

    #[test]
    fn random_bytes_never_panic(
        data in prop::collection::vec(any::<u8>(), 0..200),
        step in 1usize..50,
    ) {
        let _ = carry(OutgoingMessage::request("http"), &data, step);
        let _ = carry(OutgoingMessage::reply(ReplyTo::Connect), &data, step);
        let text = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &data[..]].concat();
        let _ = carry(OutgoingMessage::reply(ReplyTo::Other), &text, step);
    }
}
