//! Certificates and keys in text form (RFC 7468).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::settings::Identity;

/// What a file of certificates and keys contains, in the order of the file, in DER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PemFile {
    /// Certificates in DER, in the order of the file.
    pub certificates: Vec<Vec<u8>>,
    /// Private keys in DER, in the order of the file.
    pub keys: Vec<Vec<u8>>,
}

impl PemFile {
    /// Reads a file. Parts with other labels are skipped.
    ///
    /// # Errors
    /// If a part does not end or is not base64, or if a key is encrypted.
    pub fn parse(text: &str) -> Result<PemFile, String> {
        let mut file = PemFile::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let label = line.trim().strip_prefix("-----BEGIN ").and_then(|line| line.strip_suffix("-----"));
            let Some(label) = label else { continue };
            let end = format!("-----END {label}-----");
            let mut body = String::new();
            loop {
                let line = lines.next().ok_or_else(|| format!("the part `{label}` does not end"))?.trim();
                if line == end {
                    break;
                }
                if line.starts_with("Proc-Type:") || line.starts_with("DEK-Info:") {
                    return Err(format!("the part `{label}` is encrypted; remove the password"));
                }
                body.push_str(line);
            }
            let bytes =
                STANDARD.decode(&body).map_err(|e| format!("the part `{label}` is not base64: {e}"))?;
            match label {
                "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => file.certificates.push(bytes),
                "ENCRYPTED PRIVATE KEY" => {
                    return Err("the private key is encrypted; remove the password".into());
                }
                "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY" => file.keys.push(bytes),
                _ => {}
            }
        }
        Ok(file)
    }

    /// The certificate chain with its key.
    ///
    /// # Errors
    /// If there is no certificate, or not exactly one key.
    pub fn identity(self) -> Result<Identity, String> {
        let PemFile { certificates: chain, mut keys } = self;
        match (chain.is_empty(), keys.len()) {
            (true, _) => Err("no certificate in it (BEGIN CERTIFICATE)".into()),
            (false, 1) => Ok(Identity { chain, key: keys.remove(0) }),
            (false, 0) => Err("no private key in it (BEGIN PRIVATE KEY); append the key to the file".into()),
            (false, n) => Err(format!("{n} private keys in it instead of one")),
        }
    }
}

/// The text form of a part with this label.
pub fn text(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The text form of an identity: certificates, then the key in PKCS #8.
pub fn identity_text(identity: &Identity) -> String {
    let certificates = identity.chain.iter().map(|certificate| text("CERTIFICATE", certificate));
    certificates.chain([text("PRIVATE KEY", &identity.key)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(chain in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..99), 1..4), key: Vec<u8>) {
            let identity = Identity { chain, key };
            let read = PemFile::parse(&identity_text(&identity)).unwrap().identity();
            prop_assert_eq!(read, Ok(identity));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(-----(BEGIN|END) [A-Z ]{0,12}-----\n|[a-z=]{0,9}\n|\\PC{0,9}){0,9}") {
            let _ = PemFile::parse(&text);
        }
    }

    #[test]
    fn problems_are_named() {
        let parse = |text: &str| PemFile::parse(text).and_then(PemFile::identity).unwrap_err();
        assert!(parse("").contains("no certificate"));
        assert!(parse(&text("CERTIFICATE", b"x")).contains("append the key"));
        assert!(parse("-----BEGIN PRIVATE KEY-----\nAAAA").contains("does not end"));
        assert!(parse("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----").contains("base64"));
        assert!(parse(&text("ENCRYPTED PRIVATE KEY", b"x")).contains("encrypted"));
    }
}
