//! Certificates that servers make while they run: one for each name that a client asks for (RFC 6066, section 3).

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};

use crate::authority::{Authority, sign_with_own_key};
use crate::failure::{FailureKind, TlsFailure};
use crate::settings::{CertificateFault, Identity, Validity};

/// Maximum number of certificates that are kept. Names come from clients.
const MAX_KEPT: usize = 20_000;
/// The name in certificates that are for another name than that of the server. No host has it (RFC 6761, section 6.4).
const WRONG_NAME: &str = "wrong-name.invalid";

fn unusable(problem: impl ToString) -> TlsFailure {
    TlsFailure::new(FailureKind::BadCertificate, problem.to_string())
}

/// The signing key of a private key in DER.
fn signing_key(key: &[u8]) -> Result<Arc<dyn SigningKey>, TlsFailure> {
    let key = PrivateKeyDer::try_from(key).map_err(unusable)?;
    Ok(any_supported_type(&key)?)
}

fn chain_of(identity: &Identity) -> Vec<CertificateDer<'static>> {
    identity.chain.iter().map(|certificate| CertificateDer::from(certificate.clone())).collect()
}

/// An existing certificate with its key.
///
/// # Errors
/// If the key cannot be read or does not belong to the certificate.
pub fn certified(identity: &Identity) -> Result<Arc<CertifiedKey>, TlsFailure> {
    let certified = CertifiedKey::new(chain_of(identity), signing_key(&identity.key)?);
    certified.keys_match()?;
    Ok(Arc::new(certified))
}

/// Makes certificates for one private key.
#[derive(Debug)]
pub struct Mint {
    authority: Authority,
    fault: Option<CertificateFault>,
    key: Vec<u8>,
    signing_key: Arc<dyn SigningKey>,
    made: Mutex<FxHashMap<String, Arc<CertifiedKey>>>,
}

impl Mint {
    /// A mint for this authority and key (PKCS #8), whose certificates have a fault or none.
    ///
    /// # Errors
    /// If authority or key cannot be read.
    pub fn new(
        authority: &Identity,
        key: &[u8],
        fault: Option<CertificateFault>,
    ) -> Result<Mint, TlsFailure> {
        Ok(Mint {
            authority: Authority::new(authority).map_err(unusable)?,
            fault,
            signing_key: signing_key(key)?,
            key: key.to_vec(),
            made: Mutex::default(),
        })
    }

    /// The certificate for a name or an address; `None` if no certificate can have this name.
    pub fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(name) {
            return Some(Arc::clone(known));
        }
        let sign = |name: &str, validity| self.authority.sign(&[name.to_owned()], &self.key, validity);
        let signed = match self.fault {
            // Nobody knows the authority anyway.
            None | Some(CertificateFault::UnknownAuthority) => sign(name, Validity::Always),
            Some(CertificateFault::Expired) => sign(name, Validity::Expired),
            Some(CertificateFault::NotYetValid) => sign(name, Validity::NotYet),
            Some(CertificateFault::WrongName) => sign(WRONG_NAME, Validity::Always),
            Some(CertificateFault::SelfSigned) => sign_with_own_key(&[name.to_owned()], &self.key),
        };
        let signed = signed.ok()?;
        let certified = Arc::new(CertifiedKey::new(chain_of(&signed), Arc::clone(&self.signing_key)));
        if made.len() < MAX_KEPT {
            made.insert(name.to_owned(), Arc::clone(&certified));
        }
        Some(certified)
    }
}

/// The certificates of one server.
#[derive(Debug)]
pub enum ServerCertificates {
    /// The same for all names.
    Fixed(Arc<CertifiedKey>),
    /// One for each name; the second part is the server's own address, for clients that ask for no name.
    Minted(Arc<Mint>, String),
}

impl ResolvesServerCert for ServerCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match self {
            ServerCertificates::Fixed(certified) => Some(Arc::clone(certified)),
            ServerCertificates::Minted(mint, own) => mint.certificate(hello.server_name().unwrap_or(own)),
        }
    }
}
