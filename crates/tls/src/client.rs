//! Connections of robots: their configuration, and the sessions that they resume.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polygraph_link::{Conn, Link};
use polygraph_traffic::Stream;
use rustc_hash::FxHashMap;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    UnbufferedClientConnection, WebPkiServerVerifier,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, KeyLogFile, NamedGroup, RootCertStore};

use crate::clock::Clock;
use crate::conn::TlsConn;
use crate::failure::{FailureKind, TlsFailure};
use crate::handshake::{Peer, TlsPeer};
use crate::library::Library;
use crate::provider::DrawnOffer;
use crate::quic::{HTTP3, QuicClient, needs_tls13};
use crate::session::Session;
use crate::settings::ClientTls;
use crate::verify::PeerVerifier;

/// Maximum number of tickets that are kept for a peer: each resumes one session, and servers send two by default.
const MAX_TICKETS: usize = 4;

/// The configurations of the robots of one event loop. Robots with equal choices share one.
#[derive(Debug, Default)]
pub struct ClientConfigs {
    clock: Clock,
    made: FxHashMap<(usize, DrawnOffer, usize), Arc<ClientConfig>>,
}

impl ClientConfigs {
    /// The connections of a robot. `settings` are those of number `number` of all the settings of the loop. `turn` is the number
    /// of the robot among those with the same settings, and `rng` decides on everything that it draws once.
    ///
    /// # Errors
    /// If the settings contradict each other, or a certificate cannot be read.
    pub fn robot(
        &mut self,
        number: usize,
        settings: &Arc<ClientTls>,
        turn: usize,
        rng: &mut Stream,
    ) -> Result<RobotTls, TlsFailure> {
        let choice = DrawnOffer::draw(&settings.offer, rng);
        let identity = if settings.identities.is_empty() { 0 } else { turn % settings.identities.len() };
        let provider = choice.provider(&settings.offer.groups)?;
        let tls13 = choice.usable_versions(&provider).contains(&&TLS13);
        let key = (number, choice, identity);
        let config = match self.made.get(&key) {
            Some(known) => Arc::clone(known),
            None => {
                let made = Arc::new(config(settings, &key.1, identity, &self.clock)?);
                self.made.insert(key, Arc::clone(&made));
                made
            }
        };
        let clock = self.clock.clone();
        Ok(RobotTls {
            config,
            clock,
            tls13,
            settings: Arc::clone(settings),
            peers: FxHashMap::default(),
            order: VecDeque::new(),
        })
    }
}

fn config(
    settings: &ClientTls,
    choice: &DrawnOffer,
    identity: usize,
    clock: &Clock,
) -> Result<ClientConfig, TlsFailure> {
    let provider = choice.provider(&settings.offer.groups)?;
    let unusable = |text: String| TlsFailure::new(FailureKind::BadCertificate, text);
    let webpki = match settings.verify {
        true => {
            let mut roots = RootCertStore::empty();
            for root in &settings.roots {
                roots.add(CertificateDer::from(root.clone()))?;
            }
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(builder.build().map_err(|e| unusable(format!("certificates of authorities: {e}")))?)
        }
        false => None,
    };
    let verifier = PeerVerifier { webpki, provider: Arc::clone(&provider) };
    let versions = choice.usable_versions(&provider);
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(&versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match settings.identities.get(identity) {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = identity.chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
            let key = PrivateKeyDer::try_from(identity.key.clone()).map_err(|e| unusable(e.to_owned()))?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    config.alpn_protocols = settings.offer.alpn.iter().map(|name| name.clone().into_bytes()).collect();
    config.enable_early_data = settings.early_data;
    config.resumption = Resumption::disabled();
    // The keys are handed over when the handshake is complete.
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(config)
}

/// Whose sessions may be resumed together. A session belongs to an application protocol, because early data do (RFC 8446, section 4.2.10);
/// those of QUIC have its parameters besides.
type SessionKey = (Peer, Option<&'static str>);

/// The connections of one robot and its sessions.
pub struct RobotTls {
    config: Arc<ClientConfig>,
    clock: Clock,
    /// Whether the robot's choices allow TLS 1.3.
    tls13: bool,
    settings: Arc<ClientTls>,
    peers: FxHashMap<SessionKey, KnownPeer>,
    /// The peers, the one that was met first at the front.
    order: VecDeque<SessionKey>,
}

impl fmt::Debug for RobotTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotTls").field("peers", &self.peers.len()).finish_non_exhaustive()
    }
}

/// A peer whose sessions are kept.
struct KnownPeer {
    sessions: Arc<Sessions>,
    config: Arc<ClientConfig>,
}

impl RobotTls {
    /// The settings.
    pub fn settings(&self) -> &Arc<ClientTls> {
        &self.settings
    }

    /// A connection as `wanted` over `conn`.
    ///
    /// # Errors
    /// If the name is neither a host name nor an address.
    pub fn connect<L: Link, C: Conn>(
        &mut self,
        link: &L,
        conn: C,
        wanted: &TlsPeer<'_>,
    ) -> Result<TlsConn<C>, TlsFailure> {
        self.clock.set(link.unix_seconds());
        let name = server_name(wanted.name)?;
        let (config, sessions) = self.config_of(wanted);
        if let Some(sessions) = &sessions {
            sessions.begin(wanted.resume);
        }
        let tls = match wanted.protocol {
            Some(protocol) => {
                let only = vec![protocol.as_bytes().to_vec()];
                UnbufferedClientConnection::new_with_alpn(config, name, only)?
            }
            None => UnbufferedClientConnection::new(config, name)?,
        };
        let offered = sessions.is_some_and(|sessions| sessions.lock().offered);
        let link = link.clone();
        Ok(TlsConn::new(conn, Session::new(Library::Client(tls), offered, Box::new(move || link.now()))))
    }

    /// The TLS of a QUIC connection as `wanted`, which carries HTTP/3.
    ///
    /// # Errors
    /// If the name is neither a host name nor an address, or if the settings exclude TLS 1.3.
    pub fn quic<L: Link>(&mut self, link: &L, wanted: &TlsPeer<'_>) -> Result<QuicClient, TlsFailure> {
        self.clock.set(link.unix_seconds());
        let name = server_name(wanted.name)?;
        let (config, sessions) = self.config_of(wanted);
        if !self.tls13 {
            return Err(needs_tls13());
        }
        if let Some(sessions) = &sessions {
            sessions.begin(wanted.resume);
        }
        let config = match config.alpn_protocols.iter().map(Vec::as_slice).eq([HTTP3.as_bytes()]) {
            true => config,
            false => {
                let mut of_quic = (*config).clone();
                of_quic.alpn_protocols = vec![HTTP3.into()];
                Arc::new(of_quic)
            }
        };
        let offered = move || sessions.as_ref().is_some_and(|sessions| sessions.lock().offered);
        Ok(QuicClient { config, name, offered: Box::new(offered) })
    }

    fn config_of(&mut self, wanted: &TlsPeer<'_>) -> (Arc<ClientConfig>, Option<Arc<Sessions>>) {
        let peer = (wanted.peer, wanted.protocol);
        if self.settings.cache == Some(0) || self.settings.resumption <= 0.0 {
            return (Arc::clone(&self.config), None);
        }
        if !self.peers.contains_key(&peer) {
            if self.settings.cache.is_some_and(|most| self.peers.len() >= most)
                && let Some(first) = self.order.pop_front()
            {
                self.peers.remove(&first);
            }
            let sessions = Arc::new(Sessions::default());
            let mut config = (*self.config).clone();
            if wanted.protocol == Some(HTTP3) {
                config.alpn_protocols = vec![HTTP3.into()];
            }
            config.resumption = Resumption::store(Arc::clone(&sessions) as Arc<dyn ClientSessionStore>);
            self.peers.insert(peer, KnownPeer { sessions, config: Arc::new(config) });
            self.order.push_back(peer);
        }
        let known = &self.peers[&peer];
        (Arc::clone(&known.config), Some(Arc::clone(&known.sessions)))
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, TlsFailure> {
    let host = host.trim_matches(['[', ']']);
    ServerName::try_from(host.to_owned()).map_err(|_| {
        TlsFailure::new(FailureKind::WrongName, format!("{host} cannot be the name in a certificate"))
    })
}

/// The sessions with one peer.
#[derive(Debug, Default)]
struct Sessions(Mutex<KeptSessions>);

#[derive(Default)]
struct KeptSessions {
    /// Whether the next connection may offer a session.
    resume: bool,
    /// Whether it has offered one.
    offered: bool,
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl fmt::Debug for KeptSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptSessions({} tickets)", self.tickets.len())
    }
}

impl Sessions {
    /// The lock is never contended: robots do not leave their event loop.
    fn lock(&self) -> MutexGuard<'_, KeptSessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, resume: bool) {
        let mut kept = self.lock();
        (kept.resume, kept.offered) = (resume, false);
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.lock().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.lock().tls12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let mut kept = self.lock();
        let session = kept.tls12.clone().filter(|_| kept.resume);
        kept.offered |= session.is_some();
        session
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.lock().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.lock();
        if kept.tickets.len() >= MAX_TICKETS {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.lock();
        let ticket = if kept.resume { kept.tickets.pop_back() } else { None };
        kept.offered |= ticket.is_some();
        ticket
    }
}
