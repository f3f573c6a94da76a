//! Authentication of a robot to proxies and origins (`docs/reference/models.md`, "Authentication").

use std::cell::RefMut;
use std::rc::Rc;

use polygraph_kerberos::Fresh;
use polygraph_kerberos::ticket::KerberosTicket;
use polygraph_stats::AuthScheme;
use polygraph_traffic::Seed;
use polygraph_wire::auth::basic;
use polygraph_wire::auth::digest::{Credentials, Digest, DigestRequest};
use polygraph_wire::auth::handshake::{self, ClientHandshake, HandshakeError, TokenFrame};
use polygraph_wire::auth::ntlm::{Account, Uniqueness};
use polygraph_wire::auth::{Challenge, challenges};
use polygraph_wire::socks;
use rustc_hash::FxHashMap;

use crate::request::generator::shuffle;

/// Gives access to the robot's name and password, and to what it knows about authentication; `None` if it has no credentials.
pub type RobotIdentity<'a> = &'a dyn Fn() -> Option<RefMut<'a, RobotCredentials>>;

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

/// How far an answer to a challenge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofStep {
    /// The first message of a handshake, which proves nothing yet.
    Begun,
    /// The proof.
    Proved,
    /// Nothing is sent, because an earlier request has authenticated the connection.
    AlreadyGiven,
}

/// The answer of a request to a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The scheme.
    pub scheme: AuthScheme,
    /// How far it goes.
    pub step: ProofStep,
}

/// The challenges that a request answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthAnswers {
    /// The answer to the proxy.
    pub proxy: Option<Answered>,
    /// The answer to the server.
    pub origin: Option<Answered>,
    /// The scheme by which a SOCKS proxy accepted the robot when the connection was set up, or else the proxy that opened the tunnel.
    pub set_up: Option<AuthScheme>,
}

impl AuthAnswers {
    /// The answer to the challenge of `asker`.
    pub fn to(self, asker: AuthSource) -> Option<Answered> {
        match asker {
            AuthSource::Proxy => self.proxy,
            AuthSource::Origin(_) => self.origin,
        }
    }

    /// The scheme by which the robot was granted access; that of the first proxy takes precedence.
    pub fn scheme(self) -> Option<AuthScheme> {
        let proofs = [self.proxy, self.origin].into_iter().flatten();
        let mut proofs = proofs.filter(|answer| answer.step != ProofStep::Begun).map(|answer| answer.scheme);
        self.set_up.or_else(|| proofs.next())
    }

    /// Number of handshakes that the request begins.
    pub fn begun(self) -> u32 {
        let begun = |answer: Option<Answered>| answer.is_some_and(|answer| answer.step == ProofStep::Begun);
        u32::from(begun(self.proxy)) + u32::from(begun(self.origin))
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
    /// NTLM or Negotiate, which authenticate connections.
    Handshake(AuthScheme),
    /// Negotiate with Kerberos, which authenticates connections, or each request if the peer wants `each` to be.
    Kerberos {
        /// Whether the peer has challenged a request on an authenticated connection.
        each: bool,
    },
}

impl Scheme {
    fn scheme(&self) -> AuthScheme {
        match self {
            Scheme::Basic => AuthScheme::Basic,
            Scheme::Digest { .. } => AuthScheme::Digest,
            Scheme::Handshake(scheme) => *scheme,
            Scheme::Kerberos { .. } => AuthScheme::Kerberos,
        }
    }

    /// The best of the offered schemes; that of a failed handshake and better ones are out of the question. `kerberos` says whether
    /// the robot answers Negotiate with Kerberos, and whether for each request.
    fn choose(all: &[Challenge<'_>], failed: Option<AuthScheme>, kerberos: Option<bool>) -> Option<Scheme> {
        let offered = |name: &str| all.iter().any(|challenge| challenge.is(name));
        if let Some(each) = kerberos.filter(|_| offered("Negotiate")) {
            return Some(Scheme::Kerberos { each });
        }
        if failed.is_none() && offered("Negotiate") {
            return Some(Scheme::Handshake(AuthScheme::Negotiate));
        }
        if failed != Some(AuthScheme::Ntlm) && offered("NTLM") {
            return Some(Scheme::Handshake(AuthScheme::Ntlm));
        }
        match all.iter().find_map(Digest::read) {
            Some(challenge) => Some(Scheme::Digest { challenge, count: 0 }),
            None => offered("Basic").then_some(Scheme::Basic),
        }
    }
}

/// The handshakes on one connection.
#[derive(Debug, Default)]
pub struct ConnectionAuth {
    proxy: Handshake,
    /// The last server that demanded one, by number: a proxy may lead to many.
    origin: (usize, Handshake),
}

/// The state of a handshake.
#[derive(Debug, Default)]
enum Handshake {
    #[default]
    None,
    /// The first message was sent.
    Begun(ClientHandshake),
    /// The reply to it has been received; this is the value of the header field with the last message.
    Answer(Vec<u8>),
    /// The last message was sent.
    Done,
}

impl ConnectionAuth {
    fn with(&mut self, source: AuthSource) -> &mut Handshake {
        match source {
            AuthSource::Proxy => &mut self.proxy,
            AuthSource::Origin(server) => {
                if self.origin.0 != server {
                    self.origin = (server, Handshake::None);
                }
                &mut self.origin.1
            }
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
    /// Number of handshakes that the robot has continued.
    pub handshakes: u64,
    schemes: FxHashMap<AuthSource, Scheme>,
    /// The tickets of the user, if the robot uses Kerberos.
    tickets: Option<Tickets>,
}

/// The tickets of a user.
#[derive(Debug, Default)]
struct Tickets {
    granting: Option<Rc<KerberosTicket>>,
    services: FxHashMap<AuthSource, Rc<KerberosTicket>>,
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
        self.tickets = self.tickets.as_ref().map(|_| Tickets::default());
    }

    /// Answers Negotiate with Kerberos from now on.
    pub fn use_kerberos(&mut self) {
        self.tickets.get_or_insert_default();
    }

    /// Name and password.
    pub fn account(&self) -> (&str, &str) {
        (&self.user, &self.password)
    }

    /// The ticket-granting ticket, if there is one that is valid at `now`, in seconds since 1970.
    pub fn granting_ticket(&self, now: u64) -> Option<Rc<KerberosTicket>> {
        let granting = self.tickets.as_ref().and_then(|tickets| tickets.granting.clone());
        granting.filter(|ticket| ticket.is_valid(now))
    }

    /// The ticket for a proxy or server, if there is one that is valid at `now`, in seconds since 1970.
    pub fn ticket(&self, source: AuthSource, now: u64) -> Option<Rc<KerberosTicket>> {
        let known = self.tickets.as_ref().and_then(|tickets| tickets.services.get(&source).cloned());
        known.filter(|ticket| ticket.is_valid(now))
    }

    /// Keeps a ticket-granting ticket, and a ticket for a proxy or server.
    pub fn keep_tickets(
        &mut self,
        granting: Rc<KerberosTicket>,
        (source, ticket): (AuthSource, Rc<KerberosTicket>),
    ) {
        if let Some(tickets) = &mut self.tickets {
            tickets.granting = Some(granting);
            tickets.services.insert(source, ticket);
        }
    }

    /// The next number of a handshake or message of Kerberos.
    pub fn next_number(&mut self) -> u64 {
        self.handshakes += 1;
        self.handshakes
    }

    /// Name and password for a SOCKS proxy.
    pub fn for_socks(&self) -> socks::SocksCredentials {
        socks::SocksCredentials { user: self.user.clone(), password: self.password.clone() }
    }

    /// Learns from the challenges of `source` in a reply to a request that `answered` an earlier one or not. Returns the scheme of
    /// the next answer; `None` if no answer is possible, or if the answer was refused, so that another one would not help.
    /// `connection` is that of the reply, if it can still be used and had handshakes. `unique` makes handshakes different.
    ///
    /// # Errors
    /// If a handshake fails for another reason than the credentials.
    pub fn learn(
        &mut self,
        (source, answered): (AuthSource, Option<Answered>),
        fields: &[Vec<u8>],
        connection: Option<&mut ConnectionAuth>,
        unique: Uniqueness,
    ) -> Result<Option<AuthScheme>, HandshakeError> {
        let all: Vec<Challenge<'_>> = fields.iter().flat_map(|field| challenges(field)).collect();
        let handshake = connection.map(|connection| connection.with(source));
        let mut failed = None;
        let again = matches!(answered, Some(Answered { step: ProofStep::AlreadyGiven, .. }));
        let kerberos = self
            .tickets
            .as_ref()
            .map(|_| again || matches!(self.schemes.get(&source), Some(Scheme::Kerberos { each: true })));
        match answered {
            Some(Answered { scheme, step: ProofStep::Begun }) => {
                match self.continue_handshake(&all, handshake, unique) {
                    Ok(()) => return Ok(Some(scheme)),
                    Err(e) => failed = Some((scheme, e)),
                }
            }
            Some(Answered { step: ProofStep::Proved, .. }) => {
                if let Some(handshake) = handshake {
                    *handshake = Handshake::None;
                }
                if !all.iter().filter_map(Digest::read).any(|digest| digest.stale) {
                    self.schemes.remove(&source);
                    if let Some(tickets) = &mut self.tickets {
                        tickets.services.remove(&source);
                    }
                    return Ok(None);
                }
            }
            // The peer has forgotten who uses the connection.
            Some(Answered { step: ProofStep::AlreadyGiven, .. }) => {
                if let Some(handshake) = handshake {
                    *handshake = Handshake::None;
                }
            }
            None => {}
        }
        match (Scheme::choose(&all, failed.map(|(scheme, _)| scheme), kerberos), failed) {
            (None, Some((_, error))) => Err(error),
            (None, None) => Ok(None),
            (Some(scheme), _) => {
                let chosen = scheme.scheme();
                self.schemes.insert(source, scheme);
                Ok(Some(chosen))
            }
        }
    }

    /// Computes the last message of a handshake from the reply to the first.
    fn continue_handshake(
        &mut self,
        all: &[Challenge<'_>],
        handshake: Option<&mut Handshake>,
        unique: Uniqueness,
    ) -> Result<(), HandshakeError> {
        let handshake = handshake.ok_or(HandshakeError::Closed)?;
        let Handshake::Begun(mut begun) = std::mem::take(handshake) else {
            return Err(HandshakeError::Closed);
        };
        let name = begun.framing().scheme();
        let token = all.iter().find(|challenge| challenge.is(name)).and_then(|challenge| challenge.token);
        let account = Account { name: &self.user, password: &self.password };
        *handshake = Handshake::Answer(begun.answer(token, account, unique)?);
        self.handshakes += 1;
        Ok(())
    }

    /// Appends the header line for `source`, if it has sent a challenge. Returns how far the answer goes. `spnego` decides whether a
    /// handshake of Negotiate that begins now uses the frame of SPNEGO; `None` if no handshake may begin. `fresh` makes tokens of
    /// Kerberos different, from the number of tokens and handshakes so far.
    pub fn write(
        &mut self,
        source: AuthSource,
        request: DigestRequest<'_>,
        connection: &mut Option<Box<ConnectionAuth>>,
        spnego: impl FnOnce() -> Option<bool>,
        fresh: impl FnOnce(u64) -> Fresh,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        let scheme = self.schemes.get_mut(&source)?;
        let mut answered = Answered { scheme: scheme.scheme(), step: ProofStep::Proved };
        let mut line = match source {
            AuthSource::Proxy => b"Proxy-Authorization: ".to_vec(),
            AuthSource::Origin(_) => b"Authorization: ".to_vec(),
        };
        match scheme {
            Scheme::Basic => basic::write(&self.user, &self.password, &mut line),
            Scheme::Digest { challenge, count } => {
                *count += 1;
                let who = Credentials { user: &self.user, password: &self.password };
                // Any word is suitable; a benchmark needs one that is the same for equal seeds.
                let cnonce = format!("{:08x}", challenge.nonce.len() as u32 ^ 0x7067_0000);
                challenge.write_answer(who, request, *count, &cnonce, &mut line);
            }
            Scheme::Kerberos { each } => {
                let handshake = connection.get_or_insert_default().with(source);
                if matches!(handshake, Handshake::Done) && !*each {
                    answered.step = ProofStep::AlreadyGiven;
                    return Some(answered);
                }
                self.handshakes += 1;
                let fresh = fresh(self.handshakes);
                // Without a valid ticket, the request is sent without an answer, and gets a challenge for which the robot gets one.
                let tickets = self.tickets.as_ref()?;
                let ticket =
                    tickets.services.get(&source).filter(|ticket| ticket.is_valid(fresh.now.seconds()))?;
                // One message is all, so others may follow at once.
                let frame = if spnego().unwrap_or(true) { TokenFrame::Spnego } else { TokenFrame::Raw };
                line.extend_from_slice(&handshake::show_ticket(&ticket.token(fresh).ok()?, frame));
                *handshake = Handshake::Done;
            }
            Scheme::Handshake(scheme) => {
                let handshake = connection.get_or_insert_default().with(source);
                let (value, next, step) = match std::mem::take(handshake) {
                    Handshake::Done => (Vec::new(), Handshake::Done, ProofStep::AlreadyGiven),
                    Handshake::Answer(value) => (value, Handshake::Done, ProofStep::Proved),
                    Handshake::None | Handshake::Begun(_) => {
                        let framing = match (*scheme, spnego()?) {
                            (AuthScheme::Ntlm, _) => TokenFrame::Ntlm,
                            (_, true) => TokenFrame::Spnego,
                            (_, false) => TokenFrame::Raw,
                        };
                        let (begun, value) = ClientHandshake::begin(framing);
                        (value, Handshake::Begun(begun), ProofStep::Begun)
                    }
                };
                (*handshake, answered.step) = (next, step);
                if step == ProofStep::AlreadyGiven {
                    return Some(answered);
                }
                line.extend_from_slice(&value);
            }
        }
        out.extend_from_slice(&line);
        out.extend_from_slice(b"\r\n");
        Some(answered)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use polygraph_kerberos::Moment;
    use polygraph_wire::auth::access::{self, Access, AccessRequest, ConnectionAccess, ProvenKeys};

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

    const UNIQUE: Uniqueness = Uniqueness { nonce: [1; 8], unix_ms: 1_700_000_000_000 };
    const FRESH: fn(u64) -> Fresh =
        |number| Fresh { random: [7; 16], now: Moment::of_millis(UNIQUE.unix_ms, number) };
    const GET: DigestRequest<'_> = DigestRequest { method: "GET", uri: "/x" };

    /// A robot whose requests all go over one connection.
    #[derive(Default)]
    struct Client {
        credentials: RobotCredentials,
        connection: Option<Box<ConnectionAuth>>,
        answered: Option<Answered>,
    }

    impl Client {
        fn line(&mut self, source: AuthSource) -> String {
            let mut out = Vec::new();
            self.answered =
                self.credentials.write(source, GET, &mut self.connection, || Some(false), FRESH, &mut out);
            String::from_utf8(out).unwrap()
        }

        fn learn(
            &mut self,
            source: AuthSource,
            fields: &[&str],
        ) -> Result<Option<AuthScheme>, HandshakeError> {
            let fields: Vec<Vec<u8>> = fields.iter().map(|field| field.as_bytes().to_vec()).collect();
            let answered = (source, self.answered.take());
            self.credentials.learn(answered, &fields, self.connection.as_deref_mut(), UNIQUE)
        }
    }

    fn client() -> Client {
        let mut client = Client::default();
        client.credentials.renew("Aladdin:open sesame", false);
        client
    }

    const PROXY: AuthSource = AuthSource::Proxy;

    #[test]
    fn answers_follow_challenges() {
        let mut client = client();
        assert_eq!(client.line(PROXY), "");
        assert_eq!(client.learn(PROXY, &["Basic realm=\"x\""]), Ok(Some(AuthScheme::Basic)));
        let basic = "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        assert_eq!(client.line(PROXY), basic);
        // A request that was on its way meanwhile is challenged, too.
        client.answered = None;
        assert_eq!(client.learn(PROXY, &["Basic realm=\"x\""]), Ok(Some(AuthScheme::Basic)));
        // The same challenge again means that the answer was refused.
        client.line(PROXY);
        assert_eq!(client.learn(PROXY, &["Basic realm=\"x\""]), Ok(None));
        let digest = "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\"";
        let origin = AuthSource::Origin(3);
        assert_eq!(client.learn(origin, &["Basic realm=\"r\"", digest]), Ok(Some(AuthScheme::Digest)));
        let first = client.line(origin);
        assert!(first.starts_with("Authorization: Digest username=\"Aladdin\""), "{first}");
        assert!(first.contains("nc=00000001") && client.line(origin).contains("nc=00000002"));
        let stale = "Digest realm=\"r\", nonce=\"n2\", qop=\"auth\", stale=true";
        assert_eq!(client.learn(origin, &[stale]), Ok(Some(AuthScheme::Digest)));
        assert!(client.line(origin).contains("nonce=\"n2\""));
        assert_eq!(client.learn(AuthSource::Origin(4), &["Hoba challenge=x"]), Ok(None));
    }

    /// A server that accepts Aladdin, and what it knows about a connection.
    fn server() -> (Access, ConnectionAccess) {
        let users = [("Aladdin".to_owned(), "open sesame".to_owned())];
        (Access::new(vec![access::Scheme::Ntlm], "r", users), ConnectionAccess::default())
    }

    /// The challenge of a server to this header line; `None` if it grants access.
    fn ask((access, connection): &mut (Access, ConnectionAccess), line: &str) -> Option<String> {
        let value = line.trim_end().split_once(": ").map(|(_, value)| value.as_bytes());
        let proven = &ProvenKeys::default();
        let request = AccessRequest { method: "GET", target: "/x", unix_ms: 9, secret: 1, proven };
        let checked = access.check(connection, value.into_iter(), &request);
        checked.err().map(|mut denial| String::from_utf8(denial.challenges.remove(0)).unwrap())
    }

    #[test]
    fn a_handshake_authenticates_its_connection() {
        let (mut client, mut server) = (client(), server());
        assert_eq!(client.learn(PROXY, &["NTLM"]), Ok(Some(AuthScheme::Ntlm)));
        let challenge = ask(&mut server, &client.line(PROXY)).unwrap();
        assert_eq!(client.answered.map(|answered| answered.step), Some(ProofStep::Begun));
        assert_eq!(client.learn(PROXY, &[&challenge]), Ok(Some(AuthScheme::Ntlm)));
        assert_eq!(ask(&mut server, &client.line(PROXY)), None);
        assert_eq!(client.answered.map(|answered| answered.step), Some(ProofStep::Proved));
        // From now on nothing is sent, except on another connection.
        assert_eq!(client.line(PROXY), "");
        assert_eq!(client.answered.map(|answered| answered.step), Some(ProofStep::AlreadyGiven));
        let other = client.connection.take();
        assert!(client.line(PROXY).starts_with("Proxy-Authorization: NTLM "));
        // A server that has forgotten the client is asked to begin again.
        client.connection = other;
        client.line(PROXY);
        assert_eq!(client.learn(PROXY, &["NTLM"]), Ok(Some(AuthScheme::Ntlm)));
        client.line(PROXY);
        assert_eq!(client.answered.map(|answered| answered.step), Some(ProofStep::Begun));
    }

    #[test]
    fn a_refused_proof_is_not_sent_again() {
        let (mut client, mut server) = (client(), server());
        client.credentials.renew("Aladdin:open sesame", true);
        client.learn(PROXY, &["NTLM"]).unwrap();
        let challenge = ask(&mut server, &client.line(PROXY)).unwrap();
        client.learn(PROXY, &[&challenge]).unwrap();
        let again = ask(&mut server, &client.line(PROXY)).unwrap();
        assert_eq!(client.learn(PROXY, &[&again]), Ok(None));
    }

    #[test]
    fn a_failed_handshake_gives_way_to_another_scheme() {
        let mut client = client();
        let all = ["Negotiate", "NTLM", "Basic realm=x"];
        for expected in [AuthScheme::Negotiate, AuthScheme::Ntlm, AuthScheme::Basic] {
            // Each time the server answers the first message as if there had been none.
            assert_eq!(client.learn(PROXY, &all), Ok(Some(expected)));
            client.line(PROXY);
        }
        client.answered = None;
        client.learn(PROXY, &["Negotiate"]).unwrap();
        client.line(PROXY);
        assert_eq!(client.learn(PROXY, &["Negotiate"]), Err(HandshakeError::NoToken));
        client.learn(PROXY, &["Negotiate"]).unwrap();
        client.line(PROXY);
        client.connection = None;
        assert_eq!(client.learn(PROXY, &["Negotiate oQcw"]), Err(HandshakeError::Closed));
    }
}
