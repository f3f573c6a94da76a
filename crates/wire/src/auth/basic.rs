//! The scheme `Basic` (RFC 7617): name and password, readable by everybody on the path.

use base64::prelude::{BASE64_STANDARD, Engine};

use super::challenge::{Challenge, write_quoted};

/// Appends the value of an `Authorization` or `Proxy-Authorization` field. A user name must not have a colon,
/// which separates name and password.
pub fn write(user: &str, password: &str, out: &mut Vec<u8>) {
    let text = BASE64_STANDARD.encode(format!("{user}:{password}"));
    out.extend_from_slice(b"Basic ");
    out.extend_from_slice(text.as_bytes());
}

/// The name and password of credentials; `None` if they are not of this scheme.
pub fn read(answer: &Challenge<'_>) -> Option<(String, String)> {
    if !answer.is("Basic") {
        return None;
    }
    let text = String::from_utf8(BASE64_STANDARD.decode(answer.token?).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Appends the value of a `WWW-Authenticate` or `Proxy-Authenticate` field.
pub fn write_challenge(realm: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Basic realm=");
    write_quoted(realm, out);
}

#[cfg(test)]
mod tests {
    use super::super::challenges;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_standard() {
        let mut out = Vec::new();
        write("Aladdin", "open sesame", &mut out);
        assert_eq!(out, b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let read_one = |field: &[u8]| challenges(field).first().and_then(read);
        assert_eq!(read_one(&out), Some(("Aladdin".into(), "open sesame".into())));
        for bad in ["Basic", "Basic x", "Basic eA==", "Basic realm=\"x\"", "Digest eDp5", "Basic /zp5"] {
            assert_eq!(read_one(bad.as_bytes()), None, "{bad}");
        }
        out.clear();
        write_challenge("WallyWorld", &mut out);
        assert_eq!(out, b"Basic realm=\"WallyWorld\"");
    }

    proptest! {
        #[test]
        fn round_trips(user in "[^:]{0,20}", password in ".{0,20}") {
            let mut out = Vec::new();
            write(&user, &password, &mut out);
            prop_assert_eq!(challenges(&out).first().and_then(read), Some((user, password)));
        }
    }
}
