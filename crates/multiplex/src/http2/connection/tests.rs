//! What is common to the tests of connections: frames written by hand, and what connections send, in words.

mod breaches;
mod ends;
mod floods;
mod messages;
mod windows;

use std::task::Poll;

use super::super::frames::{FrameHeader, HEADER, Http2Frame, flag, kind};
use super::super::reader::Piece;
use super::*;
use crate::message::outgoing::OutgoingMessage;

const SETTINGS: Http2Settings = Http2Settings { streams: 2, window: 65_535 };
const BOTH: u8 = flag::END_HEADERS | flag::END_STREAM;
/// `GET http://h/`, without the dynamic table, and the same with a content of three bytes.
const GET: &[u8] = b"\x82\x86\x84\x01\x01h";
const POST: &[u8] = b"\x83\x86\x84\x01\x01h\x0f\x0d\x013";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader { length: payload.len(), kind, flags, stream }.put(&mut out);
    out.extend_from_slice(payload);
    out
}

fn get(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, BOTH, stream, GET)
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_settings(list, &mut out);
    out
}

/// What a connection sends, in words.
fn sent(connection: &mut Connection) -> Vec<String> {
    let (mut reader, mut words) = (FrameReader::default(), Vec::new());
    let mut bytes = connection.unsent().to_vec();
    connection.note_sent(bytes.len());
    if bytes.starts_with(PREFACE) {
        bytes.drain(..PREFACE.len());
    }
    let mut rest = &bytes[..];
    loop {
        let (used, piece) = reader.next(rest).unwrap();
        rest = &rest[used..];
        words.push(match piece {
            None => return words,
            Some(Piece::Data(part)) => {
                let end = if part.ends_stream { " end" } else { "" };
                format!("DATA {} {}{end}", part.stream, String::from_utf8_lossy(part.content))
            }
            Some(Piece::Whole(header, payload)) => {
                let id = header.stream;
                match Http2Frame::read(&header, payload).unwrap() {
                    Http2Frame::Headers { ends_stream, .. } => {
                        format!("HEADERS {id}{}", if ends_stream { " end" } else { "" })
                    }
                    Http2Frame::Reset { code } => format!("RST_STREAM {id} {}", codes::name(code)),
                    Http2Frame::GoAway { last, code } => format!("GOAWAY {last} {}", codes::name(code)),
                    Http2Frame::WindowUpdate { increment } => format!("WINDOW_UPDATE {id} {increment}"),
                    Http2Frame::Settings(_) => "SETTINGS".to_owned(),
                    Http2Frame::SettingsAck => "SETTINGS ACK".to_owned(),
                    Http2Frame::Ping(_) => "PING".to_owned(),
                    Http2Frame::Pong(_) => "PING ACK".to_owned(),
                    other => format!("{other:?}"),
                }
            }
        });
    }
}

fn server() -> Connection {
    let mut server = Connection::new(Side::Server(TargetForm::Origin), &SETTINGS);
    server.receive(PREFACE);
    server.receive(&settings(&[]));
    assert_eq!(sent(&mut server), ["SETTINGS", "SETTINGS ACK"]);
    server
}

fn client() -> Connection {
    let mut client = Connection::new(Side::Client, &SETTINGS);
    client.receive(&settings(&[]));
    assert_eq!(sent(&mut client), ["SETTINGS", "SETTINGS ACK"]);
    client
}

/// Sends a request, and returns its place.
fn request(client: &mut Connection, head: &str) -> usize {
    let mut request = OutgoingMessage::request("http");
    let (_, place) = request.take_head(head.as_bytes(), |section| client.send_request(section)).unwrap();
    place.unwrap().unwrap()
}

const PLAIN: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Sends parts of a reply as far as there is room; how many bytes were taken.
fn reply(server: &mut Connection, place: usize, message: &mut OutgoingMessage, bytes: &[u8]) -> usize {
    if message.expects_head() {
        let (used, sent) = message.take_head(bytes, |section| server.send_reply(place, section)).unwrap();
        sent.unwrap().unwrap();
        return used;
    }
    let (mut open, room) = (OpenData::default(), server.room(place).min(bytes.len()));
    let used =
        message.take_content(&bytes[..room], |bytes| server.put_content(place, &mut open, bytes)).unwrap();
    server.end_content(place, &open, message).unwrap();
    used
}

/// Everything that can be read from a stream, and how it ends.
fn read(connection: &mut Connection, place: usize) -> (String, String) {
    let mut text = String::new();
    loop {
        match connection.poll_read(place, Waker::noop()) {
            Poll::Ready(Ok(Some(data))) => {
                text += std::str::from_utf8(&data).unwrap();
                connection.note_read(place, data);
            }
            Poll::Ready(Ok(None)) => return (text, "end".into()),
            Poll::Ready(Err(error)) => return (text, error.to_string()),
            Poll::Pending => return (text, "more".into()),
        }
    }
}
