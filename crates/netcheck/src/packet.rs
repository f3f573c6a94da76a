//! Packets as bytes. Reading accepts any bytes: what is not the expected packet is `None`.

mod checksum;
mod echo;
mod ipv4;
mod tcp;

pub use echo::{EchoAnswer, echo_request};
pub use ipv4::ipv4_payload;
pub use tcp::{TcpFlags, TcpSegment};

/// Two octets at a place.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four octets at a place.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
