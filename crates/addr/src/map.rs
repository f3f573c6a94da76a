//! Address maps: the addresses behind each visible name.

use crate::Addr;

/// A map whose names and addresses cannot be paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an address map has {names} names for {addresses} addresses; it needs one name for many addresses, or at least as many \
     names as addresses"
)]
pub struct PairError {
    /// Number of names.
    pub names: usize,
    /// Number of addresses.
    pub addresses: usize,
}

/// The addresses behind each name, in the order of the names. A single name has all of them; otherwise name i
/// has address (i mod count) (`docs/reference/language.md`, "Address maps").
///
/// # Errors
/// If there are fewer names than addresses, but more than one, or no addresses.
pub fn pair<'a>(
    names: &'a [Addr],
    addresses: &'a [Addr],
) -> Result<impl Iterator<Item = (&'a Addr, &'a [Addr])>, PairError> {
    let single = names.len() == 1;
    if addresses.is_empty() || (!single && names.len() < addresses.len()) {
        return Err(PairError { names: names.len(), addresses: addresses.len() });
    }
    Ok(names.iter().enumerate().map(move |(i, name)| {
        let one = i % addresses.len();
        (name, if single { addresses } else { &addresses[one..=one] })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddrRange, expand};

    #[test]
    fn pairs() {
        #[track_caller]
        fn check(names: &str, addresses: &str, expected: Result<&str, (usize, usize)>) {
            let read = |text: &str| match text {
                "" => Vec::new(),
                text => expand(&AddrRange::parse_list(text).unwrap(), 100).unwrap(),
            };
            let (names, addresses) = (read(names), read(addresses));
            let pairs = pair(&names, &addresses).map(|pairs| {
                let behind = |list: &[Addr]| list.iter().map(Addr::to_string).collect::<Vec<_>>().join("+");
                pairs.map(|(name, list)| format!("{name}={}", behind(list))).collect::<Vec<_>>().join(" ")
            });
            let found = pairs.as_deref().map_err(|error| (error.names, error.addresses));
            assert_eq!(found, expected);
        }
        check("a.b:80", "10.0.0.1-3:80", Ok("a.b:80=10.0.0.1:80+10.0.0.2:80+10.0.0.3:80"));
        check("a.b", "10.0.0.1", Ok("a.b=10.0.0.1"));
        check("w[1-2].b", "10.0.0.1-2", Ok("w1.b=10.0.0.1 w2.b=10.0.0.2"));
        check("w[1-3].b", "10.0.0.1-2", Ok("w1.b=10.0.0.1 w2.b=10.0.0.2 w3.b=10.0.0.1"));
        check("w[1-3].b", "10.0.0.1", Ok("w1.b=10.0.0.1 w2.b=10.0.0.1 w3.b=10.0.0.1"));
        check("w[1-2].b", "10.0.0.1-3", Err((2, 3)));
        check("", "10.0.0.1", Err((0, 1)));
        check("a.b", "", Err((1, 0)));
        check("", "", Err((0, 0)));
    }
}
