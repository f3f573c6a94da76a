//! Classes of errors: what can go wrong with a transaction, under stable numbers and names.
//!
//! Numbers below `c200` are those of Web Polygraph, numbers from `c201` on are added by this program, and `sN` are error
//! numbers of the operating system. Logs identify a class by its [`ErrorKind::code`], so the order of the catalogue may change.

use std::ops::Index;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod catalogue;

pub use catalogue::ErrorKind;

/// The sides that count an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Only robots count it.
    Client,
    /// Only servers count it.
    Server,
    /// Robots and servers count it.
    Both,
}

impl Sides {
    /// The name of the sides for people.
    pub fn name(self) -> &'static str {
        match self {
            Sides::Client => "client",
            Sides::Server => "server",
            Sides::Both => "client or server",
        }
    }
}

/// The part of the test that an error is evidence against, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// The device delivered content that is not what the server made for this request.
    Content,
    /// The device broke a rule of HTTP caching (RFC 9111).
    Caching,
    /// The device sent a malformed message or broke a connection; its speed does not matter.
    Message,
    /// The device or a server refused or granted access wrongly.
    Access,
    /// The device took too long, unless the bench itself was slow.
    Slow,
    /// The name server that robots query gave no usable answer.
    Names,
    /// The key distribution centre (KDC) that robots ask for tickets gave none.
    Tickets,
    /// The network between the hosts failed.
    Network,
    /// The bench or its configuration is at fault.
    Bench,
}

impl Nature {
    /// The name of the nature in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Nature::Content => "content",
            Nature::Caching => "caching",
            Nature::Message => "message",
            Nature::Access => "access",
            Nature::Slow => "slow",
            Nature::Names => "names",
            Nature::Tickets => "tickets",
            Nature::Network => "network",
            Nature::Bench => "bench",
        }
    }
}

/// The fixed properties of an error class.
struct CatalogueEntry {
    kind: ErrorKind,
    code: u16,
    number: &'static str,
    name: &'static str,
    sides: Sides,
    fails: bool,
    nature: Nature,
    text: &'static str,
    hint: &'static str,
}

/// The code of operating system error 0; error N has this code plus N.
const SYSTEM: u16 = 0x8000;

const fn code(family: &str, number: u16) -> u16 {
    if family.as_bytes()[0] == b's' { SYSTEM + number } else { number }
}

impl ErrorKind {
    /// Number of classes.
    pub const COUNT: usize = catalogue::TABLE.len();

    /// All classes in the order of their indices.
    pub fn all() -> impl Iterator<Item = ErrorKind> {
        catalogue::TABLE.iter().map(|facts| facts.kind)
    }

    fn facts(self) -> &'static CatalogueEntry {
        &catalogue::TABLE[self as usize]
    }

    /// Position of the class in [`ErrorCounts`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The number of the class in logs: the number in the catalogue, and `0x8000` plus the number for system errors.
    pub fn code(self) -> u16 {
        self.facts().code
    }

    /// The class with this code. Codes that only later versions know become [`ErrorKind::Other`].
    pub fn from_code(code: u16) -> ErrorKind {
        ErrorKind::all().find(|kind| kind.code() == code).unwrap_or(ErrorKind::Other)
    }

    /// Catalogue number, for example `c57`.
    pub fn number(self) -> &'static str {
        self.facts().number
    }

    /// The name of the class in figures and JSON, for example `timeout`.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// A short description of the class.
    pub fn text(self) -> &'static str {
        self.facts().text
    }

    /// What the error means and what to check, in one or two sentences.
    pub fn hint(self) -> &'static str {
        self.facts().hint
    }

    /// The sides that count errors of this class.
    pub fn sides(self) -> Sides {
        self.facts().sides
    }

    /// The nature of the error.
    pub fn nature(self) -> Nature {
        self.facts().nature
    }

    /// Whether the class is about the correctness of replies: wrong content, a broken rule of caching, or a damaged message that
    /// leaves the user with something other than the object.
    pub fn concerns_correctness(self) -> bool {
        use ErrorKind as K;
        match self.nature() {
            Nature::Content | Nature::Caching => true,
            Nature::Message => matches!(
                self,
                K::Misdirected
                    | K::BodyShort
                    | K::BodyLong
                    | K::LateBytes
                    | K::UnexpectedRange
                    | K::BadRange
                    | K::BadInstanceLength
                    | K::TooMuchRange
                    | K::HeadLength
                    | K::ForeignLink
                    | K::ForeignTag
                    | K::TagValueExpected
                    | K::TagValueOpen
                    | K::TagEmpty
                    | K::TagNameless
                    | K::BadTagUrl
            ),
            Nature::Access => {
                matches!(self, K::ProxyAuthIgnored | K::OriginAuthIgnored | K::BadCertificateAccepted)
            }
            Nature::Slow | Nature::Names | Nature::Tickets | Nature::Network | Nature::Bench => false,
        }
    }

    /// The layer between the robot and HTTP at which the error occurred, if it was one.
    pub fn layer(self) -> Option<Layer> {
        use ErrorKind as K;
        match self {
            K::NotTls
            | K::CertificateName
            | K::CertificateDates
            | K::CertificateIssuer
            | K::BadCertificate
            | K::AuthorityCertificate => Some(Layer::Tls),
            _ if self.name().starts_with("tls_") => Some(Layer::Tls),
            _ if self.name().starts_with("socks_") => Some(Layer::Socks),
            _ if self.name().starts_with("tunnel_") => Some(Layer::Tunnel),
            _ => None,
        }
    }

    /// Whether the error fails its transaction. Otherwise the error is only noted, and the transaction succeeds.
    pub fn fails(self) -> bool {
        self.facts().fails
    }
}

/// A layer between a robot and HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The dialogue with a SOCKS proxy.
    Socks,
    /// The handshake and the records of TLS.
    Tls,
    /// A request for a tunnel (CONNECT).
    Tunnel,
}

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.code().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ErrorKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ErrorKind, D::Error> {
        Ok(ErrorKind::from_code(u16::deserialize(deserializer)?))
    }
}

/// The number of errors of each class. Logs contain only classes that occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorKind::COUNT]);

impl Default for ErrorCounts {
    fn default() -> Self {
        ErrorCounts([0; ErrorKind::COUNT])
    }
}

impl ErrorCounts {
    /// Counts one error and returns the new count of its class.
    pub fn count(&mut self, kind: ErrorKind) -> u64 {
        self.0[kind.index()] += 1;
        self.0[kind.index()]
    }

    /// The classes that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorKind, u64)> + '_ {
        ErrorKind::all().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// The sum of the counts of all wanted classes.
    pub fn sum(&self, wanted: impl Fn(ErrorKind) -> bool) -> u64 {
        self.iter().filter(|(kind, _)| wanted(*kind)).map(|(_, count)| count).sum()
    }
}

impl Index<ErrorKind> for ErrorCounts {
    type Output = u64;

    fn index(&self, kind: ErrorKind) -> &u64 {
        &self.0[kind.index()]
    }
}

impl crate::fold::Fold for ErrorCounts {
    fn fold(&mut self, other: &ErrorCounts) {
        self.0.fold(&other.0);
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn drop_bins(&mut self) {}
}

impl Serialize for ErrorCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ErrorCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ErrorCounts, D::Error> {
        let mut counts = ErrorCounts::default();
        for (kind, count) in Vec::<(ErrorKind, u64)>::deserialize(deserializer)? {
            let sum = &mut counts.0[kind.index()];
            *sum = sum.saturating_add(count);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_numbers_and_names_are_unique_and_well_formed() {
        let (mut codes, mut numbers, mut names) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (index, kind) in ErrorKind::all().enumerate() {
            assert_eq!(kind.index(), index, "{kind:?}");
            assert!(codes.insert(kind.code()), "{kind:?}");
            assert!(numbers.insert(kind.number()), "{kind:?}");
            assert!(names.insert(kind.name()), "{kind:?}");
            assert!(kind.name().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            assert!(!kind.text().is_empty() && kind.hint().ends_with('.'), "{kind:?}");
            assert_eq!(ErrorKind::from_code(kind.code()), kind);
        }
    }

    #[test]
    fn numbers_of_the_classic_catalogue_keep_their_effect() {
        // Numbers of the original whose transaction continues. All others fail, including those of broken chunks (72 to
        // 76), after which the end of the message is unknown. An error in a script (160) concerns no transaction.
        let noted = [
            1, 8, 10, 11, 13, 27, 28, 30, 32, 33, 35, 37, 47, 48, 51, 52, 53, 54, 55, 58, 60, 61, 65, 66, 67,
            75, 77, 78, 80, 82, 83, 84, 85, 86, 87, 116, 160, 165,
        ];
        for kind in ErrorKind::all().filter(|kind| kind.code() < 200) {
            assert_eq!(kind.fails(), !noted.contains(&kind.code()), "{}", kind.number());
        }
    }

    #[test]
    fn counts_survive_the_log_and_later_classes_are_other() {
        let mut counts = ErrorCounts::default();
        counts.count(ErrorKind::Reset);
        counts.count(ErrorKind::Reset);
        counts.count(ErrorKind::WrongObject);
        let bytes = postcard::to_stdvec(&counts).unwrap();
        assert!(bytes.len() < 10, "{bytes:?}");
        assert_eq!(postcard::from_bytes::<ErrorCounts>(&bytes).unwrap(), counts);
        let later = postcard::to_stdvec(&vec![(9999u16, 3u64), (9998, 4)]).unwrap();
        let read: ErrorCounts = postcard::from_bytes(&later).unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), [(ErrorKind::Other, 7)]);
    }

    #[test]
    fn slow_answers_and_the_benchs_own_faults_are_no_question_of_correctness() {
        for kind in [ErrorKind::Timeout, ErrorKind::NoPort, ErrorKind::BadStatus, ErrorKind::ClockSkew] {
            assert!(!kind.concerns_correctness(), "{kind:?}");
        }
        for kind in [ErrorKind::WrongObject, ErrorKind::Stale, ErrorKind::BodyShort, ErrorKind::UncachableHit]
        {
            assert!(kind.concerns_correctness(), "{kind:?}");
        }
    }
}
