//! Header blocks to fields.

use super::TABLE_SIZE;
use super::static_table::ENTRIES;
use super::table::{DynamicTable, OVERHEAD};
use crate::literals::{StringLiteral, get_integer};
use crate::message::fields::{NameKind, ReceivedField, check_value};

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

/// What is known about an entry of the dynamic table.
#[derive(Clone, Copy, Debug)]
struct Note {
    kind: NameKind,
    is_checked: bool,
}

/// The kinds of the names in the static table.
static KINDS: [NameKind; ENTRIES.len()] = {
    let (mut kinds, mut at) = ([NameKind::Plain; ENTRIES.len()], 0);
    while at < kinds.len() {
        kinds[at] = NameKind::of_good(ENTRIES[at].0.as_bytes());
        at += 1;
    }
    kinds
};

/// The decoder of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable<Note>,
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
        mut each: impl FnMut(&ReceivedField<'_>),
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
            let (mut literal_name, mut literal_value) = (&[][..], &[][..]);
            let mut field = match index {
                0 if has_value => {
                    literal_name = string(&mut block, &mut self.name)?;
                    ReceivedField::new(literal_name, &[])
                }
                _ => entry(&self.table, index).ok_or(HpackError::Index)?,
            };
            if has_value {
                literal_value = string(&mut block, &mut self.value)?;
                field.value = literal_value;
                field.is_checked = prefix == 6 && check_value(literal_value).is_ok();
            }
            left = left.and_then(|left| left.checked_sub(field.name.len() + field.value.len() + OVERHEAD));
            if left.is_some() {
                each(&field);
            }
            if prefix == 6 {
                let note = Note { kind: field.kind, is_checked: field.is_checked };
                match (index, index.checked_sub(ENTRIES.len() + 1)) {
                    (0, _) => self.table.insert(literal_name, literal_value, note),
                    (_, Some(number)) => self.table.insert_named_like(number, literal_value, note),
                    (_, None) => self.table.insert(ENTRIES[index - 1].0.as_bytes(), literal_value, note),
                }
            }
        }
        Ok(left.is_some())
    }
}

/// Takes a string from the front of `block`, which is decoded to `scratch` if necessary.
#[inline]
fn string<'a: 'b, 'b>(block: &mut &'a [u8], scratch: &'b mut Vec<u8>) -> Result<&'b [u8], HpackError> {
    let string = StringLiteral::take(block, 7).ok_or(HpackError::Cut)?;
    string.text(scratch).ok_or(HpackError::Coding)
}

/// The entry of either table with this index, from 1.
#[inline]
fn entry(table: &DynamicTable<Note>, index: usize) -> Option<ReceivedField<'_>> {
    let place = index.checked_sub(1)?;
    if let Some((name, value)) = ENTRIES.get(place) {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        return Some(ReceivedField { name, value, kind: KINDS[place], is_checked: true });
    }
    let (name, value, Note { kind, is_checked }) = table.get(place - ENTRIES.len())?;
    Some(ReceivedField { name, value, kind, is_checked })
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
