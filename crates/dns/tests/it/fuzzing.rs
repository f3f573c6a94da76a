//! Fuzzing for a moment; `examples/fuzz_dns.rs` does it at length.

use polygraph_testing::mutation::Random;
use rustix::time::{ClockId, clock_gettime};

use crate::mutate::{Subject, corpus, mutate};

#[test]
fn any_bytes_are_taken() {
    let (subject, corpus, mut random) = (Subject::new(), corpus(), Random(0x9e37_79b9_7f4a_7c15));
    assert!(corpus.len() > 10, "the corpus is there");
    let deep = corpus.iter().filter(|message| subject.run(message)).count();
    assert_eq!(deep, 12, "of the corpus");
    let deep = (0..50_000).filter(|_| subject.run(&mutate(&corpus, &mut random))).count();
    // Mutants that are all refused at the first byte would test nothing.
    assert!(deep > 2_000, "{deep} of 50000");
}

/// An answer of about `size` octets full of aliases, each of which has to be looked for among all others.
fn aliases(size: usize) -> Vec<u8> {
    let mut data = b"\x12\x34\x84\0\0\x01\xff\xff\0\0\0\0\x02w1\x05bench\x03tst\0\0\x01\0\x01".to_vec();
    while data.len() < size {
        data.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c");
    }
    let records = ((data.len() - 30) / 14) as u16;
    data[6..8].copy_from_slice(&records.to_be_bytes());
    data
}

#[test]
fn the_cost_of_long_messages_is_proportional_to_their_length() {
    let subject = Subject::new();
    // Processor time, in nanoseconds; the least of several, because of interrupts.
    let cost = |data: &[u8]| {
        let took = (0..9).map(|_| {
            let begin = cpu_time();
            subject.run(data);
            cpu_time() - begin
        });
        took.min().unwrap_or_default()
    };
    let (short, long) = (cost(&aliases(8_000)), cost(&aliases(64_000)));
    // Eight times the length; its square would be 64 times the cost.
    assert!(long < 24 * short, "{long} ns for eight times the length, {short} ns for one");
}

/// Processor time of this thread, in nanoseconds.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
