//! Malformed records, by chance here and with coverage in `fuzz/`.

#![cfg(feature = "rustls")]

mod seeds;
mod targets;

use polygraph_testing::mutation::Random;
use proptest::prelude::*;

#[test]
fn mutated_flights_never_panic() {
    let seeds = seeds::seeds();
    assert!(seeds.iter().take(4).all(|flight| flight.len() > 100 && flight[0] == 0x16), "{seeds:?}");
    let mut random = Random(1);
    (0..2000).for_each(|_| targets::records(&seeds::mutated(&seeds, &mut random)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
        targets::records(&data);
    }
}
