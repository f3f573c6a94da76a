//! Runs the front end on mutated programs, many times: `cargo run --release --example fuzz_pgl -- 1000000 [seed]`.
//!
//! The program at hand is kept in a file, so that one that hangs or kills the process can be looked at.

#![allow(clippy::disallowed_methods, reason = "fuzzing is bounded by real time")]
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

#[path = "../tests/it/mutate.rs"]
mod mutate;

use mutate::{Random, corpus, mutate as mutated, run};

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let count = args.next().unwrap_or(100_000);
    let seed = args.next().unwrap_or(1).max(1);
    let corpus = corpus();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let start = Instant::now();
    let mut slowest = Duration::ZERO;
    for index in 0..count {
        let program = mutated(&corpus, &mut random);
        let begin = Instant::now();
        let done = std::panic::catch_unwind(|| run(&program));
        let took = begin.elapsed();
        let kept = |why: &str| {
            let path = std::env::temp_dir().join(format!("fuzz-pgl-{seed}-{index}.pg"));
            std::fs::write(&path, &program).expect("writable");
            println!("{why}: {}", path.display());
        };
        if done.is_err() {
            kept("panic");
            std::process::exit(1);
        }
        if took > slowest {
            slowest = took;
            if took > Duration::from_millis(200) {
                kept(&format!("slow, {took:?}"));
            }
        }
        if (index + 1) % 1_000_000 == 0 {
            println!(
                "{} executions in {:.0} s, slowest {slowest:?}",
                index + 1,
                start.elapsed().as_secs_f64()
            );
        }
    }
    println!("{count} executions, seed {seed}, {:.0} s, slowest {slowest:?}", start.elapsed().as_secs_f64());
}
