//! Connections of servers: their configuration and certificates.

use std::fmt;
use std::sync::Arc;

use polygraph_link::{Conn, Link};
use polygraph_traffic::Stream;
use rustc_hash::FxHashMap;
use rustls::pki_types::CertificateDer;
use rustls::server::{
    NoServerSessionStorage, ServerSessionMemoryCache, UnbufferedServerConnection, WebPkiClientVerifier,
};
use rustls::version::TLS13;
use rustls::{KeyLogFile, RootCertStore, ServerConfig};

use crate::clock::Clock;
use crate::conn::TlsConn;
use crate::failure::{FailureKind, TlsFailure};
use crate::library::Library;
use crate::minted::{Mint, ServerCertificates, certified};
use crate::provider::DrawnOffer;
use crate::quic::{HTTP3, QuicServer, needs_tls13};
use crate::session::Session;
use crate::settings::ServerTls;
use crate::ticket::Tickets;

/// The configurations of the servers of one event loop.
#[derive(Default)]
pub struct ServerConfigs {
    clock: Clock,
    /// The mints by settings and key, so that servers share certificates for the same names.
    mints: FxHashMap<(usize, Vec<u8>), Arc<Mint>>,
}

impl fmt::Debug for ServerConfigs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfigs").field("mints", &self.mints.len()).finish_non_exhaustive()
    }
}

impl ServerConfigs {
    /// The connections of a server. `settings` are those of number `number` of all the settings of the loop. `turn` is the number
    /// of the server among those with the same settings, `own` its address or name for clients that ask for no name, and `rng`
    /// decides on everything that it draws once.
    ///
    /// # Errors
    /// If the settings contradict each other, or a certificate cannot be read.
    pub fn server(
        &mut self,
        number: usize,
        settings: &ServerTls,
        turn: usize,
        own: &str,
        rng: &mut Stream,
    ) -> Result<TlsServer, TlsFailure> {
        let choice = DrawnOffer::draw(&settings.offer, rng);
        let certificates = self.certificates(number, settings, turn, own, rng)?;
        let provider = choice.provider(&settings.offer.groups)?;
        let versions = choice.usable_versions(&provider);
        let builder = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(self.clock.clone()))
            .with_protocol_versions(&versions)?;
        let builder = match settings.client_roots.is_empty() {
            true => builder.with_no_client_auth(),
            false => {
                let mut roots = RootCertStore::empty();
                for root in &settings.client_roots {
                    roots.add(CertificateDer::from(root.clone()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let unusable = |e: rustls::server::VerifierBuilderError| {
                    TlsFailure::new(FailureKind::BadCertificate, e.to_string())
                };
                builder.with_client_cert_verifier(verifier.map_err(unusable)?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(certificates));
        config.alpn_protocols = settings.offer.alpn.iter().map(|name| name.clone().into_bytes()).collect();
        config.key_log = Arc::new(KeyLogFile::new());
        // The keys are handed over when the handshake is complete.
        config.enable_secret_extraction = true;
        config.session_storage = match settings.cache {
            0 => Arc::new(NoServerSessionStorage {}),
            entries => ServerSessionMemoryCache::new(entries),
        };
        if let Some(tickets) = settings.ticket_secret.as_ref().and_then(Tickets::new) {
            config.ticketer = Arc::new(tickets);
        } else if settings.cache == 0 {
            config.send_tls13_tickets = 0;
        }
        config.max_early_data_size = settings.early_data;
        config.send_half_rtt_data = settings.early_data > 0;
        let quic = (versions.contains(&&TLS13)).then(|| {
            let mut config = config.clone();
            config.alpn_protocols = vec![HTTP3.into()];
            // QUIC limits early data in its own way (RFC 9001, section 4.6.1).
            config.max_early_data_size = if settings.early_data > 0 { u32::MAX } else { 0 };
            Arc::new(QuicServer { config: Arc::new(config) })
        });
        Ok(TlsServer { config: Arc::new(config), quic, clock: self.clock.clone() })
    }

    fn certificates(
        &mut self,
        number: usize,
        settings: &ServerTls,
        turn: usize,
        own: &str,
        rng: &mut Stream,
    ) -> Result<ServerCertificates, TlsFailure> {
        if !settings.identities.is_empty() {
            let identity = &settings.identities[turn % settings.identities.len()];
            return Ok(ServerCertificates::Fixed(certified(identity)?));
        }
        let (Some(authority), Some(key)) = (&settings.authority, settings.keys.draw(rng)) else {
            let text = "the server has no certificate";
            return Err(TlsFailure::new(FailureKind::BadCertificate, text));
        };
        let mint = match self.mints.get(&(number, key.clone())) {
            Some(known) => Arc::clone(known),
            None => {
                let made = Arc::new(Mint::new(authority, key, settings.fault)?);
                self.mints.insert((number, key.clone()), Arc::clone(&made));
                made
            }
        };
        Ok(ServerCertificates::Minted(mint, own.to_owned()))
    }
}

/// The connections of one server.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
    /// The settings for QUIC, unless they exclude TLS 1.3.
    quic: Option<Arc<QuicServer>>,
    clock: Clock,
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsServer")
    }
}

impl TlsServer {
    /// The TLS of QUIC connections, which carry HTTP/3.
    ///
    /// # Errors
    /// If the settings exclude TLS 1.3.
    pub fn quic(&self) -> Result<Arc<QuicServer>, TlsFailure> {
        self.quic.clone().ok_or_else(needs_tls13)
    }

    /// Sets the time of day for checks of certificates and tickets.
    pub fn set_clock<L: Link>(&self, link: &L) {
        self.clock.set(link.unix_seconds());
    }

    /// The server's side of a connection, before its handshake.
    ///
    /// # Errors
    /// If the library refuses the configuration.
    pub fn accept<L: Link, C: Conn>(&self, link: &L, conn: C) -> Result<TlsConn<C>, TlsFailure> {
        self.clock.set(link.unix_seconds());
        let tls = UnbufferedServerConnection::new(Arc::clone(&self.config))?;
        let link = link.clone();
        Ok(TlsConn::new(conn, Session::new(Library::Server(tls), false, Box::new(move || link.now()))))
    }
}
