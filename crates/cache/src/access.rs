//! Access control of the proxy: authentication with the schemes `Basic` and `Digest` (RFC 7617, RFC 7616). This is for tests of
//! authentication and protects nothing: the names and passwords are those of a workload.

use polygraph_wire::auth::digest::{Digest, DigestRejection, DigestResponse, Hash};
use polygraph_wire::auth::{basic, challenges};
use polygraph_wire::head::Header;

/// The scheme of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Clients send name and password.
    Basic,
    /// Clients prove that they know the password.
    Digest(Hash),
}

/// Access control of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The scheme of authentication.
    pub scheme: Scheme,
    /// The realm: the name of the protected space, shown to users.
    pub realm: String,
    /// Names and passwords.
    pub users: Vec<(String, String)>,
    /// Answers to a challenge that is older than this many seconds are refused with a new challenge that is marked
    /// `stale`. Only `Digest` uses this limit.
    pub nonce_lifetime: u64,
}

impl Access {
    /// Access for these users, with fresh challenges every five minutes.
    pub fn new(scheme: Scheme, realm: &str, users: Vec<(String, String)>) -> Access {
        Access { scheme, realm: realm.to_owned(), users, nonce_lifetime: 300 }
    }

    /// Whether a request may pass at `now`, in seconds; if not, the error is the value of `Proxy-Authenticate` for the reply.
    /// `secret` makes nonces unpredictable for others.
    ///
    /// # Errors
    /// If the request does not prove that it comes from one of the users.
    pub fn check(
        &self,
        headers: &[Header<'_>],
        method: &str,
        target: &str,
        now: u64,
        secret: u64,
    ) -> Result<(), Vec<u8>> {
        let mut fields =
            headers.iter().filter(|header| header.name.eq_ignore_ascii_case("proxy-authorization"));
        let (field, more) = (fields.next(), fields.next());
        let answers = field.map(|field| challenges(field.value)).unwrap_or_default();
        let answer = answers.first().filter(|_| more.is_none());
        let mut challenge = Vec::new();
        match self.scheme {
            Scheme::Basic => {
                let known = |who: (String, String)| self.users.contains(&who);
                if answer.and_then(basic::read).is_some_and(known) {
                    return Ok(());
                }
                basic::write_challenge(&self.realm, &mut challenge);
            }
            Scheme::Digest(hash) => {
                let answer = answer.and_then(DigestResponse::read);
                let nonce = answer
                    .as_ref()
                    .map(|answer| answer.nonce)
                    .filter(|nonce| self.is_valid(nonce, now, secret));
                let nonce = nonce.map_or_else(|| nonce_of(now, secret), str::to_owned);
                let realm = self.realm.clone();
                let mut asked =
                    Digest { realm, nonce, opaque: None, hash, session: false, qop: true, stale: false };
                let password =
                    |name: &str| self.users.iter().find(|(user, _)| user == name).map(|(_, word)| word);
                let verdict = answer
                    .filter(|answer| answer.uri == target)
                    .and_then(|answer| Some(asked.verify(&answer, password(answer.user)?, method)));
                if verdict == Some(Ok(())) {
                    return Ok(());
                }
                asked.stale = verdict == Some(Err(DigestRejection::Stale));
                asked.nonce = nonce_of(now, secret);
                asked.write_challenge(&mut challenge);
            }
        }
        Err(challenge)
    }

    /// Whether this proxy made the nonce, and it is not too old.
    fn is_valid(&self, nonce: &str, now: u64, secret: u64) -> bool {
        let made = nonce.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        made.is_some_and(|made| {
            now.saturating_sub(made) <= self.nonce_lifetime && nonce == nonce_of(made, secret)
        })
    }
}

/// A nonce: the time, and a mark that distinguishes our nonces from others.
fn nonce_of(now: u64, secret: u64) -> String {
    format!("{now:016x}{:016x}", xxhash_rust::xxh3::xxh3_64_with_seed(&now.to_be_bytes(), secret))
}

#[cfg(test)]
mod tests {
    use polygraph_wire::auth::digest::{Credentials, DigestRequest};

    use super::*;

    const SECRET: u64 = 7;
    const TARGET: &str = "http://a.tst/x";

    fn access(scheme: Scheme) -> Access {
        Access::new(scheme, "bench", vec![("joe".into(), "a:b".into()), ("ann".into(), String::new())])
    }

    /// The outcome for a `GET` with this field: `None` if it may pass, else the challenge.
    fn asked(access: &Access, field: Option<&[u8]>, now: u64) -> Option<String> {
        let headers: Vec<Header<'_>> =
            field.iter().map(|value| Header { name: "Proxy-Authorization", value }).collect();
        let checked = access.check(&headers, "GET", TARGET, now, SECRET);
        checked.err().map(|challenge| String::from_utf8(challenge).unwrap())
    }

    #[test]
    fn basic_lets_known_users_in() {
        let access = access(Scheme::Basic);
        for (user, password, passes) in [
            ("joe", "a:b", true),
            ("ann", "", true),
            ("ann", "a:b", false),
            ("joe", "a:b-", false),
            ("x", "", false),
        ] {
            let mut field = Vec::new();
            basic::write(user, password, &mut field);
            assert_eq!(asked(&access, Some(&field), 0).is_none(), passes, "{user}:{password}");
        }
        for bad in [None, Some(&b"Basic"[..]), Some(b"Digest username=\"joe\""), Some(b"\xff")] {
            assert_eq!(asked(&access, bad, 0).as_deref(), Some("Basic realm=\"bench\""));
        }
    }

    fn answer(challenge: &str, user: &str, password: &str, uri: &str) -> Vec<u8> {
        let digest = challenges(challenge.as_bytes()).iter().find_map(Digest::read).unwrap();
        let mut field = Vec::new();
        digest.write_answer(
            Credentials { user, password },
            DigestRequest { method: "GET", uri },
            1,
            "c",
            &mut field,
        );
        field
    }

    #[test]
    fn digest_lets_known_users_in_until_the_nonce_is_old() {
        for hash in [Hash::Md5, Hash::Sha256] {
            let access = access(Scheme::Digest(hash));
            let first = asked(&access, None, 1_000).unwrap();
            assert!(!first.contains("stale"), "{first}");
            let good = answer(&first, "joe", "a:b", TARGET);
            assert_eq!(asked(&access, Some(&good), 1_000), None);
            assert_eq!(asked(&access, Some(&good), 1_300), None);
            let again = asked(&access, Some(&good), 1_301).unwrap();
            assert!(again.contains("stale=true") && again != first, "{again}");
            assert_eq!(asked(&access, Some(&answer(&again, "joe", "a:b", TARGET)), 1_301), None);
            for wrong in [
                answer(&first, "joe", "a:b-", TARGET),
                answer(&first, "eve", "a:b", TARGET),
                answer(&first, "joe", "a:b", "http://a.tst/y"),
                b"Basic am9lOmE6Yg==".to_vec(),
            ] {
                let challenge = asked(&access, Some(&wrong), 1_000).unwrap();
                assert!(!challenge.contains("stale"), "{challenge}");
            }
            // A nonce that somebody made up is answered like an old one: with ours.
            let foreign = first.replace("00000000000003e8", "00000000000003e9");
            let challenge = asked(&access, Some(&answer(&foreign, "joe", "a:b", TARGET)), 1_001).unwrap();
            assert!(challenge.contains("stale=true"), "{challenge}");
        }
    }
}
