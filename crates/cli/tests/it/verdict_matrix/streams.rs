//! A device between HTTP/2 connections in the clear that passes on all frames, and resets some of the streams.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::sandbox::{Sandbox, free_port};

use super::{Got, Row, Want};

const PREFACE: usize = 24;
const HEADERS: u8 = 1;
/// RST_STREAM with INTERNAL_ERROR, without the id of its stream.
const RESET: [u8; 5] = [0, 0, 4, 3, 0];

/// Starts the device in front of a server. It resets one stream of so many, and ends with the process.
fn start(server: SocketAddr, every: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || relay(client, server, every));
        }
    });
    address
}

fn relay(mut client: TcpStream, server: SocketAddr, every: u64) -> Result<()> {
    let mut server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from, to) = (server.try_clone()?, Arc::new(Mutex::new(client.try_clone()?)));
    let replies = Arc::clone(&to);
    std::thread::spawn(move || {
        while let Ok(frame) = read_frame(&mut from) {
            if replies.lock().unwrap().write_all(&frame).is_err() {
                break;
            }
        }
        let _ = replies.lock().unwrap().shutdown(Shutdown::Both);
    });
    let mut preface = [0; PREFACE];
    client.read_exact(&mut preface)?;
    server.write_all(&preface)?;
    let mut requests = 0;
    while let Ok(frame) = read_frame(&mut client) {
        requests += u64::from(frame[3] == HEADERS);
        if frame[3] == HEADERS && requests % every == 0 {
            let reset = [&RESET, &frame[5..9], &[0, 0, 0, 2]].concat();
            to.lock().unwrap().write_all(&reset)?;
        }
        server.write_all(&frame)?;
    }
    server.shutdown(Shutdown::Both)
}

fn read_frame(from: &mut TcpStream) -> Result<Vec<u8>> {
    let mut frame = vec![0; 9];
    from.read_exact(&mut frame)?;
    let length = usize::from(frame[0]) << 16 | usize::from(frame[1]) << 8 | usize::from(frame[2]);
    frame.resize(9 + length, 0);
    from.read_exact(&mut frame[9..])?;
    Ok(frame)
}

/// What devices do to streams.
pub fn resets() -> Vec<Row> {
    let group = "a device that speaks HTTP/2";
    vec![Row::new(group, "resets every tenth stream", Want::failed("errors", ""), |sandbox: &Sandbox| {
        let server: SocketAddr = format!("127.0.0.1:{}", free_port()).parse().unwrap();
        sandbox.write("streams.pg", &workload(server));
        let device = start(server, 10);
        let words =
            format!("run --config streams.pg --surrogate {device} --predict no --preflight no --loops 1");
        Got::of_run(sandbox, &sandbox.polygraph(&words))
    })]
}

fn workload(server: SocketAddr) -> String {
    format!(
        "Content C = {{ size = const(2KB); cachable = 80%; }};
        Server S = {{ contents = [ C ]; direct_access = contents; addresses = [ '{server}' ];
            http_versions = [ \"2\", \"1.1\" ]; pconn_use_lmt = const(1000000); }};
        Robot R = {{ origins = S.addresses; addresses = [ '127.0.0.1' ** 5 ]; http_versions = [ \"2\" ];
            req_rate = 30/sec; pconn_use_lmt = const(1000); }};
        Phase p = {{ name = \"p\"; goal.duration = 3sec; log_stats = true; }};
        schedule(p);
        use(S, R);"
    )
}
