//! The dynamic table of HPACK (RFC 7541, section 2.3.2): the latest fields, as far as they fit its size.

use std::collections::VecDeque;

/// What an entry counts besides its name and its value, in bytes (RFC 7541, section 4.1).
pub const OVERHEAD: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Entry<N> {
    /// Where its name begins in the text; its value follows.
    at: usize,
    name: usize,
    value: usize,
    note: N,
}

/// A dynamic table. Its names and values are in one buffer, from which the oldest are removed many at a time. Its owner adds a note to each
/// entry: what it has found out about the field, and will not have to find out again.
#[derive(Debug)]
pub struct DynamicTable<N> {
    text: Vec<u8>,
    /// The oldest entry is the first.
    entries: VecDeque<Entry<N>>,
    size: usize,
    most: usize,
}

impl<N: Copy> DynamicTable<N> {
    /// An empty table of at most `most` bytes.
    pub fn new(most: usize) -> DynamicTable<N> {
        DynamicTable { text: Vec::new(), entries: VecDeque::new(), size: 0, most }
    }

    /// The largest size.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The size as RFC 7541, section 4.1, counts it.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Changes the largest size. Entries that no longer fit are removed.
    pub fn resize(&mut self, most: usize) {
        self.most = most;
        self.make_room(0);
    }

    /// Name and value of an entry, and the note about it; the latest one has the number 0.
    #[inline]
    pub fn get(&self, number: usize) -> Option<(&[u8], &[u8], N)> {
        let place = self.entries.len().checked_sub(number + 1)?;
        let entry = self.entries.get(place)?;
        let (name, value) =
            self.text.get(entry.at..entry.at + entry.name + entry.value)?.split_at(entry.name);
        Some((name, value, entry.note))
    }

    /// Adds an entry. One that is larger than the table only removes all others.
    pub fn insert(&mut self, name: &[u8], value: &[u8], note: N) {
        self.compact();
        if self.make_room(name.len() + value.len() + OVERHEAD) {
            let at = self.text.len();
            self.text.extend_from_slice(name);
            self.push(at, name.len(), value, note);
        }
    }

    /// Adds an entry with the name of another one.
    pub fn insert_named_like(&mut self, number: usize, value: &[u8], note: N) {
        self.compact();
        let place = self.entries.len().checked_sub(number + 1);
        let Some(&Entry { at: from, name, .. }) = place.and_then(|place| self.entries.get(place)) else {
            return;
        };
        // The other entry may have to go (RFC 7541, section 4.4); its text is still there.
        if self.make_room(name + value.len() + OVERHEAD) {
            let at = self.text.len();
            self.text.extend_from_within(from..from + name);
            self.push(at, name, value, note);
        }
    }

    fn push(&mut self, at: usize, name: usize, value: &[u8], note: N) {
        self.text.extend_from_slice(value);
        self.entries.push_back(Entry { at, name, value: value.len(), note });
        self.size += name + value.len() + OVERHEAD;
    }

    /// Removes entries until one of this size fits. Returns whether it fits at all.
    fn make_room(&mut self, size: usize) -> bool {
        while self.size + size > self.most
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.name + oldest.value + OVERHEAD;
        }
        self.size + size <= self.most
    }

    /// Removes the text of entries that are gone, once it is more than the others can have: each byte is moved about once.
    fn compact(&mut self) {
        let start = self.entries.front().map_or(self.text.len(), |oldest| oldest.at);
        if start > self.most {
            self.text.drain(..start);
            self.entries.iter_mut().for_each(|entry| entry.at -= start);
        }
    }

    /// The latest entry with this value whose note and name `is_named` accepts; if there is none, the latest one that it accepts.
    #[inline]
    pub fn find(&self, value: &[u8], is_named: impl Fn(N, &[u8]) -> bool) -> Found {
        let mut found = Found::Nothing;
        for (number, entry) in self.entries.iter().rev().enumerate() {
            let (name, rest) = self.text[entry.at..].split_at(entry.name);
            if !is_named(entry.note, name) {
                continue;
            }
            if rest[..entry.value] == *value {
                return Found::Field(number);
            }
            if found == Found::Nothing {
                found = Found::Name(number);
            }
        }
        found
    }
}

/// An entry that serves to encode a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Name and value are those of this entry.
    Field(usize),
    /// The name is that of this entry.
    Name(usize),
    /// There is none.
    Nothing,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The fields, each of which has its name's length as its note.
    fn fields(table: &DynamicTable<usize>) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let entry = |(name, value, note): (&[u8], &[u8], usize)| {
            assert_eq!(note, name.len());
            (text(name), text(value))
        };
        (0..).map_while(|number| table.get(number)).map(entry).collect()
    }

    fn find(table: &DynamicTable<usize>, name: &[u8], value: &[u8]) -> Found {
        table.find(value, |note, known| note == name.len() && known.eq_ignore_ascii_case(name))
    }

    #[test]
    fn the_latest_entries_stay() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"1", 1);
        table.insert(b"b", b"2", 1);
        assert_eq!((table.size(), table.len()), (68, 2));
        assert_eq!(find(&table, b"A", b"1"), Found::Field(1));
        table.insert_named_like(1, b"3", 1);
        assert_eq!(fields(&table), [("a".into(), "3".into()), ("b".into(), "2".into())]);
        assert_eq!(find(&table, b"a", b"1"), Found::Name(0));
        assert_eq!(find(&table, b"c", b"1"), Found::Nothing);
        table.resize(40);
        assert_eq!(fields(&table), [("a".into(), "3".into())]);
        table.insert(b"a", &[b'x'; 50], 1);
        assert!(table.is_empty() && table.size() == 0, "larger than the table");
        table.insert_named_like(0, b"x", 1);
        assert!(table.is_empty(), "like one that is not there");
    }

    proptest! {
        /// The same as with a list of fields.
        #[test]
        fn it_is_a_list_of_limited_size(
            most in 0usize..400,
            steps in prop::collection::vec(("[a-c]{1,3}", "[x-z]{0,60}", 0usize..8), 0..60),
        ) {
            let (mut table, mut list) = (DynamicTable::new(most), Vec::<(String, String)>::new());
            for (name, value, number) in steps {
                let name = match list.get(number) {
                    Some((name, _)) => {
                        table.insert_named_like(number, value.as_bytes(), name.len());
                        name.clone()
                    }
                    None => {
                        table.insert(name.as_bytes(), value.as_bytes(), name.len());
                        name
                    }
                };
                list.insert(0, (name, value));
                while list.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD).sum::<usize>() > most {
                    // An entry that does not fit takes all others along.
                    list.pop();
                }
                prop_assert_eq!(fields(&table), &list[..]);
                prop_assert!(table.text.len() <= 3 * most.max(100), "{} of {}", table.text.len(), most);
            }
        }
    }
}
