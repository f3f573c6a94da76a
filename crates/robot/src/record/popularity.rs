//! How often each object is requested, counted in bounded memory: the data for the popularity of objects by rank.
//!
//! The n-th request for an object is counted as an n ([`polygraph_stats::Block::ordinals`]). The number of ns is the number of
//! objects with n or more requests, which is the rank of an object with n requests. So the curve needs no table of objects in the
//! log, and adds up over intervals, loops and processes, each of which has its own objects.
//!
//! The loop needs a count for each object. When there are too many, it forgets a random half of the rarely requested objects for
//! good, and each of the others stands for twice as many. It chooses objects by a digest of their names, before anything is known
//! about them, and keeps all frequently requested objects; so the expected counts are exact, and the most popular objects are
//! always right. The table is small because a table of megabytes is never in the processor's caches: a look-up in it took a
//! twelfth of the user time of a transaction.

use polygraph_traffic::Oid;
use rustc_hash::FxHashMap;

use crate::judge::history::digest;

/// Number of objects that one loop counts; the most popular quarter is always right. At this number, the hash table is as full as
/// it can be in 0.3 MB.
const MAX_OBJECTS: usize = (1 << 15) / 8 * 7;
/// Bits of a [`Count`] that say how many objects an object stands for.
const SHIFT_BITS: u32 = 5;

/// An object: requests so far, and the binary logarithm of the number of objects that it stands for.
#[derive(Clone, Copy, Debug)]
struct Count(u32);

impl Count {
    /// Larger counts stay there: 134 million requests.
    const MOST: u32 = u32::MAX >> SHIFT_BITS;

    fn first(shift: u8) -> Count {
        Count(1 << SHIFT_BITS | u32::from(shift))
    }

    fn requests(self) -> u32 {
        self.0 >> SHIFT_BITS
    }

    fn shift(self) -> u8 {
        (self.0 & ((1 << SHIFT_BITS) - 1)) as u8
    }

    fn add_one(&mut self) {
        self.0 += u32::from(self.requests() < Count::MOST) << SHIFT_BITS;
    }

    fn set_shift(&mut self, shift: u8) {
        self.0 = self.requests() << SHIFT_BITS | u32::from(shift);
    }
}

/// Counts of requests for objects.
#[derive(Debug)]
pub struct PopularityCounts {
    /// Counts by a digest of the object; two objects rarely have the same digest, which does not matter.
    objects: FxHashMap<u32, Count>,
    limit: usize,
    /// One in `2^shift` objects without a count yet is counted.
    shift: u8,
    /// Objects with this many requests are kept.
    popular: u32,
}

impl Default for PopularityCounts {
    fn default() -> PopularityCounts {
        PopularityCounts::with_limit(MAX_OBJECTS)
    }
}

/// Whether an object is the one in `2^shift` that is counted.
fn is_chosen(key: u32, shift: u8) -> bool {
    key.leading_zeros() >= u32::from(shift)
}

impl PopularityCounts {
    /// Empty counts for at most `limit` objects; `limit` is at least 8.
    fn with_limit(limit: usize) -> PopularityCounts {
        PopularityCounts { objects: FxHashMap::default(), limit, shift: 0, popular: 1 }
    }

    /// Counts a request. Returns n and m if it is the n-th request for its object and stands for m such requests; `None` if
    /// requests for this object are not counted.
    pub fn count(&mut self, oid: &Oid) -> Option<(u32, u32)> {
        self.count_key(digest(oid))
    }

    fn count_key(&mut self, key: u32) -> Option<(u32, u32)> {
        if let Some(known) = self.objects.get_mut(&key) {
            known.add_one();
            return Some((known.requests(), 1 << known.shift()));
        }
        if self.objects.len() >= self.limit {
            self.thin();
        }
        if !is_chosen(key, self.shift) {
            return None;
        }
        self.objects.insert(key, Count::first(self.shift));
        Some((1, 1 << self.shift))
    }

    /// Forgets half of the rarely requested objects, or more, until a quarter of the table is free.
    fn thin(&mut self) {
        while self.objects.len() > self.limit / 4 * 3 && self.shift < 31 {
            let mut counts: Vec<u32> = self.objects.values().map(|count| count.requests()).collect();
            let (_, middle, _) = counts.select_nth_unstable_by(self.limit / 4, |a, b| b.cmp(a));
            self.popular = self.popular.max(*middle + 1);
            self.shift += 1;
            let (popular, shift) = (self.popular, self.shift);
            self.objects.retain(|&key, count| {
                if count.requests() >= popular {
                    return true;
                }
                count.set_shift(shift);
                is_chosen(key, shift)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use polygraph_traffic::rng::{Random, Seed, mix};

    use super::*;

    /// The number of objects with at least n requests, exact and as counted, for a stream of requests with a Zipf-like law.
    fn curves(limit: usize) -> (Vec<f64>, Vec<f64>, PopularityCounts) {
        let mut rng = Seed(11).stream("ranks", 0);
        let (mut exact, mut counted) = (vec![0.0; 100_000], vec![0.0; 100_000]);
        let mut all: FxHashMap<u64, usize> = FxHashMap::default();
        let mut ranks = PopularityCounts::with_limit(limit);
        for _ in 0..300_000 {
            let object = (60_000f64.powf(rng.unit())) as u64;
            let n = all.entry(object).or_default();
            *n += 1;
            exact[*n] += 1.0;
            if let Some((n, weight)) = ranks.count_key((mix(object) >> 32) as u32) {
                counted[n as usize] += f64::from(weight);
            }
        }
        (exact, counted, ranks)
    }

    #[test]
    fn counts_are_exact_while_there_is_room() {
        let (exact, counted, ranks) = curves(60_000);
        assert_eq!(exact, counted);
        assert_eq!(ranks.shift, 0);
    }

    #[test]
    fn a_sample_of_objects_gives_the_same_curve() {
        let (exact, counted, ranks) = curves(4_000);
        assert!(ranks.objects.len() <= 4_000 && ranks.shift >= 2, "{} {}", ranks.objects.len(), ranks.shift);
        for n in [1, 2, 5, 10, 30, 100, 1_000, 5_000] {
            let (want, got) = (exact[n], counted[n]);
            // About a fifth of at most 4,000 objects is left by chance: five standard errors are 10 % at worst.
            assert!((got - want).abs() <= 0.10 * want, "{n}: {got} for {want}");
        }
        let top = exact.iter().rposition(|count| *count > 0.0);
        assert_eq!(top, counted.iter().rposition(|count| *count > 0.0), "the head of the curve is exact");
    }
}
