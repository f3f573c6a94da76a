//! How often keys were asked for lately, about: a count-min sketch whose counts are halved now and then
//! (Einziger, Friedman, Manes: "TinyLFU: a highly efficient cache admission policy", 2017).

use super::Key;

/// Counters of a key.
const ROWS: usize = 4;
/// Counters end there.
const MOST: u8 = 15;
/// Counts are halved after so many requests for each counter of a row.
const SAMPLE: usize = 10;

/// The sketch.
#[derive(Debug)]
pub struct Sketch {
    counters: Vec<u8>,
    /// Counters of a row, a power of two.
    width: usize,
    additions: usize,
}

impl Sketch {
    /// A sketch for about so many objects.
    pub fn new(objects: usize) -> Sketch {
        let width = objects.next_power_of_two().max(1024);
        Sketch { counters: vec![0; ROWS * width], width, additions: 0 }
    }

    fn places(&self, key: Key) -> [usize; ROWS] {
        // Two independent halves of a mixed key make as many places as one likes (Kirsch and Mitzenmacher, 2006).
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = mixed ^ (mixed >> 29);
        let (first, step) = (mixed as usize, (mixed >> 32) as usize | 1);
        std::array::from_fn(|row| {
            row * self.width + (first.wrapping_add(row.wrapping_mul(step)) & (self.width - 1))
        })
    }

    /// Counts a request.
    pub fn add(&mut self, key: Key) {
        let places = self.places(key);
        let least = self.count_at(&places);
        if least < MOST {
            // Only the smallest are raised: the others count other keys, too.
            for at in places {
                let counter = &mut self.counters[at];
                *counter = if *counter == least { least + 1 } else { *counter };
            }
        }
        self.additions += 1;
        if self.additions >= SAMPLE * self.width {
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
            self.additions /= 2;
        }
    }

    /// How often `key` was asked for lately: never less than that, sometimes more.
    pub fn count(&self, key: Key) -> u8 {
        self.count_at(&self.places(key))
    }

    fn count_at(&self, places: &[usize; ROWS]) -> u8 {
        // Two rows may share a place only if they are the same row, so the smallest counter is the best.
        places.iter().map(|&at| self.counters[at]).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_about_right_and_fade() {
        let mut sketch = Sketch::new(1000);
        for key in 0..500u64 {
            (0..=key % 10).for_each(|_| sketch.add(key * 7919));
        }
        let exact = (0..500u64).filter(|key| u64::from(sketch.count(key * 7919)) == key % 10 + 1).count();
        let less = (0..500u64).filter(|key| u64::from(sketch.count(key * 7919)) < key % 10 + 1).count();
        assert!(exact > 480 && less == 0, "{exact} exact, {less} too small");
        (0..40).for_each(|_| sketch.add(1));
        assert_eq!(sketch.count(1), MOST);
        let before = sketch.count(9 * 7919);
        // Enough others to halve the counts once.
        (0..10 * 1024).for_each(|other| sketch.add(1_000_000 + other));
        let after = sketch.count(9 * 7919);
        assert!(after < before && sketch.count(1) < MOST, "{before} {after}");
    }
}
