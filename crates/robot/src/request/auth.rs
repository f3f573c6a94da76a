//! Authentication of a robot to proxies and origins (`docs/reference/models.md`, "Authentication").

use polygraph_stats::AuthScheme;
use polygraph_traffic::Seed;
use polygraph_wire::auth::basic;
use polygraph_wire::auth::digest::{Credentials, Digest, DigestRequest};
use polygraph_wire::auth::{Challenge, challenges};
use rustc_hash::FxHashMap;

use crate::request::generator::shuffle;

/// The order in which robots take credentials: each goes through a shuffled list from its own start position.
#[derive(Debug)]
pub struct CredentialCycle {
    order: Vec<u32>,
    stride: u64,
}

impl CredentialCycle {
    /// The cycle of `robots` robots through `len` credentials. It is the same on all loops.
    pub fn new(seed: Seed, len: usize, robots: usize) -> CredentialCycle {
        let mut order: Vec<u32> = (0..len as u32).collect();
        shuffle(&mut order, &mut seed.stream("credentials", 0));
        let gcd = |mut a: u64, mut b: u64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        // Robots use different credentials at the same time as long as there are enough, and no robot repeats
        // credentials before it has used all.
        let len = len.max(1) as u64;
        let stride = (robots as u64..).find(|&stride| gcd(stride, len) == 1).unwrap_or(1);
        CredentialCycle { order, stride }
    }

    /// The position of the credentials that robot number `robot` of the test takes after `taken` others; `None` if the
    /// list is empty.
    pub fn pick(&self, robot: usize, taken: u64) -> Option<usize> {
        let len = self.order.len() as u64;
        let at = (robot as u64 + taken.checked_rem(len)? * self.stride) % len;
        Some(self.order[at as usize] as usize)
    }
}

/// The side that demands authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthSource {
    /// The robot's proxy.
    Proxy,
    /// A visible server, by number.
    Origin(usize),
}

/// The challenges that a request answers, and the schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthAnswers {
    /// The scheme of the answer to the proxy.
    pub proxy: Option<AuthScheme>,
    /// The scheme of the answer to the server.
    pub origin: Option<AuthScheme>,
}

impl AuthAnswers {
    /// Whether the challenge of `asker` was among them.
    pub fn to(self, asker: AuthSource) -> bool {
        match asker {
            AuthSource::Proxy => self.proxy.is_some(),
            AuthSource::Origin(_) => self.origin.is_some(),
        }
    }

    /// The scheme by which the robot was granted access; that of the proxy takes precedence.
    pub fn scheme(self) -> Option<AuthScheme> {
        self.proxy.or(self.origin)
    }
}

/// A demanded scheme.
#[derive(Clone, Debug)]
enum Scheme {
    Basic,
    Digest {
        challenge: Digest,
        /// Number of requests under this nonce.
        count: u32,
    },
}

impl Scheme {
    fn scheme(&self) -> AuthScheme {
        match self {
            Scheme::Basic => AuthScheme::Basic,
            Scheme::Digest { .. } => AuthScheme::Digest,
        }
    }
}

/// What a robot knows about authentication.
#[derive(Debug, Default)]
pub struct RobotCredentials {
    /// Name and password in use.
    user: String,
    password: String,
    /// Whether the password is wrong on purpose.
    pub spoiled: bool,
    /// How many times the robot has taken credentials.
    pub renewals: u64,
    schemes: FxHashMap<AuthSource, Scheme>,
}

impl RobotCredentials {
    /// Switches to other credentials, `user:password`, and drops the challenges of proxies.
    pub fn renew(&mut self, credentials: &str, spoiled: bool) {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        self.user = user.to_owned();
        self.password = password.to_owned();
        if spoiled {
            self.password.push('-');
        }
        self.spoiled = spoiled;
        self.renewals += 1;
        self.schemes.remove(&AuthSource::Proxy);
    }

    /// Learns from the challenges of a reply to a request that `answered` an earlier one or not. Returns the scheme of
    /// the next answer; `None` if no answer is possible, or if the answer was refused, so that another one would not
    /// help.
    pub fn learn(&mut self, asker: AuthSource, fields: &[Vec<u8>], answered: bool) -> Option<AuthScheme> {
        let all: Vec<Challenge<'_>> = fields.iter().flat_map(|field| challenges(field)).collect();
        let digest = all.iter().find_map(Digest::read);
        let stale = digest.as_ref().is_some_and(|digest| digest.stale);
        if answered && !stale {
            self.schemes.remove(&asker);
            return None;
        }
        let scheme = match digest {
            Some(challenge) => Scheme::Digest { challenge, count: 0 },
            None if all.iter().any(|challenge| challenge.is("Basic")) => Scheme::Basic,
            None => return None,
        };
        let chosen = scheme.scheme();
        self.schemes.insert(asker, scheme);
        Some(chosen)
    }

    /// Appends the header line for `asker`, if it has sent a challenge, and returns the scheme. `target` is the request
    /// target as sent.
    pub fn write(
        &mut self,
        asker: AuthSource,
        method: &str,
        target: &str,
        out: &mut Vec<u8>,
    ) -> Option<AuthScheme> {
        let scheme = self.schemes.get_mut(&asker)?;
        out.extend_from_slice(match asker {
            AuthSource::Proxy => b"Proxy-Authorization: ",
            AuthSource::Origin(_) => b"Authorization: ",
        });
        match scheme {
            Scheme::Basic => basic::write(&self.user, &self.password, out),
            Scheme::Digest { challenge, count } => {
                *count += 1;
                let who = Credentials { user: &self.user, password: &self.password };
                // Any word is suitable; a benchmark needs one that is the same for equal seeds.
                let cnonce = format!("{:08x}", challenge.nonce.len() as u32 ^ 0x7067_0000);
                challenge.write_answer(who, DigestRequest { method, uri: target }, *count, &cnonce, out);
            }
        }
        out.extend_from_slice(b"\r\n");
        Some(scheme.scheme())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn credentials_are_shared_only_if_there_are_not_enough() {
        for (len, robots) in [(40, 40), (41, 40), (80, 40), (3, 7), (4, 8), (1, 1)] {
            let cycle = CredentialCycle::new(Seed(1), len, robots);
            let taken = |times: u64| (0..robots).map(move |robot| (robot, times));
            for times in 0..3 {
                let together: BTreeSet<_> =
                    taken(times).map(|(robot, times)| cycle.pick(robot, times).unwrap()).collect();
                assert_eq!(together.len(), len.min(robots), "{len} for {robots}");
            }
            let one_by_one: BTreeSet<_> =
                (0..len as u64).map(|times| cycle.pick(1, times).unwrap()).collect();
            assert_eq!(one_by_one.len(), len, "{len} for {robots}");
        }
        let requests = [1, 2].map(|seed| {
            (0..40).map(|i| CredentialCycle::new(Seed(seed), 40, 1).pick(i, 0)).collect::<Vec<_>>()
        });
        assert_ne!(requests[0], requests[1]);
        assert_eq!(CredentialCycle::new(Seed(1), 0, 5).pick(3, 0), None);
    }

    fn line(credentials: &mut RobotCredentials, asker: AuthSource) -> String {
        let mut out = Vec::new();
        credentials.write(asker, "GET", "/x", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn answers_follow_challenges() {
        let mut credentials = RobotCredentials::default();
        credentials.renew("Aladdin:open sesame", false);
        assert_eq!(line(&mut credentials, AuthSource::Proxy), "");
        assert!(credentials.learn(AuthSource::Proxy, &[b"Basic realm=\"x\"".to_vec()], false).is_some());
        let basic = "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        assert_eq!(line(&mut credentials, AuthSource::Proxy), basic);
        // A request that was on its way meanwhile is challenged, too.
        assert!(credentials.learn(AuthSource::Proxy, &[b"Basic realm=\"x\"".to_vec()], false).is_some());
        // The same challenge again means that the answer was refused.
        assert!(credentials.learn(AuthSource::Proxy, &[b"Basic realm=\"x\"".to_vec()], true).is_none());
        let digest = b"Digest realm=\"r\", nonce=\"n1\", qop=\"auth\"".to_vec();
        assert!(
            credentials
                .learn(AuthSource::Origin(3), &[b"Basic realm=\"r\"".to_vec(), digest], false)
                .is_some()
        );
        let first = line(&mut credentials, AuthSource::Origin(3));
        assert!(first.starts_with("Authorization: Digest username=\"Aladdin\""), "{first}");
        assert!(
            first.contains("nc=00000001")
                && line(&mut credentials, AuthSource::Origin(3)).contains("nc=00000002")
        );
        let stale = b"Digest realm=\"r\", nonce=\"n2\", qop=\"auth\", stale=true".to_vec();
        assert!(credentials.learn(AuthSource::Origin(3), &[stale], true).is_some());
        assert!(line(&mut credentials, AuthSource::Origin(3)).contains("nonce=\"n2\""));
        assert!(credentials.learn(AuthSource::Origin(4), &[b"Negotiate".to_vec()], false).is_none());
    }
}
