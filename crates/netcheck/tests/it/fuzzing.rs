//! Fuzzing for a moment; the fuzz target `packet` does it at length.

use polygraph_testing::mutation::Random;

use crate::mutate::{corpus, mutate, run};

#[test]
fn any_bytes_are_taken() {
    let (corpus, mut random) = (corpus(), Random(0x9e37_79b9_7f4a_7c15));
    assert!(corpus.iter().all(|packet| run(packet)));
    let deep = (0..50_000).filter(|_| run(&mutate(&corpus, &mut random))).count();
    // Mutants that are all refused at the first octet would test nothing.
    assert!(deep > 20_000, "{deep} of 50000");
}
