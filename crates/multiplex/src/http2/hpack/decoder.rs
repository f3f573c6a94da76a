//! Header blocks to fields.

use super::TABLE_SIZE;
use super::static_table::ENTRIES;
use super::table::{DynamicTable, OVERHEAD};
use crate::literals::{StringLiteral, get_integer};

/// Why a header block cannot be decoded. The connection must then end, because the tables of both sides may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub enum HpackError {
    /// It ends early, or has an integer that is too large.
    Cut,
    /// A string with a broken Huffman code.
    Coding,
    /// It names an entry that there is not.
    Index,
    /// It changes the size of the dynamic table after its start, or to more than was allowed.
    Resize,
}

impl HpackError {
    /// What is wrong.
    pub fn text(self) -> &'static str {
        match self {
            HpackError::Cut => "a header block ends early, or has an integer that is too large",
            HpackError::Coding => "a broken string in a header block",
            HpackError::Index => "no such entry of a table",
            HpackError::Resize => "a change of the dynamic table that is not allowed",
        }
    }
}

/// The decoder of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest table that the peer may use.
    most: usize,
    /// For Huffman-coded strings.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new(TABLE_SIZE)
    }
}

impl Decoder {
    /// A decoder with a dynamic table of this size, which the peer may reduce.
    pub fn new(most: usize) -> Decoder {
        Decoder { table: DynamicTable::new(most), most, name: Vec::new(), value: Vec::new() }
    }

    /// Passes the fields of a block to `each` as long as they have at most `limit` bytes, counted as RFC 9113, section 6.5.2, does.
    /// Returns whether they have.
    ///
    /// # Errors
    /// If the block is broken.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        limit: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<bool, HpackError> {
        let (mut left, mut may_resize) = (Some(limit), true);
        while let Some(&first) = block.first() {
            if first & 0xe0 == 0x20 {
                let size = get_integer(&mut block, 5).ok_or(HpackError::Cut)?;
                if !may_resize || size > self.most {
                    return Err(HpackError::Resize);
                }
                self.table.resize(size);
                continue;
            }
            may_resize = false;
            let (prefix, has_value) = match first {
                0x80.. => (7, false),
                0x40.. => (6, true),
                // Without indexing, or never indexed.
                _ => (4, true),
            };
            let index = get_integer(&mut block, prefix).ok_or(HpackError::Cut)?;
            let literal_name = match index {
                0 if has_value => Some(StringLiteral::take(&mut block, 7).ok_or(HpackError::Cut)?),
                _ => None,
            };
            let literal_value = match has_value {
                true => Some(StringLiteral::take(&mut block, 7).ok_or(HpackError::Cut)?),
                false => None,
            };
            let literal_value = match literal_value {
                Some(value) => Some(value.text(&mut self.value).ok_or(HpackError::Coding)?),
                None => None,
            };
            let literal_name = match literal_name {
                Some(name) => Some(name.text(&mut self.name).ok_or(HpackError::Coding)?),
                None => None,
            };
            let (name, known_value) = match literal_name {
                Some(name) => (name, &[][..]),
                None => entry(&self.table, index).ok_or(HpackError::Index)?,
            };
            let value = literal_value.unwrap_or(known_value);
            left = left.and_then(|left| left.checked_sub(name.len() + value.len() + OVERHEAD));
            if left.is_some() {
                each(name, value);
            }
            if prefix == 6
                && let Some(value) = literal_value
            {
                match (literal_name, index.checked_sub(ENTRIES.len() + 1)) {
                    (Some(name), _) => self.table.insert(name, value),
                    (None, Some(number)) => self.table.insert_named_like(number, value),
                    (None, None) => self.table.insert(ENTRIES[index - 1].0.as_bytes(), value),
                }
            }
        }
        Ok(left.is_some())
    }
}

/// The entry of either table with this index, from 1.
#[inline]
fn entry(table: &DynamicTable, index: usize) -> Option<(&[u8], &[u8])> {
    let place = index.checked_sub(1)?;
    match ENTRIES.get(place) {
        Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
        None => table.get(place - ENTRIES.len()),
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
