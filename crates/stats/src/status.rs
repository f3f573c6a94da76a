//! Statistics by status code of replies, and sets of status codes.

use serde::{Deserialize, Serialize, Serializer};

use crate::class::ClassStats;
use crate::fold::Fold;

/// Status codes of HTTP; all others count as [`OTHER`].
const CODES: std::ops::RangeInclusive<u16> = 100..=599;
/// Represents a status that HTTP does not define.
pub const OTHER: u16 = 0;

/// Response time and size by status code; only codes that occurred take memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ByStatus(Vec<(u16, ClassStats)>);

impl ByStatus {
    /// The statistics of a status code.
    pub fn at_mut(&mut self, status: u16) -> &mut ClassStats {
        let status = if CODES.contains(&status) { status } else { OTHER };
        // One or two codes make up nearly all replies, and they occur first.
        let at = self.0.iter().position(|&(known, _)| known == status).unwrap_or_else(|| {
            self.0.push((status, ClassStats::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Codes with statistics, in the order of their first occurrence; [`OTHER`] represents unknown codes.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &ClassStats)> {
        self.0.iter().filter(|(_, stats)| stats.size.count() > 0).map(|(status, stats)| (*status, stats))
    }

    /// The statistics of one code, if it occurred.
    pub fn get(&self, status: u16) -> Option<&ClassStats> {
        self.iter().find(|&(known, _)| known == status).map(|(_, stats)| stats)
    }
}

/// The log has only codes that occurred in the interval.
impl Serialize for ByStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().serialize(serializer)
    }
}

impl Fold for ByStatus {
    fn fold(&mut self, other: &ByStatus) {
        other.iter().for_each(|(status, stats)| self.at_mut(status).merge(stats));
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(|(_, stats)| stats.clear());
    }

    fn drop_bins(&mut self) {
        self.0.iter_mut().for_each(|(_, stats)| stats.drop_bins());
    }
}

/// A set of status codes (`custom_stats_scope` of the language, docs/reference/statistics.md, "Status code scope").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusScope([u64; 8]);

impl StatusScope {
    /// The set that entries like `all`, `404`, `-40x` and `+4xx` describe. Narrow entries take precedence over wide
    /// ones, and later entries over earlier ones of the same width. If all entries are negative, the set starts with
    /// all codes. `None` if an entry is malformed.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Option<StatusScope> {
        let mut rules: Vec<(usize, bool, u16)> =
            entries.into_iter().map(Self::rule).collect::<Option<_>>()?;
        let mut set = StatusScope::default();
        if !rules.is_empty() && rules.iter().all(|&(_, wanted, _)| !wanted) {
            set.mark(0, 1000, true);
        }
        // A stable sort keeps the order of entries of the same width.
        rules.sort_by_key(|&(digits, _, _)| digits);
        for (digits, wanted, first) in rules {
            set.mark(first, [1000, 100, 10, 1][digits], wanted);
        }
        Some(set)
    }

    /// Number of given digits, whether the codes are included, smallest code.
    fn rule(entry: &str) -> Option<(usize, bool, u16)> {
        if entry == "all" {
            return Some((0, true, 0));
        }
        let wanted = !entry.starts_with('-');
        let code = entry.strip_prefix(['+', '-']).unwrap_or(entry);
        let digits = code.trim_end_matches('x');
        let fits = code.len() == 3 && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        fits.then_some(())?;
        Some((digits.len(), wanted, format!("{digits:0<3}").parse().ok()?))
    }

    fn mark(&mut self, first: u16, count: u16, wanted: bool) {
        for code in (first..first + count).filter(|code| CODES.contains(code)) {
            let (word, bit) = Self::place(code);
            self.0[word] = if wanted { self.0[word] | bit } else { self.0[word] & !bit };
        }
    }

    /// Whether the code is in the set. The default set is empty.
    pub fn contains(&self, status: u16) -> bool {
        CODES.contains(&status) && {
            let (word, bit) = Self::place(status);
            self.0[word] & bit != 0
        }
    }

    fn place(code: u16) -> (usize, u64) {
        let at = code - CODES.start();
        (usize::from(at / 64), 1 << (at % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_apply_from_wide_to_narrow() {
        let cases: [(&[&str], &[u16], &[u16]); 7] = [
            (&[], &[], &[200, 404]),
            (&["all"], &[100, 200, 599], &[600, 0]),
            (&["404"], &[404], &[403, 405, 200]),
            (&["4xx", "-40x", "404"], &[404, 410, 499], &[400, 409, 500]),
            (&["404", "-40x", "4xx"], &[404, 410], &[403]),
            (&["-5xx"], &[200, 404], &[500, 503]),
            (&["+200", "-200"], &[], &[200]),
        ];
        for (entries, inside, outside) in cases {
            let scope = StatusScope::parse(entries.iter().copied()).unwrap();
            assert!(inside.iter().all(|&code| scope.contains(code)), "{entries:?}");
            assert!(!outside.iter().any(|&code| scope.contains(code)), "{entries:?}");
        }
        for wrong in ["", "4", "40", "4x4", "xxx", "4000", "+all", "a00", "-"] {
            assert_eq!(StatusScope::parse([wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn codes_add_up() {
        let mut one = ByStatus::default();
        one.at_mut(304).record(5, 100);
        one.at_mut(999).record(5, 1);
        let mut two = ByStatus::default();
        two.at_mut(503).record(7, 10);
        two.at_mut(304).record(9, 10);
        one.fold(&two);
        let seen: Vec<_> = one.iter().map(|(code, stats)| (code, stats.size.sum())).collect();
        assert_eq!(seen, [(304, 110.0), (OTHER, 1.0), (503, 10.0)]);
        one.clear();
        assert_eq!(one.iter().count(), 0);
        assert!(one.get(304).is_none());
    }
}
