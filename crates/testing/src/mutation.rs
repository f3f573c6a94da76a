//! Bytes that resemble valid messages: a seed with a few changes.

use std::path::Path;

/// A small generator of random numbers (xorshift with 64 bits of state). The seed must not be 0; equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() >> 11) as usize % bound.max(1)
    }

    /// A random byte.
    pub fn byte(&mut self) -> u8 {
        (self.bits() >> 11) as u8
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// How seeds are changed.
#[derive(Clone, Copy, Debug)]
pub struct Mutator<'a> {
    /// Bytes that mean something in such messages, to be inserted; may be empty.
    pub pieces: &'a [&'a [u8]],
    /// The length of what says most in a message, for example its header. It is changed more often. 0 if there is no such part.
    pub head: usize,
    /// The largest number of changes. Half of the results have a single one, because many changes leave little that can be read.
    pub changes: usize,
    /// The longest result, in bytes. Of a longer seed, a part is taken.
    pub longest: usize,
}

impl Default for Mutator<'_> {
    fn default() -> Self {
        Mutator { pieces: &[], head: 0, changes: 4, longest: 1 << 16 }
    }
}

impl Mutator<'_> {
    /// Another message, made from one of `seeds`, which must not be empty.
    pub fn mutate(&self, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let mut data = random.pick(seeds).clone();
        if data.len() > self.longest {
            let start = random.below(data.len() - self.longest / 2);
            data.drain(..start);
            data.truncate(self.longest);
        }
        let changes = if random.below(2) == 0 { 1 } else { 1 + random.below(self.changes) };
        for _ in 0..changes {
            self.change(&mut data, seeds, random);
        }
        data.truncate(self.longest);
        data
    }

    fn change(&self, data: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
        let at = random.below(data.len() + 1);
        let end = (at + random.below(24)).min(data.len());
        match random.below(12) {
            0 => drop(data.drain(at..end)),
            1 => drop(data.splice(at..at, self.piece(random))),
            2 => drop(data.splice(at..end, self.piece(random))),
            3 => {
                let most = if random.below(50) == 0 { 300 } else { 4 };
                let copy = data[at..end].repeat(1 + random.below(most));
                drop(data.splice(at..at, copy));
            }
            4 => {
                let other = random.pick(seeds);
                let from = random.below(other.len());
                let to = from + random.below(other.len() - from + 1);
                drop(data.splice(at..at, other[from..to].iter().copied()));
            }
            5 => data.truncate(at),
            6 => {
                let head = if self.head == 0 { data.len() } else { self.head.min(data.len()) };
                replace(data, random.below(head), random.byte());
            }
            7 => replace(data, at, *random.pick(&[0, 1, 0x7f, 0x80, 0xff])),
            8 | 9 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            _ => replace(data, at, random.byte()),
        }
    }

    fn piece(&self, random: &mut Random) -> Vec<u8> {
        if self.pieces.is_empty() { vec![random.byte()] } else { random.pick(self.pieces).to_vec() }
    }
}

fn replace(data: &mut [u8], at: usize, with: u8) {
    if let Some(byte) = data.get_mut(at) {
        *byte = with;
    }
}

/// The files of a directory as seeds, in the order of their names; none if there is no such directory.
pub fn files(directory: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_messages_of_limited_length() {
        let seeds = [b"a message".to_vec(), vec![7; 500]];
        let mutator = Mutator { pieces: &[b"piece"], head: 3, longest: 100, ..Mutator::default() };
        let messages = |seed| {
            let mut random = Random(seed);
            (0..5000).map(|_| mutator.mutate(&seeds, &mut random)).collect::<Vec<_>>()
        };
        let first = messages(1);
        assert_eq!(first, messages(1));
        assert_ne!(first, messages(2));
        assert!(first.iter().all(|message| message.len() <= 100));
        let changed = first.iter().filter(|message| !seeds.contains(message)).count();
        assert!(changed > 4000, "{changed} of 5000 differ from the seeds");
        assert!(first.iter().any(|message| message.windows(5).any(|part| part == b"piece")));
    }

    #[test]
    fn an_empty_seed_can_be_changed() {
        let mut random = Random(1);
        let found = (0..1000).map(|_| Mutator::default().mutate(&[Vec::new()], &mut random));
        assert!(found.into_iter().any(|message| !message.is_empty()));
    }
}
