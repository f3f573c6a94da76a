//! Fuzzing for a moment; `examples/fuzz_dns.rs` does it at length.

use polygraph_testing::mutation::Random;

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

#[test]
fn long_messages_take_no_longer() {
    // An answer full of aliases, each of which has to be looked for among all others.
    let mut data = b"\x12\x34\x84\0\0\x01\xff\xff\0\0\0\0\x02w1\x05bench\x03tst\0\0\x01\0\x01".to_vec();
    while data.len() < 65_000 {
        data.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c");
    }
    let records = ((data.len() - 30) / 14) as u16;
    data[6..8].copy_from_slice(&records.to_be_bytes());
    // The fastest of several, for the machine may be busy.
    let took = (0..5).map(|_| {
        let begin = std::time::Instant::now();
        Subject::new().run(&data);
        begin.elapsed()
    });
    let took = took.min().unwrap();
    assert!(took < std::time::Duration::from_millis(500), "{took:?}");
}
