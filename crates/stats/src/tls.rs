//! Statistics of TLS connections and of tunnels through proxies.

use serde::{Deserialize, Serialize};

use crate::class::ClassStats;
use crate::counts::Breakdown;
use crate::fold::{Fold, fold_fields};
use crate::histogram::CoarseHistogram;
use crate::status::ByStatus;

/// Maximum number of different texts in [`TextCounts`]. Texts come from peers.
const MAX_TEXTS: usize = 16;

/// Counts by a number of a registry, in ascending order; only numbers that occurred take memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCounts(Vec<(u16, u64)>);

impl CodeCounts {
    /// Adds `n` to the count of `code`.
    pub fn add(&mut self, code: u16, n: u64) {
        match self.0.binary_search_by_key(&code, |&(known, _)| known) {
            Ok(at) => self.0[at].1 += n,
            Err(at) => self.0.insert(at, (code, n)),
        }
    }

    /// Codes that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied().filter(|&(_, n)| n > 0)
    }

    /// The count of `code`.
    pub fn get(&self, code: u16) -> u64 {
        self.0.iter().find(|&&(known, _)| known == code).map_or(0, |&(_, n)| n)
    }

    /// The sum of all counts.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|&(_, n)| n).sum()
    }
}

impl Fold for CodeCounts {
    fn fold(&mut self, other: &CodeCounts) {
        other.iter().for_each(|(code, n)| self.add(code, n));
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn drop_bins(&mut self) {}
}

/// Counts of a few different texts, in ascending order. Texts beyond the first sixteen count together, as the text `others`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCounts(Vec<(String, u64)>);

impl TextCounts {
    /// Adds `n` to the count of `text`.
    pub fn add(&mut self, text: &str, n: u64) {
        match self.0.binary_search_by(|(known, _)| known.as_str().cmp(text)) {
            Ok(at) => self.0[at].1 += n,
            Err(at) if self.0.len() < MAX_TEXTS || text == OTHERS => self.0.insert(at, (text.to_owned(), n)),
            Err(_) => self.add(OTHERS, n),
        }
    }

    /// The count of `text`.
    pub fn get(&self, text: &str) -> u64 {
        self.iter().find(|(known, _)| *known == text).map_or(0, |(_, n)| n)
    }

    /// The texts with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(text, n)| (text.as_str(), *n))
    }
}

/// The text of all texts beyond the limit.
const OTHERS: &str = "others";

impl Fold for TextCounts {
    fn fold(&mut self, other: &TextCounts) {
        other.iter().for_each(|(text, n)| self.add(text, n));
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn drop_bins(&mut self) {}
}

/// TLS connections, the transactions on them, and tunnels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsStats {
    /// Time of full handshakes in microseconds, from the first byte to the last; on both sides.
    pub full_us: CoarseHistogram,
    /// Time of handshakes that resumed a session.
    pub resumed_us: CoarseHistogram,
    /// Time of handshakes that resumed a session and whose early data were accepted (0-RTT).
    pub early_us: CoarseHistogram,
    /// Complete handshakes of robots that offered to resume a session.
    pub offered: u64,
    /// Handshakes of robots whose early data were refused and sent again.
    pub early_refused: u64,
    /// Complete handshakes by registered number of the version: 0x0303 for TLS 1.2, 0x0304 for TLS 1.3.
    pub versions: CodeCounts,
    /// Complete handshakes by registered number of the cipher suite.
    pub ciphers: CodeCounts,
    /// Complete handshakes with a key exchange by registered number of the group.
    pub groups: CodeCounts,
    /// Alerts that the peer sent, by their number.
    pub alerts: CodeCounts,
    /// Certificates that came with an OCSP response.
    pub stapled: u64,
    /// OCSP responses by what they say.
    pub staples: TextCounts,
    /// Certificates of peers by the name of their issuer.
    pub issuers: TextCounts,
    /// Successful transactions of robots over TLS; their response time includes the set-up of a connection, if they needed one.
    pub transactions: Breakdown,
    /// The response time in microseconds of the same transactions without the set-up.
    pub ready_rptm_us: CoarseHistogram,
    /// Response time of proxies to successful CONNECT requests in microseconds, and sizes of their replies.
    pub connects: Breakdown,
    /// Successful transactions through a tunnel.
    pub tunneled: Breakdown,
    /// Transactions of robots in which the bad certificate of a server was refused as it must be, by the status of the reply; status
    /// 0 is a refusal without a reply. They count as successful, but neither their times nor their sizes are among those of
    /// other transactions.
    pub refusals: ByStatus,
    /// These transactions by what is wrong with the certificate.
    pub refused_faults: TextCounts,
    /// Failed transactions of robots in which content of a server with a bad certificate arrived, by what is wrong with it.
    pub accepted_faults: TextCounts,
    /// Handshakes of servers with a bad certificate that clients broke off, as they must.
    pub refused_handshakes: u64,
}

impl TlsStats {
    /// The refusals of bad certificates together.
    pub fn all_refusals(&self) -> ClassStats {
        let mut all = ClassStats::default();
        self.refusals.iter().for_each(|(_, stats)| all.merge(stats));
        all
    }

    /// Number of refusals of bad certificates.
    pub fn refusal_count(&self) -> u64 {
        self.refusals.iter().map(|(_, stats)| stats.size.count()).sum()
    }

    /// Number of those refusals of bad certificates that were a page or a redirect instead of an error.
    pub fn page_count(&self) -> u64 {
        let pages = self.refusals.iter().filter(|(status, _)| (1..400).contains(status));
        pages.map(|(_, stats)| stats.size.count()).sum()
    }

    /// Number of complete handshakes.
    pub fn handshakes(&self) -> u64 {
        self.full_us.count() + self.resumptions()
    }

    /// Number of complete handshakes that resumed a session.
    pub fn resumptions(&self) -> u64 {
        self.resumed_us.count() + self.early_us.count()
    }
}

fold_fields! {
    TlsStats {
        full_us, resumed_us, early_us, offered, early_refused, versions, ciphers, groups, alerts, stapled,
        staples, issuers, transactions, ready_rptm_us, connects, tunneled, refusals,
        refused_faults, accepted_faults, refused_handshakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_texts_is_limited() {
        let mut counts = TextCounts::default();
        (0..40).for_each(|n| counts.add(&format!("{n:02}"), 1));
        let mut twice = counts.clone();
        twice.fold(&counts);
        assert_eq!(twice.iter().map(|(_, n)| n).sum::<u64>(), 80);
        assert_eq!((twice.iter().count(), twice.iter().last()), (17, Some(("others", 48))));
    }

    #[test]
    fn codes_are_counted_separately() {
        let mut counts = CodeCounts::default();
        [40, 48, 40].into_iter().for_each(|code| counts.add(code, 1));
        assert_eq!((counts.get(40), counts.get(48), counts.get(1), counts.sum()), (2, 1, 0, 3));
    }
}
