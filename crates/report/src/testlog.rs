//! Plausible logs for tests: a small simulation of robots, a device and servers, written in the real format.

use polygraph_stats::record::{EndReason, Header, Interval, PhasePlan, Record, Side};
use polygraph_stats::{Block, Class, ErrorKind, LogReader, LogWriter, ReadLog};

use crate::fold::Log;

const SECOND: f64 = 1e9;

/// What to simulate. Change what a test is about.
#[derive(Clone, Debug)]
pub struct Run {
    /// Starts per second.
    pub rate: f64,
    /// Started in reality, as a share of `rate`.
    pub started_share: f64,
    /// What the device can do per second.
    pub capacity: f64,
    /// Concurrent transactions that the robots allow themselves.
    pub open_limit: usize,
    /// Lengths of the phases warm, meas and cool in seconds.
    pub phases: [f64; 3],
    /// Share of the time that the busiest loop is at work.
    pub busy: f64,
    /// Lateness of every start in microseconds.
    pub late_us: u64,
    /// A step of the clock in the middle of the run, in nanoseconds.
    pub clock_step_ns: i64,
    /// Every n-th transaction has this error.
    pub error: Option<(usize, ErrorKind)>,
    /// Intervals that begin between these seconds are not written.
    pub lost: Option<(f64, f64)>,
    /// How the log ends; `None` is a killed process.
    pub end: Option<EndReason>,
    /// The process ends after so many seconds, whatever the plan says.
    pub stop_at: Option<f64>,
    /// Changes the random numbers.
    pub seed: u64,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            rate: 100.0,
            started_share: 1.0,
            capacity: 1e9,
            open_limit: usize::MAX,
            phases: [4.0, 30.0, 2.0],
            busy: 0.2,
            late_us: 150,
            clock_step_ns: 0,
            error: None,
            lost: None,
            end: Some(EndReason::Finished),
            stop_at: None,
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
}

/// SplitMix64.
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

impl Run {
    /// The client's log.
    pub fn client(&self) -> Log {
        read("client.log", &self.bytes(Side::Client))
    }

    /// The server's log: what the client's misses look like from there.
    pub fn server(&self) -> Log {
        read("server.log", &self.bytes(Side::Server))
    }

    /// Both.
    pub fn logs(&self) -> Vec<Log> {
        vec![self.client(), self.server()]
    }

    fn length(&self) -> f64 {
        self.stop_at.unwrap_or(f64::MAX).min(self.phases.iter().sum())
    }

    fn xacts(&self) -> Vec<Xact> {
        let mut rng = Rng(self.seed);
        let (mut now, mut served, mut all) = (0.0, 0.0, Vec::<Xact>::new());
        let mut running: Vec<f64> = Vec::new();
        while now < self.length() {
            now += rng.exponential(1.0 / (self.rate * self.started_share));
            let draw = rng.unit();
            let (class, mean) = match draw {
                d if d < 0.55 => (Class::Hit, 0.012),
                d if d < 0.80 => (Class::Miss, 3.0),
                _ => (Class::Uncachable, 3.0),
            };
            let spread = (rng.unit() + rng.unit() + rng.unit() - 1.5) * 0.6 + 1.0;
            running.retain(|end| *end > now);
            let n = all.len() + 1;
            let mut error = self.error.filter(|(every, _)| n.is_multiple_of(*every)).map(|(_, kind)| kind);
            served = f64::max(served, now) + 1.0 / self.capacity;
            let mut end = served + mean * spread;
            if running.len() >= self.open_limit {
                (error, end) = (Some(ErrorKind::TooManyOpen), now);
                served -= 1.0 / self.capacity;
            }
            running.push(end);
            let size = 300 + rng.exponential(13e3) as u64;
            all.push(Xact { begin: now, end, class, size, offered_hit: draw < 0.555, error });
        }
        all
    }

    /// The log of one side as it would be on disk.
    pub fn bytes(&self, side: Side) -> Vec<u8> {
        let xacts: Vec<Xact> =
            self.xacts().into_iter().filter(|x| side == Side::Client || x.class != Class::Hit).collect();
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
        let (mut begin, mut block, mut samples) = (0.0, Block::new(), 0);
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
                    if let Some((kind, detail)) = sample.filter(|_| samples < 4) {
                        samples += 1;
                        write(Record::ErrorSample {
                            at_ns: (at * SECOND) as u64,
                            kind,
                            detail,
                            facts: Vec::new(),
                        });
                    }
                }
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

    fn count(&self, block: &mut Block, x: &Xact, at: f64, begins: bool) -> Option<(ErrorKind, String)> {
        let at_ns = (at * SECOND) as u64;
        if begins {
            block.xacts.enter(at_ns);
            block.conns.enter(at_ns);
            block.late_us.record(self.late_us);
            return None;
        }
        block.xacts.leave(at_ns);
        block.conns.leave(at_ns);
        let us = ((x.end - x.begin) * 1e6) as u64;
        block.conn_ttl_us.record(us);
        block.conn_uses.record(1);
        let sample = x.error.map(|kind| {
            block.count_error(kind);
            (kind, format!("http://127.0.0.1:8080/w06.1/t05/_{:08x} <b>&", at_ns))
        });
        if x.error.is_none_or(|kind| !kind.fails()) {
            let stats = block.class_mut(x.class);
            stats.rptm_us.record(us);
            stats.due_rptm_us.record(us + self.late_us);
            stats.size.record(x.size);
            block.bytes_read += x.size;
            block.bytes_written += 250;
            if x.offered_hit {
                block.offered_hits.add(x.size);
            }
        }
        sample
    }

    fn header(&self, side: Side) -> Header {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let plan = |(i, name): (usize, &str)| PhasePlan {
            log_stats: true,
            name: name.into(),
            primary: i == 1,
            duration_s: Some(self.phases[i]),
            xactions: None,
            fill_bytes: None,
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
            contents: Vec::new(),
        }
    }
}

/// Reads a log from memory.
pub fn read(name: &str, bytes: &[u8]) -> Log {
    let reader = LogReader::new(bytes, name).expect("a signature");
    Log { name: name.into(), log: ReadLog::read(reader, name).expect("a header") }
}
