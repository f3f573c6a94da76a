//! The choice of a reply's content coding (RFC 9110, section 12.5.3) from `identity` and `gzip`: what the
//! server offers and the client accepts.

/// The codings that a server can send an object with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingOffer {
    /// No coding.
    pub identity: bool,
    /// Coded with gzip.
    pub gzip: bool,
}

/// The coding to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingChoice {
    /// The object without coding.
    Identity,
    /// The object coded with gzip.
    Gzip,
    /// The client accepts none of the offered codings: status 406.
    NotAcceptable,
}

/// Weights in thousandths; `None` where the client gave none.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    identity: Option<u16>,
    gzip: Option<u16>,
    any: Option<u16>,
}

/// Chooses from an offer by the values of all `Accept-Encoding` fields, in order.
///
/// gzip is chosen if it is accepted by name or by `*`, unless `identity` has a greater weight. Without any
/// field everything is acceptable, and gzip is chosen only if there is nothing else. Malformed items are
/// ignored.
pub fn negotiate<'a>(fields: impl IntoIterator<Item = &'a [u8]>, offer: CodingOffer) -> CodingChoice {
    let mut weights = None;
    for field in fields {
        let weights = weights.get_or_insert_with(Weights::default);
        field.split(|&b| b == b',').for_each(|item| weights.note(item));
    }
    let Some(Weights { identity, gzip, any }) = weights else {
        return match offer {
            CodingOffer { identity: true, .. } => CodingChoice::Identity,
            CodingOffer { gzip: true, .. } => CodingChoice::Gzip,
            _ => CodingChoice::NotAcceptable,
        };
    };
    let gzip = if offer.gzip { gzip.or(any).unwrap_or(0) } else { 0 };
    // If not listed, identity is acceptable unless `*;q=0`, but listed codings are preferred.
    let listed = if offer.identity { identity.or(any.filter(|&weight| weight == 0)) } else { Some(0) };
    match listed {
        Some(weight) if weight > gzip => CodingChoice::Identity,
        _ if gzip > 0 => CodingChoice::Gzip,
        None => CodingChoice::Identity,
        Some(_) => CodingChoice::NotAcceptable,
    }
}

impl Weights {
    fn note(&mut self, item: &[u8]) {
        let mut parts = item.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let weight = match parts.next() {
            None => Some(1000),
            Some(parameter) => weight(parameter),
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let slot = if is("identity") {
            &mut self.identity
        } else if is("gzip") || is("x-gzip") {
            &mut self.gzip
        } else if name == b"*" {
            &mut self.any
        } else {
            return;
        };
        *slot = weight.or(*slot);
    }
}

/// Thousandths from `q=0.5` (RFC 9110, section 12.4.2).
fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', value @ ..] = parameter else { return None };
    let value = value.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&[whole @ (b'0' | b'1')], rest) = value.split_at_checked(1)? else { return None };
    let digits = if rest.is_empty() { rest } else { rest.strip_prefix(b".")? };
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fraction =
        [100, 10, 1].iter().zip(digits).map(|(scale, digit)| scale * u16::from(digit - b'0')).sum();
    match (whole, fraction) {
        (b'1', 0) => Some(1000),
        (b'1', _) => None,
        _ => Some(fraction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: CodingOffer = CodingOffer { identity: true, gzip: true };
    const GZIP: CodingOffer = CodingOffer { identity: false, gzip: true };
    const PLAIN: CodingOffer = CodingOffer { identity: true, gzip: false };

    #[test]
    fn negotiation_by_example() {
        use CodingChoice::{Gzip, Identity, NotAcceptable};
        #[track_caller]
        fn check(fields: &[&str], both: CodingChoice, gzip: CodingChoice, plain: CodingChoice) {
            for (offer, expected) in [(BOTH, both), (GZIP, gzip), (PLAIN, plain)] {
                let got = negotiate(fields.iter().map(|field| field.as_bytes()), offer);
                assert_eq!(got, expected, "{fields:?} {offer:?}");
            }
        }
        check(&[], Identity, Gzip, Identity);
        check(&[""], Identity, NotAcceptable, Identity);
        check(&["gzip"], Gzip, Gzip, Identity);
        check(&["X-GZIP"], Gzip, Gzip, Identity);
        check(&["deflate, gzip, br"], Gzip, Gzip, Identity);
        check(&["identity", "gzip"], Gzip, Gzip, Identity);
        check(&["*"], Gzip, Gzip, Identity);
        check(&["deflate"], Identity, NotAcceptable, Identity);
        check(&["identity"], Identity, NotAcceptable, Identity);
        check(&["gzip;q=0.5, identity"], Identity, Gzip, Identity);
        check(&["gzip; q=0.5, identity; Q = 0.499"], Gzip, Gzip, Identity);
        check(&["gzip;q=0"], Identity, NotAcceptable, Identity);
        check(&["gzip;q=0, *"], Identity, NotAcceptable, Identity);
        check(&["*;q=0"], NotAcceptable, NotAcceptable, NotAcceptable);
        check(&["gzip, *;q=0"], Gzip, Gzip, NotAcceptable);
        check(&["gzip, identity;q=0"], Gzip, Gzip, NotAcceptable);
        check(&["identity;q=0"], NotAcceptable, NotAcceptable, NotAcceptable);
        check(&["identity;q=0.001, *;q=0"], Identity, NotAcceptable, Identity);
        check(&["gzip;q=1.001", "gzip;q=0.1234", "gzip;x=1", "gzip;q=2"], Identity, NotAcceptable, Identity);
    }

    proptest! {
        #[test]
        fn only_what_is_offered_comes(field in "([*]|gzip|identity|br)?(;q=[01](.[0-9]{0,3})?)?,(gzip|identity)?(;q=[01])?", identity: bool, gzip: bool) {
            let choice = negotiate([field.as_bytes()], CodingOffer { identity, gzip });
            prop_assert!(choice != CodingChoice::Identity || identity);
            prop_assert!(choice != CodingChoice::Gzip || gzip);
        }

        #[test]
        fn random_bytes_never_panic(field in prop::collection::vec(any::<u8>(), 0..60), text in "[gzip*;q=0.19, ]{0,30}") {
            negotiate([field.as_slice(), text.as_bytes()], BOTH);
        }
    }
}
