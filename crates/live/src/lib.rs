//! What a process of a test publishes about itself while it runs.
//!
//! ```text
//! log records --from_records--> LiveStatistics --hub--> endpoints --> monitors (subscription)
//!          \                                       \--> metrics
//!           \--notifier--> UDP --> dispatcher --> monitors
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`statistics`] | the live statistics of one side of a process: the one message of all views; accepts any bytes |
//! | [`from_records`] | makes these messages from log records |
//! | [`publisher`], [`hub`], [`endpoint`] | the thread that publishes, the history, and where monitors attach |
//! | [`subscription`] | the other end: reads the messages of a process, or of a dispatcher |
//! | [`metrics`] | the OpenMetrics endpoint |
//! | [`http`] | a small HTTP server for it, and for the page of the monitor |
//! | [`notification`] | the status notifications of Web Polygraph as bytes; does no I/O and accepts any bytes |
//! | [`notifier`] | sends a notification for every interval of statistics |
//! | [`dispatcher`] | receives notifications and forwards them to monitors: `udp2tcpd` |
//!
//! # Decisions
//!
//! * **Views read log records as they are written** ([`Record`](polygraph_stats::Record)), not the counters of running
//!   loops, so no loop knows about views. A message costs a copy of one interval, however many robots there are.
//! * **Every message is complete**, so monitors attach and detach at any time, and messages can take any way: sockets
//!   today, a message broker for fleets.
//! * **Messages have sums, not means**, so that whole sides and hosts have exact figures.
//! * **Nobody waits for a reader.** Whoever reads too slowly is disconnected.

#![allow(
    clippy::disallowed_methods,
    reason = "messages carry the time of day, and connections to monitors have threads"
)]

pub mod dispatcher;
pub mod endpoint;
mod event;
pub mod from_records;
pub mod http;
pub mod hub;
pub mod metrics;
pub mod notification;
pub mod notifier;
pub mod publisher;
pub mod statistics;
pub mod subscription;

pub use dispatcher::Dispatcher;
pub use endpoint::Endpoint;
pub use hub::Hub;
pub use notification::{ForwardedNotification, Notification};
pub use notifier::Notifier;
pub use publisher::Publisher;
pub use statistics::{LiveCounts, LiveState, LiveStatistics};
pub use subscription::{LiveSource, Subscription};
