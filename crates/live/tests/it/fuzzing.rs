//! Fuzzing for a moment; the fuzz target `live` does it at length.

use polygraph_testing::mutation::Random;

use crate::mutate::{corpus, mutate, run};

#[test]
fn any_bytes_are_taken() {
    let (corpus, mut random) = (corpus(), Random(0x9e37_79b9_7f4a_7c15));
    assert!(corpus.iter().all(|message| run(message)));
    let understood = (0..50_000).filter(|_| run(&mutate(&corpus, &mut random))).count();
    // Mutants that are all rejected by their length would test nothing.
    assert!(understood > 3_000, "{understood} of 50000");
}
