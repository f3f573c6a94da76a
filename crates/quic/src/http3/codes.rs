//! The error codes of HTTP/3 and QPACK (RFC 9114, section 8.1; RFC 9204, section 6).

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal)+) => {
        $($(#[$doc])* pub const $name: u64 = $number;)+

        /// Whether the standards define a code. Others mean the same as [`H3_NO_ERROR`] (RFC 9114, section 8.1).
        pub fn is_known(code: u64) -> bool {
            matches!(code, $($number)|+)
        }

        /// The name of a code, or the number of one that is not known.
        pub fn name(code: u64) -> String {
            match code {
                $($number => stringify!($name).to_owned(),)+
                other => format!("code {other:#x}"),
            }
        }
    };
}

codes! {
    /// The connection or the stream ends, and nothing is wrong.
    H3_NO_ERROR = 0x100
    /// The peer breaks the protocol in a way for which there is no other code.
    H3_GENERAL_PROTOCOL_ERROR = 0x101
    /// An error inside this side.
    H3_INTERNAL_ERROR = 0x102
    /// A stream that must not be opened, or not again.
    H3_STREAM_CREATION_ERROR = 0x103
    /// A stream ended that the connection needs.
    H3_CLOSED_CRITICAL_STREAM = 0x104
    /// A frame that must not come here.
    H3_FRAME_UNEXPECTED = 0x105
    /// A frame whose layout or size is wrong.
    H3_FRAME_ERROR = 0x106
    /// Behaviour that may be an attack.
    H3_EXCESSIVE_LOAD = 0x107
    /// A stream or push id that is not allowed.
    H3_ID_ERROR = 0x108
    /// A setting with a value that is not allowed.
    H3_SETTINGS_ERROR = 0x109
    /// The control stream does not begin with settings.
    H3_MISSING_SETTINGS = 0x10a
    /// The server did not process the request.
    H3_REQUEST_REJECTED = 0x10b
    /// The request or its reply is no longer wanted.
    H3_REQUEST_CANCELLED = 0x10c
    /// The stream of a request ended before the request was complete.
    H3_REQUEST_INCOMPLETE = 0x10d
    /// A message that HTTP does not allow.
    H3_MESSAGE_ERROR = 0x10e
    /// The connection behind a `CONNECT` request failed.
    H3_CONNECT_ERROR = 0x10f
    /// The request must be sent over HTTP/1.1.
    H3_VERSION_FALLBACK = 0x110
    /// A field section cannot be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200
    /// An instruction on the encoder stream cannot be obeyed.
    QPACK_ENCODER_STREAM_ERROR = 0x201
    /// An instruction on the decoder stream cannot be obeyed.
    QPACK_DECODER_STREAM_ERROR = 0x202
}
