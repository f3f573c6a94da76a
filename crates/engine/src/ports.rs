//! Explicit local ports. Every local address uses the whole range, in turn.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// How many ports in a row are tried before the range counts as used up.
const TRIES: u32 = 200;

/// Assigns the ports `low..=high` of each local address in turn, so that a port rests as long as possible before it
/// is used again.
#[derive(Debug)]
pub struct Ports {
    low: u16,
    high: u16,
    next: RefCell<HashMap<IpAddr, u16>>,
}

impl Ports {
    /// The ports from `low` to `high`.
    pub fn new(low: u16, high: u16) -> Ports {
        Ports { low, high, next: RefCell::default() }
    }

    /// Calls `bind` with one port after the other until it returns true. `None` if no port is free.
    ///
    /// # Errors
    /// The error of `bind`, if another port would not help.
    pub fn bind<E>(
        &self,
        address: IpAddr,
        mut bind: impl FnMut(SocketAddr) -> Result<bool, E>,
    ) -> Result<Option<()>, E> {
        let tries = TRIES.min(u32::from(self.high - self.low) + 1);
        for _ in 0..tries {
            let port = self.take(address);
            if bind(SocketAddr::new(address, port))? {
                return Ok(Some(()));
            }
        }
        Ok(None)
    }

    fn take(&self, address: IpAddr) -> u16 {
        let mut next = self.next.borrow_mut();
        let entry = next.entry(address).or_insert(self.low);
        let port = *entry;
        *entry = if port >= self.high { self.low } else { port + 1 };
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_used_in_turn_per_address() {
        let ports = Ports::new(10, 12);
        let a: IpAddr = "127.0.0.1".parse().unwrap();
        let b: IpAddr = "127.0.0.2".parse().unwrap();
        let taken: Vec<u16> = (0..4).map(|_| ports.take(a)).collect();
        assert_eq!(taken, [10, 11, 12, 10]);
        assert_eq!(ports.take(b), 10);
    }

    #[test]
    fn used_ports_are_skipped_and_none_left_is_reported() {
        let ports = Ports::new(10, 12);
        let a: IpAddr = "127.0.0.1".parse().unwrap();
        let mut tried = Vec::new();
        let found: Result<_, ()> = ports.bind(a, |at| {
            tried.push(at.port());
            Ok(at.port() == 12)
        });
        assert_eq!((found, tried), (Ok(Some(())), vec![10, 11, 12]));
        assert_eq!(ports.bind(a, |_| Ok::<_, ()>(false)), Ok(None));
    }
}
