//! Policies by example, against brute force, and against each other.

use std::collections::BTreeMap;

use polygraph_traffic::{Random, Seed};
use proptest::prelude::*;

use super::*;

/// A policy and what it holds by its own word.
struct Cache<P> {
    policy: P,
    sizes: BTreeMap<Key, u64>,
}

impl<P: Policy> Cache<P> {
    fn new(policy: P) -> Cache<P> {
        Cache { policy, sizes: BTreeMap::new() }
    }

    /// True if it was a hit; otherwise the object is stored if the policy likes.
    fn request(&mut self, key: Key, bytes: u64) -> bool {
        self.policy.ask(key);
        if self.sizes.contains_key(&key) {
            return true;
        }
        let mut gone = Vec::new();
        self.sizes.insert(key, bytes);
        self.policy.take(key, bytes, &mut gone);
        for key in gone {
            assert!(self.sizes.remove(&key).is_some(), "{key} was not there");
        }
        assert_eq!(self.policy.bytes(), self.sizes.values().sum::<u64>());
        false
    }

    fn keys(&self) -> Vec<Key> {
        self.sizes.keys().copied().collect()
    }
}

/// What is there after requests for objects of one byte.
fn left(policy: impl Policy, requests: &[Key]) -> Vec<Key> {
    let mut cache = Cache::new(policy);
    requests.iter().for_each(|&key| _ = cache.request(key, 1));
    cache.keys()
}

#[test]
fn by_example() {
    let rows: [(&[Key], [&[Key]; 2]); 4] = [
        // Requests, and what an LRU and a FIFO cache of three have then.
        (&[1, 2, 3], [&[1, 2, 3], &[1, 2, 3]]),
        (&[1, 2, 3, 4], [&[2, 3, 4], &[2, 3, 4]]),
        (&[1, 2, 3, 1, 4], [&[1, 3, 4], &[2, 3, 4]]),
        (&[1, 2, 3, 1, 4, 2, 5], [&[2, 4, 5], &[3, 4, 5]]),
    ];
    for (requests, [lru, fifo]) in rows {
        assert_eq!(left(Ages::lru(3), requests), lru, "LRU {requests:?}");
        assert_eq!(left(Ages::fifo(3), requests), fifo, "FIFO {requests:?}");
        assert_eq!(left(Ideal::default(), requests).len(), requests.iter().max().map_or(0, |&n| n as usize));
    }
    // One-hit wonders pass through the small queue; 1 was asked for twice more and moves on when it would go.
    let requests: Vec<Key> = [1, 1, 1].into_iter().chain(2..30).collect();
    let left_over = left(S3Fifo::new(10), &requests);
    assert!(left_over.contains(&1) && left_over.contains(&29) && left_over.len() == 10, "{left_over:?}");
    // A name that is remembered comes back into the main queue and outlives others that come only once.
    let again: Vec<Key> = requests.iter().copied().chain([20, 20]).chain(40..60).collect();
    assert!(left(S3Fifo::new(10), &again).contains(&1));
    // Nobody is pushed out for something that was asked for less often.
    let popular: Vec<Key> = (0..40).map(|n| n % 4).chain(100..400).collect();
    let left_over = left(TinyLfu::new(200), &popular);
    assert!((0..4).all(|key| left_over.contains(&key)), "{left_over:?}");
}

#[test]
fn a_newcomer_that_is_not_admitted_pushes_nobody_out() {
    // The main cache has 198 bytes. 2 was asked for three times, 1 once; 3 would need the room of both.
    let mut cache = Cache::new(TinyLfu::new(200));
    [1, 2, 2, 2].into_iter().for_each(|key| _ = cache.request(key, 99));
    for kept in [[1, 2], [1, 2], [1, 2]] {
        cache.request(3, 150);
        assert_eq!(cache.keys(), kept);
    }
    cache.request(3, 150);
    assert_eq!(cache.keys(), [3]);
}

#[test]
fn objects_larger_than_the_cache_are_not_kept() {
    let policies: [Box<dyn Policy>; 4] = [
        Box::new(Ages::lru(100)),
        Box::new(Ages::fifo(100)),
        Box::new(S3Fifo::new(100)),
        Box::new(TinyLfu::new(100)),
    ];
    for mut policy in policies {
        let mut gone = Vec::new();
        policy.take(7, 101, &mut gone);
        assert_eq!((gone, policy.bytes()), (vec![7], 0));
        policy.drop_key(7);
        assert_eq!(policy.bytes(), 0);
    }
}

/// The same by going through all objects: the one with the smallest mark goes.
fn brute_force(requests: &[(Key, u64)], capacity: u64, renews: bool) -> Vec<bool> {
    let mut here: BTreeMap<Key, (usize, u64)> = BTreeMap::new();
    let mut hits = Vec::new();
    for (time, &(key, bytes)) in requests.iter().enumerate() {
        let hit = here.contains_key(&key);
        hits.push(hit);
        if hit {
            if renews {
                here.entry(key).and_modify(|(mark, _)| *mark = time);
            }
            continue;
        }
        if bytes > capacity {
            continue;
        }
        while here.values().map(|(_, bytes)| bytes).sum::<u64>() + bytes > capacity {
            let oldest = here.iter().min_by_key(|(_, (mark, _))| *mark).map(|(key, _)| *key);
            oldest.map(|key| here.remove(&key));
        }
        here.insert(key, (time, bytes));
    }
    hits
}

proptest! {
    #[test]
    fn lru_and_fifo_are_what_brute_force_says(
        keys in prop::collection::vec(0u64..30, 0..300),
        capacity in 1u64..60,
    ) {
        let requests: Vec<(Key, u64)> = keys.into_iter().map(|key| (key, 1 + key * 7 % 11)).collect();
        for renews in [true, false] {
            let mut cache = Cache::new(if renews { Ages::lru(capacity) } else { Ages::fifo(capacity) });
            let hits: Vec<bool> =
                requests.iter().map(|&(key, bytes)| cache.request(key, bytes)).collect();
            prop_assert_eq!(hits, brute_force(&requests, capacity, renews));
        }
    }

    #[test]
    fn books_balance(
        requests in prop::collection::vec((0u64..40, any::<bool>()), 0..300),
        capacity in 1u64..200,
    ) {
        fn play(policy: impl Policy, requests: &[(Key, bool)], capacity: u64) -> Result<(), TestCaseError> {
            let mut cache = Cache::new(policy);
            for &(key, drops) in requests {
                if drops && cache.sizes.remove(&key).is_some() {
                    cache.policy.drop_key(key);
                }
                cache.request(key, 1 + key * 7 % 23);
                prop_assert!(cache.policy.bytes() <= capacity);
            }
            Ok(())
        }
        play(S3Fifo::new(capacity), &requests, capacity)?;
        play(TinyLfu::new(capacity), &requests, capacity)?;
        play(Ages::lru(capacity), &requests, capacity)?;
    }
}

#[test]
fn clever_policies_beat_lru_on_a_zipf_trace() {
    // 200,000 requests for 20,000 objects of 1 to 9 bytes with Zipf(0.9), a cache for a tenth of all bytes.
    let count = 20_000;
    let mut sums = Vec::with_capacity(count);
    let mut sum = 0.0;
    for rank in 1..=count {
        sum += 1.0 / (rank as f64).powf(0.9);
        sums.push(sum);
    }
    let hits = |policy: &mut dyn Policy| {
        let mut rng = Seed(1).stream("zipf", 0);
        let mut here = std::collections::HashSet::new();
        let (mut hits, mut gone) = (0, Vec::new());
        for _ in 0..200_000 {
            let drawn = rng.unit() * sum;
            let key = sums.partition_point(|&sum| sum < drawn) as Key;
            policy.ask(key);
            if here.contains(&key) {
                hits += 1;
                continue;
            }
            here.insert(key);
            policy.take(key, 1 + key % 9, &mut gone);
            gone.drain(..).for_each(|key| _ = here.remove(&key));
        }
        f64::from(hits) / 200_000.0
    };
    let capacity = 10_000;
    let [lru, fifo] = [Ages::lru(capacity), Ages::fifo(capacity)].map(|mut policy| hits(&mut policy));
    let (s3fifo, tinylfu) = (hits(&mut S3Fifo::new(capacity)), hits(&mut TinyLfu::new(capacity)));
    let ideal = hits(&mut Ideal::default());
    let all = format!("LRU {lru}, FIFO {fifo}, S3-FIFO {s3fifo}, TinyLFU {tinylfu}, ideal {ideal}");
    // The standard error of each is 0.001, and they see the same requests.
    assert!(fifo < lru - 0.01 && s3fifo > lru + 0.02 && tinylfu > lru + 0.02, "{all}");
    assert!(s3fifo < ideal && tinylfu < ideal, "{all}");
}
