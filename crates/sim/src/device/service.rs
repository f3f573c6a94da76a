//! How long requests take in the device itself.

use std::cell::Cell;

use polygraph_link::{Link, Nanos, SECOND};

use super::Model;
use crate::link::VirtualLink;

/// One server with one queue, then a delay that many requests may spend side by side.
pub struct Service {
    hit: Nanos,
    miss: Nanos,
    interval: Nanos,
    /// When everything that came so far is through the queue.
    free: Cell<Nanos>,
}

impl Service {
    /// As the model says.
    pub fn new(model: Model) -> Service {
        let interval = model.rate.map_or(0, |rate| (SECOND as f64 / rate) as Nanos);
        Service { hit: model.hit, miss: model.miss, interval, free: Cell::new(0) }
    }

    /// Waits in the queue.
    pub async fn queue(&self, link: &VirtualLink) {
        if self.interval > 0 {
            let through = self.free.get().max(link.now()) + self.interval;
            self.free.set(through);
            link.sleep_until(through).await;
        }
    }

    /// Spends the time that a hit takes, or anything else.
    pub async fn spend(&self, link: &VirtualLink, hit: bool) {
        let time = if hit { self.hit } else { self.miss };
        if time > 0 {
            link.sleep_until(link.now() + time).await;
        }
    }
}
