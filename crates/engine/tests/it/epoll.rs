//! Tests on sockets, on epoll.

use polygraph_engine::Engine;

#[path = "detection.rs"]
mod detection;
#[path = "proxy.rs"]
mod proxy;
#[path = "whole.rs"]
mod whole;

fn engine() -> Engine {
    Engine::Epoll
}
