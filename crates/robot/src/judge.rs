//! The verdict on a reply: its class, what is wrong with it, and why an offered hit was a miss.

pub mod freshness;
pub mod history;
