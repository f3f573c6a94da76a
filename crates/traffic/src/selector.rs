//! Choices with probabilities.

use crate::rng::Random;

/// Items to choose from, each with a probability; PGL calls it a selector.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Selector<T> {
    items: Vec<T>,
    /// Sums of the probabilities up to and including each item; empty if all items have the same probability.
    sums: Vec<f64>,
}

impl<T> Default for Selector<T> {
    fn default() -> Self {
        Selector { items: Vec::new(), sums: Vec::new() }
    }
}

impl<T> Selector<T> {
    /// A selector of items with the same probability.
    pub fn even(items: Vec<T>) -> Selector<T> {
        Selector { items, sums: Vec::new() }
    }

    /// A selector of items with their weights, which need not add up to one. Items without a positive finite
    /// weight are left out; if no items remain, the selector is empty.
    pub fn weighted(pairs: impl IntoIterator<Item = (T, f64)>) -> Selector<T> {
        let (mut items, mut sums, mut sum) = (Vec::new(), Vec::new(), 0.0);
        let mut weights = Vec::new();
        for (item, weight) in pairs.into_iter().filter(|(_, w)| *w > 0.0 && w.is_finite()) {
            sum += weight;
            items.push(item);
            sums.push(sum);
            weights.push(weight);
        }
        if weights.iter().all(|weight| (weight / sum * weights.len() as f64 - 1.0).abs() < 1e-9) {
            sums.clear();
        }
        sums.iter_mut().for_each(|s| *s /= sum);
        Selector { items, sums }
    }

    /// A selector with only one item.
    pub fn only(item: T) -> Selector<T> {
        Selector::even(vec![item])
    }

    /// The items.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The probability of the item at `index`.
    pub fn probability(&self, index: usize) -> f64 {
        match self.sums.get(index) {
            Some(sum) => sum - if index == 0 { 0.0 } else { self.sums[index - 1] },
            None if index < self.items.len() => 1.0 / self.items.len() as f64,
            None => 0.0,
        }
    }

    /// Draws the index of an item, or `None` from an empty selector. With a single item, nothing is drawn from
    /// `rng`.
    pub fn draw_index(&self, rng: &mut impl Random) -> Option<usize> {
        match self.items.len() {
            0 => None,
            1 => Some(0),
            n if self.sums.is_empty() => Some(rng.below(n as u64) as usize),
            n => {
                let at = rng.unit();
                Some(self.sums.partition_point(|&sum| sum <= at).min(n - 1))
            }
        }
    }

    /// Draws an item, or `None` from an empty selector.
    pub fn draw(&self, rng: &mut impl Random) -> Option<&T> {
        self.draw_index(rng).map(|index| &self.items[index])
    }

    /// The same selector over other items.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Selector<U> {
        Selector { items: self.items.into_iter().map(change).collect(), sums: self.sums }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn shares_are_as_asked() {
        let kinds = Selector::weighted([("a", 0.05), ("b", 0.10), ("never", 0.0), ("c", 0.85)]);
        assert_eq!(kinds.items(), ["a", "b", "c"]);
        let mut rng = Seed(9).stream("selector", 0);
        let n = 200_000;
        let mut counts = [0u32; 3];
        (0..n).for_each(|_| counts[kinds.draw_index(&mut rng).unwrap()] += 1);
        for (index, &count) in counts.iter().enumerate() {
            let p = kinds.probability(index);
            let tolerance = 5.0 * (p * (1.0 - p) / f64::from(n)).sqrt();
            assert!((f64::from(count) / f64::from(n) - p).abs() < tolerance, "{index}: {count}");
        }
    }

    #[test]
    fn where_there_is_no_choice_nothing_is_drawn() {
        let mut rng = Seed(9).stream("selector", 1);
        let before = format!("{rng:?}");
        assert_eq!(Selector::only(7).draw(&mut rng), Some(&7));
        assert_eq!(Selector::<u8>::default().draw(&mut rng), None);
        assert_eq!(format!("{rng:?}"), before);
        assert!(Selector::weighted([(1, 0.0)]).is_empty());
        assert_eq!(Selector::weighted([(1, 2.0), (2, 2.0)]).probability(1), 0.5);
    }
}
