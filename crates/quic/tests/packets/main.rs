//! A moment of fuzzing of packets in every test run; at length by the example `fuzz_packets`, with coverage in `fuzz/`.

mod targets;

use proptest::prelude::*;

#[test]
fn an_honest_session_is_complete() {
    // Neither forged datagrams nor wrong packets.
    let honest = targets::packets(&[4, 1]);
    assert_eq!((honest.forged, honest.sealed, honest.answered), (0, 0, 4), "{honest:?}");
}

#[test]
fn forged_datagrams_do_not_disturb_a_session() {
    let mut all = targets::Disturbed::default();
    for seed in 1..20u8 {
        let bytes: Vec<u8> = (0..40u8).map(|n| n.wrapping_mul(seed).wrapping_add(seed)).collect();
        let disturbed = targets::packets(&[&[0], &bytes[..]].concat());
        assert!(disturbed.forged > 0 && disturbed.sealed == 0, "{disturbed:?}");
        all.forged += disturbed.forged;
        all.answered += disturbed.answered;
    }
    // Somebody who sees the first packets can end a handshake (RFC 9000, section 21.1.1), but nobody can change replies.
    assert!(all.forged > 2000 && all.answered > 19, "{all:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn changed_packets_never_panic(data in prop::collection::vec(any::<u8>(), 2..60)) {
        targets::packets(&data);
    }
}
