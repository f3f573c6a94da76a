//! Heads whose fields are known to whoever has put them together, so that nobody has to look for them again.

use super::{Header, Headers, text};

/// The most fields. Heads with more are read.
const MOST: usize = 16;

/// A line with a name, a colon, a space, a value and a line end.
#[derive(Clone, Copy, Debug)]
struct Line {
    at: u32,
    name: u16,
    value: u16,
}

/// Where the fields of a head are.
#[derive(Clone, Copy, Debug)]
pub struct HeadIndex {
    lines: [Line; MOST],
    count: usize,
    /// The size of the head; 0 if the index is not complete.
    len: usize,
}

impl Default for HeadIndex {
    fn default() -> HeadIndex {
        HeadIndex::NONE
    }
}

impl HeadIndex {
    /// An index that tells nothing.
    pub const NONE: HeadIndex =
        HeadIndex { lines: [Line { at: 0, name: 0, value: 0 }; MOST], count: 0, len: 0 };

    /// Adds the line of a field that begins at `at`, with a name and a value of these sizes.
    #[inline]
    pub fn add(&mut self, at: usize, name: usize, value: usize) {
        if let Some(line) = self.lines.get_mut(self.count)
            && let (Ok(at), Ok(name), Ok(value)) = (at.try_into(), name.try_into(), value.try_into())
        {
            *line = Line { at, name, value };
        } else {
            self.count = MOST;
        }
        self.count += 1;
    }

    /// The head is complete and has `len` bytes.
    pub fn end(&mut self, len: usize) {
        self.len = if self.count <= MOST { len } else { 0 };
    }

    /// Nothing is known about the fields.
    pub fn clear(&mut self) {
        (self.count, self.len) = (0, 0);
    }

    /// Whether the fields are known.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.len > 0
    }

    /// The fields of the head at the start of `buf`, and its size; `None` if the index is not complete.
    #[inline]
    pub(super) fn fields<'h, 'b>(
        &self,
        buf: &'b [u8],
        headers: &'h mut Headers<'b>,
    ) -> Option<(&'h [Header<'b>], usize)> {
        if !self.is_complete() {
            return None;
        }
        let head = buf.get(..self.len).filter(|head| head.ends_with(b"\r\n\r\n"))?;
        let lines = self.lines.get(..self.count)?;
        for (line, header) in lines.iter().zip(&mut *headers) {
            let (name_at, name_end) = (line.at as usize, line.at as usize + usize::from(line.name));
            let value_at = name_end + ": ".len();
            let value = head.get(value_at..value_at + usize::from(line.value))?;
            header.write(Header { name: text(&head[name_at..name_end])?, value });
        }
        // SAFETY: this many were written, because there are not more lines than headers.
        Some((unsafe { headers[..lines.len()].assume_init_ref() }, self.len))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{ReplyHead, parse_reply, parse_reply_of};
    use super::*;

    /// A head with these fields, and its index.
    fn write(fields: &[(String, String)]) -> (Vec<u8>, HeadIndex) {
        let (mut head, mut index) = (b"HTTP/1.1 200 \r\n".to_vec(), HeadIndex::default());
        for (name, value) in fields {
            index.add(head.len(), name.len(), value.len());
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        index.end(head.len());
        (head, index)
    }

    fn show(head: &ReplyHead<'_, '_>) -> String {
        format!("{head:?}")
    }

    proptest! {
        #[test]
        fn an_index_tells_what_reading_would_find(
            fields in prop::collection::vec(("[a-z-]{1,20}", "[!-~]{0,40}"), 0..20),
            content in "[a-z\r\n]{0,20}",
        ) {
            let (mut head, index) = write(&fields);
            prop_assert_eq!(index.is_complete(), fields.len() <= MOST);
            head.extend_from_slice(content.as_bytes());
            let read = parse_reply(&head, show);
            prop_assert_eq!(parse_reply_of(&head, &index, show), read.clone());
            prop_assert_eq!(parse_reply_of(&head, &HeadIndex::default(), show), read);
        }

        #[test]
        fn a_wrong_index_does_no_harm(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            lines in prop::collection::vec((0usize..90, 0usize..90, 0usize..90), 0..20),
            len in 0usize..90,
        ) {
            let mut index = HeadIndex::default();
            lines.iter().for_each(|(at, name, value)| index.add(*at, *name, *value));
            index.end(len);
            let head = [&b"HTTP/1.1 200 \r\n"[..], &bytes, b"\r\n\r\n"].concat();
            let _ = parse_reply_of(&head, &index, show);
        }
    }

    #[test]
    fn sizes_have_limits() {
        for (at, name, value) in [(1, 70_000, 1), (1, 1, 70_000), (usize::MAX, 1, 1)] {
            let mut index = HeadIndex::default();
            index.add(at, name, value);
            index.end(100);
            assert!(!index.is_complete());
            index.clear();
            index.end(100);
            assert!(index.is_complete());
        }
    }
}
