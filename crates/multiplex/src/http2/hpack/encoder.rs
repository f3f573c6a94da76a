//! Fields to header blocks.

use polygraph_wire::head::is_same_name;

use super::TABLE_SIZE;
use super::names::{self, Name};
use super::static_table::{ENTRIES, number};
use super::table::{DynamicTable, Found, OVERHEAD};
use crate::literals::{put_integer, put_lower_case, put_string};

/// An entry may fill this part of the dynamic table at most, so that a large value does not push out all others.
const LARGEST: usize = 4;

/// The encoder of a connection. A block begins with [`Encoder::begin`], then come its fields.
#[derive(Debug)]
pub struct Encoder {
    /// The note of an entry is the number of its name in the static table, 0 if there is none.
    table: DynamicTable<usize>,
    /// The least size of the table since the last block, which the peer must be told, and whether it must be told at all.
    least: Option<usize>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder { table: DynamicTable::new(TABLE_SIZE), least: None }
    }
}

impl Encoder {
    /// The peer's table has this size.
    pub fn resize(&mut self, size: usize) {
        let size = size.min(TABLE_SIZE);
        if size != self.table.most() {
            self.table.resize(size);
            self.least = Some(self.least.map_or(size, |least| least.min(size)));
        }
    }

    /// A block that was begun will not be sent: the tables of both sides must become the same again.
    pub fn give_up(&mut self) {
        let most = self.table.most();
        self.table.resize(0);
        self.table.resize(most);
        self.least = Some(0);
    }

    /// Begins a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(least) = self.least.take() {
            if least < self.table.most() {
                put_integer(least, 5, 0x20, out);
            }
            put_integer(self.table.most(), 5, 0x20, out);
        }
    }

    /// Puts `:method`.
    pub fn method(&mut self, method: &str, out: &mut Vec<u8>) {
        match method {
            "GET" => out.push(0x80 | number::METHOD as u8),
            "POST" => out.push(0x81 + number::METHOD as u8),
            other => self.indexed(":method", number::METHOD, other.as_bytes(), out),
        }
    }

    /// Puts `:scheme`.
    pub fn scheme(&mut self, scheme: &str, out: &mut Vec<u8>) {
        match scheme {
            "http" => out.push(0x80 | number::SCHEME as u8),
            "https" => out.push(0x81 + number::SCHEME as u8),
            other => self.indexed(":scheme", number::SCHEME, other.as_bytes(), out),
        }
    }

    /// Puts `:authority`.
    pub fn authority(&mut self, authority: &str, out: &mut Vec<u8>) {
        self.indexed(":authority", number::AUTHORITY, authority.as_bytes(), out);
    }

    /// Puts `:path`.
    pub fn path(&mut self, path: &[u8], out: &mut Vec<u8>) {
        match path {
            b"/" => out.push(0x80 | number::PATH as u8),
            other => literal(number::PATH, other, out),
        }
    }

    /// Puts `:status`, a number of three digits.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        let known = &ENTRIES[number::STATUS - 1..number::STATUS + 6];
        match known.iter().position(|(_, value)| value.as_bytes() == digits) {
            Some(place) => out.push(0x80 | (number::STATUS + place) as u8),
            None => self.indexed(":status", number::STATUS, &digits, out),
        }
    }

    /// Puts another field. Its name is written in lower case.
    pub fn field(&mut self, name: &str, value: &[u8], out: &mut Vec<u8>) {
        self.field_of(name, names::find(name), value, out);
    }

    /// As [`Encoder::field`], with what is known about the name.
    pub fn field_of(&mut self, name: &str, known: Option<&Name>, value: &[u8], out: &mut Vec<u8>) {
        let Some(known) = known else { return self.indexed(name, 0, value, out) };
        let (number, repeats) = (usize::from(known.number), known.repeats);
        if number == number::ACCEPT_ENCODING && value == ENTRIES[number - 1].1.as_bytes() {
            return out.push(0x80 | number as u8);
        }
        match (repeats, number) {
            (true, _) => self.indexed(name, number, value, out),
            (false, 0) => {
                out.push(0);
                put_string(known.text.as_bytes(), 7, 0, out);
                put_string(value, 7, 0, out);
            }
            (false, number) => literal(number, value, out),
        }
    }

    /// Puts a field whose value repeats. `number` is that of its name in the static table, 0 if there is none.
    fn indexed(&mut self, name: &str, number: usize, value: &[u8], out: &mut Vec<u8>) {
        let size = name.len() + value.len() + OVERHEAD;
        if size > self.table.most() / LARGEST {
            put_integer(number, 4, 0, out);
            if number == 0 {
                put_lower_case(name, 7, 0, out);
            }
            return put_string(value, 7, 0, out);
        }
        let is_named =
            |note, known: &[u8]| note == number && (number != 0 || is_same_name(known, name.as_bytes()));
        match (self.table.find(value, is_named), number) {
            (Found::Field(at), _) => put_integer(ENTRIES.len() + 1 + at, 7, 0x80, out),
            (Found::Name(at), 0) => {
                put_integer(ENTRIES.len() + 1 + at, 6, 0x40, out);
                put_string(value, 7, 0, out);
                self.table.insert_named_like(at, value, 0);
            }
            (_, 0) => {
                out.push(0x40);
                put_lower_case(name, 7, 0, out);
                // The table, too, has names in lower case.
                self.table.insert(&out[out.len() - name.len()..], value, 0);
                put_string(value, 7, 0, out);
            }
            (_, number) => {
                put_integer(number, 6, 0x40, out);
                put_string(value, 7, 0, out);
                self.table.insert(ENTRIES[number - 1].0.as_bytes(), value, number);
            }
        }
    }
}

/// Puts a field without indexing, with a name of the static table.
fn literal(number: usize, value: &[u8], out: &mut Vec<u8>) {
    put_integer(number, 4, 0, out);
    put_string(value, 7, 0, out);
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
