//! Runs both sides of HTTP/2 on mutated sessions, many times: `cargo run --release --example fuzz_multiplex -- 1000000 [seed]`.

#![allow(clippy::disallowed_methods, reason = "fuzzing is bounded by real time")]
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

#[path = "../tests/fuzz/mod.rs"]
mod fuzz;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let count = args.next().unwrap_or(100_000);
    let seed = args.next().unwrap_or(1).max(1);
    let corpus = fuzz::corpus();
    let mut random = fuzz::Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (start, mut slowest, mut through) = (Instant::now(), Duration::ZERO, 0u64);
    for index in 0..count {
        let data = fuzz::mutated(&corpus, &mut random);
        let begin = Instant::now();
        let Ok(reached) = std::panic::catch_unwind(|| fuzz::run(&data)) else {
            let path = std::env::temp_dir().join(format!("fuzz-multiplex-{seed}-{index}"));
            std::fs::write(&path, &data).expect("writable");
            println!("panic: {}", path.display());
            std::process::exit(1);
        };
        through += u64::from(reached);
        slowest = slowest.max(begin.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} executions, seed {seed}, {seconds:.0} s, slowest {slowest:?}, {through} with messages");
}
