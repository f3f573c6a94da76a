//! Bytes that connections carried.

/// Bytes that a connection carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireBytes {
    /// All bytes that were sent: frames with their headers.
    pub sent: u64,
    /// All bytes that were received.
    pub received: u64,
    /// Bytes of content among those that were sent.
    pub sent_content: u64,
    /// Bytes of content among those that were received.
    pub received_content: u64,
}

impl WireBytes {
    /// The bytes since `before`.
    pub fn since(self, before: WireBytes) -> WireBytes {
        WireBytes {
            sent: self.sent - before.sent,
            received: self.received - before.received,
            sent_content: self.sent_content - before.sent_content,
            received_content: self.received_content - before.received_content,
        }
    }
}
