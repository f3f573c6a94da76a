//! The settings of QUIC.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use polygraph_multiplex::Http2Settings;
use quinn_proto::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

/// How long a connection may be silent before it counts as lost. Servers may think for long.
const SILENCE: Duration = Duration::from_secs(120);

/// The number of unidirectional streams that the peer may have open: the three of HTTP/3, and some of unknown types (RFC 9114,
/// section 6.2).
const UNIDIRECTIONAL: u32 = 16;

/// The most bytes that wait to be sent or acknowledged on a connection.
const SEND_WINDOW: u64 = 4 << 20;

/// The largest packets that are accepted: all that fit a datagram (RFC 9000, section 18.2).
const LARGEST_RECEIVED: u16 = 65_527;

/// The size of the datagrams that every path carries (RFC 9000, section 14), with which connections begin.
const SMALLEST: u16 = 1200;

/// The settings of all sockets.
pub static ENDPOINT: LazyLock<Arc<EndpointConfig>> = LazyLock::new(|| {
    let mut config = EndpointConfig::default();
    // The size is an allowed one.
    let _ = config.max_udp_payload_size(LARGEST_RECEIVED);
    Arc::new(config)
});

/// The settings of a connection. The peer may open `streams` bidirectional streams, and datagrams of up to `largest` bytes are tried.
pub fn transport(settings: &Http2Settings, streams: u32, largest: u16) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    // Each step costs a datagram of its size, which the peer reads byte by byte. So much change lets the search begin with the largest
    // size, and end there if it fits; otherwise half as much is tried, and nothing more.
    discovery.upper_bound(largest).minimum_change(largest.saturating_sub(SMALLEST) / 2 + 1);
    config.initial_mtu(SMALLEST).mtu_discovery_config(Some(discovery));
    let window = VarInt::from_u32(settings.window);
    config
        .max_idle_timeout(IdleTimeout::try_from(SILENCE).ok())
        .max_concurrent_bidi_streams(streams.into())
        .max_concurrent_uni_streams(UNIDIRECTIONAL.into())
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None);
    Arc::new(config)
}
