//! The built-in caching proxy, the default device under test.
