//! Makes certificates: an authority, and certificates that it signs.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize,
    SanType, date_time_ymd,
};
use rustls::pki_types::PrivateKeyDer;

use crate::certificate;
use crate::settings::{Identity, KeyKind, Validity};

fn problem(error: rcgen::Error) -> String {
    error.to_string()
}

/// Makes a private key, in PKCS #8.
///
/// # Errors
/// If the library refuses the kind, for example the key size.
pub fn make_key(kind: KeyKind) -> Result<Vec<u8>, String> {
    let pair = match kind {
        KeyKind::Rsa(2048) => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyKind::Rsa(3072) => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        KeyKind::Rsa(4096) => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        KeyKind::Rsa(bits) => return Err(format!("RSA keys have 2048, 3072 or 4096 bits, not {bits}")),
        KeyKind::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyKind::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
    };
    Ok(pair.map_err(problem)?.serialize_der())
}

/// Makes an authority with this common name.
///
/// # Errors
/// As [`make_key`].
pub fn make_authority(name: &str, kind: KeyKind) -> Result<Identity, String> {
    let pair = key_pair(&make_key(kind)?)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let certificate = params.self_signed(&pair).map_err(problem)?;
    Ok(Identity { chain: vec![certificate.der().to_vec()], key: pair.serialize_der() })
}

fn key_pair(der: &[u8]) -> Result<KeyPair, String> {
    let key = PrivateKeyDer::try_from(der).map_err(|e| format!("the private key: {e}"))?;
    KeyPair::try_from(&key).map_err(|e| format!("the private key: {e}"))
}

/// An authority that signs certificates.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Certificates above the signed ones, except for a root.
    above: Vec<Vec<u8>>,
}

impl Authority {
    /// The authority with this certificate and key.
    ///
    /// # Errors
    /// If certificate or key cannot be read.
    pub fn new(identity: &Identity) -> Result<Authority, String> {
        let first = identity.chain.first().ok_or("the authority has no certificate")?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name_of(first)?;
        let issuer = Issuer::new(params, key_pair(&identity.key)?);
        // Clients have the root; an authority below another one must be sent.
        let above = if identity.chain.len() > 1 { identity.chain.clone() } else { Vec::new() };
        Ok(Authority { issuer, above })
    }

    /// Signs a certificate for these names and addresses and the public key of `key` (PKCS #8). The first name is also the common
    /// name, if it is short enough. The chain includes the authority's own certificate unless it is a root.
    ///
    /// # Errors
    /// If a name cannot be part of a certificate, or the key cannot be read.
    pub fn sign(&self, names: &[String], key: &[u8], validity: Validity) -> Result<Identity, String> {
        let certificate =
            certificate_for(names, validity)?.signed_by(&key_pair(key)?, &self.issuer).map_err(problem)?;
        let chain = [vec![certificate.der().to_vec()], self.above.clone()].concat();
        Ok(Identity { chain, key: key.to_vec() })
    }
}

/// Signs a certificate for these names and addresses with its own key (PKCS #8).
///
/// # Errors
/// If a name cannot be part of a certificate, or the key cannot be read.
pub fn sign_with_own_key(names: &[String], key: &[u8]) -> Result<Identity, String> {
    let certificate =
        certificate_for(names, Validity::Always)?.self_signed(&key_pair(key)?).map_err(problem)?;
    Ok(Identity { chain: vec![certificate.der().to_vec()], key: key.to_vec() })
}

/// A certificate for these names and addresses, before it is signed.
fn certificate_for(names: &[String], validity: Validity) -> Result<CertificateParams, String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // A common name has at most 64 characters (RFC 5280, appendix A.1).
    let common = names.first().filter(|name| name.len() <= 64).map_or("polygraph", String::as_str);
    params.distinguished_name.push(DnType::CommonName, common);
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) => SanType::DnsName(name.as_str().try_into().map_err(|_| format!("the name {name}"))?),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = false;
    match validity {
        Validity::Always => {}
        Validity::Expired => {
            (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        }
        Validity::NotYet => {
            (params.not_before, params.not_after) = (date_time_ymd(2200, 1, 1), date_time_ymd(2201, 1, 1));
        }
    }
    Ok(params)
}

/// The subject of a certificate with the same encoding, because the issuer of what it signs must equal it byte by byte.
fn name_of(certificate: &[u8]) -> Result<DistinguishedName, String> {
    let unreadable = || "the subject of the authority's certificate cannot be read".to_owned();
    let mut name = DistinguishedName::new();
    for attribute in certificate::subject(certificate).ok_or_else(unreadable)? {
        let text = std::str::from_utf8(attribute.value).map_err(|_| unreadable())?;
        let value = match attribute.tag {
            0x0c => DnValue::Utf8String(text.to_owned()),
            0x13 => DnValue::PrintableString(text.try_into().map_err(|_| unreadable())?),
            0x16 => DnValue::Ia5String(text.try_into().map_err(|_| unreadable())?),
            0x14 => DnValue::TeletexString(text.try_into().map_err(|_| unreadable())?),
            _ => return Err(unreadable()),
        };
        let kind = oid(attribute.oid).ok_or_else(unreadable)?;
        name.push(dn_type(&kind), value);
    }
    Ok(name)
}

fn dn_type(oid: &[u64]) -> DnType {
    match oid {
        [2, 5, 4, 3] => DnType::CommonName,
        [2, 5, 4, 6] => DnType::CountryName,
        [2, 5, 4, 7] => DnType::LocalityName,
        [2, 5, 4, 8] => DnType::StateOrProvinceName,
        [2, 5, 4, 10] => DnType::OrganizationName,
        [2, 5, 4, 11] => DnType::OrganizationalUnitName,
        other => DnType::CustomDnType(other.to_vec()),
    }
}

/// The numbers of an object identifier in DER (X.690, section 8.19).
fn oid(content: &[u8]) -> Option<Vec<u64>> {
    let (&first, rest) = content.split_first()?;
    let mut numbers = vec![u64::from(first / 40), u64::from(first % 40)];
    let mut number = 0u64;
    for &byte in rest {
        number = number.checked_mul(128)? + u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    Some(numbers)
}

/// As [`Authority::sign`], by an authority that is read for this once.
///
/// # Errors
/// As [`Authority::new`] and [`Authority::sign`].
pub fn sign(
    authority: &Identity,
    names: &[String],
    key: &[u8],
    validity: Validity,
) -> Result<Identity, String> {
    Authority::new(authority)?.sign(names, key, validity)
}
