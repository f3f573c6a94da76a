//! Feeds mutated flights of TLS to both sides, many times:
//! `cargo run --release -p polygraph-tls --features rustls --example fuzz_records -- 1000000 [seed]`.

#![allow(clippy::disallowed_methods, reason = "fuzzing is bounded by real time")]
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

#[path = "../tests/records/seeds.rs"]
mod seeds;
#[path = "../tests/records/targets.rs"]
mod targets;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let count = args.next().unwrap_or(100_000);
    let seed = args.next().unwrap_or(1).max(1);
    let corpus = seeds::seeds();
    let mut random = seeds::Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    for index in 0..count {
        let data = seeds::mutated(&corpus, &mut random);
        let begin = Instant::now();
        if std::panic::catch_unwind(|| targets::records(&data)).is_err() {
            let path = std::env::temp_dir().join(format!("fuzz-records-{seed}-{index}"));
            std::fs::write(&path, &data).expect("writable");
            println!("panic: {}", path.display());
            std::process::exit(1);
        }
        slowest = slowest.max(begin.elapsed());
        if index % 1_000_000 == 999_999 {
            println!("{} executions", index + 1);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} executions, seed {seed}, {seconds:.0} s, slowest {slowest:?}: no panic");
}
