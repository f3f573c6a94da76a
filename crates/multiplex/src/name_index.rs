//! An index of field names that are known when the program is compiled: the static tables of HPACK and QPACK, and names that HPACK treats
//! in a special way.

use polygraph_wire::head::is_same_name;

/// The number of places, a power of two. Half of them are free at least.
const PLACES: usize = 256;

/// An index of a list of at most 127 names in lower case, in which names may occur several times.
#[derive(Debug)]
pub struct NameIndex {
    names: &'static [&'static str],
    /// For each place, a number in the list plus 1, or 0. A name is at its place or behind it, without a gap between; the first of the
    /// same ones comes first.
    places: [u8; PLACES],
}

/// Where a search begins: the length, and the first and last letters, tell most names from each other.
const fn place(name: &[u8]) -> usize {
    let [first, .., last] = name else { return 0 };
    // Capital letters differ from small ones in this bit.
    let (first, last) = (*first as usize | 0x20, *last as usize | 0x20);
    (name.len() * 23 + first * 5 + last * 11) % PLACES
}

impl NameIndex {
    /// The index of a list.
    pub const fn new(names: &'static [&'static str]) -> NameIndex {
        assert!(names.len() < PLACES / 2, "searches would be long");
        let mut places = [0; PLACES];
        let mut number = 0;
        while number < names.len() {
            let mut at = place(names[number].as_bytes());
            while places[at] != 0 {
                at = (at + 1) % PLACES;
            }
            places[at] = number as u8 + 1;
            number += 1;
        }
        NameIndex { names, places }
    }

    /// The numbers of all names that are the same as this one, in any case, in order.
    #[inline]
    pub fn find(&self, name: &str) -> impl Iterator<Item = usize> {
        let begin = place(name.as_bytes());
        (begin..begin + PLACES)
            .map_while(|at| usize::from(self.places[at % PLACES]).checked_sub(1))
            .filter(move |number| is_same_name(self.names[*number].as_bytes(), name.as_bytes()))
    }

    /// The longest run of places without a gap, which a search passes at most.
    #[cfg(test)]
    pub fn longest(&self) -> usize {
        self.places.split(|place| *place == 0).map(<[u8]>::len).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_in_order() {
        static INDEX: NameIndex = NameIndex::new(&["accept", "x-a", "accept", "", "accepu", "x-b", "accept"]);
        for (name, expected) in [
            ("accept", &[0, 2, 6][..]),
            ("ACCEPT", &[0, 2, 6]),
            ("X-b", &[5]),
            ("", &[3]),
            ("accepu", &[4]),
            ("accepv", &[]),
            ("x-c", &[]),
            ("\u{e9}\u{e9}", &[]),
        ] {
            assert_eq!(INDEX.find(name).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
