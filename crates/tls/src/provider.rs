//! The cryptography that a connection may use.

use std::sync::Arc;

use polygraph_traffic::{Selector, Stream};
use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::version::{TLS12, TLS13};

use crate::failure::{FailureKind, TlsFailure};
use crate::names::{Version, cipher_rank};
use crate::settings::TlsOffer;

/// What an agent offers or accepts: one choice of each selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DrawnOffer {
    versions: Vec<Version>,
    ciphers: Vec<u16>,
}

impl DrawnOffer {
    /// Draws the choice of an agent.
    pub fn draw(offer: &TlsOffer, rng: &mut Stream) -> DrawnOffer {
        fn one<T: Clone + Default>(of: &Selector<T>, rng: &mut Stream) -> T {
            of.draw(rng).cloned().unwrap_or_default()
        }
        DrawnOffer { versions: one(&offer.versions, rng), ciphers: one(&offer.ciphers, rng) }
    }

    /// The protocol versions.
    pub fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let all = if self.versions.is_empty() { &Version::ALL[..] } else { &self.versions };
        let version = |version: &Version| match version {
            Version::Tls12 => &TLS12,
            Version::Tls13 => &TLS13,
        };
        all.iter().map(version).collect()
    }

    /// The cipher suites and groups.
    ///
    /// # Errors
    /// If no cipher suite belongs to one of the versions, or a group is not supported.
    pub fn provider(&self, groups: &[u16]) -> Result<Arc<CryptoProvider>, TlsFailure> {
        let mut provider = aws_lc_rs::default_provider();
        if self.ciphers.is_empty() {
            provider.cipher_suites.sort_by_key(|suite| cipher_rank(suite.suite().into()));
        } else {
            let all = provider.cipher_suites;
            let find = |code: &u16| all.iter().find(|suite| u16::from(suite.suite()) == *code).copied();
            provider.cipher_suites = self.ciphers.iter().filter_map(find).collect();
        }
        let versions = self.versions();
        provider.cipher_suites.retain(|suite| versions.iter().any(|version| suite.version() == *version));
        if provider.cipher_suites.is_empty() {
            let text = "no cipher suite of `ciphers` belongs to a version of `protocols`";
            return Err(TlsFailure::new(FailureKind::NothingInCommon, text));
        }
        if !groups.is_empty() {
            let find = |code: &u16| {
                aws_lc_rs::ALL_KX_GROUPS.iter().find(|group| u16::from(group.name()) == *code).copied()
            };
            provider.kx_groups = groups.iter().filter_map(find).collect();
        }
        if provider.kx_groups.is_empty() {
            return Err(TlsFailure::new(FailureKind::NothingInCommon, "no group is supported"));
        }
        Ok(Arc::new(provider))
    }

    /// The versions for which there is a cipher suite: rustls refuses a version without one.
    pub fn usable_versions(&self, provider: &CryptoProvider) -> Vec<&'static SupportedProtocolVersion> {
        let mut versions = self.versions();
        versions.retain(|version| provider.cipher_suites.iter().any(|suite| suite.version() == *version));
        versions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_have_the_order_of_browsers_unless_the_offer_has_another() {
        let offered = |ciphers: &[u16]| -> Vec<u16> {
            let offer = DrawnOffer { versions: Vec::new(), ciphers: ciphers.to_vec() };
            let provider = offer.provider(&[]).unwrap();
            provider.cipher_suites.iter().map(|suite| suite.suite().into()).collect()
        };
        let usual = [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xcca9, 0xc02f, 0xc030, 0xcca8];
        assert_eq!(offered(&[]), usual);
        assert_eq!(offered(&[0x1303, 0xc030, 0x1301]), [0x1303, 0xc030, 0x1301]);
    }
}
