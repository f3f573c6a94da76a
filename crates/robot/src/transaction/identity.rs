//! Header lines that identify a robot: credentials and cookies.

use std::cell::RefMut;
use std::net::SocketAddr;

use polygraph_link::Link;
use polygraph_stats::{AuthScheme, ErrorKind};
use polygraph_traffic::rng::mix;
use polygraph_traffic::{Draw, Random};
use polygraph_wire::auth::digest::DigestRequest;
use polygraph_wire::auth::ntlm::Uniqueness;
use polygraph_wire::uri;

use crate::connections::pool::PooledConnection;
use crate::connections::tickets::fresh;
use crate::exchange::reply::ReplyMeta;
use crate::exchange::{AuthSteps, Completed, Exchange};
use crate::failure::TransactionFailure;
use crate::group::RobotGroup;
use crate::request::Request;
use crate::request::auth::{Answered, AuthAnswers, AuthSource, RobotCredentials};
use crate::request::cookies::CookieJar;
use crate::violation::Violation;

impl<L: Link> RobotGroup<L> {
    /// Appends header lines with credentials and cookies for a request on `connection`. Foreign servers get neither. Returns the
    /// challenges that the lines answer. Handshakes are only begun or continued if the request `may_shake_hands`.
    pub(super) fn write_identity(
        &self,
        robot: usize,
        request: &Request,
        connection: &mut PooledConnection<L::Conn>,
        may_shake_hands: bool,
        out: &mut Vec<u8>,
    ) -> AuthAnswers {
        let cx = self.context.of(robot);
        let profile = cx.profile();
        let mut answers = AuthAnswers { set_up: connection.granted, ..AuthAnswers::default() };
        if !profile.credentials.is_empty() {
            let url = cx.url(request);
            let via_proxy = cx.is_via_proxy(request);
            let path = uri::split(url.as_bytes()).and_then(|parts| std::str::from_utf8(parts.path).ok());
            // A proxy sends servers only the path, so that is what the proof for a server is about.
            let path = path.unwrap_or("/");
            let mut credentials = self.credentials(robot);
            let spnego = || may_shake_hands.then(|| cx.draw_event(profile.spnego));
            let fresh = |number| fresh(cx, number);
            let mut write = |source, uri: &str| {
                let asked = DigestRequest { method: request.method.word(), uri };
                credentials.write(source, asked, &mut connection.auth, spnego, fresh, out)
            };
            if request.foreign.is_none() {
                answers.origin = write(AuthSource::Origin(request.server), path);
            }
            if via_proxy {
                answers.proxy = write(AuthSource::Proxy, &url);
            }
            // The request that completes a handshake must go on the same connection.
            connection.use_limit = connection.use_limit.saturating_add(answers.begun());
        }
        if request.foreign.is_some() {
            return answers;
        }
        if let Some(cookies) = self.robot(robot).rare.as_mut().and_then(|rare| rare.cookies.as_mut()) {
            cookies.write(request.server, cx.unix_seconds(), out, &cx.recorder);
        }
        answers
    }

    /// Learns from the challenges of `source` in `reply`, to a request that `answered` an earlier one or not. Returns the scheme of the
    /// next answer; `None` if no answer is possible, or if the answer was refused. `connection` is that of the exchange, if it is still
    /// open and a handshake was begun on it.
    pub(super) fn learn(
        &self,
        robot: usize,
        (source, answered): (AuthSource, Option<Answered>),
        reply: &ReplyMeta,
        connection: Option<&mut PooledConnection<L::Conn>>,
    ) -> Result<Option<AuthScheme>, TransactionFailure> {
        let cx = self.context.of(robot);
        let fields = reply.rare.as_deref().map_or(&[][..], |rare| &rare.challenges);
        let mut credentials = self.credentials(robot);
        let nonce = cx.settings.seed.derive("handshake", cx.number() as u64) ^ mix(credentials.handshakes);
        let unique = Uniqueness { nonce: nonce.to_be_bytes(), unix_ms: cx.link.unix_millis() };
        let auth = connection.and_then(|connection| connection.auth.as_deref_mut());
        credentials.learn((source, answered), fields, auth, unique).map_err(|e| {
            let violation = Violation::new(ErrorKind::AuthState, e.to_string());
            TransactionFailure::of_reply(violation, reply)
        })
    }

    /// Keeps the cookies of a reply, if the robot keeps cookies.
    pub(super) fn keep_cookies(&self, robot: usize, request: &Request, reply: &ReplyMeta) {
        let Some(rare) = reply.rare.as_deref().filter(|rare| !rare.cookies.is_empty()) else { return };
        if request.foreign.is_some() {
            return;
        }
        let cx = self.context.of(robot);
        let mut choices = cx.settings.seed.stream("cookies", cx.number() as u64);
        if !choices.event(cx.profile().cookie_sender) {
            return;
        }
        let room = cx.profile().cookies_keep.sample(&mut choices).ceil().clamp(0.0, 1000.0) as usize;
        let mut state = self.rare(robot);
        let jar = state.cookies.get_or_insert_with(|| CookieJar::new(room));
        jar.store(request.server, &rare.cookies, cx.unix_seconds(), &cx.recorder);
    }

    /// The robot's credentials. The robot takes them from the list when it first needs them.
    pub(super) fn credentials(&self, robot: usize) -> RefMut<'_, RobotCredentials> {
        if self.rare(robot).credentials.is_none() {
            self.rare(robot).credentials = Some(Box::default());
            self.renew_credentials(robot);
        }
        RefMut::map(self.rare(robot), |rare| &mut **rare.credentials.get_or_insert_default())
    }

    /// Takes the robot's next credentials (`docs/reference/models.md`, "Authentication").
    pub(crate) fn renew_credentials(&self, robot: usize) {
        let cx = self.context.of(robot);
        let mut state = self.rare(robot);
        let taken = state.credentials.as_ref().map_or(0, |credentials| credentials.renewals);
        let Some(at) = cx.prepared().credentials.pick(cx.number(), taken) else { return };
        // The robot takes its first credentials when a reply demands them, so its own stream must not depend on that.
        let mut rng = Draw::new(cx.settings.seed.derive("credentials", cx.number() as u64) ^ mix(taken));
        let credentials = state.credentials.get_or_insert_default();
        if cx.profile().kerberos.is_some() {
            credentials.use_kerberos();
        }
        credentials.renew(&cx.profile().credentials[at], rng.event(cx.profile().auth_error));
    }

    /// The outcome of a transaction that was denied before its request because the password is wrong on purpose; `None` for all other failures.
    pub(super) fn expected_denial(&self, robot: usize, failure: &TransactionFailure) -> Option<Completed> {
        let cx = self.context.of(robot);
        // A refusal of CONNECT, of a SOCKS proxy or of a KDC; other refusals are replies.
        let by_password = matches!(
            failure.violation.kind,
            ErrorKind::SocksDenied | ErrorKind::ProxyAuthAgain | ErrorKind::KerberosPassword
        );
        if !by_password || !self.has_wrong_password(robot) {
            return None;
        }
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let (now, hop) = (cx.now(), cx.socks().or(cx.proxy()).unwrap_or(nowhere).into());
        Some(Completed {
            exchange: Box::new(Exchange::new(failure.started.unwrap_or(now), None, hop, 0)),
            reply: Box::default(),
            ended: now,
            auth: AuthSteps { refused: true, ..AuthSteps::default() },
        })
    }

    /// The credentials of a robot that has any.
    pub(super) fn identity(&self, robot: usize) -> Option<RefMut<'_, RobotCredentials>> {
        let has_any = !self.context.of(robot).profile().credentials.is_empty();
        has_any.then(|| self.credentials(robot))
    }

    /// Gets the robot a ticket of Kerberos for `source`.
    pub(super) async fn obtain_ticket(
        &self,
        robot: usize,
        source: AuthSource,
    ) -> Result<(), TransactionFailure> {
        let who = || self.identity(robot);
        self.pool.set_up.tickets.obtain(self.context.of(robot), source, &who).await
    }

    /// Whether the robot's password is wrong on purpose.
    pub(super) fn has_wrong_password(&self, robot: usize) -> bool {
        !self.context.of(robot).profile().credentials.is_empty() && self.credentials(robot).spoiled
    }
}
