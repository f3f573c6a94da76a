//! Addresses: ranges, address schemes and the arithmetic of shares per host.
