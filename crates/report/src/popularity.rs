//! Popularity of objects by rank: the number of requests for the most popular object, the second most popular one, and
//! so on.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use polygraph_stats::Histogram;

use crate::facts::RunFacts;

/// Smallest ratio of the ranks of neighbouring points; smaller distances would not be visible.
const STEP: f64 = 1.03;
/// Euler's constant, for harmonic numbers.
const EULER: f64 = 0.577_215_664_9;

/// A curve of requests over ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Ranks, from 1 in ascending order, with the number of requests for the object of each rank.
    pub points: Vec<(f64, f64)>,
    /// Number of requests.
    pub requests: f64,
    /// Number of objects.
    pub objects: f64,
}

impl Curve {
    /// The curve of all requests of the robots in a run; `None` if nothing was counted.
    pub fn of_run(facts: &RunFacts) -> Option<Curve> {
        Curve::of_ordinals(&facts.client.as_ref()?.total.as_ref()?.block.ordinals)
    }

    /// The curve of [`polygraph_stats::Block::ordinals`]; `None` if nothing was counted.
    pub fn of_ordinals(ordinals: &Histogram) -> Option<Curve> {
        if ordinals.count() == 0 {
            return None;
        }
        let mut bins: Vec<(u64, u64, u64)> = ordinals.ranges();
        let objects = bins.first().map_or(0, |&(_, _, count)| count) as f64;
        bins.reverse();
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (first, n, count) in bins {
            // The largest bin may be filled only partly, but has at least one object.
            let rank = (count as f64 / (n + 1 - first) as f64).max(1.0);
            if points.last().is_none_or(|&(last, _)| rank >= last * STEP) {
                points.push((rank, n as f64));
            }
        }
        if objects > points.last().map_or(0.0, |&(rank, _)| rank) {
            points.push((objects, 1.0));
        }
        Some(Curve { points, requests: ordinals.count() as f64, objects })
    }

    /// The curve of counts of requests for objects, in any order.
    pub fn of_counts(mut counts: Vec<u64>) -> Option<Curve> {
        counts.retain(|&count| count > 0);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let objects = counts.len();
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (index, &count) in counts.iter().enumerate() {
            let rank = (index + 1) as f64;
            if points.last().is_none_or(|&(last, _)| rank >= last * STEP) || index + 1 == objects {
                points.push((rank, count as f64));
            }
        }
        let requests = counts.iter().sum::<u64>() as f64;
        (objects > 0).then_some(Curve { points, requests, objects: objects as f64 })
    }

    /// The curve of a trace: the URLs of `path`, one per line, or an access log of Squid or in the common log format.
    /// Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_trace(path: &Path) -> io::Result<Option<Curve>> {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let mut lines = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if let Some(url) = url_of(&String::from_utf8_lossy(&line)) {
                let mut hasher = DefaultHasher::new();
                url.hash(&mut hasher);
                *counts.entry(hasher.finish()).or_default() += 1;
            }
            line.clear();
        }
        Ok(Curve::of_counts(counts.into_values().collect()))
    }

    /// The same number of requests for the same number of objects by Zipf's law: requests are proportional to 1/rank.
    #[must_use]
    pub fn zipf(&self) -> Curve {
        let top = self.requests / (self.objects.ln() + EULER).max(1.0);
        self.law(|rank| top / rank)
    }

    /// The same number of requests for the same number of objects if each repeat requests any known object with the
    /// same probability: objects that have been known for longer are requested more often.
    #[must_use]
    pub fn uniform(&self) -> Curve {
        let repeats_per_object = (self.requests - self.objects) / self.objects;
        self.law(|rank| 1.0 + repeats_per_object * (self.objects / rank).ln())
    }

    fn law(&self, requests_of: impl Fn(f64) -> f64) -> Curve {
        let steps = (self.objects.log10() * 10.0).floor() as i32;
        let ranks = (0..=steps).map(|i| 10f64.powf(f64::from(i) / 10.0)).chain([self.objects]);
        let points = ranks.map(|rank| (rank, requests_of(rank))).filter(|(_, requests)| *requests >= 1.0);
        Curve { points: points.collect(), ..*self }
    }
}

/// The URL in a line.
fn url_of(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut words = line.split_ascii_whitespace();
    let quoted = line.split('"').nth(1).and_then(|request| request.split(' ').nth(1));
    words
        .clone()
        .find(|word| word.contains("://") && !word.starts_with('"'))
        .or(quoted)
        .or_else(|| words.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordinals(counts: &[u64]) -> Histogram {
        let mut hist = Histogram::new();
        counts.iter().for_each(|&count| (1..=count).for_each(|n| hist.record(n)));
        hist
    }

    #[test]
    fn ordinals_and_counts_give_the_same_curve() {
        let counts: Vec<u64> = (1..=500).map(|rank| 1 + 1_000 / rank).collect();
        let (a, b) = (Curve::of_ordinals(&ordinals(&counts)).unwrap(), Curve::of_counts(counts).unwrap());
        assert_eq!((a.requests, a.objects), (b.requests, b.objects));
        assert_eq!((a.points[0], a.points[1]), ((1.0, 1001.0), (2.0, 501.0)));
        for &(rank, requests) in &a.points {
            let (_, want) = b.points.iter().rfind(|(r, _)| *r <= rank).unwrap();
            assert!((requests - want).abs() <= 0.04 * want + 1.0, "{rank}: {requests}, {want}");
        }
    }

    #[test]
    fn wide_bins_count_objects_not_requests() {
        let curve = Curve::of_ordinals(&ordinals(&[100_000, 50_000, 3_000])).unwrap();
        for (rank, want) in [(1.0, 100_000.0), (2.0, 50_000.0), (3.0, 3_000.0)] {
            let (_, got) =
                curve.points.iter().min_by(|a, b| (a.0 - rank).abs().total_cmp(&(b.0 - rank).abs())).unwrap();
            assert!((got - want).abs() < 0.01 * want, "{rank}: {got}");
        }
    }

    #[test]
    fn laws_have_as_many_requests() {
        let curve = Curve { points: Vec::new(), requests: 1_500_000.0, objects: 600_000.0 };
        let sum = |law: Curve| -> f64 {
            let area = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0;
            law.points[0].1 + law.points.windows(2).map(area).sum::<f64>()
        };
        for (law, name) in [(curve.zipf(), "zipf"), (curve.uniform(), "uniform")] {
            // Zipf's law would ask less than once for the least popular ones, which are left out.
            let share = sum(law) / 1_500_000.0;
            assert!((0.9..1.06).contains(&share), "{name}: {share}");
        }
    }

    #[test]
    fn urls_are_found_in_lines_of_all_forms() {
        for (line, want) in [
            ("http://a/b", Some("http://a/b")),
            ("/only/a/path", Some("/only/a/path")),
            ("", None),
            ("# comment", None),
            (
                "1066036250.603 310 10.0.0.1 TCP_MISS/200 4218 GET http://a/ - DIRECT/b text/html",
                Some("http://a/"),
            ),
            ("10.0.0.1 - - [08/Mar/1999:03:31:39 +0000] \"GET /x.html HTTP/1.0\" 200 17", Some("/x.html")),
            (
                "10.0.0.1 - - [08/Mar/1999:03:31:39 +0000] \"GET /x HTTP/1.0\" 200 17 \"http://referrer/\"",
                Some("/x"),
            ),
        ] {
            assert_eq!(url_of(line), want, "{line}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"http://a/\nhttp://b/\nhttp://a/\n\xff\n").unwrap();
        let curve = Curve::of_trace(file.path()).unwrap().unwrap();
        assert_eq!((curve.requests, curve.objects, curve.points[0]), (4.0, 3.0, (1.0, 2.0)));
    }
}
