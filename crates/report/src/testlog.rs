//! Plausible logs for tests: a small simulation of robots, a device and servers, written in the real format.

use polygraph_stats::error::Sides;
use polygraph_stats::evidence::fact;
use polygraph_stats::record::{
    EndReason, Header, Interval, PlannedLoad, PlannedPhase, Record, RobotLimits, Side,
};
use polygraph_stats::stall::Stall;
use polygraph_stats::{
    BinSet, Block, Class, CloseKind, ErrorKind, Evidence, Finished, HttpVersion, LogWriter, MissCause,
    ReadLog,
};

use crate::log::Log;

const SECOND: f64 = 1e9;

/// The parameters of a simulated log. Tests change the relevant ones.
#[derive(Clone, Debug)]
pub struct Run {
    /// Planned starts per second.
    pub rate: f64,
    /// Actual starts as a share of `rate`.
    pub started_share: f64,
    /// Transactions of the largest pages; sizes of pages are random from 1 to this number.
    pub page: u64,
    /// Whether the parts of a page are requested when the page has been answered, not together with it.
    pub parts_wait: bool,
    /// Transactions that the device can serve per second.
    pub capacity: f64,
    /// Limit of concurrent transactions.
    pub open_limit: usize,
    /// Lengths of the phases warm, meas and cool in seconds.
    pub phases: [f64; 3],
    /// Their loads. Starts follow these.
    pub loads: [PlannedLoad; 3],
    /// Share of the time in which the busiest loop is working.
    pub busy: f64,
    /// Share of the time in which quotas of processor time stop the client and the server.
    pub throttled: [f64; 2],
    /// Lateness of every start in microseconds.
    pub late_us: u64,
    /// Lateness of the ends of think times in microseconds.
    pub think_late_us: u64,
    /// Every n-th start, or think time, is late; the others are not.
    pub late_every: u64,
    /// Think time of servers in seconds; 0 if they do not think.
    pub think_s: f64,
    /// Limits of the robots.
    pub limits: RobotLimits,
    /// A step of the clock in the middle of the run, in nanoseconds.
    pub clock_step_ns: i64,
    /// Every n-th transaction has this error.
    pub error: Option<(usize, ErrorKind)>,
    /// Second from which this error occurs.
    pub error_from: f64,
    /// The status of replies with a bad status.
    pub status: u16,
    /// One in this many replies is not verified.
    pub unverified: Option<u64>,
    /// One in this many good transactions is the refusal of a bad certificate.
    pub refusals: Option<u64>,
    /// Every m-th transaction has this error.
    pub second_error: Option<(usize, ErrorKind)>,
    /// Servers count this error this many times in each interval.
    pub server_error: Option<(u64, ErrorKind)>,
    /// The server error occurs only in intervals that start before this second.
    pub server_error_until: f64,
    /// Times in seconds to set up a connection; robots open one of each in each interval.
    pub setups: Vec<f64>,
    /// Requests that robots send again in each interval, and how many of these the peer did not process.
    pub sent_again: (u64, u64),
    /// So many requests have been waiting for an answer for so many seconds at the end of each interval.
    pub unanswered: (u64, u64),
    /// Whether the robots compare bodies.
    pub verify: bool,
    /// Whether robots compare complete bodies, not only their first bytes.
    pub compare: bool,
    /// Whether the log has transactions of all classes, pages, kinds of content, look-ups and all other features of the
    /// models, and a cache that is too small.
    pub rich: bool,
    /// Intervals that start between these seconds are not written.
    pub lost: Option<(f64, f64)>,
    /// Stalls of the client and the server, in seconds.
    pub stalls: [Option<(f64, f64)>; 2],
    /// The end of the log; `None` for a killed process.
    pub end: Option<EndReason>,
    /// Launches per second that robots skip for parts of pages.
    pub skipped_rate: f64,
    /// The process ends after this many seconds, regardless of the plan.
    pub stop_at: Option<f64>,
    /// From this second on, nothing is answered.
    pub silent_from: Option<f64>,
    /// The device starts with an empty cache: after this many seconds only a share 1/e of the hits is still missed.
    pub cold: Option<f64>,
    /// Mean response times of hits and of all other transactions in seconds.
    pub means: [f64; 2],
    /// Standard deviation of response times as a share of their mean.
    pub spread: f64,
    /// Correlated variation of response times: standard deviation as a share of the mean, and correlation time in
    /// seconds.
    pub wander: Option<(f64, f64)>,
    /// The text of the workload.
    pub workload_text: String,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            rate: 100.0,
            started_share: 1.0,
            page: 1,
            parts_wait: false,
            capacity: 1e9,
            open_limit: usize::MAX,
            phases: [4.0, 30.0, 2.0],
            loads: [PlannedLoad::FULL; 3],
            busy: 0.2,
            throttled: [0.0; 2],
            late_us: 150,
            think_late_us: 150,
            late_every: 1,
            think_s: 0.0,
            limits: RobotLimits::default(),
            clock_step_ns: 0,
            error: None,
            error_from: 0.0,
            status: 503,
            unverified: None,
            refusals: None,
            second_error: None,
            server_error: None,
            server_error_until: f64::MAX,
            setups: Vec::new(),
            sent_again: (0, 0),
            unanswered: (0, 0),
            verify: true,
            compare: true,
            rich: false,
            lost: None,
            stalls: [None; 2],
            end: Some(EndReason::Finished),
            skipped_rate: 0.0,
            stop_at: None,
            silent_from: None,
            cold: None,
            means: [0.012, 3.0],
            spread: 0.3,
            wander: None,
            workload_text: String::new(),
            seed: 1,
        }
    }
}

/// A transaction of the simulation.
struct Xact {
    begin: f64,
    end: f64,
    class: Class,
    size: u64,
    offered_hit: bool,
    error: Option<ErrorKind>,
    /// Number of parts of the page that starts with this transaction.
    page: Option<u64>,
    /// Whether it was launched by the clock, not as a part of a page.
    direct: bool,
}

/// The pseudo-random generator SplitMix64 (Steele, Lea and Flood 2014).
struct Rng(u64);

impl Rng {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// A factor that varies around 1: an autoregressive process of first order with steps of a second.
struct Wander {
    rng: Rng,
    process: Option<(f64, f64)>,
    second: f64,
    value: f64,
}

impl Wander {
    fn new(run: &Run) -> Wander {
        Wander { rng: Rng(run.seed ^ 0xaaaa), process: run.wander, second: 0.0, value: 0.0 }
    }

    fn at(&mut self, now: f64) -> f64 {
        let Some((deviation, seconds)) = self.process else { return 1.0 };
        let keep = (-1.0 / seconds).exp();
        while self.second < now {
            let normal = (0..12).map(|_| self.rng.unit()).sum::<f64>() - 6.0;
            self.value = keep * self.value + deviation * (1.0 - keep * keep).sqrt() * normal;
            self.second += 1.0;
        }
        (1.0 + self.value).max(0.1)
    }
}

impl Run {
    /// The client's log.
    pub fn client(&self) -> Log {
        read("client.log", &self.bytes(Side::Client))
    }

    /// The server's log of the client's misses.
    pub fn server(&self) -> Log {
        read("server.log", &self.bytes(Side::Server))
    }

    /// The logs of both sides.
    pub fn logs(&self) -> Vec<Log> {
        vec![self.client(), self.server()]
    }

    fn length(&self) -> f64 {
        self.stop_at.unwrap_or(f64::MAX).min(self.phases.iter().sum())
    }

    /// The load at a time, which changes evenly in each phase.
    fn load(&self, at: f64) -> f64 {
        let mut begin = 0.0;
        for (length, load) in self.phases.iter().zip(&self.loads) {
            if at < begin + length {
                return load.beg + (load.end - load.beg) * (at - begin) / length;
            }
            begin += length;
        }
        1.0
    }

    fn xacts(&self) -> Vec<Xact> {
        let mut rng = Rng(self.seed);
        let mut wander = Wander::new(self);
        let (mut now, mut served, mut answered, mut all) = (0.0, 0.0, 0.0, Vec::<Xact>::new());
        let mut running: Vec<f64> = Vec::new();
        let mut left = 0;
        while now < self.length() {
            let mut page = None;
            let direct = left == 0;
            if direct {
                let mean = (1 + self.page) as f64 / 2.0;
                now += rng.exponential(mean / (self.rate * self.started_share * self.load(now)));
                if self.page > 1 {
                    left = 1 + (rng.unit() * self.page as f64) as u64;
                    page = Some(left);
                } else {
                    left = 1;
                }
            }
            left -= 1;
            let begin = if direct || !self.parts_wait { now } else { answered };
            let draw = rng.unit();
            let (class, mean) = match draw {
                d if d < 0.55 && self.cold.is_some_and(|s| rng.unit() < (-now / s).exp()) => {
                    (Class::Miss, self.means[1])
                }
                d if d < 0.55 => (Class::Hit, self.means[0]),
                d if d < 0.80 => (Class::Miss, self.means[1]),
                _ => (Class::Uncachable, self.means[1]),
            };
            // The sum of three uniform numbers has a standard deviation of 1/2.
            let spread = (rng.unit() + rng.unit() + rng.unit() - 1.5) * 2.0 * self.spread + 1.0;
            let mean = mean * wander.at(now);
            running.retain(|end| *end > begin);
            let n = all.len() + 1;
            let due = |(every, kind): (usize, ErrorKind)| n.is_multiple_of(every).then_some(kind);
            let mut error = self
                .error
                .filter(|_| begin >= self.error_from)
                .and_then(due)
                .or(self.second_error.and_then(due));
            let mut end = begin + mean * spread;
            if running.len() >= self.open_limit {
                (error, end) = (Some(ErrorKind::TooManyOpen), begin);
            } else if begin <= now {
                // Parts that wait do not queue at the device, because they are not due yet.
                served = f64::max(served, begin) + 1.0 / self.capacity;
                end += served - begin;
            }
            if self.silent_from.is_some_and(|from| end >= from) {
                end = f64::MAX;
            }
            running.push(end);
            if direct {
                answered = end;
            }
            let size = 300 + rng.exponential(13e3) as u64;
            all.push(Xact { begin, end, class, size, offered_hit: draw < 0.555, error, page, direct });
        }
        all
    }

    /// The bytes of the log of one side.
    pub fn bytes(&self, side: Side) -> Vec<u8> {
        match side {
            Side::Client => Run { think_s: 0.0, ..self.clone() }.written(side),
            Side::Server => Run { late_us: self.think_late_us, ..self.clone() }.written(side),
        }
    }

    fn written(&self, side: Side) -> Vec<u8> {
        let mut xacts = self.xacts();
        if side == Side::Server {
            xacts.retain(|x| x.class != Class::Hit);
            // Statistics that only robots have.
            for x in &mut xacts {
                x.error = x.error.filter(|kind| kind.sides() != Sides::Client);
            }
        }
        let mut events: Vec<(f64, usize, bool)> = xacts
            .iter()
            .enumerate()
            .flat_map(|(i, x)| [(x.begin, i, true), (x.end, i, false)])
            .filter(|(at, _, _)| *at <= self.length())
            .collect();
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.2.cmp(&a.2)));
        let mut events = events.into_iter().peekable();

        let mut bytes = Vec::new();
        let mut log = LogWriter::new(&mut bytes).expect("memory");
        let mut write = |record: Record| log.write(&record).expect("memory");
        write(Record::Header(Box::new(self.header(side))));
        write(Record::Comment { at_ns: 0, level: 1, text: "phases: warm, meas, cool".into() });
        if let Some((from, to)) = self.stalls[side as usize] {
            let (begin_ns, end_ns) = ((from * SECOND) as u64, (to * SECOND) as u64);
            write(Record::Stall(Stall { begin_ns, end_ns, loops: 1 }));
        }
        let (mut begin, mut block, mut samples) = (0.0, Block::new(), Vec::new());
        let mut unfinished = 0;
        for (phase, seconds) in self.phases.iter().enumerate() {
            let phase_end = (begin + seconds).min(self.length());
            if self.length() <= begin {
                break;
            }
            write(Record::PhaseBegin { at_ns: (begin * SECOND) as u64, phase: phase as u32 });
            while begin < phase_end - 1e-9 {
                let end = (begin + 1.0).min(phase_end);
                while let Some((at, index, begins)) = events.next_if(|event| event.0 < end) {
                    let sample = self.count(&mut block, &xacts[index], at, begins);
                    if let Some((kind, Evidence { detail, facts })) = sample {
                        samples.push(kind);
                        if samples.iter().filter(|known| **known == kind).count() > 4 {
                            continue;
                        }
                        write(Record::ErrorSample { at_ns: (at * SECOND) as u64, kind, detail, facts });
                    }
                }
                if let Some((count, kind)) =
                    self.server_error.filter(|_| side == Side::Server && begin < self.server_error_until)
                {
                    (0..count).for_each(|_| block.count_error(kind));
                }
                if side == Side::Client {
                    (block.retried, block.streams.unprocessed) = self.sent_again;
                    let (requests, seconds) = self.unanswered;
                    (0..requests).for_each(|_| block.unanswered.count(seconds * SECOND as u64));
                }
                for setup in self.setups.iter().filter(|_| side == Side::Client) {
                    let nanos = |seconds: f64| polygraph_stats::Nanos::new((seconds * SECOND) as u64);
                    block.set_up_connection(nanos(end - setup), nanos(end));
                }
                if self.rich && side == Side::Server {
                    spread(&mut block);
                }
                block.skipped_launches = (self.skipped_rate * (end - begin)) as u64;
                block.close((end * SECOND) as u64);
                unfinished = block.xacts.last;
                let cpu_ns = ((end - begin) * self.busy * SECOND) as u64;
                let middle = begin <= self.length() / 2.0 && end > self.length() / 2.0;
                let mut next = Block::new();
                next.begin_after(&block);
                let interval = Record::Interval(Box::new(Interval {
                    phase: phase as u32,
                    begin_ns: (begin * SECOND) as u64,
                    end_ns: (end * SECOND) as u64,
                    cpu_ns,
                    busiest_loop_ns: cpu_ns,
                    throttled_ns: ((end - begin) * self.throttled[side as usize] * SECOND) as u64,
                    rss_bytes: 40 << 20,
                    clock_step_ns: if middle { self.clock_step_ns } else { 1000 },
                    block: std::mem::replace(&mut block, next),
                }));
                if self.lost.is_none_or(|(from, to)| begin < from || begin >= to) {
                    write(interval);
                }
                begin = end;
            }
            let planned: f64 = self.phases[..=phase].iter().sum();
            let complete = begin >= planned - 1e-9;
            if complete || self.end.is_some() {
                write(Record::PhaseEnd { at_ns: (begin * SECOND) as u64, phase: phase as u32, complete });
            }
        }
        if let Some(reason) = &self.end {
            write(Record::End { at_ns: (begin * SECOND) as u64, reason: reason.clone(), unfinished });
        }
        bytes
    }

    fn count(&self, block: &mut Block, x: &Xact, at: f64, begins: bool) -> Option<(ErrorKind, Evidence)> {
        let at_ns = (at * SECOND) as u64;
        if begins {
            block.xacts.enter(polygraph_stats::Nanos::new(at_ns));
            block.conns.enter(polygraph_stats::Nanos::new(at_ns));
            if x.direct {
                let is_late = block.late_us.count().is_multiple_of(self.late_every);
                block.late_us.record(if is_late { self.late_us } else { 150 });
            }
            if self.think_s > 0.0 {
                block.think_us.record((1e6 * self.think_s) as u64);
            }
            return None;
        }
        block.xacts.leave(polygraph_stats::Nanos::new(at_ns));
        block.conns.leave(polygraph_stats::Nanos::new(at_ns));
        let us = ((x.end - x.begin) * 1e6) as u64;
        if let Some(parts) = x.page {
            block.page(us, x.size, parts);
        }
        block.close_connection(CloseKind::Busy, us, 1);
        let sample = x.error.map(|kind| {
            block.count_error(kind);
            if kind == ErrorKind::BadStatus {
                block.fail(self.status, us, x.size, true);
            }
            (kind, evidence(at_ns))
        });
        if x.error.is_none_or(|kind| !kind.fails()) {
            let done = Finished {
                class: x.class,
                rptm_us: us,
                due_rptm_us: Some(us + self.late_us),
                size: x.size,
                offered_hit: x.offered_hit,
                embedded: !x.direct,
                first: !x.offered_hit,
                ..Finished::default()
            };
            if self.refusals.is_some_and(|every| block.ok_count().is_multiple_of(every)) {
                block.tls.refusals.at_mut(503).record(us, x.size);
            } else if self.rich {
                rich(block, done, at_ns);
            } else {
                block.finish(&done);
            }
            block.reads.record(x.size);
            block.writes.record(250);
            // Objects are requested once or twice, half of these three times, and so on.
            let again = 2 + u64::from(block.ok_count().trailing_zeros());
            block.ordinals.record(if x.offered_hit { again } else { 1 });
            if self.verify {
                let skipped = self.unverified.is_some_and(|every| block.ok_count().is_multiple_of(every));
                block.verified.replies += u64::from(!skipped);
                let compared = if self.compare { x.size - 250 } else { 1 };
                block.verified.bytes += compared;
                block.verified.uncompared += x.size - 250 - compared;
                block.verified.due += 1;
                block.verified.digests += u64::from(x.class == Class::Miss);
            }
        }
        sample
    }

    fn header(&self, side: Side) -> Header {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let plan = |(i, name): (usize, &str)| PlannedPhase {
            log_stats: true,
            name: name.into(),
            primary: i == 1,
            duration_s: Some(self.phases[i]),
            xactions: None,
            fill_bytes: None,
            errors: Some(0.3),
            load: self.loads[i],
        };
        Header {
            side,
            version: "0.1.0".into(),
            label: "test".into(),
            start_unix_ns: 920_863_899_000_000_000,
            pid: 4711,
            environment: vec![
                pair("kernel", "Linux 6.1.0"),
                pair("processors", "2"),
                pair("descriptors", "20000"),
            ],
            command: [
                "polyclt",
                "--proxy",
                "127.0.0.1:3128",
                "--req_rate",
                "100/sec",
                "--label",
                "a <label>",
            ]
            .map(String::from)
            .to_vec(),
            settings: vec![pair("rep_cachable", "80%"), pair("dhr", "55%"), pair("req_rate", "100/sec")],
            workload: "PolyMix-1".into(),
            loops: 1,
            phases: ["warm", "meas", "cool"].into_iter().enumerate().map(plan).collect(),
            offered_rate: (side == Side::Client).then_some(self.rate),
            offered_dhr: Some(0.55),
            limits: if side == Side::Client { self.limits.clone() } else { RobotLimits::default() },
            contents: if self.rich {
                ["foreign", "bodiless", "unknown", "image", "html"].map(String::from).to_vec()
            } else {
                Vec::new()
            },
            workload_text: self.workload_text.clone(),
        }
    }
}

fn evidence(at_ns: u64) -> Evidence {
    Evidence::new(format!("http://127.0.0.1:8080/w06.1/t05/_{at_ns:08x} <b>&"))
        .fact(fact::REQUEST, "GET basic")
        .fact(fact::ROBOT, "17")
        .fact(fact::SERVER, "10.0.0.1:80")
        .expected("4096 bytes", "4095 bytes")
        .fact(fact::HEADER, "Via: 1.1 <device>")
}

/// Two servers behind a device that sends three quarters of the requests to the first, and checks the health of both.
fn spread(block: &mut Block) {
    let requests = block.xacts.entered;
    for (place, (address, share)) in [("10.0.0.1:80", 3), ("10.0.0.2:80", 1)].into_iter().enumerate() {
        let server = block.servers.at_mut(place, address);
        server.requests = requests * share / 4;
        server.failed = server.requests / 50;
        let replies = server.requests - server.failed;
        server.rptm_us.record_n(4_000 * share, replies);
        server.bytes = 13_000 * replies;
        server.unmarked = 1;
    }
}

/// A transaction of a full workload: every eighth is of a special class, and a third of the offered hits is missed.
fn rich(block: &mut Block, done: Finished, at_ns: u64) {
    let n = block.ok_count();
    let special: Vec<Class> = Class::ALL.into_iter().filter(|class| !class.is_basic()).collect();
    let class = if n % 8 == 7 { special[(n / 8) as usize % special.len()] } else { done.class };
    let missed = class == Class::Hit && n.is_multiple_of(3);
    let class = if missed { Class::Miss } else { class };
    let done = Finished {
        class,
        status: if class == Class::Ims304 { 304 } else { done.status },
        request_size: 280,
        kind: Some(3 + usize::from(n.is_multiple_of(5))),
        embedded: !n.is_multiple_of(5),
        first: class != Class::Hit && !missed,
        version: if n.is_multiple_of(4) { HttpVersion::Http2 } else { HttpVersion::Http11 },
        ..done
    };
    block.finish(&done);
    if missed {
        let cause = if n.is_multiple_of(4) { MissCause::InFlight } else { MissCause::Evicted };
        block.miss(cause, done.size);
        block.since_transfer(false, 60_000 + n);
    } else if class == Class::Hit {
        block.since_transfer(true, 5_000 + n);
    }
    if n.is_multiple_of(5) {
        block.page(9_000, 40_000, 5);
        block.cookies.sent.record(2);
        block.cookies.received.record(1);
        block.cookies.updated += 1;
        block.dns.lookups += 2;
        block.dns.cache_hits += 1;
        block.dns.rptm_us.record(700);
        block.continue_us.record(1_500);
        let tls = &mut block.tls;
        tls.full_us.record(4_000);
        tls.resumed_us.record(1_500);
        tls.early_us.record(900);
        tls.offered += 2;
        tls.versions.add(0x0304, 3);
        tls.ciphers.add(0x1302, 3);
        tls.groups.add(0x001d, 3);
        tls.alerts.add(48, 1);
        tls.issuers.add("Polygraph CA", 1);
        tls.stapled += 1;
        tls.staples.add("good, next update 2026-11-25 19:00 UTC", 1);
        tls.transactions.record(9_000, 4_000);
        tls.ready_rptm_us.record(5_000);
        tls.connects.record(800, 39);
        tls.tunneled.record(9_000, 4_000);
        tls.refused_handshakes += 1;
        tls.refused_faults.add("expired", 2);
        tls.accepted_faults.add("self_signed", 1);
        block.conn_setup_us.record(400);
        block.socks.opened_us.record(900);
        block.socks.transactions.record(done.rptm_us, done.size);
        block.socks.hits.add(done.size);
        block.kerberos.login_us.record(8_000);
        block.kerberos.ticket_us.record(600);
        block.waiting.enter(polygraph_stats::Nanos::new(at_ns));
        block.waiting.leave(polygraph_stats::Nanos::new(at_ns + 1));
        block.pipeline_depth.record(3);
        block.streams.concurrent.record(1 + n % 7);
        block.streams.per_connection.record(10);
        block.streams.sent += 300;
        block.streams.received += 14_000;
        block.streams.received_content += 13_000;
        block.streams.resets += u64::from(n.is_multiple_of(25));
        block.streams.refused += u64::from(n.is_multiple_of(50));
        block.streams.goaways += u64::from(n.is_multiple_of(35));
        block.streams.packets += 3;
        block.streams.lost_packets += u64::from(n.is_multiple_of(40));
        block.validations.useless.record(400, 200);
        block.validations.useful.record(800, 9_000);
        block.basic_marked += 1;
        block.unmarked += u64::from(n.is_multiple_of(60));
        block.first_hand_uploads += u64::from(n.is_multiple_of(70));
    }
    block.reused += u64::from(n.is_multiple_of(2));
    block.close_connection(CloseKind::IdleForeign, 20_000, 4);
}

/// Reads a log from memory.
pub fn read(name: &str, bytes: &[u8]) -> Log {
    Log::read(name, bytes).expect("a signature and a header")
}

/// The log as it is read with the bins of these histograms only.
pub fn with_bins(log: &Log, bins: BinSet) -> Log {
    let mut records = log.log.records.clone();
    for record in &mut records {
        if let Record::Interval(interval) = record {
            interval.block.keep_bins(bins);
        }
    }
    let (header, missing) = (log.log.header.clone(), log.log.missing.clone());
    Log { name: log.name.clone(), log: ReadLog { header, records, missing } }
}
