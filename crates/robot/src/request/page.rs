//! Pages: a container with its embedded objects (`docs/reference/models.md`, "Pages").

use std::cell::Cell;

use polygraph_link::Nanos;

/// A page that is being fetched.
#[derive(Debug)]
pub struct Page {
    /// Start of the container's transaction.
    pub started: Nanos,
    open: Cell<u32>,
    parts: Cell<u64>,
    bytes: Cell<u64>,
    failed: Cell<bool>,
}

impl Page {
    /// A page with its container as the only transaction so far.
    pub fn new(started: Nanos) -> Page {
        Page {
            started,
            open: Cell::new(1),
            parts: Cell::new(1),
            bytes: Cell::new(0),
            failed: Cell::new(false),
        }
    }

    /// Adds a transaction to the page.
    pub fn enter(&self) {
        self.open.set(self.open.get() + 1);
        self.parts.set(self.parts.get() + 1);
    }

    /// Number of transactions that belong to the page.
    pub fn parts(&self) -> u64 {
        self.parts.get()
    }

    /// Records the end of a transaction of the page, with the size of its reply in bytes, or `None` if it failed.
    /// Returns the size of the page if this was the last transaction and all were successful.
    pub fn leave(&self, bytes: Option<u64>) -> Option<u64> {
        self.open.set(self.open.get().saturating_sub(1));
        match bytes {
            Some(bytes) => self.bytes.set(self.bytes.get() + bytes),
            None => self.failed.set(true),
        }
        (self.open.get() == 0 && !self.failed.get()).then(|| self.bytes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_complete_when_its_last_part_is() {
        let page = Page::new(Nanos::new(5));
        page.enter();
        page.enter();
        assert_eq!(page.leave(Some(100)), None);
        assert_eq!(page.leave(Some(20)), None);
        assert_eq!(page.leave(Some(3)), Some(123));
        let broken = Page::new(Nanos::new(5));
        broken.enter();
        assert_eq!(broken.leave(None), None);
        assert_eq!(broken.leave(Some(3)), None);
    }
}
