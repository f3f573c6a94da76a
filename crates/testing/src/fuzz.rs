//! Fuzzing at length without coverage: a parser runs on many mutated messages.

#![allow(clippy::disallowed_methods, reason = "fuzzing is bounded by real time")]

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::mutation::Random;

/// Calls `run` with messages of `mutate`, and prints how many did what `run` returns true for, which is described by `deep`.
///
/// Arguments of the command line: the number of messages (100,000) and the seed (1).
///
/// A message at which `run` panics is kept in a file in the directory of temporary files, and ends the program with exit code 1. So is
/// one that takes longer than all before it and more than a second, but the program goes on.
#[expect(clippy::print_stdout, reason = "programs for people")]
pub fn at_length(
    name: &str,
    deep: &str,
    mut mutate: impl FnMut(&mut Random) -> Vec<u8>,
    run: impl Fn(&[u8]) -> bool,
) -> ExitCode {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let count = args.next().unwrap_or(100_000);
    let seed = args.next().unwrap_or(1).max(1);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (start, mut slowest, mut reached) = (Instant::now(), Duration::ZERO, 0u64);
    for index in 0..count {
        let data = mutate(&mut random);
        let begin = Instant::now();
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| run(&data)));
        let took = begin.elapsed();
        let Ok(was_deep) = done else {
            println!("panic: {}", keep(name, seed, index, &data).display());
            return ExitCode::FAILURE;
        };
        reached += u64::from(was_deep);
        if took > slowest.max(Duration::from_secs(1)) {
            println!("slow, {took:?}: {}", keep(name, seed, index, &data).display());
        }
        slowest = slowest.max(took);
        if (index + 1) % 1_000_000 == 0 {
            println!(
                "{} executions in {:.0} s, slowest {slowest:?}",
                index + 1,
                start.elapsed().as_secs_f64()
            );
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{count} executions, seed {seed}, {seconds:.0} s, slowest {slowest:?}, {reached} {deep}: no panic"
    );
    ExitCode::SUCCESS
}

fn keep(name: &str, seed: u64, index: u64, data: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("fuzz-{name}-{seed}-{index}"));
    std::fs::write(&path, data).expect("writable");
    path
}
