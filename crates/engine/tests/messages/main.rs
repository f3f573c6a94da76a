//! A short run of what the fuzz targets for messages do.

mod mutate;
mod targets;

#[test]
fn mutated_messages_do_no_harm() {
    for (name, run) in targets::TARGETS {
        let corpus = mutate::corpus(name);
        assert!(corpus.len() >= 3, "the corpus of {name} is there");
        corpus.iter().for_each(|message| run(message));
        run(b"");
        let mut random = mutate::choices(0x5eed);
        for _ in 0..5000 {
            run(&mutate::mutate(&corpus, &mut random));
        }
    }
}
