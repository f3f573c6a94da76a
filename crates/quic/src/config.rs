//! The settings of QUIC.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use polygraph_multiplex::Http2Settings;
use quinn_proto::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};

/// How long a connection may be silent before it counts as lost. Servers may think for long.
const SILENCE: Duration = Duration::from_secs(120);

/// The number of unidirectional streams that the peer may have open: the three of HTTP/3, and some of unknown types (RFC 9114,
/// section 6.2).
const UNIDIRECTIONAL: u32 = 16;

/// The most bytes that wait to be sent or acknowledged on a connection.
const SEND_WINDOW: u64 = 4 << 20;

/// The settings of all sockets.
pub static ENDPOINT: LazyLock<Arc<EndpointConfig>> = LazyLock::new(Arc::default);

/// The settings of a connection. The peer may open `streams` bidirectional streams.
pub fn transport(settings: &Http2Settings, streams: u32) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
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
