use polygraph_wire::head::{ReplyHead, parse_reply_of};
use polygraph_wire::parse_reply;

use super::*;

type Fields<'a> = &'a [(&'a str, &'a str)];

fn request(fields: Fields<'_>, is_last: bool, form: TargetForm) -> Result<(String, ReplyTo), MessageError> {
    let (mut memory, mut out) = (Vec::new(), Vec::new());
    let mut head = RequestHeadWriter::new(form, &mut memory);
    fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes(), &mut out));
    let (_, to) = head.end(is_last, &mut out)?;
    Ok((String::from_utf8(out).unwrap(), to))
}

fn reply(fields: Fields<'_>, is_last: bool, to: ReplyTo) -> Result<String, MessageError> {
    let (mut index, mut out) = (HeadIndex::default(), Vec::new());
    let mut head = ReplyHeadWriter::new(to, Some(&mut index));
    fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes(), &mut out));
    head.end(is_last, &mut out)?;
    // An index tells what reading would find.
    let show = |head: &ReplyHead<'_, '_>| format!("{head:?}");
    assert_eq!(parse_reply_of(&out, &index, show), parse_reply(&out, show));
    Ok(String::from_utf8(out).unwrap())
}

const GET: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/x")];

#[test]
fn requests_become_heads() {
    for (more, form, expected) in [
        (&[(":authority", "h")][..], TargetForm::Origin, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            &[(":authority", "h"), ("host", "H"), ("a", "b")],
            TargetForm::Origin,
            "GET /x HTTP/1.1\r\nHost: h\r\na: b\r\n\r\n",
        ),
        (&[(":authority", "h")], TargetForm::Absolute, "GET http://h/x HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            &[("a", "b"), ("host", "h"), ("host", "h")],
            TargetForm::Absolute,
            "GET http://h/x HTTP/1.1\r\na: b\r\nHost: h\r\n\r\n",
        ),
        (&[("a", "b")], TargetForm::Absolute, "GET /x HTTP/1.1\r\na: b\r\n\r\n"),
        (
            &[("cookie", "a=b"), ("content-length", "0"), ("cookie", "c=d")],
            TargetForm::Origin,
            "GET /x HTTP/1.1\r\ncontent-length: 0\r\ncookie: a=b; c=d\r\n\r\n",
        ),
    ] {
        assert_eq!(request(&[&GET, more].concat(), true, form), Ok((expected.to_owned(), ReplyTo::Other)));
    }
    let connect = [(":method", "CONNECT"), (":authority", "h:1"), ("content-length", "x")];
    let expected = ("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n".to_owned(), ReplyTo::Connect);
    assert_eq!(request(&connect, false, TargetForm::Origin), Ok(expected));
    let options = [(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), ("host", "h")];
    let expected = ("OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), ReplyTo::Other);
    assert_eq!(request(&options, true, TargetForm::Absolute), Ok(expected));
    let head = request(&[&GET[..], &[("te", "trailers")]].concat(), false, TargetForm::Origin).unwrap();
    assert_eq!(head.0, "GET /x HTTP/1.1\r\nte: trailers\r\nTransfer-Encoding: chunked\r\n\r\n");
}

#[test]
fn heads_of_replies_in_a_usual_form_have_an_index() {
    for (fields, to, expected) in [
        (
            &[(":status", "200"), ("content-length", "0"), ("a", ""), ("content-length", "0")][..],
            ReplyTo::Other,
            true,
        ),
        (&[(":status", "304"), ("date", "x")], ReplyTo::Other, true),
        (&[(":status", "200"), ("a", "b")], ReplyTo::Head, true),
        (&[(":status", "200"), ("a", "b")], ReplyTo::Other, false),
        (&[(":status", "204"), ("cookie", "b")], ReplyTo::Other, false),
        (&[(":status", "103"), ("a", "b")], ReplyTo::Other, false),
    ] {
        let (mut index, mut out) = (HeadIndex::default(), Vec::new());
        let mut head = ReplyHeadWriter::new(to, Some(&mut index));
        fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes(), &mut out));
        head.end(false, &mut out).unwrap();
        assert_eq!(index.is_complete(), expected, "{fields:?}");
    }
}

#[test]
fn malformed_requests_are_errors() {
    use MessageError as E;
    for (fields, error) in [
        (&[][..], E::Pseudo(":method")),
        (&GET[..2], E::Pseudo(":path")),
        (&[GET[0], GET[2]], E::Pseudo(":scheme")),
        (&[GET[0], GET[0], GET[1], GET[2]], E::Pseudo(":method")),
        (&[GET[0], GET[1], GET[2], (":status", "200")], E::Pseudo("of an unknown name")),
        (&[GET[0], GET[1], ("a", "b"), GET[2]], E::Pseudo(":path")),
        (&[GET[0], GET[1], GET[2], ("a", "b"), (":authority", "h")], E::Pseudo(":authority")),
        (&[GET[0], GET[1], GET[2], (":authority", "h"), ("host", "i")], E::Host),
        (&[GET[0], GET[1], GET[2], ("host", "h"), ("host", "i")], E::Host),
        (&[GET[0], GET[1], GET[2], (":authority", "h"), ("host", "h"), ("host", "i")], E::Host),
        (&[GET[0], GET[1], (":path", "x")], E::Pseudo(":path")),
        (&[GET[0], GET[1], (":path", "")], E::Pseudo(":path")),
        (&[GET[0], GET[1], (":path", "/ x")], E::Pseudo(":path")),
        (&[GET[0], (":scheme", "ht tp"), GET[2]], E::Pseudo(":scheme")),
        (&[GET[0], GET[1], GET[2], ("host", "a b")], E::Pseudo(":authority")),
        (&[(":method", "G T"), GET[1], GET[2]], E::Pseudo(":method")),
        (&[(":method", "CONNECT")], E::Pseudo(":authority")),
        (&[(":method", "CONNECT"), (":authority", "h:1"), (":path", "/")], E::Pseudo(":path")),
        (&[GET[0], GET[1], GET[2], ("A", "b")], E::FieldName),
        (&[GET[0], GET[1], GET[2], ("a", "b\r\nc")], E::FieldValue),
        (&[GET[0], GET[1], GET[2], ("te", "gzip")], E::ConnectionField),
        (&[GET[0], GET[1], GET[2], ("connection", "close")], E::ConnectionField),
        (&[GET[0], GET[1], GET[2], ("content-length", "1")], E::Length),
        (&[GET[0], GET[1], GET[2], ("content-length", "0"), ("content-length", "1")], E::Length),
    ] {
        assert_eq!(request(fields, true, TargetForm::Absolute), Err(error), "{fields:?}");
    }
}

#[test]
fn replies_become_heads() {
    for (fields, is_last, to, expected) in [
        (
            &[(":status", "200"), ("a", "b")][..],
            true,
            ReplyTo::Other,
            "200 \r\na: b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            &[(":status", "200"), ("content-length", "3")],
            false,
            ReplyTo::Other,
            "200 \r\ncontent-length: 3\r\n\r\n",
        ),
        (
            &[(":status", "200"), ("content-length", "3")],
            true,
            ReplyTo::Head,
            "200 \r\ncontent-length: 3\r\n\r\n",
        ),
        (&[(":status", "204"), ("content-length", "3")], true, ReplyTo::Other, "204 \r\n\r\n"),
        (&[(":status", "200"), ("content-length", "3")], false, ReplyTo::Connect, "200 \r\n\r\n"),
        (
            &[(":status", "100"), ("content-length", "3"), ("a", "b")],
            false,
            ReplyTo::Other,
            "100 \r\na: b\r\n\r\n",
        ),
        (&[(":status", "999")], false, ReplyTo::Head, "999 \r\n\r\n"),
    ] {
        assert_eq!(reply(fields, is_last, to), Ok(format!("HTTP/1.1 {expected}")));
    }
}

#[test]
fn malformed_replies_are_errors() {
    use MessageError as E;
    for (fields, error) in [
        (&[][..], E::Pseudo(":status")),
        (&[("a", "b"), (":status", "200")], E::Pseudo(":status")),
        (&[(":status", "200"), (":status", "200")], E::Pseudo(":status")),
        (&[(":status", "200"), (":path", "/")], E::Pseudo(":status")),
        (&[(":status", "20")], E::Pseudo(":status")),
        (&[(":status", "099")], E::Pseudo(":status")),
        (&[(":status", "101")], E::Pseudo(":status")),
        (&[(":status", "2000")], E::Pseudo(":status")),
        (&[(":status", "100")], E::Incomplete),
        (&[(":status", "200"), ("content-length", "1")], E::Length),
        (&[(":status", "200"), ("a", " b")], E::FieldValue),
    ] {
        assert_eq!(reply(fields, true, ReplyTo::Other), Err(error), "{fields:?}");
    }
}
