//! Echo times between many addresses of this host and many others.
//!
//! Each source address has its own socket, because the address of a socket is what a reply comes back to. Every
//! request carries the number of its pair and of its round, so that replies can be distinguished whatever the system does to
//! the identifiers of ICMP.

mod echo_socket;
mod pair_times;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{CheckResult, Error};
use crate::packet::EchoAnswer;

use self::echo_socket::EchoSocket;
pub use self::pair_times::PairTimes;

/// Most echo requests in one check.
const MOST_REQUESTS: u64 = 10_000_000;
/// Octets at the start of the data of a request: the mark of the check, the pair and the round.
const TAG: usize = 16;

/// Which addresses are checked, and how.
#[derive(Clone, Debug)]
pub struct PingPlan {
    /// Addresses of this host. Empty: the one from which routes lead to each target.
    pub sources: Vec<IpAddr>,
    /// The addresses that are to answer.
    pub targets: Vec<IpAddr>,
    /// Requests for each pair.
    pub count: u32,
    /// The time between two requests of a pair.
    pub interval: Duration,
    /// How long a reply may take.
    pub timeout: Duration,
    /// Octets of data in a request.
    pub size: usize,
    /// Most requests per second, for all pairs together.
    pub rate: f64,
}

impl PingPlan {
    /// The pairs of addresses of the same family, source by source.
    fn pairs(&self) -> Vec<PairTimes> {
        let sources: Vec<Option<IpAddr>> = if self.sources.is_empty() {
            vec![None]
        } else {
            self.sources.iter().copied().map(Some).collect()
        };
        let fits =
            |source: Option<IpAddr>, target: IpAddr| source.is_none_or(|ip| ip.is_ipv4() == target.is_ipv4());
        let pairs = sources.into_iter().flat_map(|source| {
            self.targets
                .iter()
                .filter(move |target| fits(source, **target))
                .map(move |target| (source, *target))
        });
        pairs.map(|(source, target)| PairTimes::new(source, target)).collect()
    }

    fn check(&self, pairs: usize) -> CheckResult<()> {
        let requests = pairs as u64 * u64::from(self.count);
        if pairs == 0 {
            return Err(Error::Request(
                "there is no pair of a source and a target of the same family".to_owned(),
            ));
        }
        if requests > MOST_REQUESTS {
            let text = format!("{requests} requests are too many: at most {MOST_REQUESTS} in one check");
            return Err(Error::Request(text));
        }
        if self.count == 0 || self.size < TAG || self.size > 65_000 {
            let text = format!("write a count of at least 1 and a size from {TAG} to 65000 octets");
            return Err(Error::Request(text));
        }
        Ok(())
    }
}

/// Sends all requests and returns the times of each pair.
///
/// # Errors
/// If this process may not send echo requests, or a source is not an address of this host.
pub fn measure(plan: &PingPlan) -> CheckResult<Vec<PairTimes>> {
    let mut pairs = plan.pairs();
    plan.check(pairs.len())?;
    let mut sockets = Sockets::open(&pairs)?;
    let pace = Pace::new(plan, pairs.len());
    let mark = std::hash::BuildHasher::hash_one(&std::collections::hash_map::RandomState::new(), "mark");
    let begin = Instant::now();
    let mut sent: Vec<Option<Instant>> = vec![None; pairs.len() * plan.count as usize];
    let mut data = vec![0; plan.size];
    for (number, slot) in (0..).zip(0..sent.len()) {
        let due = begin + pace.due(number);
        sockets.receive_until(due, |source, answer| take(&mut pairs, &mut sent, mark, source, answer));
        let (round, index) = (slot / pairs.len(), slot % pairs.len());
        tag(&mut data, mark, index as u32, round as u32);
        let pair = &mut pairs[index];
        sent[slot] = Some(Instant::now());
        pair.sent += 1;
        if let Err(error) = sockets.of(index).send(pair.target, round as u16, &data) {
            sent[slot] = None;
            pair.obstacle = Some(error.to_string());
        }
    }
    let mut end = Instant::now() + plan.timeout;
    while Instant::now() < end {
        let next = (Instant::now() + Duration::from_millis(50)).min(end);
        sockets.receive_until(next, |source, answer| take(&mut pairs, &mut sent, mark, source, answer));
        if sent.iter().all(Option::is_none) {
            end = Instant::now();
        }
    }
    Ok(pairs)
}

/// When requests are due: in rounds of all pairs, evenly.
struct Pace {
    pairs: u64,
    gap: Duration,
    round: Duration,
}

impl Pace {
    fn new(plan: &PingPlan, pairs: usize) -> Pace {
        let gap = Duration::from_secs_f64(1.0 / plan.rate.max(0.001));
        let gap = gap.max(plan.interval / pairs as u32);
        Pace { pairs: pairs as u64, gap, round: plan.interval.max(gap * pairs as u32) }
    }

    fn due(&self, number: u64) -> Duration {
        self.round * (number / self.pairs) as u32 + self.gap * (number % self.pairs) as u32
    }
}

/// Writes the mark, the pair and the round to the start of the data.
fn tag(data: &mut [u8], mark: u64, pair: u32, round: u32) {
    data[..8].copy_from_slice(&mark.to_be_bytes());
    data[8..12].copy_from_slice(&pair.to_be_bytes());
    data[12..TAG].copy_from_slice(&round.to_be_bytes());
}

/// The pair and the round of a request of this check.
fn tagged(data: &[u8], mark: u64) -> Option<(usize, usize)> {
    let number = |at: usize| Some(u32::from_be_bytes(*data.get(at..)?.first_chunk()?) as usize);
    (data.first_chunk()? == &mark.to_be_bytes()).then_some(())?;
    Some((number(8)?, number(12)?))
}

/// Books an answer that came to a socket.
fn take(
    pairs: &mut [PairTimes],
    sent: &mut [Option<Instant>],
    mark: u64,
    now: Instant,
    answer: EchoAnswer<'_>,
) {
    let (EchoAnswer::Echo { data, .. } | EchoAnswer::Undelivered { data, .. }) = answer;
    let Some((index, round)) = tagged(data, mark).filter(|(index, _)| *index < pairs.len()) else { return };
    let (slot, pair) = (round * pairs.len() + index, index);
    let Some(began) = sent.get_mut(slot).map(Option::take) else { return };
    let pair = &mut pairs[pair];
    match (answer, began) {
        (EchoAnswer::Echo { .. }, Some(began)) => pair.book(now.saturating_duration_since(began)),
        (EchoAnswer::Echo { .. }, None) => pair.duplicates += 1,
        (EchoAnswer::Undelivered { reason, .. }, _) => pair.obstacle = Some(reason.to_owned()),
    }
}

/// One socket for each source.
struct Sockets {
    sockets: Vec<EchoSocket>,
    /// The socket of each pair.
    of_pair: Vec<usize>,
}

impl Sockets {
    fn open(pairs: &[PairTimes]) -> CheckResult<Sockets> {
        let mut known: std::collections::HashMap<(Option<IpAddr>, bool), usize> =
            std::collections::HashMap::new();
        let (mut sockets, mut of_pair) = (Vec::new(), Vec::new());
        for pair in pairs {
            let key = (pair.source, pair.target.is_ipv4());
            let index = match known.get(&key) {
                Some(index) => *index,
                None => {
                    sockets.push(EchoSocket::open(pair.source, pair.target.is_ipv6())?);
                    known.insert(key, sockets.len() - 1);
                    sockets.len() - 1
                }
            };
            of_pair.push(index);
        }
        Ok(Sockets { sockets, of_pair })
    }

    fn of(&self, pair: usize) -> &EchoSocket {
        &self.sockets[self.of_pair[pair]]
    }

    /// Hands over what comes until a time. What has come already is handed over in any case.
    fn receive_until(&mut self, deadline: Instant, mut take: impl FnMut(Instant, EchoAnswer<'_>)) {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut waiting: Vec<PollFd<'_>> =
                self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let ready = poll(&mut waiting, Some(&timeout)).unwrap_or(0);
            let now = Instant::now();
            let readable: Vec<bool> = waiting.iter().map(|socket| !socket.revents().is_empty()).collect();
            for (socket, _) in self.sockets.iter_mut().zip(readable).filter(|(_, readable)| *readable) {
                socket.receive(|answer| take(now, answer));
            }
            if ready == 0 && left.is_zero() {
                return;
            }
            if Instant::now() >= deadline {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(sources: &[&str], targets: &[&str]) -> PingPlan {
        let read = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
        PingPlan {
            sources: read(sources),
            targets: read(targets),
            count: 3,
            interval: Duration::from_millis(100),
            timeout: Duration::from_secs(1),
            size: 56,
            rate: 1000.0,
        }
    }

    #[test]
    fn pairs_are_of_one_family() {
        let pairs = plan(&["10.0.0.1", "fd00::1"], &["10.0.0.2", "10.0.0.3", "fd00::2"]).pairs();
        let shown: Vec<_> =
            pairs.iter().map(|pair| (pair.source.unwrap().is_ipv4(), pair.target.is_ipv4())).collect();
        assert_eq!(shown, [(true, true), (true, true), (false, false)]);
        assert_eq!(plan(&[], &["10.0.0.2", "fd00::2"]).pairs().len(), 2);
        let lonely = plan(&["10.0.0.1"], &["fd00::2"]);
        assert!(lonely.check(lonely.pairs().len()).is_err());
    }

    #[test]
    fn rounds_are_paced() {
        let times = |pairs: usize, plan: &PingPlan| {
            let pace = Pace::new(plan, pairs);
            [0, 1, pairs as u64].map(|number| pace.due(number).as_micros())
        };
        let mut plan = plan(&[], &["10.0.0.2"]);
        assert_eq!(times(4, &plan), [0, 25_000, 100_000]);
        plan.rate = 10.0;
        assert_eq!(times(4, &plan), [0, 100_000, 400_000]);
    }

    #[test]
    fn tags_are_found_in_data_of_this_check_only() {
        let mut data = vec![0; 40];
        tag(&mut data, 77, 5, 9);
        assert_eq!(tagged(&data, 77), Some((5, 9)));
        assert_eq!((tagged(&data, 78), tagged(&data[..15], 77), tagged(&[], 77)), (None, None, None));
    }
}
