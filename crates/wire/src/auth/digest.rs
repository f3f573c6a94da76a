//! The scheme `Digest` (RFC 7616): the client proves that it knows the password without sending it.
//!
//! ```text
//! response = H( H(user:realm:password) : nonce : nc : cnonce : auth : H(method:uri) )
//! response = H( H(user:realm:password) : nonce : H(method:uri) )      without qop, as in RFC 2069
//! ```
//!
//! Known are MD5 and SHA-256, each also as `-sess`, and protection of the request line (`qop=auth`). Bodies
//! (`auth-int`) and hashed names are not; the standard leaves both to choice.

use md5::Md5;
use sha2::Sha256;

use super::challenge::{Challenge, write_quoted};

/// The hash function of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Hash {
    /// MD5, which all implementations support.
    Md5,
    /// SHA-256 (RFC 6234).
    Sha256,
}

/// The challenge of a server, which it also needs to verify responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Name of the protected space.
    pub realm: String,
    /// The server's nonce, which clients use until they get another one.
    pub nonce: String,
    /// A text that clients return unchanged.
    pub opaque: Option<String>,
    /// The hash function.
    pub hash: Hash,
    /// The hash of name and password is bound to the first nonce and cnonce (`-sess`).
    pub session: bool,
    /// Responses count requests and have a nonce of the client (`qop=auth`). Otherwise the form is that of RFC
    /// 2069.
    pub qop: bool,
    /// The response before had the right password but an old nonce.
    pub stale: bool,
}

impl Digest {
    /// Reads a challenge. `None` for other schemes, other hash functions, protection of bodies only, and
    /// challenges without realm or nonce.
    pub fn read(challenge: &Challenge<'_>) -> Option<Digest> {
        if !challenge.is("Digest") {
            return None;
        }
        let (hash, session) = algorithm(challenge.get("algorithm"))?;
        let qop = match challenge.get("qop") {
            Some(list) => {
                let auth = list.split(',').any(|item| item.trim().eq_ignore_ascii_case("auth"));
                if !auth {
                    return None;
                }
                true
            }
            None => false,
        };
        Some(Digest {
            realm: challenge.get("realm")?.to_owned(),
            nonce: challenge.get("nonce")?.to_owned(),
            opaque: challenge.get("opaque").map(str::to_owned),
            hash,
            session,
            qop,
            stale: challenge.get("stale").is_some_and(|value| value.eq_ignore_ascii_case("true")),
        })
    }

    /// Appends the value of a `WWW-Authenticate` or `Proxy-Authenticate` field.
    pub fn write_challenge(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Digest realm=");
        write_quoted(&self.realm, out);
        quoted(out, "nonce", &self.nonce);
        if let Some(opaque) = &self.opaque {
            quoted(out, "opaque", opaque);
        }
        plain(out, "algorithm", self.algorithm_name());
        if self.qop {
            quoted(out, "qop", "auth");
        }
        if self.stale {
            plain(out, "stale", "true");
        }
    }

    /// Appends the value of an `Authorization` or `Proxy-Authorization` field for a request for `uri`, the
    /// request target as sent. `count` is the number of the request under this nonce, from 1; `cnonce` is any
    /// text of the client, the same for all requests of a session.
    pub fn write_answer(
        &self,
        who: Credentials<'_>,
        request: DigestRequest<'_>,
        count: u32,
        cnonce: &str,
        out: &mut Vec<u8>,
    ) {
        let client = (self.qop || self.session).then_some(ClientNonce { cnonce, count });
        let response = self.response(who, request, client);
        out.extend_from_slice(b"Digest username=");
        write_quoted(who.user, out);
        quoted(out, "realm", &self.realm);
        quoted(out, "nonce", &self.nonce);
        quoted(out, "uri", request.uri);
        quoted(out, "response", response.as_str());
        plain(out, "algorithm", self.algorithm_name());
        if client.is_some() {
            quoted(out, "cnonce", cnonce);
        }
        if let Some(opaque) = &self.opaque {
            quoted(out, "opaque", opaque);
        }
        if self.qop {
            plain(out, "qop", "auth");
            plain(out, "nc", Hex::count(count).as_str());
        }
    }

    /// Checks that `answer` proves knowledge of `password` for a request with `method`. The caller checks that
    /// [`DigestResponse::uri`] is the request's target and that [`DigestResponse::count`] grows.
    ///
    /// # Errors
    /// The reason why the response is refused.
    pub fn verify(
        &self,
        answer: &DigestResponse<'_>,
        password: &str,
        method: &str,
    ) -> Result<(), DigestRejection> {
        let needs_client = self.qop || self.session;
        let same = answer.realm == self.realm
            && answer.hash == self.hash
            && answer.session == self.session
            && answer.qop == self.qop
            && answer.opaque == self.opaque.as_deref()
            && (answer.client.is_some() || !needs_client);
        if !same {
            return Err(DigestRejection::OtherChallenge);
        }
        // The response is checked under its own nonce: with an old nonce but the right password the client may
        // try again.
        let theirs = Digest { nonce: answer.nonce.to_owned(), ..self.clone() };
        let who = Credentials { user: answer.user, password };
        let response = theirs.response(who, DigestRequest { method, uri: answer.uri }, answer.client);
        if !response.as_str().eq_ignore_ascii_case(answer.response) {
            return Err(DigestRejection::WrongResponse);
        }
        if answer.nonce == self.nonce { Ok(()) } else { Err(DigestRejection::Stale) }
    }

    fn response(
        &self,
        who: Credentials<'_>,
        request: DigestRequest<'_>,
        client: Option<ClientNonce<'_>>,
    ) -> Hex {
        let hash = |parts: &[&str]| self.hash.of(parts);
        let mut secret = hash(&[who.user, &self.realm, who.password]);
        if let (true, Some(client)) = (self.session, client) {
            secret = hash(&[secret.as_str(), &self.nonce, client.cnonce]);
        }
        let line = hash(&[request.method, request.uri]);
        match client {
            Some(client) if self.qop => {
                let count = Hex::count(client.count);
                let (secret, count) = (secret.as_str(), count.as_str());
                hash(&[secret, &self.nonce, count, client.cnonce, "auth", line.as_str()])
            }
            _ => hash(&[secret.as_str(), &self.nonce, line.as_str()]),
        }
    }

    fn algorithm_name(&self) -> &'static str {
        match (self.hash, self.session) {
            (Hash::Md5, false) => "MD5",
            (Hash::Md5, true) => "MD5-sess",
            (Hash::Sha256, false) => "SHA-256",
            (Hash::Sha256, true) => "SHA-256-sess",
        }
    }
}

/// The credentials of a user.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// The user name.
    pub user: &'a str,
    /// The password in clear.
    pub password: &'a str,
}

/// The request that a response belongs to.
#[derive(Clone, Copy, Debug)]
pub struct DigestRequest<'a> {
    /// Method as sent.
    pub method: &'a str,
    /// Request target as sent.
    pub uri: &'a str,
}

/// The reasons why a response is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestRejection {
    /// Realm, hash function, opaque text or form are not those of the challenge.
    #[error("answer to another challenge")]
    OtherChallenge,
    /// Wrong name, password, method or target.
    #[error("wrong response")]
    WrongResponse,
    /// The response is right under another nonce: the next challenge should say `stale`.
    #[error("old nonce")]
    Stale,
}

/// The nonce and request count of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClientNonce<'a> {
    cnonce: &'a str,
    count: u32,
}

/// The response in an `Authorization` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestResponse<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Realm of the challenge.
    pub realm: &'a str,
    /// Nonce of the challenge.
    pub nonce: &'a str,
    /// Request target that the response is for.
    pub uri: &'a str,
    response: &'a str,
    opaque: Option<&'a str>,
    hash: Hash,
    session: bool,
    qop: bool,
    client: Option<ClientNonce<'a>>,
}

impl<'a> DigestResponse<'a> {
    /// Reads a response; `None` if it is not of this scheme, or lacks a required parameter.
    pub fn read(field: &'a Challenge<'a>) -> Option<DigestResponse<'a>> {
        if !field.is("Digest") {
            return None;
        }
        let (hash, session) = algorithm(field.get("algorithm"))?;
        let qop = match field.get("qop") {
            Some(qop) => qop.eq_ignore_ascii_case("auth").then_some(true)?,
            None => false,
        };
        let count = match field.get("nc") {
            Some(digits) => u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)?,
            None => 0,
        };
        if qop && (field.get("nc").is_none() || field.get("cnonce").is_none()) {
            return None;
        }
        Some(DigestResponse {
            user: field.get("username")?,
            realm: field.get("realm")?,
            nonce: field.get("nonce")?,
            uri: field.get("uri")?,
            response: field.get("response")?,
            opaque: field.get("opaque"),
            hash,
            session,
            qop,
            client: field.get("cnonce").map(|cnonce| ClientNonce { cnonce, count }),
        })
    }

    /// Number of the request under its nonce, from 1; 0 in the form of RFC 2069.
    pub fn count(&self) -> u32 {
        self.client.map_or(0, |client| client.count)
    }
}

/// The hash function of an `algorithm` parameter, and whether it is a session form; MD5 if there is no
/// parameter.
fn algorithm(name: Option<&str>) -> Option<(Hash, bool)> {
    let name = name.unwrap_or("MD5");
    [
        ("MD5", Hash::Md5, false),
        ("MD5-sess", Hash::Md5, true),
        ("SHA-256", Hash::Sha256, false),
        ("SHA-256-sess", Hash::Sha256, true),
    ]
    .into_iter()
    .find_map(|(known, hash, session)| name.eq_ignore_ascii_case(known).then_some((hash, session)))
}

fn quoted(out: &mut Vec<u8>, name: &str, value: &str) {
    plain(out, name, "");
    write_quoted(value, out);
}

fn plain(out: &mut Vec<u8>, name: &str, value: &str) {
    for text in [", ", name, "=", value] {
        out.extend_from_slice(text.as_bytes());
    }
}

impl Hash {
    /// The hash of `parts` with colons between them, in hex.
    fn of(self, parts: &[&str]) -> Hex {
        fn feed<H: sha2::Digest>(parts: &[&str]) -> Hex {
            let mut hash = H::new();
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    hash.update(b":");
                }
                hash.update(part.as_bytes());
            }
            Hex::new(&hash.finalize())
        }
        match self {
            Hash::Md5 => feed::<Md5>(parts),
            Hash::Sha256 => feed::<Sha256>(parts),
        }
    }
}

/// Up to 32 bytes as lower-case hex.
#[derive(Clone, Copy)]
struct Hex {
    digits: [u8; 64],
    len: usize,
}

impl Hex {
    fn new(bytes: &[u8]) -> Hex {
        let mut digits = [b'0'; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            polygraph_traffic::hex::write_hex(pair, u64::from(*byte));
        }
        Hex { digits, len: (bytes.len() * 2).min(64) }
    }

    /// A request count: eight digits.
    fn count(value: u32) -> Hex {
        Hex::new(&value.to_be_bytes())
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[..self.len]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::challenges;
    use super::*;
    use proptest::prelude::*;

    const MUFASA: Credentials<'_> = Credentials { user: "Mufasa", password: "Circle of Life" };
    const INDEX: DigestRequest<'_> = DigestRequest { method: "GET", uri: "/dir/index.html" };

    fn read(field: &[u8]) -> Option<Digest> {
        challenges(field).iter().find_map(Digest::read)
    }

    /// Sections 3.9.1 of RFC 7616, 3.5 of RFC 2617, and 2.4 of RFC 2069 as corrected by its errata.
    #[test]
    fn the_examples_of_the_standards() {
        let field = br#"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256,
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5,
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;
        let field: Vec<u8> = field.iter().copied().filter(|b| *b != b'\n').collect();
        let both: Vec<Digest> = challenges(&field).iter().filter_map(Digest::read).collect();
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let client = Some(ClientNonce { cnonce, count: 1 });
        assert_eq!(
            both[0].response(MUFASA, INDEX, client).as_str(),
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        );
        assert_eq!(both[1].response(MUFASA, INDEX, client).as_str(), "8ca523f5e9506fed4657c9700eebdbec");

        let old = read(br#"Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41""#).unwrap();
        let circle = Credentials { user: "Mufasa", password: "Circle Of Life" };
        let client = Some(ClientNonce { cnonce: "0a4f113b", count: 1 });
        assert_eq!(old.response(circle, INDEX, client).as_str(), "6629fae49393a05397450978507c4ef1");

        let oldest = read(br#"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41""#).unwrap();
        let circle = Credentials { user: "Mufasa", password: "CircleOfLife" };
        assert!(!oldest.qop);
        assert_eq!(oldest.response(circle, INDEX, None).as_str(), "1949323746fe6a43ef61f9606e7febea");
    }

    #[test]
    fn challenges_by_example() {
        let all =
            read(b"digest Realm=r, NONCE=n, opaque=o, stale=TRUE, algorithm=sha-256-SESS, qop=auth").unwrap();
        assert!(all.stale && all.session && all.qop && all.hash == Hash::Sha256);
        for bad in [
            "Basic realm=r, nonce=n",
            "Digest nonce=n",
            "Digest realm=r",
            "Digest realm=r, nonce=n, algorithm=SHA-512-256",
            "Digest realm=r, nonce=n, qop=\"auth-int\"",
        ] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn answers_are_denied_for_a_reason() {
        let digest = read(b"Digest realm=r, nonce=n, opaque=o, qop=auth").unwrap();
        let mut field = Vec::new();
        digest.write_answer(MUFASA, INDEX, 7, "c", &mut field);
        let parsed = challenges(&field);
        let answer = DigestResponse::read(&parsed[0]).unwrap();
        assert_eq!((answer.count(), answer.uri, answer.user), (7, "/dir/index.html", "Mufasa"));
        assert_eq!(digest.verify(&answer, MUFASA.password, "GET"), Ok(()));
        assert_eq!(digest.verify(&answer, MUFASA.password, "PUT"), Err(DigestRejection::WrongResponse));
        assert_eq!(digest.verify(&answer, "x", "GET"), Err(DigestRejection::WrongResponse));
        let renewed = Digest { nonce: "m".into(), ..digest.clone() };
        assert_eq!(renewed.verify(&answer, MUFASA.password, "GET"), Err(DigestRejection::Stale));
        assert_eq!(renewed.verify(&answer, "x", "GET"), Err(DigestRejection::WrongResponse));
        let without = Digest { qop: false, ..digest.clone() };
        assert_eq!(without.verify(&answer, MUFASA.password, "GET"), Err(DigestRejection::OtherChallenge));
        let other = Digest { realm: "s".into(), ..digest };
        assert_eq!(other.verify(&answer, MUFASA.password, "GET"), Err(DigestRejection::OtherChallenge));
        for bad in [
            "Digest username=u, realm=r, nonce=n, uri=\"/\"",
            "Digest username=u, realm=r, nonce=n, uri=\"/\", response=x, qop=auth",
            "Digest username=u, realm=r, nonce=n, uri=\"/\", response=x, qop=auth, cnonce=c, nc=1",
            "Digest username=u, realm=r, nonce=n, uri=\"/\", response=x, qop=auth-int, cnonce=c, nc=00000001",
            "Basic eDp5",
        ] {
            assert_eq!(DigestResponse::read(&challenges(bad.as_bytes())[0]), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_a_client_answers_a_server_accepts(
            words in prop::array::uniform6("[ -~]{0,20}"), method in "[A-Z]{1,8}", hash: bool, session: bool,
            qop: bool, opaque: bool, count: u32,
        ) {
            let [realm, nonce, word, user, password, uri] = words;
            let hash = if hash { Hash::Md5 } else { Hash::Sha256 };
            let digest = Digest { realm, nonce, opaque: opaque.then_some(word), hash, session, qop, stale: false };
            let mut field = Vec::new();
            digest.write_challenge(&mut field);
            prop_assert_eq!(read(&field), Some(digest.clone()));
            field.clear();
            let who = Credentials { user: &user, password: &password };
            digest.write_answer(who, DigestRequest { method: &method, uri: &uri }, count, "c\"n", &mut field);
            let parsed = challenges(&field);
            let answer = DigestResponse::read(&parsed[0]).unwrap();
            prop_assert_eq!((answer.user, answer.uri), (user.as_str(), uri.as_str()));
            prop_assert_eq!(digest.verify(&answer, &password, &method), Ok(()));
            prop_assert_eq!(digest.verify(&answer, &format!("{password}x"), &method), Err(DigestRejection::WrongResponse));
        }
    }
}
