//! Flow control.

use std::sync::{Arc, Mutex};
use std::task::Wake;

use super::*;

#[test]
fn content_keeps_to_the_windows() {
    let mut server = server();
    server.receive(
        &[settings(&[(4, 10)]), get(1), frame(kind::WINDOW_UPDATE, 0, 1, &5u32.to_be_bytes())].concat(),
    );
    sent(&mut server);
    let (place, to) = server.accept().unwrap();
    let mut message = OutgoingMessage::reply(to);
    reply(&mut server, place, &mut message, b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
    assert_eq!(reply(&mut server, place, &mut message, b"12345678901234567890"), 15);
    assert_eq!(sent(&mut server), ["HEADERS 1", "DATA 1 123456789012345"]);
    // A smaller window may make what is left negative.
    server.receive(&settings(&[(4, 0)]));
    server.receive(&frame(kind::WINDOW_UPDATE, 0, 1, &12u32.to_be_bytes()));
    assert_eq!(reply(&mut server, place, &mut message, b"67890"), 2);
    server.receive(&frame(kind::WINDOW_UPDATE, 0, 1, &12u32.to_be_bytes()));
    assert_eq!(reply(&mut server, place, &mut message, b"890"), 3);
    assert_eq!(sent(&mut server)[1..], ["DATA 1 67", "DATA 1 890 end"]);
}

#[test]
fn windows_are_given_back_when_content_is_read() {
    let mut server = server();
    let content = vec![b'x'; 16_384];
    let post = b"\x83\x86\x84\x01\x01h\x0f\x0d\x06999999";
    server.receive(&frame(kind::HEADERS, 4, 1, post));
    let (place, _) = server.accept().unwrap();
    for _ in 0..3 {
        server.receive(&frame(kind::DATA, 0, 1, &content));
    }
    assert!(sent(&mut server).is_empty());
    assert_eq!(read(&mut server, place).1, "more");
    assert_eq!(sent(&mut server), ["WINDOW_UPDATE 1 49152", "WINDOW_UPDATE 0 49152"]);
    // Nobody reads: the window ends.
    for _ in 0..4 {
        server.receive(&frame(kind::DATA, 0, 1, &content[..16_000]));
    }
    assert!(server.end().is_none());
    server.receive(&frame(kind::DATA, 0, 1, &content));
    assert_eq!(sent(&mut server), ["GOAWAY 1 FLOW_CONTROL_ERROR"]);
    // Content of a stream that is given up is given back, too, and so is padding.
    let mut server = self::server();
    server.receive(&frame(kind::HEADERS, 4, 1, post));
    let (place, _) = server.accept().unwrap();
    server.receive(&[frame(kind::DATA, 0, 1, &content), frame(kind::DATA, 0, 1, &content)].concat());
    server.leave(place);
    assert_eq!(sent(&mut server), ["RST_STREAM 1 CANCEL", "WINDOW_UPDATE 0 32768"]);
    server.receive(&[frame(kind::DATA, 0, 1, &content), frame(kind::DATA, 0, 1, &content)].concat());
    assert_eq!(sent(&mut server), ["WINDOW_UPDATE 0 32768"]);
    let padded = frame(kind::DATA, flag::PADDED, 3, &[&[255][..], &[0; 255]].concat());
    server.receive(&frame(kind::HEADERS, 4, 3, post));
    (0..128).for_each(|_| server.receive(&padded));
    assert_eq!(sent(&mut server), ["WINDOW_UPDATE 3 32768", "WINDOW_UPDATE 0 32768"]);
}

/// Notes the order in which streams are woken.
struct Woken(usize, Arc<Mutex<Vec<usize>>>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn streams_take_turns_if_there_is_not_enough_room() {
    const SIZE: usize = 200_000;
    let mut server =
        Connection::new(Side::Server(TargetForm::Origin), &Http2Settings { streams: 9, ..SETTINGS });
    server.receive(&[PREFACE, &settings(&[(4, 1 << 20)])].concat());
    server.receive(&frame(kind::WINDOW_UPDATE, 0, 0, &(1u32 << 20).to_be_bytes()));
    let content = vec![b'x'; SIZE];
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut streams: Vec<_> = [1, 3, 5, 7, 9]
        .map(|id| {
            server.receive(&get(id));
            let (place, to) = server.accept().unwrap();
            let mut message = OutgoingMessage::reply(to);
            reply(&mut server, place, &mut message, b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n");
            (place, message, 0)
        })
        .into();
    order.lock().unwrap().extend(0..streams.len());
    sent(&mut server);
    // Each sends until there is no room, and then waits until it is woken.
    let mut most = 0;
    while streams.iter().any(|(_, _, done)| *done < SIZE) {
        let woken = std::mem::take(&mut *order.lock().unwrap());
        assert!(!woken.is_empty(), "nobody is woken");
        for number in woken {
            let (place, message, done) = &mut streams[number];
            while *done < SIZE {
                let used = reply(&mut server, *place, message, &content[*done..]);
                *done += used;
                if used == 0 {
                    server.when_room(*place, &Waker::from(Arc::new(Woken(number, Arc::clone(&order)))));
                    break;
                }
            }
        }
        let done = || streams.iter().map(|(_, _, done)| *done);
        most = most.max(done().max().unwrap() - done().min().unwrap());
        sent(&mut server);
    }
    assert!(most <= 2 * SEND_BUFFER, "one is {most} bytes ahead");
}
