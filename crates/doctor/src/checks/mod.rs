//! The checks, by subject: each is one function of facts and load, without any other input.

pub(crate) mod bench_limit;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod interfaces;
pub(crate) mod leftovers;
pub(crate) mod memory;
pub(crate) mod ports;
pub(crate) mod processors;
pub(crate) mod queues;
pub(crate) mod storage;
