//! A moment of fuzzing in every test run.

mod frames;
mod fuzz;

use polygraph_testing::mutation::Random;

#[test]
fn mutated_sessions_end_without_a_panic() {
    let corpus = fuzz::corpus();
    // In one session, the server refuses the streams.
    let silent: Vec<usize> = (0..corpus.len()).filter(|at| !fuzz::run(&corpus[*at])).collect();
    assert_eq!(silent, [8], "valid sessions carry messages");
    let mut random = Random(1);
    let through = (0..3000).filter(|_| fuzz::run(&fuzz::mutated(&corpus, &mut random))).count();
    assert!((300..2990).contains(&through), "{through} of 3000 carry messages");
}

#[test]
fn mutated_frames_never_panic() {
    let (corpus, mut random) = (frames::corpus(), Random(1));
    let through = corpus.iter().filter(|seed| frames::run(seed)).count();
    assert!(through > corpus.len() / 2, "{through} of {} carry messages", corpus.len());
    let through = (0..100_000).filter(|_| frames::run(&frames::mutated(&corpus, &mut random))).count();
    assert!((20_000..99_000).contains(&through), "{through} of 100000 carry messages");
}
