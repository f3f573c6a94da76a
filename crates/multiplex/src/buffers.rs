//! Buffers for what arrives on streams, which all connections of a loop use one after the other. A connection without open streams keeps
//! none.

use std::cell::RefCell;

/// Buffers that are kept.
const KEPT: usize = 64;

/// The largest buffer that is kept, in bytes.
const LARGEST: usize = 32 * 1024;

/// Room for usual heads of messages, in bytes.
const USUAL_HEAD: usize = 1024;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with some room.
pub fn take() -> Vec<u8> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(USUAL_HEAD))
}

/// Takes a buffer back.
pub fn give(mut buffer: Vec<u8>) {
    if (1..=LARGEST).contains(&buffer.capacity()) {
        buffer.clear();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT {
                spare.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_number_of_buffers_of_limited_size_is_kept() {
        give(Vec::new());
        give(Vec::with_capacity(2 * LARGEST));
        assert!(SPARE.with_borrow(Vec::is_empty));
        (0..2 * KEPT).for_each(|_| give(b"text".to_vec()));
        assert_eq!(SPARE.with_borrow(Vec::len), KEPT);
        assert!(take().is_empty());
        (0..KEPT).for_each(|_| drop(take()));
        assert!(take().capacity() >= USUAL_HEAD);
    }
}
