//! The settings of HTTP/2 connections.

/// What one side of an HTTP/2 connection announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Http2Settings {
    /// The most streams at the same time on a connection: those that a client opens, or that a server allows.
    pub streams: u32,
    /// The flow-control window of each stream and of the whole connection, in bytes (RFC 9113, section 5.2).
    pub window: u32,
}

impl Http2Settings {
    /// The smallest window: the one that connections start with (RFC 9113, section 6.9.2).
    pub const MIN_WINDOW: u32 = 65_535;
    /// The largest window (RFC 9113, section 6.9.1).
    pub const MAX_WINDOW: u32 = (1 << 31) - 1;
}

impl Default for Http2Settings {
    /// 100 streams, the least that RFC 9113, section 6.5.2, recommends; windows of a megabyte.
    fn default() -> Http2Settings {
        Http2Settings { streams: 100, window: 1 << 20 }
    }
}

/// The largest field section that is accepted, in bytes (RFC 9113, section 6.5.2).
pub const MAX_FIELD_SECTION: u32 = 64 * 1024;
