//! Models of devices.
