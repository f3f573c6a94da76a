//! The settings of TLS as data: what a workload says, with certificates and keys as bytes.

use polygraph_stats::ErrorKind;
use polygraph_traffic::Selector;
use serde::{Deserialize, Serialize};

use crate::names::{Version, is_tls13_cipher};

/// A certificate chain and the private key of its first certificate, both in DER.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The certificate, and those of the authorities above it except the root.
    pub chain: Vec<Vec<u8>>,
    /// The private key, in PKCS #8, PKCS #1 or SEC1.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({} certificates)", self.chain.len())
    }
}

/// A kind of private keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// RSA with 2048, 3072 or 4096 bits.
    Rsa(u32),
    /// ECDSA on the curve P-256.
    EcdsaP256,
    /// Ed25519 (RFC 8032).
    Ed25519,
}

impl KeyKind {
    /// The name, without blanks, as part of file names and in messages.
    pub fn name(self) -> String {
        match self {
            KeyKind::Rsa(bits) => format!("RSA-{bits}"),
            KeyKind::EcdsaP256 => "ECDSA-P256".to_owned(),
            KeyKind::Ed25519 => "Ed25519".to_owned(),
        }
    }

    /// The kind with this name: `RSA-2048`, `RSA-3072`, `RSA-4096`, `ECDSA-P256` or `Ed25519`.
    ///
    /// # Errors
    /// For any other name. The text lists the names.
    pub fn parse(name: &str) -> Result<KeyKind, String> {
        match name.to_ascii_lowercase().as_str() {
            "rsa-2048" | "rsa" => Ok(KeyKind::Rsa(2048)),
            "rsa-3072" => Ok(KeyKind::Rsa(3072)),
            "rsa-4096" => Ok(KeyKind::Rsa(4096)),
            "ecdsa-p256" | "ecdsa" => Ok(KeyKind::EcdsaP256),
            "ed25519" => Ok(KeyKind::Ed25519),
            _ => Err(format!(
                "\"{name}\" is no kind of keys; there are RSA-2048, RSA-3072, RSA-4096, ECDSA-P256 and Ed25519"
            )),
        }
    }
}

/// When certificates are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// Always, for all practical purposes: certificates of tests must not expire.
    #[default]
    Always,
    /// In the past only, for tests of devices and robots.
    Expired,
    /// In the far future only.
    NotYet,
}

/// What is wrong with the certificates of a server on purpose, to see whether a device refuses them. Everything else about them is
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CertificateFault {
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It is for another name.
    WrongName,
    /// An authority signed it that nobody knows.
    UnknownAuthority,
    /// Its own key signed it.
    SelfSigned,
}

impl CertificateFault {
    const ALL: [CertificateFault; 5] = [
        CertificateFault::Expired,
        CertificateFault::NotYetValid,
        CertificateFault::WrongName,
        CertificateFault::UnknownAuthority,
        CertificateFault::SelfSigned,
    ];

    /// The name in workloads.
    pub fn name(self) -> &'static str {
        match self {
            CertificateFault::Expired => "expired",
            CertificateFault::NotYetValid => "not_yet_valid",
            CertificateFault::WrongName => "wrong_name",
            CertificateFault::UnknownAuthority => "unknown_authority",
            CertificateFault::SelfSigned => "self_signed",
        }
    }

    /// What to say of the certificate, as the end of a sentence about it.
    pub fn text(self) -> &'static str {
        match self {
            CertificateFault::Expired => "has expired",
            CertificateFault::NotYetValid => "is not valid yet",
            CertificateFault::WrongName => "is for another name",
            CertificateFault::UnknownAuthority => "is of an unknown authority",
            CertificateFault::SelfSigned => "is self-signed",
        }
    }

    /// The fault with this name.
    ///
    /// # Errors
    /// For any other name. The text lists the names.
    pub fn parse(name: &str) -> Result<CertificateFault, String> {
        CertificateFault::ALL.into_iter().find(|fault| fault.name() == name).ok_or_else(|| {
            let names = CertificateFault::ALL.map(CertificateFault::name).join(", ");
            format!("\"{name}\" is no fault of a certificate; there are {names}")
        })
    }

    /// Why a robot that checks certificates refuses the certificate.
    pub fn refusal(self) -> ErrorKind {
        match self {
            CertificateFault::Expired | CertificateFault::NotYetValid => ErrorKind::CertificateDates,
            CertificateFault::WrongName => ErrorKind::CertificateName,
            CertificateFault::UnknownAuthority | CertificateFault::SelfSigned => ErrorKind::CertificateIssuer,
        }
    }
}

/// What a side offers or accepts. An agent draws its choice once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsOffer {
    /// Sets of versions; empty: both.
    pub versions: Selector<Vec<Version>>,
    /// Sets of cipher suites by their registered number, the preferred ones first; an empty set stands for all.
    pub ciphers: Selector<Vec<u16>>,
    /// Groups for the key exchange by their registered number, the preferred ones first. Empty: the default of the
    /// library.
    pub groups: Vec<u16>,
    /// Protocols of applications, the preferred ones first (RFC 7301). Empty: the extension is not used.
    pub alpn: Vec<String>,
}

impl TlsOffer {
    /// The field of a `SslWrap` that keeps some or all agents from using TLS 1.3, if there is one.
    pub fn field_without_tls13(&self) -> Option<&'static str> {
        let allows = |versions: &Vec<Version>| versions.is_empty() || versions.contains(&Version::Tls13);
        let fits =
            |ciphers: &Vec<u16>| ciphers.is_empty() || ciphers.iter().any(|code| is_tls13_cipher(*code));
        if !self.versions.items().iter().all(allows) {
            Some("protocols")
        } else if !self.ciphers.items().iter().all(fits) {
            Some("ciphers")
        } else {
            None
        }
    }
}

/// The settings of robots for one kind of peer: a `SslWrap` of a `Robot`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientTls {
    /// Versions, ciphers and so on.
    pub offer: TlsOffer,
    /// Certificates of authorities in DER.
    pub roots: Vec<Vec<u8>>,
    /// Whether robots check certificates against [`ClientTls::roots`] and against the name of the peer.
    pub verify: bool,
    /// Certificates of robots, which take them in turn, for peers that ask for one.
    pub identities: Vec<Identity>,
    /// Probability (0 to 1) of offering to resume a session, if there is one.
    pub resumption: f64,
    /// Maximum number of peers whose sessions a robot keeps; `None`: no limit.
    pub cache: Option<usize>,
    /// Whether robots send the first request of a resumed session before the handshake is complete (0-RTT).
    pub early_data: bool,
}

/// The settings of servers: a `SslWrap` of a `Server`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerTls {
    /// Versions, ciphers and so on.
    pub offer: TlsOffer,
    /// Existing certificates, which servers take in turn.
    pub identities: Vec<Identity>,
    /// The authority that signs generated certificates. With it, servers make a certificate for each name that clients
    /// ask for.
    pub authority: Option<Identity>,
    /// What is wrong with generated certificates on purpose. An unknown authority is [`ServerTls::authority`].
    pub fault: Option<CertificateFault>,
    /// The private keys in PKCS #8 of generated certificates. A server draws its key once.
    pub keys: Selector<Vec<u8>>,
    /// The secret with which servers protect session tickets, so that all processes of the test can resume a session;
    /// `None`: sessions are in [`ServerTls::cache`].
    pub ticket_secret: Option<[u8; 32]>,
    /// Maximum number of sessions in the cache of a server and loop; 0 for none.
    pub cache: usize,
    /// Maximum number of bytes of early data; 0 for none.
    pub early_data: u32,
    /// The authorities of client certificates in DER. Empty: servers ask for none.
    pub client_roots: Vec<Vec<u8>>,
}

impl ServerTls {
    /// The settings of a server of HTTP/2 and HTTP/1.1 with this certificate. Sessions can be resumed by tickets, which
    /// `ticket_secret` protects.
    pub fn of_web_server(identity: Identity, ticket_secret: [u8; 32]) -> ServerTls {
        let alpn = ["h2", "http/1.1"].map(str::to_owned).into();
        ServerTls {
            offer: TlsOffer { alpn, ..TlsOffer::default() },
            identities: vec![identity],
            ticket_secret: Some(ticket_secret),
            ..ServerTls::default()
        }
    }
}
