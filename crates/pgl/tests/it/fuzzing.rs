//! A short run of what the fuzz target does.

use crate::mutate::{Random, corpus, mutate, run};

#[test]
fn mutated_programs_do_no_harm() {
    let corpus = corpus();
    assert!(corpus.len() > 20, "the corpus is there");
    for program in &corpus {
        run(program);
    }
    let mut random = Random(0x5eed);
    for _ in 0..2000 {
        run(&mutate(&corpus, &mut random));
    }
}
