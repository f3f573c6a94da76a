//! Flow-control windows (RFC 9113, section 5.2).

use super::frames::MAX_31;

/// How much may be sent. New settings can make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of this size.
    pub fn new(size: u32) -> SendWindow {
        SendWindow(i64::from(size))
    }

    /// The bytes that may be sent now.
    pub fn room(self) -> usize {
        self.0.max(0) as usize
    }

    /// Uses some of the room.
    pub fn take(&mut self, size: usize) {
        self.0 -= size as i64;
    }

    /// Changes the window; false if it gets larger than allowed.
    #[must_use]
    pub fn change(&mut self, by: i64) -> bool {
        self.0 += by;
        self.0 <= i64::from(MAX_31)
    }
}

/// How much may arrive. Room is given back when what has arrived is read, half a window at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    size: u32,
    /// What may still arrive.
    left: u32,
    /// What was read, and not given back yet.
    read: u32,
}

impl ReceiveWindow {
    /// A window of this size.
    pub fn new(size: u32) -> ReceiveWindow {
        ReceiveWindow { size, left: size, read: 0 }
    }

    /// Takes what arrives; false if it is more than allowed.
    #[must_use]
    pub fn take(&mut self, size: usize) -> bool {
        match u32::try_from(size).ok().and_then(|size| self.left.checked_sub(size)) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Gives back what was read. Returns what the peer must be told now.
    pub fn release(&mut self, size: usize) -> Option<u32> {
        self.read += size as u32;
        if self.read == 0 || self.read < self.size / 2 {
            return None;
        }
        self.left += self.read;
        Some(std::mem::take(&mut self.read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_for_sending_has_limits() {
        let mut window = SendWindow::new(100);
        window.take(60);
        assert_eq!(window.room(), 40);
        assert!(window.change(-70));
        assert_eq!(window.room(), 0, "negative");
        assert!(window.change(40));
        assert_eq!(window.room(), 10);
        assert!(window.change(i64::from(MAX_31) - 10));
        assert!(!window.change(1));
    }

    #[test]
    fn room_is_given_back_half_a_window_at_a_time() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.take(60) && !window.take(41) && window.take(40));
        assert_eq!((window.release(49), window.release(0)), (None, None));
        assert_eq!(window.release(1), Some(50));
        assert!(window.take(50) && !window.take(1));
        assert_eq!(window.release(100), Some(100));
        assert_eq!(ReceiveWindow::new(0).release(0), None);
    }
}
