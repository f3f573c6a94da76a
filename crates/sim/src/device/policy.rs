//! Which objects stay in a cache of limited size.
//!
//! A policy knows objects by keys and their sizes in bytes. It is told of every request ([`Policy::ask`]), and of
//! every object that is to be stored ([`Policy::take`]), which may push out others, or not be kept itself.

mod ages;
mod s3fifo;
mod sketch;
mod tinylfu;

#[cfg(test)]
mod tests;

pub use ages::Ages;
pub use s3fifo::S3Fifo;
pub use tinylfu::TinyLfu;

/// Identity of an object, which is the same when it comes again after it was gone.
pub type Key = u64;

/// A replacement policy.
pub trait Policy {
    /// A request for `key`, here or not.
    fn ask(&mut self, key: Key);

    /// Stores `key`, which is not here, with its size; appends to `gone` what is not here any more, which may be
    /// `key` itself.
    fn take(&mut self, key: Key, bytes: u64, gone: &mut Vec<Key>);

    /// Forgets `key`, for a reason of its own.
    fn drop_key(&mut self, key: Key);

    /// Bytes of all that is stored.
    fn bytes(&self) -> u64;
}

/// Keeps everything.
#[derive(Debug, Default)]
pub struct Ideal {
    sizes: rustc_hash::FxHashMap<Key, u64>,
    bytes: u64,
}

impl Policy for Ideal {
    fn ask(&mut self, _: Key) {}

    fn take(&mut self, key: Key, bytes: u64, _: &mut Vec<Key>) {
        self.bytes += bytes;
        self.sizes.insert(key, bytes);
    }

    fn drop_key(&mut self, key: Key) {
        self.bytes -= self.sizes.remove(&key).unwrap_or(0);
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
