//! Runs sessions of HTTP/3 with changed packets, until so many packets were changed:
//! `cargo run --release -p polygraph-quic --example fuzz_packets -- 1000000 [seed]`.

#![allow(clippy::disallowed_methods, reason = "fuzzing is bounded by real time")]
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

#[path = "../tests/packets/targets.rs"]
mod targets;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let count = args.next().unwrap_or(100_000);
    let seed = args.next().unwrap_or(1).max(1);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut byte = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let (start, mut slowest, mut last) = (Instant::now(), Duration::ZERO, Instant::now());
    let (mut sessions, mut forged, mut sealed, mut answered) = (0_u64, 0, 0, 0);
    while forged + sealed < count {
        let data: Vec<u8> = (0..60).map(|_| byte()).collect();
        let begin = Instant::now();
        let Ok(disturbed) = std::panic::catch_unwind(|| targets::packets(&data)) else {
            let path = std::env::temp_dir().join(format!("fuzz-packets-{seed}-{sessions}"));
            std::fs::write(&path, &data).expect("writable");
            println!("panic: {}", path.display());
            std::process::exit(1);
        };
        slowest = slowest.max(begin.elapsed());
        sessions += 1;
        forged += disturbed.forged;
        sealed += disturbed.sealed;
        answered += disturbed.answered;
        if last.elapsed() > Duration::from_secs(60) {
            last = Instant::now();
            println!("{sessions} sessions, {forged} forged datagrams, {sealed} packets with valid keys");
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{sessions} sessions, {forged} forged datagrams, {sealed} packets with valid keys, {answered} replies, seed {seed}, \
         {seconds:.0} s, slowest session {slowest:?}: no panic"
    );
}
