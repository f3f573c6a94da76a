//! HTTP messages as bytes: heads, body framing, benchmark URLs and headers. No I/O.
