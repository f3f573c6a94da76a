//! How requests were spread over the servers.

use polygraph_stats::ServerStats;
use serde_json::{Value, json};

use crate::scope::Scope;
use crate::text::{self, UNDEFINED, ms, number};

/// The figures of the smallest and of the largest share.
pub const SHARES: [&str; 2] = ["servers.share.min", "servers.share.max"];

/// The requests of several servers over the same time. Servers whose certificates are bad on purpose have no shares: a device that is in
/// order asks them for nothing.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// The servers.
    pub servers: Vec<ServerShare>,
    /// Length of the time in seconds.
    pub seconds: f64,
}

/// A server and its share of the requests of robots.
#[derive(Clone, Debug)]
pub struct ServerShare {
    /// The address, as the server states it.
    pub address: String,
    /// What it counted.
    pub stats: ServerStats,
    /// The share of all requests in percent; `None` without requests, and if the certificate of the server is bad on purpose.
    pub percent: Option<f64>,
}

impl Spread {
    /// The servers of a scope.
    pub fn of(scope: &Scope) -> Spread {
        let servers = scope.block.servers.iter();
        Spread::new(servers.map(|(address, stats)| (address.to_owned(), stats.clone())), scope.seconds)
    }

    /// These servers over so many seconds.
    pub fn new(servers: impl Iterator<Item = (String, ServerStats)>, seconds: f64) -> Spread {
        let counted: Vec<(String, ServerStats)> = servers.collect();
        let is_asked = |stats: &ServerStats| !stats.bad_certificate;
        let asked = counted.iter().map(|(_, stats)| stats).filter(|stats| is_asked(stats));
        let all: u64 = asked.map(|stats| stats.requests).sum();
        let share = |(address, stats): (String, ServerStats)| ServerShare {
            address,
            percent: (all > 0 && is_asked(&stats)).then(|| 100.0 * stats.requests as f64 / all as f64),
            stats,
        };
        Spread { servers: counted.into_iter().map(share).collect(), seconds }
    }

    /// The server with the smallest share, and the one with the largest; `None` without requests.
    pub fn extremes(&self) -> Option<[(&str, f64); 2]> {
        let shares = || self.servers.iter().filter_map(|server| Some((&*server.address, server.percent?)));
        let least = shares().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some([least, shares().max_by(|a, b| a.1.total_cmp(&b.1))?])
    }

    /// The value of one of the [figures](SHARES) in percent; `None` if it is another figure, or undefined.
    pub fn share_named(&self, figure: &str) -> Option<f64> {
        let which = SHARES.iter().position(|name| *name == figure)?;
        Some(self.extremes()?[which].1)
    }

    /// The servers that may have shares.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &ServerShare> {
        self.servers.iter().filter(|server| !server.stats.bad_certificate)
    }

    /// How many servers have bad certificates, for people; `None` if there are none.
    fn bad(&self) -> Option<String> {
        match self.servers.len() - self.asked().count() {
            0 => None,
            1 => Some("1 with a bad certificate".to_owned()),
            bad => Some(format!("{bad} with bad certificates")),
        }
    }

    /// Shares and evenness in short, for example `3, each received 33.2 % to 33.5 % of the requests`.
    pub fn text(&self) -> String {
        let count = self.asked().count();
        let asked = match (count, self.extremes()) {
            (0, _) => None,
            (1, Some(_)) => Some("1".to_owned()),
            (_, None) => Some(format!("{count}, without a request")),
            (_, Some([(_, least), (_, most)])) => {
                let [least, most] = [least, most].map(|share| number(Some(share), 1));
                Some(format!("{count}, each received {least} % to {most} % of the requests"))
            }
        };
        asked.into_iter().chain(self.bad()).collect::<Vec<_>>().join("; ")
    }

    /// How even the spread is, as sentences.
    pub fn evenness(&self) -> Vec<String> {
        let mut told = self.shares_compared();
        told.extend(self.bad().map(|bad| {
            format!("The servers include {bad} on purpose; nobody should ask them for anything, so they count in no share.")
        }));
        told
    }

    fn shares_compared(&self) -> Vec<String> {
        let Some([(least_of, least), (most_of, most)]) = self.extremes().filter(|_| self.asked().count() > 1)
        else {
            return Vec::new();
        };
        let even = number(Some(100.0 / self.asked().count() as f64), 2);
        let range = format!(
            "Shares are between {} % ({least_of}) and {} % ({most_of}); equal shares would be {even} %.",
            number(Some(least), 2),
            number(Some(most), 2)
        );
        let idle: Vec<&str> = self.asked().filter(|s| s.stats.requests == 0).map(|s| &*s.address).collect();
        let ratio = match idle[..] {
            [] => format!(
                "The busiest server received {} times as many requests as the least busy one.",
                number(Some(most / least), 2)
            ),
            _ => format!("No request of a robot arrived at {}.", idle.join(", ")),
        };
        vec![range, ratio]
    }

    /// The servers as a table on the console.
    pub fn table(&self) -> String {
        let titles = ["server", "requests", "of all", "per second", "mean response time", "p95", "failed"];
        let cells = |server: &ServerShare| {
            let stats = &server.stats;
            let time = |us: Option<f64>| ms(us.map(|us| us * 1e-3));
            vec![
                server.address.clone(),
                number(Some(stats.requests as f64), 0),
                server.share(),
                number(server.rate(self.seconds), 2),
                time(stats.rptm_us.mean()),
                time(stats.rptm_us.quantile(0.95).map(|us| us as f64)),
                number(Some(stats.failed as f64), 0),
            ]
        };
        let rows: Vec<Vec<String>> = std::iter::once(titles.map(str::to_owned).to_vec())
            .chain(self.servers.iter().map(cells))
            .collect();
        text::aligned(rows.iter().map(Vec::as_slice), 1).into_iter().map(|line| line + "\n").collect()
    }

    /// The servers for other programs.
    pub fn json(&self) -> Value {
        let server = |server: &ServerShare| {
            let ServerShare { address, stats, percent } = server;
            json!({
                "address": address,
                "requests": stats.requests,
                "share_percent": percent,
                "replies": stats.rptm_us.count(),
                "rptm_mean_s": stats.rptm_us.mean().map(|us| us * 1e-6),
                "rptm_p95_s": stats.rptm_us.quantile(0.95).map(|us| us as f64 * 1e-6),
                "reply_bytes": stats.bytes,
                "failed": stats.failed,
                "unmarked_requests": stats.unmarked,
                "bad_certificate": stats.bad_certificate,
            })
        };
        self.servers.iter().map(server).collect()
    }
}

impl ServerShare {
    /// The share of all requests, for people.
    pub fn share(&self) -> String {
        if self.stats.bad_certificate {
            return "bad certificate".to_owned();
        }
        self.percent.map_or_else(|| UNDEFINED.to_owned(), |share| format!("{} %", number(Some(share), 2)))
    }

    /// Requests per second over so many seconds.
    pub fn rate(&self, seconds: f64) -> Option<f64> {
        (seconds > 0.0).then(|| self.stats.requests as f64 / seconds)
    }

    /// Requests with the mark of a robot that were in progress at the server, on average over `seconds`: by Little's law, their times
    /// divided by the length of the time.
    pub fn concurrent(&self, seconds: f64) -> Option<f64> {
        (seconds > 0.0).then(|| self.stats.rptm_us.sum() * 1e-6 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(requests: &[u64]) -> Spread {
        let stats = |requests| ServerStats { requests, ..ServerStats::default() };
        let servers = requests.iter().enumerate();
        Spread::new(servers.map(|(n, requests)| (format!("10.0.0.{n}:80"), stats(*requests))), 10.0)
    }

    #[test]
    fn shares_are_those_of_all_requests() {
        let uneven = spread(&[30, 10]);
        assert_eq!(uneven.servers[1].percent, Some(25.0));
        assert_eq!(uneven.text(), "2, each received 25.0 % to 75.0 % of the requests");
        assert_eq!(
            uneven.evenness(),
            [
                "Shares are between 25.00 % (10.0.0.1:80) and 75.00 % (10.0.0.0:80); equal shares would be 50.00 %.",
                "The busiest server received 3.00 times as many requests as the least busy one."
            ]
        );
        assert_eq!(spread(&[30, 0]).evenness()[1], "No request of a robot arrived at 10.0.0.1:80.");
        let idle = spread(&[0, 0]);
        assert_eq!((idle.text(), idle.evenness()), ("2, without a request".to_owned(), Vec::new()));
        assert_eq!(idle.servers[0].percent, None);
    }

    #[test]
    fn servers_with_bad_certificates_have_no_shares() {
        let with = |good: &[u64], bad: &[u64]| {
            let stats = |requests: &u64, bad_certificate| ServerStats {
                requests: *requests,
                bad_certificate,
                ..ServerStats::default()
            };
            let good = good.iter().map(|requests| stats(requests, false));
            let all = good.chain(bad.iter().map(|requests| stats(requests, true)));
            Spread::new(all.enumerate().map(|(n, stats)| (format!("10.0.0.{n}:80"), stats)), 10.0)
        };
        // A device that accepts a bad certificate asks its server, but that is not what it is there for.
        let three = with(&[30, 10], &[5]);
        assert_eq!(
            three.text(),
            "2, each received 25.0 % to 75.0 % of the requests; 1 with a bad certificate"
        );
        let [Some(least), Some(most)] = SHARES.map(|name| three.share_named(name)) else {
            panic!("{three:?}")
        };
        assert_eq!((least, most, three.share_named("servers.tbl")), (25.0, 75.0, None));
        assert!(three.evenness()[0].contains("equal shares would be 50.00 %"), "{three:?}");
        assert!(three.evenness()[2].contains("1 with a bad certificate"), "{three:?}");
        assert_eq!(
            (three.servers[2].percent, three.servers[2].share()),
            (None, "bad certificate".to_owned())
        );
        let one = with(&[7], &[0, 0]);
        assert_eq!((one.text(), one.evenness().len()), ("1; 2 with bad certificates".to_owned(), 1));
        let none = with(&[], &[0, 0]);
        assert_eq!((none.text(), none.extremes()), ("2 with bad certificates".to_owned(), None));
    }
}
