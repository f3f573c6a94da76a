//! Which of the known objects is requested again (`docs/reference/models.md`, "Popularity").

use crate::rng::Random;

/// The law by which a known object is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Popularity {
    /// All known objects have the same probability; older objects gather more requests because they are known
    /// longer.
    #[default]
    Unif,
    /// Recent objects are the popular ones: rank 1 is the newest. A `skew` of 1 gives the plain Zipf law.
    Zipf {
        /// Exponent of the uniform variate, positive.
        skew: f64,
    },
}

impl Popularity {
    /// A name in `1..=n` (`n >= 1`).
    pub fn choose(&self, n: u64, rng: &mut impl Random) -> u64 {
        match *self {
            Popularity::Unif => 1 + rng.below(n),
            Popularity::Zipf { skew } => {
                let rank = ((n as f64 + 1.0).powf(rng.unit().powf(skew)) as u64).clamp(1, n);
                1 + n - rank
            }
        }
    }
}

/// A popularity model.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PopModel {
    /// The law within the chosen set.
    pub law: Popularity,
    /// Size of the hot set as a share of the working set (0 to 1).
    pub hot_frac: f64,
    /// Share of repeats that go to the hot set (0 to 1).
    pub hot_prob: f64,
    /// Probability of preferring the smallest cachable one of nine neighbours (0 to 1). It lowers the byte hit
    /// ratio, as in real traffic.
    pub bhr_discrimination: f64,
}

impl Default for PopModel {
    fn default() -> PopModel {
        PopModel::plain(Popularity::Unif)
    }
}

/// The objects to choose from: names `1..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The newest name, at least 1.
    pub last: u64,
    /// The number of newest objects to choose from, if the working set is frozen.
    pub window: Option<u64>,
    /// The newest name of the hot set.
    pub hot_end: u64,
}

/// A chosen name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The name.
    pub name: u64,
    /// The number of neighbours on each side that the preference for small objects considers.
    pub hot: bool,
}

/// Neighbours on each side that size discrimination looks at.
const NEIGHBOURS: u64 = 4;

impl PopModel {
    /// A model without a hot set and without preferences.
    pub fn plain(law: Popularity) -> PopModel {
        PopModel { law, hot_frac: 1.0, hot_prob: 0.0, bhr_discrimination: 0.0 }
    }

    /// Chooses a name. `size_if_cachable` gives the size of an object, or `None` if it is not cachable.
    pub fn choose(
        &self,
        from: Candidates,
        rng: &mut impl Random,
        size_if_cachable: impl Fn(u64) -> Option<u64>,
    ) -> Chosen {
        let hot = self.hot_prob > 0.0 && rng.event(self.hot_prob);
        let set = from.window.unwrap_or(from.last).clamp(1, from.last);
        let (last, window) = if hot {
            // While the set grows, all of it is hot.
            let share = if from.window.is_some() { self.hot_frac } else { 1.0 };
            let window = ((set as f64 * share).round() as u64).clamp(1, from.last);
            (from.hot_end.clamp(window, from.last), window)
        } else {
            (from.last, set)
        };
        let chosen = last - window + self.law.choose(window, rng);
        let discriminates = self.bhr_discrimination > 0.0 && rng.event(self.bhr_discrimination);
        let Some(size) = discriminates.then(|| size_if_cachable(chosen)).flatten() else {
            return Chosen { name: chosen, hot };
        };
        let size_if_cachable = |name| if name == chosen { Some(size) } else { size_if_cachable(name) };
        // All existing neighbours are compared, whether or not they belong to the working set or the hot set. A
        // hot set of one object would otherwise have no neighbours, and small objects would not be preferred.
        let first = chosen.saturating_sub(NEIGHBOURS).max(1);
        let smallest = (first..=chosen.saturating_add(NEIGHBOURS).min(from.last))
            .filter_map(|name| size_if_cachable(name).map(|size| (size, name)))
            .min();
        Chosen { name: smallest.map_or(chosen, |(_, name)| name), hot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn uniform_choice_has_no_favourites() {
        // Chi-square over 20 names: 19 degrees of freedom, 99.9 % point 43.8.
        let mut rng = Seed(4).stream("unif", 0);
        let mut counts = [0f64; 20];
        for _ in 0..100_000 {
            counts[Popularity::Unif.choose(20, &mut rng) as usize - 1] += 1.0;
        }
        let chi: f64 = counts.iter().map(|c| (c - 5_000.0).powi(2) / 5_000.0).sum();
        assert!(chi < 43.8, "chi-square {chi}");
    }

    #[test]
    fn zipf_prefers_the_newest_with_slope_minus_one() {
        // Rank r is chosen with probability log(1 + 1/r) / log(n + 1).
        let (n, draws) = (1_000u64, 400_000);
        let mut rng = Seed(6).stream("zipf", 0);
        let mut counts = vec![0f64; n as usize + 1];
        for _ in 0..draws {
            let rank = n + 1 - Popularity::Zipf { skew: 1.0 }.choose(n, &mut rng);
            counts[rank as usize] += 1.0;
        }
        for rank in [1u64, 2, 5, 20, 100] {
            let p = (1.0 + 1.0 / rank as f64).ln() / (n as f64 + 1.0).ln();
            let tolerance = 5.0 * (p * (1.0 - p) / draws as f64).sqrt();
            assert!((counts[rank as usize] / draws as f64 - p).abs() < tolerance, "rank {rank}");
        }
    }

    #[test]
    fn the_hot_set_gets_its_share() {
        // 1 % of the working set gets 10 % of the repeats, and its share of the rest.
        let model = PopModel { hot_frac: 0.01, hot_prob: 0.10, ..PopModel::default() };
        let from = Candidates { last: 50_000, window: Some(10_000), hot_end: 45_000 };
        let mut rng = Seed(5).stream("hot", 0);
        let n = 200_000;
        let (mut in_hot, mut marked) = (0, 0);
        for _ in 0..n {
            let chosen = model.choose(from, &mut rng, |_| None);
            assert!((40_001..=50_000).contains(&chosen.name));
            in_hot += u32::from((44_901..=45_000).contains(&chosen.name));
            marked += u32::from(chosen.hot);
        }
        let near = |count: u32, p: f64| {
            let share = f64::from(count) / f64::from(n);
            assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / f64::from(n)).sqrt(), "{share} for {p}");
        };
        near(marked, 0.10);
        near(in_hot, 0.10 + 0.90 * 0.01);
    }

    #[test]
    fn without_a_frozen_set_everything_is_hot() {
        let model =
            PopModel { hot_frac: 0.01, hot_prob: 1.0, bhr_discrimination: 1.0, ..PopModel::default() };
        let mut rng = Seed(5).stream("hot", 1);
        let from = Candidates { last: 1000, window: None, hot_end: 500 };
        let names: Vec<u64> = (0..1000).map(|_| model.choose(from, &mut rng, |_| None).name).collect();
        // A uniform mean of 500.5, five standard errors of 288.7 / sqrt(1000).
        let mean = names.iter().sum::<u64>() as f64 / 1000.0;
        assert!((mean - 500.5).abs() < 46.0, "{mean}");
        // Sizes come from other processes, possibly from forged messages.
        let from = Candidates { last: u64::MAX, window: Some(1), hot_end: u64::MAX };
        assert_eq!(model.choose(from, &mut rng, |_| Some(1)).name, u64::MAX - 4);
    }

    #[test]
    fn discrimination_takes_the_smallest_cachable_neighbour() {
        let model = PopModel { bhr_discrimination: 1.0, ..PopModel::default() };
        let from = Candidates { last: 1000, window: None, hot_end: 500 };
        // Multiples of 7 are uncachable, size falls with the last digit.
        let size = |name: u64| (!name.is_multiple_of(7)).then_some(10 - name % 10);
        let mut rng = Seed(5).stream("bhr", 0);
        for _ in 0..10_000 {
            let mut plain = rng.clone();
            let chosen = model.choose(from, &mut rng, size).name;
            let without = PopModel::default().choose(from, &mut plain, size).name;
            if without % 7 == 0 {
                assert_eq!(chosen, without);
            } else {
                let best =
                    (without.saturating_sub(4).max(1)..=(without + 4).min(1000)).filter_map(size).min();
                assert_eq!(size(chosen), best);
            }
        }
    }

    #[test]
    fn neighbours_are_compared_from_the_first_object_to_the_last() {
        // Hot sets and working sets of one object: without the others there would be nothing to compare.
        let model = PopModel { hot_frac: 0.01, bhr_discrimination: 1.0, ..PopModel::default() };
        let size = |name: u64| Some(crate::rng::mix(name));
        let mut rng = Seed(5).stream("bhr", 1);
        for (hot_prob, from, chosen) in [
            (1.0, Candidates { last: 1000, window: Some(100), hot_end: 950 }, 950),
            (1.0, Candidates { last: 952, window: Some(10), hot_end: 950 }, 950),
            (0.0, Candidates { last: 1000, window: Some(1), hot_end: 1000 }, 1000),
            (0.0, Candidates { last: 3, window: Some(1), hot_end: 3 }, 3),
        ] {
            let model = PopModel { hot_prob, ..model.clone() };
            let range = chosen.max(5) - 4..=(chosen + 4).min(from.last);
            let best = range.min_by_key(|&name| size(name)).unwrap();
            assert_eq!(model.choose(from, &mut rng, size).name, best, "{from:?}");
        }
        // The smallest of nine exponential sizes has a ninth of their mean and as large a deviation: 20,000 hot objects
        // in the middle of the set, five standard errors.
        let model = PopModel { hot_prob: 1.0, ..model };
        let size = |name| {
            let unit = (crate::rng::mix(name) >> 11) as f64 / (1u64 << 53) as f64;
            Some((-1e6 * (1.0 - unit).ln()) as u64)
        };
        let sum: f64 = (0..20_000u64)
            .map(|n| {
                let from = Candidates { last: 1_000_000, window: Some(100), hot_end: 10 + 40 * n };
                size(model.choose(from, &mut rng, size).name).unwrap() as f64
            })
            .sum();
        let mean = sum / 20_000.0;
        assert!((mean - 1e6 / 9.0).abs() < 5.0 * 1e6 / 9.0 / 20_000f64.sqrt(), "{mean}");
    }
}
