//! What fuzzers run: any bytes, cut anywhere, as what a client or a server sends on a connection, and as header blocks. Nothing may panic,
//! what is kept must stay within its limits, and what is sent must be frames.

use std::task::{Poll, Waker};

use polygraph_multiplex::Http2Settings;
use polygraph_multiplex::http2::connection::{Connection, OpenData, PREFACE, SEND_BUFFER, Side};
use polygraph_multiplex::http2::frames::{
    FrameHeader, HEADER, Http2Frame, flag, kind, put_settings, put_settings_ack,
};
use polygraph_multiplex::http2::hpack::{Decoder, Encoder};
use polygraph_multiplex::http2::reader::{FrameReader, Piece};
use polygraph_multiplex::message::fields;
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::message::outgoing::OutgoingMessage;
use polygraph_testing::mutation::{Mutator, Random};

/// The most bytes of a field section in the blocks.
const LIMIT: usize = 1000;

const SETTINGS: Http2Settings = Http2Settings { streams: 4, window: 65_535 };

/// Runs `data`: its first byte selects what the others are and how they are cut. Returns whether a message or a block came through.
pub fn run(data: &[u8]) -> bool {
    let Some((&first, rest)) = data.split_first() else { return false };
    let size = usize::from(first / 3) + 1;
    match first % 3 {
        0 => as_client(rest, size),
        1 => as_server(rest, size),
        _ => as_blocks(rest, size),
    }
}

/// `data` is what a client sends after its preface.
fn as_client(data: &[u8], size: usize) -> bool {
    let mut server = Connection::new(Side::Server(TargetForm::Absolute), &SETTINGS);
    server.receive(PREFACE);
    let (mut sent, mut open) = (FrameReader::default(), Vec::new());
    let mut answered = false;
    for (number, piece) in data.chunks(size).enumerate() {
        server.receive(piece);
        while let Some((place, to)) = server.accept() {
            open.push((place, OutgoingMessage::reply(to)));
        }
        let mut kept = Vec::new();
        for (place, mut reply) in open.drain(..) {
            let read = read(&mut server, place);
            // Some are answered, some are given up.
            if !matches!(read, Poll::Ready(Ok(_))) && number % 3 == 0 {
                kept.push((place, reply));
                continue;
            }
            let head = b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\n";
            if number % 5 != 4 && server.check_sending(place).is_ok() {
                let (_, head) = reply.take_head(head, |section| server.send_reply(place, section)).unwrap();
                head.unwrap().unwrap();
                content(&mut server, place, &mut reply, b"abc");
                answered = true;
            }
            server.leave(place);
        }
        open = kept;
        assert!(open.len() <= SETTINGS.streams as usize + 21, "{} streams", open.len());
        if !drain(&mut server, &mut sent) {
            break;
        }
    }
    answered
}

/// `data` is what a server sends.
fn as_server(data: &[u8], size: usize) -> bool {
    let mut client = Connection::new(Side::Client, &SETTINGS);
    // What comes first is no frame.
    assert_eq!(&client.unsent()[..PREFACE.len()], PREFACE);
    client.note_sent(PREFACE.len());
    let (mut sent, mut places, mut answered) = (FrameReader::default(), Vec::new(), false);
    for (number, piece) in data.chunks(size).enumerate() {
        if number < 3 && matches!(client.can_open(), Ok(true)) {
            let head: &[u8] = match number {
                0 => b"GET / HTTP/1.1\r\nHost: h\r\nX-Xact: 1\r\n\r\n",
                1 => b"HEAD /x HTTP/1.1\r\nHost: h\r\nAccept: a\r\n\r\n",
                _ => b"POST /y HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n",
            };
            let mut request = OutgoingMessage::request("http");
            let (_, place) = request.take_head(head, |section| client.send_request(section)).unwrap();
            let place = place.unwrap().unwrap();
            if !request.is_done() {
                content(&mut client, place, &mut request, b"123456789");
            }
            places.push(place);
        }
        client.receive(piece);
        places.retain(|&place| match read(&mut client, place) {
            Poll::Ready(Ok(any)) => {
                answered |= any;
                let is_over = !any || number % 7 == 6;
                if is_over {
                    client.leave(place);
                }
                !is_over
            }
            Poll::Ready(Err(_)) => {
                client.leave(place);
                false
            }
            Poll::Pending => true,
        });
        if !drain(&mut client, &mut sent) {
            break;
        }
    }
    answered
}

/// Reads what has arrived on a stream: whether there was something.
fn read(connection: &mut Connection, place: usize) -> Poll<std::io::Result<bool>> {
    match connection.poll_read(place, Waker::noop()) {
        Poll::Ready(Ok(Some(data))) => {
            assert!(!data.is_empty() && data.len() < 1 << 20);
            connection.note_read(place, data);
            Poll::Ready(Ok(true))
        }
        Poll::Ready(Ok(None)) => Poll::Ready(Ok(false)),
        Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
        Poll::Pending => Poll::Pending,
    }
}

/// Sends as much as there is room for.
fn content(connection: &mut Connection, place: usize, message: &mut OutgoingMessage, bytes: &[u8]) {
    let (mut open, room) = (OpenData::default(), connection.room(place).min(bytes.len()));
    if room > 0 {
        message
            .take_content(&bytes[..room], |bytes| connection.put_content(place, &mut open, bytes))
            .unwrap();
        connection.end_content(place, &open, message).unwrap();
    }
}

/// Takes what is to be sent. Returns whether the connection goes on.
fn drain(connection: &mut Connection, sent: &mut FrameReader) -> bool {
    connection.close_if_over();
    let mut bytes = connection.unsent();
    assert!(bytes.len() < 3 * SEND_BUFFER);
    let size = bytes.len();
    loop {
        let (used, piece) = sent.next(bytes).expect("frames");
        match piece {
            Some(Piece::Whole(header, payload)) => {
                let _ = Http2Frame::read(&header, payload).expect("a good frame");
            }
            Some(Piece::Data(_)) => {}
            None => break,
        }
        bytes = &bytes[used..];
    }
    assert!(sent.is_between_frames(), "whole frames are sent");
    connection.note_sent(size);
    connection.end().is_none()
}

/// `data` are header blocks of this size. What is decoded is encoded, and decoded again as the same.
fn as_blocks(data: &[u8], size: usize) -> bool {
    let (mut decoder, mut encoder, mut second) = (Decoder::new(200), Encoder::default(), Decoder::default());
    let mut any = false;
    for block in data.chunks(size) {
        let (mut taken, mut sum) = (Vec::<(Vec<u8>, Vec<u8>)>::new(), 0);
        let decoded = decoder.decode(block, LIMIT, |field| {
            assert_eq!(field.check(), fields::check(field.name, field.value), "known from a table or not");
            sum += field.name.len() + field.value.len() + 32;
            taken.push((field.name.to_vec(), field.value.to_vec()));
        });
        assert!(sum <= LIMIT);
        if decoded.is_err() {
            break;
        }
        any |= !taken.is_empty();
        // What is encoded has names of letters, in lower case.
        taken.retain(|(name, _)| name.iter().all(u8::is_ascii_lowercase));
        let mut again = Vec::new();
        encoder.begin(&mut again);
        for (name, value) in &taken {
            encoder.field(std::str::from_utf8(name).unwrap(), value, &mut again);
        }
        let mut expected = taken.iter();
        let fits = second.decode(&again, usize::MAX, |field| {
            let next = expected.next().map(|(name, value)| (&name[..], &value[..]));
            assert_eq!(next, Some((field.name, field.value)));
        });
        assert_eq!((fits, expected.next()), (Ok(true), None));
        encoder.resize(block.iter().map(|byte| usize::from(*byte)).sum());
    }
    any
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader { length: payload.len(), kind, flags, stream }.put(&mut out);
    assert_eq!(out.len(), HEADER);
    out.extend_from_slice(payload);
    out
}

/// Valid connections and blocks, each with the byte that selects what it is.
pub fn corpus() -> Vec<Vec<u8>> {
    let both = flag::END_STREAM | flag::END_HEADERS;
    // GET or POST, http, /, and :authority.
    let (get, post): (&[u8], &[u8]) = (b"\x82\x86\x84\x41\x01h", b"\x83\x86\x84\x41\x01h");
    let mut settings = Vec::new();
    put_settings(&[(4, 65_536), (3, 9)], &mut settings);
    put_settings_ack(&mut settings);
    let update = |stream, by: u32| frame(kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let reset = |stream, code: u32| frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes());
    let fields = b"\x7f\x01\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf\x40\x03x-a\x01b\x0f\x0d\x01\x33\x00\x06x-xact\x021 ";
    let clients = [
        [
            frame(kind::HEADERS, both, 1, get),
            frame(kind::HEADERS, both, 3, b"\x82\x86\x84\xbe\x90"),
            update(0, 9),
        ]
        .concat(),
        [
            frame(kind::HEADERS, flag::END_HEADERS, 1, &[post, b"\x5c\x013"].concat()),
            frame(kind::DATA, 0, 1, b"ab"),
            frame(kind::DATA, flag::END_STREAM | flag::PADDED, 1, b"\x02c\0\0"),
            update(1, 256),
        ]
        .concat(),
        [
            frame(kind::HEADERS, flag::END_STREAM, 1, &get[..3]),
            frame(kind::CONTINUATION, flag::END_HEADERS, 1, &get[3..]),
            frame(kind::HEADERS, flag::END_HEADERS, 3, post),
            frame(kind::HEADERS, both, 3, b"\0\x01x\x01y"),
            reset(1, 8),
        ]
        .concat(),
        [
            frame(kind::PING, 0, 0, b"12345678"),
            frame(kind::PRIORITY, 0, 1, b"\0\0\0\0\x09"),
            frame(
                kind::HEADERS,
                both | flag::PRIORITY | flag::PADDED,
                1,
                &[b"\x01\0\0\0\0\x09", get, b"\0"].concat(),
            ),
            frame(0x77, 0, 1, b"unknown"),
            frame(kind::GOAWAY, 0, 0, &[0; 8]),
        ]
        .concat(),
        [
            frame(kind::HEADERS, both, 1, &[get, b"\x40\x01a\x01b\x10\x01c\x01d"].concat()),
            reset(1, 0),
            reset(1, 0),
        ]
        .concat(),
    ];
    let ok = b"\x88\x5c\x013";
    let servers = [
        [
            frame(kind::HEADERS, flag::END_HEADERS, 1, ok),
            frame(kind::DATA, flag::END_STREAM, 1, b"abc"),
            frame(kind::HEADERS, both, 3, b"\x89"),
        ]
        .concat(),
        [
            frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x08\x03100"),
            frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x88"),
            frame(kind::DATA, flag::PADDED, 1, b"\x01xy\0"),
            frame(kind::HEADERS, both, 1, b"\0\x01x\x01y"),
            frame(kind::HEADERS, 0, 3, b"\x88"),
            frame(kind::CONTINUATION, flag::END_HEADERS, 3, fields),
        ]
        .concat(),
        [reset(1, 7), update(0, 100), update(3, 5), frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 2])]
            .concat(),
        [
            frame(kind::SETTINGS, 0, 0, b"\0\x04\0\0\0\0\0\x01\0\0\0\0"),
            frame(kind::HEADERS, both, 1, b"\x89"),
        ]
        .concat(),
    ];
    let blocks = [
        [get, b"\x40\x01a\x01b", fields].concat(),
        b"\x3f\x45\x82\x40\x02ab\x83\x9d\x29\xad\xbe\xc0".to_vec(),
        b"\x20\x88\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT".to_vec(),
    ];
    let with = |kind: u8, size: u8, data: &[u8]| [&[3 * (size - 1) + kind], data].concat();
    let mut seeds = Vec::new();
    for size in [1, 24, 85] {
        seeds.extend(clients.iter().map(|frames| with(0, size, &[&settings[..], frames].concat())));
        seeds.extend(servers.iter().map(|frames| with(1, size, &[&settings[..], frames].concat())));
        seeds.extend(blocks.iter().map(|block| with(2, size, block)));
    }
    seeds
}

/// A member of the corpus with a few changes.
pub fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    Mutator { changes: 5, longest: 2048, ..Mutator::default() }.mutate(corpus, random)
}
