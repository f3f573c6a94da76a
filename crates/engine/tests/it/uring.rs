//! Tests on sockets, on io_uring.

use polygraph_engine::Engine;

#[path = "detection.rs"]
mod detection;
#[path = "proxy.rs"]
mod proxy;
#[path = "whole.rs"]
mod whole;

/// A host that refuses io_uring runs these tests on epoll, and says so.
#[expect(clippy::print_stderr, reason = "tests that ran elsewhere say so")]
fn engine() -> Engine {
    match polygraph_uring::refusal() {
        None => Engine::Uring,
        Some(refusal) => {
            eprintln!("on epoll instead of io_uring: {refusal}");
            Engine::Epoll
        }
    }
}
