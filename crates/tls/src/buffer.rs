//! Buffers of connections. Their memory goes from hand to hand: a connection has some only while bytes wait in it.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::record::MAX_PAYLOAD;

/// The most free buffers that a thread keeps.
const MOST_FREE: usize = 64;
/// The largest capacity of a buffer that is kept.
const MOST_KEPT: usize = 256 * 1024;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static FREE_PLAINTEXTS: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Room for what a record contains, whose memory is initialized once. Empty by default.
#[derive(Debug, Default)]
pub struct Plaintext(Box<[u8]>);

impl Plaintext {
    /// Room whose bytes are any.
    pub fn new() -> Plaintext {
        let free = FREE_PLAINTEXTS.with_borrow_mut(Vec::pop);
        Plaintext(free.unwrap_or_else(|| vec![0; MAX_PAYLOAD].into()))
    }

    /// Whether there is no room.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// All bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        let free = std::mem::take(&mut self.0);
        if !free.is_empty() {
            keep(&FREE_PLAINTEXTS, free);
        }
    }
}

/// Keeps memory for the next one who needs some. When a thread ends, what it kept is gone already.
fn keep<T>(list: &'static LocalKey<RefCell<Vec<T>>>, free: T) {
    let _ = list.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < MOST_FREE {
            kept.push(free);
        }
    });
}

/// Bytes that are appended at the end and used up from the start.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// The bytes that are not used up.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The bytes that are not used up, to be changed.
    pub fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Number of bytes that are not used up.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.fill(|all| all.extend_from_slice(bytes));
    }

    /// Lets `write` append bytes.
    pub fn fill<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.bytes.capacity() == 0
            && let Some(free) = FREE.with_borrow_mut(Vec::pop)
        {
            self.bytes = free;
        }
        let result = write(&mut self.bytes);
        if self.is_empty() {
            self.clear();
        }
        result
    }

    /// The next `n` bytes are used up.
    pub fn advance(&mut self, n: usize) {
        self.start += n;
        if self.is_empty() {
            self.clear();
        }
    }

    /// All bytes are used up.
    pub fn clear(&mut self) {
        self.start = 0;
        let mut free = std::mem::take(&mut self.bytes);
        if (1..=MOST_KEPT).contains(&free.capacity()) {
            free.clear();
            keep(&FREE, free);
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        let mut first = Buffer::default();
        first.append(b"abcdef");
        first.advance(2);
        assert_eq!((first.rest(), first.len()), (&b"cdef"[..], 4));
        first.append(b"g");
        assert_eq!(first.rest(), b"cdefg");
        let memory = first.rest().as_ptr();
        first.advance(5);
        assert!(first.is_empty());
        let mut second = Buffer::default();
        second.append(b"xyz");
        assert_eq!((second.rest(), second.rest().as_ptr()), (&b"xyz"[..], memory));
    }
}
