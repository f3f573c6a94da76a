//! The allocator of the program, in place of the system's.
//!
//! Transactions in the clear do not allocate. TLS, HTTP/2, HTTP/3 and the devices of simulations do, and take up to a tenth less
//! processor time with mimalloc (`bench/PROFILE.md`). It is in a separate crate because that of the program is not optimized.
//!
//! It does not ask the kernel for huge pages (feature `no_thp`): each thread has pages for several sizes of blocks in areas of their
//! own, so that a dozen huge pages of 2 MB are cleared before the first request, of which a few kilobytes are used.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
