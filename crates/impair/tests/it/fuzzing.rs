//! Fuzzing for a moment; the target `nfqueue` (fuzz/README.md) does it at length.

use polygraph_testing::mutation::Random;

use crate::mutate::{corpus, mutate, run};

#[test]
fn any_bytes_are_taken() {
    let (corpus, mut random) = (corpus(), Random(0x9e37_79b9_7f4a_7c15));
    assert!(corpus.len() > 10, "the corpus is there");
    let deep = corpus.iter().filter(|message| run(message)).count();
    assert_eq!(deep, 7, "of the corpus");
    let deep = (0..100_000).filter(|_| run(&mutate(&corpus, &mut random))).count();
    // Mutants that are all refused at the first byte would test nothing.
    assert!(deep > 20_000, "{deep} of 100000");
}
