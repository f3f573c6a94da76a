//! The names of what two sides of a TLS connection agree on.
//!
//! Numbers and names are those of the IANA registry "Transport Layer Security (TLS) Parameters". Cipher suites can also
//! be written as in OpenSSL, because that is how most devices are configured.

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// All supported versions, the oldest first.
    pub const ALL: [Version; 2] = [Version::Tls12, Version::Tls13];

    /// The registered number.
    pub fn code(self) -> u16 {
        match self {
            Version::Tls12 => 0x0303,
            Version::Tls13 => 0x0304,
        }
    }

    /// The name in workloads and figures.
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }
}

/// A name in the registry, and the name in OpenSSL if it is another one.
struct Entry {
    code: u16,
    name: &'static str,
    openssl: &'static str,
}

const fn entry(code: u16, name: &'static str, openssl: &'static str) -> Entry {
    Entry { code, name, openssl }
}

/// Supported cipher suites, in the order in which clients prefer them: that of browsers, with AES-128 before AES-256.
const CIPHERS: &[Entry] = &[
    entry(0x1301, "TLS_AES_128_GCM_SHA256", "TLS13_AES_128_GCM_SHA256"),
    entry(0x1302, "TLS_AES_256_GCM_SHA384", "TLS13_AES_256_GCM_SHA384"),
    entry(0x1303, "TLS_CHACHA20_POLY1305_SHA256", "TLS13_CHACHA20_POLY1305_SHA256"),
    entry(0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    entry(0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    entry(0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    entry(0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    entry(0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    entry(0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
];

/// Supported groups for the key exchange, in the order in which clients prefer them.
const GROUPS: &[Entry] = &[
    entry(0x11ec, "X25519MLKEM768", "X25519MLKEM768"),
    entry(0x001d, "x25519", "X25519"),
    entry(0x0017, "secp256r1", "P-256"),
    entry(0x0018, "secp384r1", "P-384"),
    entry(0x11eb, "SecP256r1MLKEM768", "SecP256r1MLKEM768"),
    entry(0x0201, "MLKEM768", "MLKEM768"),
];

/// Parts of the names of cipher suites that are not supported because they are broken or were never used.
const OLD_CIPHERS: &[&str] =
    &["RC4", "DES", "MD5", "NULL", "EXP", "CBC", "SSL", "ADH", "IDEA", "SEED", "CAMELLIA"];

fn find(table: &[Entry], name: &str) -> Option<u16> {
    let fits =
        |entry: &&Entry| name.eq_ignore_ascii_case(entry.name) || name.eq_ignore_ascii_case(entry.openssl);
    table.iter().find(fits).map(|entry| entry.code)
}

fn name_of(table: &[Entry], code: u16) -> Option<&'static str> {
    table.iter().find(|entry| entry.code == code).map(|entry| entry.name)
}

fn names(table: &[Entry]) -> String {
    table.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// The name of a cipher suite; `None` if it is not supported.
pub fn cipher_name(code: u16) -> Option<&'static str> {
    name_of(CIPHERS, code)
}

/// The place of a cipher suite in the order in which clients prefer them.
#[cfg(feature = "rustls")]
pub(crate) fn cipher_rank(code: u16) -> usize {
    CIPHERS.iter().position(|entry| entry.code == code).unwrap_or(CIPHERS.len())
}

/// Whether a cipher suite is one of TLS 1.3, which are none of earlier versions (RFC 8446, appendix B.4).
pub fn is_tls13_cipher(code: u16) -> bool {
    code >> 8 == 0x13
}

/// The name of a group; `None` if it is not supported.
pub fn group_name(code: u16) -> Option<&'static str> {
    name_of(GROUPS, code)
}

/// The versions that an item of `protocols` of a workload allows: `TLSv1.2`, `TLSv1.3`, or `any` for both.
///
/// # Errors
/// For any other word. The text says what to write instead.
pub fn versions(word: &str) -> Result<Vec<Version>, String> {
    match word {
        "any" => Ok(Version::ALL.to_vec()),
        "TLSv1.2" => Ok(vec![Version::Tls12]),
        "TLSv1.3" => Ok(vec![Version::Tls13]),
        "SSLv2" | "SSLv3" | "TLSv1" | "TLSv1.0" | "TLSv1.1" => Err(format!(
            "{word} is obsolete and insecure (RFC 8996); write \"TLSv1.2\", \"TLSv1.3\", or \"any\" for both"
        )),
        _ => {
            Err(format!("\"{word}\" is no TLS version; write \"TLSv1.2\", \"TLSv1.3\", or \"any\" for both"))
        }
    }
}

/// The cipher suites that an item of `ciphers` of a workload allows: names that are separated by colons, or `ALL`, which
/// is an empty list.
///
/// # Errors
/// If a name is unknown or stands for a cipher that is not supported any more. The text says what to write instead.
pub fn ciphers(words: &str) -> Result<Vec<u16>, String> {
    let mut all = Vec::new();
    for word in words.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        if word == "ALL" || word == "DEFAULT" || word == "HIGH" {
            return Ok(Vec::new());
        }
        if let Some(code) = find(CIPHERS, word) {
            all.push(code);
            continue;
        }
        let upper = word.to_ascii_uppercase();
        let problem = match OLD_CIPHERS.iter().any(|old| upper.contains(old)) || upper.ends_with("SHA") {
            true => "is obsolete and insecure (RFC 9325)",
            false => "is no cipher suite that this program supports",
        };
        return Err(format!("the cipher {word} {problem}; write \"ALL\", or some of {}", names(CIPHERS)));
    }
    match all.is_empty() {
        true => Err(format!("the list of ciphers is empty; write \"ALL\", or some of {}", names(CIPHERS))),
        false => Ok(all),
    }
}

/// The group with this name.
///
/// # Errors
/// If there is none. The text lists the names.
pub fn group(word: &str) -> Result<u16, String> {
    find(GROUPS, word)
        .ok_or_else(|| format!("\"{word}\" is no group for the key exchange; there are {}", names(GROUPS)))
}

/// The name of an alert (RFC 8446, section 6, and earlier versions), as in `bad_certificate`; `None` if the code is unknown.
pub fn alert_name(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_are_errors_that_say_what_to_write() {
        for old in ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1"] {
            let error = versions(old).unwrap_err();
            assert!(error.contains(old) && error.contains("write \"TLSv1.2\""), "{error}");
        }
        for old in ["RC4-MD5", "DES-CBC3-SHA", "AES128-SHA", "NULL-SHA256", "ALL:RC4"] {
            let error = ciphers(old.trim_start_matches("ALL:")).unwrap_err();
            assert!(error.contains("obsolete") && error.contains("TLS_AES_128_GCM_SHA256"), "{error}");
        }
        assert!(ciphers("AES").unwrap_err().contains("supports"));
        assert!(ciphers("").unwrap_err().contains("empty"));
    }

    #[test]
    fn names_of_both_kinds_are_known() {
        assert_eq!(ciphers("ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_256_GCM_SHA384"), Ok(vec![0xc02f, 0x1302]));
        assert_eq!(ciphers("ALL"), Ok(Vec::new()));
        assert_eq!((group("X25519"), group("prime").is_err()), (Ok(0x001d), true));
        assert_eq!((group("P-256"), group_name(0x17)), (Ok(0x0017), Some("secp256r1")));
        assert_eq!(versions("any").unwrap(), Version::ALL);
        assert_eq!(alert_name(48), Some("unknown_ca"));
        assert_eq!(CIPHERS.iter().filter(|entry| is_tls13_cipher(entry.code)).count(), 3);
    }
}
