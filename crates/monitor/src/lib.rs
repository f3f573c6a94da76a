//! Views of running tests: what all processes of a bench do now, on a terminal, on a page, and for programs.
//!
//! ```text
//! sources --feed--> Watched (every process, with its history) --table--> rows --> terminal, text, JSON
//!                            \--web--> the same messages as server-sent events --> page
//! ```
//!
//! All views are made of one kind of message, [`LiveStatistics`](polygraph_live::LiveStatistics), whatever way it came.

#![allow(
    clippy::disallowed_methods,
    reason = "views show what happens now, and connections to processes have threads"
)]

pub mod feed;
pub mod table;
pub mod terminal;
pub mod watched;
pub mod web;

pub use feed::{Feed, FeedEvent};
pub use table::{Grouping, RowFilter, TableRow};
pub use watched::Watched;
pub use web::WebView;
