//! The error codes of HTTP/2 (RFC 9113, section 7).

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal)+) => {
        $($(#[$doc])* pub const $name: u32 = $number;)+

        /// The name of a code.
        pub fn name(code: u32) -> &'static str {
            match code {
                $($number => stringify!($name),)+
                _ => "an unknown code",
            }
        }
    };
}

codes! {
    /// Nothing is wrong.
    NO_ERROR = 0x0
    /// The peer breaks the protocol in a way for which there is no other code.
    PROTOCOL_ERROR = 0x1
    /// An error inside this side.
    INTERNAL_ERROR = 0x2
    /// More content than a window allows.
    FLOW_CONTROL_ERROR = 0x3
    /// Settings were not acknowledged in time.
    SETTINGS_TIMEOUT = 0x4
    /// A frame for a stream that is closed.
    STREAM_CLOSED = 0x5
    /// A frame of a wrong size.
    FRAME_SIZE_ERROR = 0x6
    /// The stream was not processed.
    REFUSED_STREAM = 0x7
    /// The stream is no longer wanted.
    CANCEL = 0x8
    /// A field section cannot be decoded, so later ones cannot either.
    COMPRESSION_ERROR = 0x9
    /// The connection behind a `CONNECT` request failed.
    CONNECT_ERROR = 0xa
    /// Behaviour that may be an attack.
    ENHANCE_YOUR_CALM = 0xb
    /// TLS that is not secure enough.
    INADEQUATE_SECURITY = 0xc
    /// The request must be sent over HTTP/1.1.
    HTTP_1_1_REQUIRED = 0xd
}
