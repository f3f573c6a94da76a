//! Why a TLS connection failed.

use std::error::Error;
use std::io;

use polygraph_stats::ErrorKind;
use polygraph_stats::tls::TlsStats;

use crate::names::alert_name;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// What the peer sent is not TLS.
    NotTls,
    /// The two sides have no version, cipher suite, group or application protocol in common.
    NothingInCommon,
    /// The certificate is valid for other names than that of the peer.
    WrongName,
    /// The certificate has expired, or is not valid yet.
    NotValidNow,
    /// No trusted authority issued the certificate.
    UnknownAuthority,
    /// The certificate is that of an authority.
    AuthorityCertificate,
    /// The certificate is unusable for another reason.
    BadCertificate,
    /// The peer ended the connection with an alert.
    Refused,
    /// The connection ended during the handshake.
    Closed,
    /// The peer broke a rule of the protocol.
    Protocol,
}

impl FailureKind {
    /// The class in the catalogue of errors.
    pub fn class(self) -> ErrorKind {
        match self {
            FailureKind::Protocol => ErrorKind::TlsProtocol,
            FailureKind::NotTls => ErrorKind::NotTls,
            FailureKind::NothingInCommon => ErrorKind::TlsNothingInCommon,
            FailureKind::WrongName => ErrorKind::CertificateName,
            FailureKind::NotValidNow => ErrorKind::CertificateDates,
            FailureKind::UnknownAuthority => ErrorKind::CertificateIssuer,
            FailureKind::AuthorityCertificate => ErrorKind::AuthorityCertificate,
            FailureKind::BadCertificate => ErrorKind::BadCertificate,
            FailureKind::Refused => ErrorKind::TlsRefused,
            FailureKind::Closed => ErrorKind::TlsClosed,
        }
    }
}

/// Why a TLS connection failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct TlsFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// A description for people.
    pub text: String,
    /// The alert of the peer (RFC 8446, section 6), if it sent one.
    pub alert: Option<u8>,
}

impl TlsFailure {
    /// A failure without an alert.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> TlsFailure {
        TlsFailure { kind, text: text.into(), alert: None }
    }

    /// The failure because of an alert of the peer.
    pub fn alert(code: u8) -> TlsFailure {
        let kind = match code {
            // The handshake failed because of what this side offered.
            40 | 70 | 71 | 86 | 120 => FailureKind::NothingInCommon,
            _ => FailureKind::Refused,
        };
        let name = alert_name(code).map_or_else(|| code.to_string(), str::to_owned);
        TlsFailure { kind, text: format!("the peer sent the alert {name}"), alert: Some(code) }
    }

    /// Whether the peer broke the handshake off although both sides have enough in common: it may not like the certificate.
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind, FailureKind::Refused | FailureKind::Closed)
    }

    /// Counts the alert of the peer, if it sent one.
    pub fn count_alert(&self, stats: &mut TlsStats) {
        if let Some(code) = self.alert {
            stats.alerts.add(u16::from(code), 1);
        }
    }

    /// The failure in an error of a connection, if it is one of TLS, or of a stream of such a connection.
    pub fn of(error: &io::Error) -> Option<&TlsFailure> {
        let mut cause: &(dyn Error + 'static) = error.get_ref()?;
        loop {
            if let Some(failure) = cause.downcast_ref() {
                return Some(failure);
            }
            cause = cause.source()?;
        }
    }
}

impl From<TlsFailure> for io::Error {
    fn from(failure: TlsFailure) -> io::Error {
        let kind = match failure.kind {
            FailureKind::Closed => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, failure)
    }
}

#[cfg(feature = "rustls")]
impl From<rustls::Error> for TlsFailure {
    fn from(error: rustls::Error) -> TlsFailure {
        use rustls::{CertificateError as C, Error as E, InvalidMessage};
        let kind = match &error {
            E::AlertReceived(alert) => return TlsFailure::alert(u8::from(*alert)),
            E::PeerIncompatible(_) | E::NoApplicationProtocol => FailureKind::NothingInCommon,
            E::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => FailureKind::NotTls,
            E::InvalidCertificate(problem) => match problem {
                C::Expired | C::ExpiredContext { .. } | C::NotValidYet | C::NotValidYetContext { .. } => {
                    FailureKind::NotValidNow
                }
                C::NotValidForName | C::NotValidForNameContext { .. } => FailureKind::WrongName,
                // The signature is wrong, or made with another algorithm, if a trusted authority has the name of the issuer but
                // another key.
                C::UnknownIssuer
                | C::BadSignature
                | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => FailureKind::UnknownAuthority,
                _ => FailureKind::BadCertificate,
            },
            E::NoCertificatesPresented => FailureKind::BadCertificate,
            _ => FailureKind::Protocol,
        };
        let text = error.to_string();
        // The library has no value of its own for it.
        if text.contains("CaUsedAsEndEntity") {
            let text = "the peer uses the certificate of an authority (CA:TRUE) as its own: make one for the peer without that (`openssl req \
                        -x509 ... -addext basicConstraints=critical,CA:FALSE`), or let the authority sign one (`polygraph certs`)";
            return TlsFailure::new(FailureKind::AuthorityCertificate, text);
        }
        TlsFailure::new(kind, text)
    }
}
