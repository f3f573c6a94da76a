//! Checks the certificates of servers, or leaves that out.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::staple::Staple;

thread_local! {
    /// What the OCSP response says that came with the certificate that was checked last on this thread. The library does not keep it.
    static STAPLE: RefCell<Option<Staple>> = const { RefCell::new(None) };
}

/// What an OCSP response says that came with a certificate that was checked since the last call.
pub fn take_staple() -> Option<Staple> {
    STAPLE.take()
}

/// The check of a server's certificate. The signature of the handshake is always verified.
#[derive(Debug)]
pub struct PeerVerifier {
    /// The check of names, dates and issuers; `None` leaves it out.
    pub webpki: Option<Arc<WebPkiServerVerifier>>,
    /// The signature algorithms.
    pub provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let read = || Staple::read(ocsp_response, end_entity, now.as_secs());
        STAPLE.set((!ocsp_response.is_empty()).then(read));
        match &self.webpki {
            Some(webpki) => {
                webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
