//! Bake-offs: series of runs of several caches under the same rules, and the report that compares them.
//!
//! ```text
//! PLAN.toml --plan--> Plan ──┐
//! journal --journal--> Progress ──order--> the next step ... (the program carries it out and notes it)
//!                           └────gather────┐
//! published CSV --published--> Entry <─────┘ --tables, charts, page--> the report
//! ```
//!
//! `entry` describes participants and computes their figures; `rules` judges runs.

#![allow(clippy::disallowed_methods, reason = "runs of a series are programs of their own, in real time")]

pub mod charts;
pub mod entry;
pub mod figures;
pub mod gather;
pub mod journal;
pub mod order;
pub mod page;
pub mod plan;
pub mod published;
pub mod rules;
pub mod series;
pub mod tables;
