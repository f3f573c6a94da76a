//! The bytes of bodies: one shared text, of which every object's body is a stretch.

use std::sync::OnceLock;

use polygraph_traffic::{Oid, Properties, Random, Seed};

/// The filler repeats after so many bytes; bodies start anywhere in it.
const PERIOD: usize = 16 * 1024;
/// Length of the filler in memory: a multiple of the period, so that most bodies are one stretch of it.
const LENGTH: usize = 32 * PERIOD;

/// Printable bytes without `<` and `"`, so that the filler never looks like markup; random, so that it does
/// not compress to nothing.
fn filler() -> &'static [u8] {
    static FILLER: OnceLock<Vec<u8>> = OnceLock::new();
    FILLER.get_or_init(|| {
        // The same in every run and on every machine: bodies are part of an object's identity.
        let mut rng = Seed(0).stream("filler", 0);
        let period: Vec<u8> = (0..PERIOD)
            .map(|_| match 33 + rng.below(94) as u8 {
                b'<' | b'"' => b' ',
                byte => byte,
            })
            .collect();
        period.repeat(LENGTH / PERIOD)
    })
}

/// The body of an object, or what is left of it to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    offset: usize,
    left: u64,
}

impl Body {
    /// The body of `oid`.
    pub fn of(properties: &Properties, oid: &Oid) -> Body {
        Body { offset: oid.body_offset(properties.seed, PERIOD), left: properties.size(oid) }
    }

    /// A message without a body.
    pub const EMPTY: Body = Body { offset: 0, left: 0 };

    /// Bytes left to send.
    pub fn len(&self) -> u64 {
        self.left
    }

    /// True if nothing is left to send.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next stretch of bytes, as long as possible.
    pub fn chunk(&self) -> &'static [u8] {
        let chunk = &filler()[self.offset..];
        &chunk[..chunk.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))]
    }

    /// Notes that `n` bytes (at most one chunk) were sent.
    pub fn advance(&mut self, n: usize) {
        self.left -= n as u64;
        self.offset = (self.offset + n) % PERIOD;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::{Distr, Kind, UniqId};

    fn bytes(body: Body, step: usize) -> Vec<u8> {
        let mut body = body;
        let mut out = Vec::new();
        while !body.is_empty() {
            let chunk = body.chunk();
            let n = chunk.len().min(step);
            out.extend_from_slice(&chunk[..n]);
            body.advance(n);
        }
        out
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let properties = Properties { seed: Seed(1), size: Distr::Const(2_000_000.0) };
        let oid = |name| Oid { world: UniqId::default(), kind: Kind::CACHABLE, name };
        let body = Body::of(&properties, &oid(7));
        assert_eq!(body.len(), 2_000_000);
        let whole = bytes(body, usize::MAX);
        assert_eq!(whole.len(), 2_000_000);
        assert_eq!(whole, bytes(body, 1_000));
        assert_ne!(whole[..100], bytes(Body::of(&properties, &oid(8)), usize::MAX)[..100]);
        assert!(whole.iter().all(|b| (32..127).contains(b) && *b != b'<' && *b != b'"'));
    }
}
