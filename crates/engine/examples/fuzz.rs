//! Runs the readers of foreign bytes on mutated messages, many times:
//! `cargo run --release -p polygraph-engine --example fuzz -- TARGET COUNT SEED`; the target `all` means each of them.
//!
//! A message that makes a reader panic, or takes long, is kept in a file.

#![allow(clippy::disallowed_methods, reason = "fuzzing is bounded by real time")]
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

#[path = "../tests/messages/mutate.rs"]
mod mutate;
#[path = "../tests/messages/targets.rs"]
mod targets;

/// No reader may need longer for a message.
const LONG: Duration = Duration::from_millis(200);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wanted = args.first().map_or("all", String::as_str);
    let number =
        |index: usize, default| args.get(index).map_or(default, |arg| arg.parse().expect("a number"));
    let (count, seed) = (number(1, 100_000), number(2, 1));
    let chosen = targets::TARGETS.into_iter().filter(|(name, _)| wanted == "all" || wanted == *name);
    let clean = chosen.map(|target| fuzz(target, count, seed)).collect::<Vec<bool>>();
    assert!(!clean.is_empty(), "no such target");
    std::process::exit(i32::from(clean.contains(&false)));
}

/// True if nothing was found.
fn fuzz((name, run): targets::Target, count: u64, seed: u64) -> bool {
    let corpus = mutate::corpus(name);
    assert!(!corpus.is_empty(), "the corpus of {name} is there");
    let mut random = mutate::choices(seed);
    let start = Instant::now();
    let (mut slowest, mut reader_time) = (Duration::ZERO, Duration::ZERO);
    for index in 0..count {
        let message = mutate::mutate(&corpus, &mut random);
        let begin = Instant::now();
        let done = std::panic::catch_unwind(|| run(&message));
        let took = begin.elapsed();
        let keep = |why: &str| {
            let path = std::env::temp_dir().join(format!("fuzz-{name}-{seed}-{index}"));
            std::fs::write(&path, &message).expect("writable");
            println!("{name}: {why}: {}", path.display());
        };
        if done.is_err() {
            keep("panic");
            return false;
        }
        reader_time += took;
        if took > slowest {
            slowest = took;
            // On a busy machine anything may take long once.
            if took > LONG && timed(run, &message) > LONG {
                keep(&format!("slow, {took:?}"));
            }
        }
    }
    println!(
        "{name}: {count} executions, seed {seed}, {:.0} s, of them {:.0} s in the reader, slowest {slowest:?}",
        start.elapsed().as_secs_f64(),
        reader_time.as_secs_f64()
    );
    true
}

fn timed(run: fn(&[u8]), message: &[u8]) -> Duration {
    let begin = Instant::now();
    run(message);
    begin.elapsed()
}
