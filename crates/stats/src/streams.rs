//! What multiplexed connections (HTTP/2 and HTTP/3) and their streams count, besides what all connections and transactions count.

use serde::{Deserialize, Serialize};

use crate::fold::fold_fields;
use crate::histogram::CoarseHistogram;

/// Streams and frames of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamStats {
    /// For each opened stream, the number of streams of its connection that were open then, itself included.
    pub concurrent: CoarseHistogram,
    /// Streams of each closed connection.
    pub per_connection: CoarseHistogram,
    /// All bytes that were sent on the connections: frames with their headers; for HTTP/3 the contents of UDP datagrams.
    pub sent: u64,
    /// All bytes that were received on the connections.
    pub received: u64,
    /// Bytes of content among those that were sent.
    pub sent_content: u64,
    /// Bytes of content among those that were received.
    pub received_content: u64,
    /// Streams that the peer reset, other than refused ones.
    pub resets: u64,
    /// Streams that the peer refused (`REFUSED_STREAM`).
    pub refused: u64,
    /// Streams that the peer did not process, because it ended the connection.
    pub unprocessed: u64,
    /// Connections whose end the peer announced (`GOAWAY`).
    pub goaways: u64,
    /// QUIC packets that were sent.
    pub packets: u64,
    /// Those of them that count as lost (RFC 9002, section 6).
    pub lost_packets: u64,
    /// Replies 421 (misdirected request) after which the request was sent on another connection.
    pub misdirected: u64,
    /// How often a robot began to use an alternative service of a server (`Alt-Svc`).
    pub alternatives: u64,
    /// Alternative services that could not be used.
    pub broken_alternatives: u64,
}

impl StreamStats {
    /// Number of streams that were opened.
    pub fn count(&self) -> u64 {
        self.concurrent.count()
    }

    /// Bytes other than content: frame headers, field sections, settings and the like.
    pub fn overhead(&self) -> u64 {
        (self.sent + self.received).saturating_sub(self.sent_content + self.received_content)
    }
}

fold_fields! {
    StreamStats {
        concurrent, per_connection, sent, received, sent_content, received_content, resets, refused, unprocessed,
        goaways, packets, lost_packets, misdirected, alternatives, broken_alternatives
    }
}
