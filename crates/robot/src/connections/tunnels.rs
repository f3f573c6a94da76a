//! Tunnels through a proxy that may demand credentials: the dialogue on a connection until CONNECT succeeds.

use polygraph_link::Link;
use polygraph_stats::{AuthScheme, ErrorKind};
use polygraph_traffic::rng::mix;
use polygraph_transport::tunnel::{self, Demand};
use polygraph_transport::{Channel, TunnelFailure};
use polygraph_wire::auth::digest::DigestRequest;
use polygraph_wire::auth::ntlm::Uniqueness;

use super::tickets::{Tickets, fresh};
use crate::connections::counts;
use crate::context::RobotContext;
use crate::failure::{TransactionFailure, tunnel_failure};
use crate::request::auth::{Answered, AuthSource, ConnectionAuth, RobotIdentity};

/// The most challenges that a robot answers before it gives up a tunnel, as in a transaction.
const MAX_CHALLENGES: u32 = 6;

/// What a reply to CONNECT leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The tunnel is open, to a robot that the proxy knows by this scheme, if it asked.
    Open(Option<AuthScheme>),
    /// The next request answers a challenge, on the same connection.
    Again,
    /// The same, on another connection, because the proxy closes this one.
    Reconnect,
}

/// The dialogue with a proxy until it opens a tunnel.
#[derive(Debug)]
pub struct TunnelDialogue<'a> {
    /// Where the tunnel leads, `host:port`.
    authority: &'a str,
    /// The handshakes on the connection.
    handshakes: Option<Box<ConnectionAuth>>,
    challenges: u32,
}

impl<'a> TunnelDialogue<'a> {
    /// A dialogue before its first request.
    pub fn new(authority: &'a str) -> TunnelDialogue<'a> {
        TunnelDialogue { authority, handshakes: None, challenges: 0 }
    }

    /// Sends a request on `channel` and learns from the reply.
    ///
    /// # Errors
    /// If there will be no tunnel.
    pub async fn ask<L: Link>(
        &mut self,
        cx: RobotContext<'_, L>,
        channel: &mut Channel<L::Conn>,
        who: RobotIdentity<'_>,
        tickets: &Tickets,
    ) -> Result<Asked, TransactionFailure> {
        let mut lines = Vec::new();
        let request = DigestRequest { method: "CONNECT", uri: self.authority };
        let answered = who().and_then(|mut credentials| {
            let spnego = || Some(cx.draw_event(cx.profile().spnego));
            let fresh = |number| fresh(cx, number);
            credentials.write(AuthSource::Proxy, request, &mut self.handshakes, spnego, fresh, &mut lines)
        });
        let started = cx.now();
        let reply = tunnel::connect(channel, self.authority, &lines).await;
        let Err(TunnelFailure::Refused { status: 407, size, demand, .. }) = &reply else {
            counts::connect(cx, &reply, started);
            let scheme = answered.map(|answered| answered.scheme);
            return reply.map(|_| Asked::Open(scheme)).map_err(|failure| tunnel_failure(&failure));
        };
        let keep_alive = demand.keep_alive;
        let scheme =
            self.learn(cx, who, answered, demand).inspect_err(|_| counts::connect(cx, &reply, started))?;
        self.challenges += 1;
        counts::connect_challenge(cx, scheme, *size, started);
        if scheme == AuthScheme::Kerberos {
            tickets.obtain(cx, AuthSource::Proxy, who).await?;
        }
        Ok(match keep_alive {
            true => Asked::Again,
            false => {
                self.handshakes = None;
                Asked::Reconnect
            }
        })
    }

    /// Learns from the challenges of a reply 407 to a request that `answered` earlier ones or not. Returns the scheme of the answer.
    fn learn<L: Link>(
        &mut self,
        cx: RobotContext<'_, L>,
        who: RobotIdentity<'_>,
        answered: Option<Answered>,
        demand: &Demand,
    ) -> Result<AuthScheme, TransactionFailure> {
        let refused = |kind| {
            let detail = format!("CONNECT {}: status 407", self.authority);
            Err(TransactionFailure::new(kind, detail))
        };
        if demand.challenges.is_empty() {
            return refused(ErrorKind::NoProxyChallenge);
        }
        let Some(mut credentials) = who() else { return refused(ErrorKind::ProxyCredentials) };
        let nonce = cx.settings.seed.derive("handshake", cx.number() as u64) ^ mix(credentials.handshakes);
        let unique = Uniqueness { nonce: nonce.to_be_bytes(), unix_ms: cx.link.unix_millis() };
        let handshakes = self.handshakes.as_deref_mut().filter(|_| demand.keep_alive);
        let answer = credentials.learn((AuthSource::Proxy, answered), &demand.challenges, handshakes, unique);
        match answer {
            Ok(Some(scheme)) if self.challenges < MAX_CHALLENGES => Ok(scheme),
            Ok(_) => match answered.map(|answered| answered.scheme) {
                Some(AuthScheme::Kerberos) => refused(ErrorKind::KerberosRefused),
                _ => refused(ErrorKind::ProxyAuthAgain),
            },
            Err(error) => Err(TransactionFailure::new(ErrorKind::AuthState, format!("CONNECT: {error}"))),
        }
    }
}
