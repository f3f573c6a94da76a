//! What a peer may send on the streams of HTTP/3, cut at any place.

use bytes::Bytes;
use polygraph_multiplex::literals::huffman;
use polygraph_quic::http3::control::{ControlStream, PeerControl};
use polygraph_quic::http3::frames::{FrameReader, Piece, kind};
use polygraph_quic::http3::qpack;

/// The most bytes of a field section.
const LIMIT: usize = 4096;

/// Reads `data` as the bytes of a request stream, of a unidirectional stream, of a field section, and of a Huffman-coded string. The
/// first byte says where streams are cut. What is collected stays bounded.
pub fn syntax(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else { return };
    let size = usize::from(cut).max(1);
    let mut frames = FrameReader::new(LIMIT);
    'pieces: for piece in data.chunks(size) {
        let mut bytes = Bytes::copy_from_slice(piece);
        loop {
            match frames.next(&mut bytes) {
                Ok(Some(Piece::Whole(kind::HEADERS, section))) => fields(&section),
                Ok(Some(Piece::Whole(_, payload))) => assert!(payload.len() <= LIMIT),
                Ok(Some(Piece::Content(content))) => assert!(content.len() <= piece.len()),
                Ok(None) => {
                    assert!(bytes.is_empty(), "a reader that wants more has taken everything");
                    break;
                }
                Err(_) => break 'pieces,
            }
        }
    }
    for of_server in [false, true] {
        let (mut stream, mut peer) = (ControlStream::default(), PeerControl::default());
        let mut take = |piece: &[u8]| stream.take(Bytes::copy_from_slice(piece), of_server, &mut peer);
        if data.chunks(size).all(|piece| take(piece).is_ok()) {
            let _ = stream.end();
        }
    }
    fields(data);
    let mut text = Vec::new();
    // The shortest code has five bits.
    let _ = huffman::decode(data, &mut text);
    assert!(text.len() <= data.len() * 8 / 5);
}

fn fields(section: &[u8]) {
    if let Ok(fields) = qpack::decode(section, LIMIT) {
        let size: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        assert!(size <= LIMIT);
    }
}
