//! The statistics of one side: merges the interval reports of its loops and writes the log.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;

use polygraph_link::Nanos;
use polygraph_stats::stall::Stall;
use polygraph_stats::{
    Block, EndReason, ErrorSample, Header, Interval, LogWriter, Record, TransactionSample,
};

use crate::channels::IntervalReport;
use crate::control_group::Throttling;
use crate::host::Host;
use crate::transaction_samples::TransactionSamples;

/// The most examples of one error class in an interval.
const SAMPLES_PER_CLASS: usize = 4;

/// Merges the statistics of one side and writes its log.
#[derive(Debug)]
pub struct SideAggregator {
    host: Host,
    header: Header,
    start: Nanos,
    log: Option<LogWriter<std::fs::File>>,
    /// The log for transaction samples, if it is separate.
    sample_log: Option<LogWriter<std::fs::File>>,
    samples: TransactionSamples,
    /// The channels that return used statistics blocks, by loop.
    recycled: Vec<Sender<Box<Block>>>,
    /// The loop whose block the last complete interval has.
    lender: usize,
    /// Intervals that not all loops have delivered, by end.
    open: BTreeMap<Nanos, Pending>,
    throttling: Throttling,
    /// Time of day minus monotonic time at the last interval, in nanoseconds.
    clock_offset: i128,
    unfinished: u64,
    /// Errors that occurred outside all loops, for the next interval.
    errors: Vec<ErrorSample>,
    /// The end of the last complete interval, in nanoseconds since the start.
    delivered: u64,
}

#[derive(Debug)]
struct Pending {
    missing: usize,
    /// The block is that of the loop that was the first to report, with the blocks of all later ones.
    interval: Interval,
    lender: usize,
    samples: Vec<ErrorSample>,
    taken: Vec<TransactionSample>,
    stalls: Vec<Stall>,
    /// Resident memory in bytes of the processes that run the loops, by process id.
    memory: BTreeMap<u32, u64>,
}

impl SideAggregator {
    /// Starts at `start` and opens the log at `path`, and a log for transaction samples at `sample_path`, if these
    /// are given.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn open(
        host: Host,
        mut header: Header,
        start: Nanos,
        [path, sample_path]: [Option<&Path>; 2],
        samples: TransactionSamples,
        recycled: Vec<Sender<Box<Block>>>,
    ) -> io::Result<SideAggregator> {
        header.start_unix_ns = (i128::from(start.as_u64()) + host.clock_offset()) as u64;
        header.loops = recycled.len() as u32;
        let log = path.map(LogWriter::create).transpose()?;
        let mut sample_log = sample_path.map(LogWriter::create).transpose()?;
        if let Some(log) = &mut sample_log {
            log.write(&Record::Header(Box::new(header.clone())))?;
        }
        Ok(SideAggregator {
            host,
            header,
            start,
            log,
            sample_log,
            samples,
            recycled,
            lender: 0,
            open: BTreeMap::new(),
            throttling: host.throttling(),
            clock_offset: host.clock_offset(),
            unfinished: 0,
            errors: Vec::new(),
            delivered: 0,
        })
    }

    /// The header of the log.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// End of the last complete interval in nanoseconds since the start of the run.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Nanoseconds from the start of the run to `at`.
    pub fn since_start(&self, at: Nanos) -> u64 {
        at.saturating_sub(self.start).as_u64()
    }

    /// Writes a record.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        let log = match (record, &mut self.sample_log) {
            (Record::Xacts { .. }, Some(log)) => Some(log),
            (Record::End { .. }, Some(log)) => {
                log.write(record)?;
                self.log.as_mut()
            }
            _ => self.log.as_mut(),
        };
        log.map_or(Ok(()), |log| log.write(record))
    }

    /// Adds an error that occurred outside all loops.
    pub fn note_error(&mut self, error: ErrorSample) {
        self.errors.push(error);
    }

    /// Merges the report of a loop. If that completes an interval, its records are written and returned.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn take(&mut self, from: IntervalReport) -> io::Result<Vec<Record>> {
        let IntervalReport {
            index,
            phase,
            begin,
            end,
            block,
            samples,
            taken,
            cpu_ns,
            process,
            rss_bytes,
            stalls,
            ..
        } = from;
        let pending = match self.open.entry(end) {
            Entry::Occupied(open) => {
                let pending = open.into_mut();
                pending.interval.block.merge(&block);
                // A loop that has ended does not need the block.
                let _ = self.recycled[index].send(block);
                pending
            }
            Entry::Vacant(place) => place.insert(Pending {
                missing: self.recycled.len(),
                interval: Interval {
                    phase: phase as u32,
                    begin_ns: begin.saturating_sub(self.start).as_u64(),
                    end_ns: end.saturating_sub(self.start).as_u64(),
                    cpu_ns: 0,
                    busiest_loop_ns: 0,
                    throttled_ns: 0,
                    rss_bytes: 0,
                    clock_step_ns: 0,
                    block: *block,
                },
                lender: index,
                samples: Vec::new(),
                taken: Vec::new(),
                stalls: Vec::new(),
                memory: BTreeMap::new(),
            }),
        };
        pending.missing -= 1;
        pending.memory.insert(process, rss_bytes);
        pending.interval.cpu_ns += cpu_ns;
        pending.interval.busiest_loop_ns = pending.interval.busiest_loop_ns.max(cpu_ns);
        pending.samples.extend(samples);
        pending.taken.extend(taken);
        pending.stalls.extend(stalls);
        match pending.missing {
            0 => self.finish(end),
            _ => Ok(Vec::new()),
        }
    }

    /// Takes back the records that [`SideAggregator::take`] has returned: a loop uses the memory of their block again.
    pub fn recycle(&self, records: Vec<Record>) {
        for record in records {
            if let Record::Interval(interval) = record {
                let _ = self.recycled[self.lender].send(Box::new(interval.block));
            }
        }
    }

    fn finish(&mut self, end: Nanos) -> io::Result<Vec<Record>> {
        let Some(Pending { mut interval, lender, mut samples, taken, stalls, mut memory, .. }) =
            self.open.remove(&end)
        else {
            return Ok(Vec::new());
        };
        self.lender = lender;
        for error in self.errors.drain(..) {
            interval.block.count_error(error.kind);
            samples.push(error);
        }
        let offset = self.host.clock_offset();
        interval.clock_step_ns = (offset - self.clock_offset) as i64;
        self.clock_offset = offset;
        let per_loop = self.throttling.take_ns() / self.recycled.len().max(1) as u64;
        interval.throttled_ns = per_loop.min(interval.end_ns.saturating_sub(interval.begin_ns));
        memory.insert(self.host.process(), self.host.resident_bytes());
        interval.rss_bytes = memory.values().sum();
        self.unfinished = interval.block.xacts.last;
        self.delivered = interval.end_ns;
        keep_few(&mut samples);
        let mut records = vec![Record::Interval(Box::new(interval))];
        records.extend(samples.into_iter().map(|sample| Record::ErrorSample {
            at_ns: self.since_start(Nanos::new(sample.at_ns)),
            kind: sample.kind,
            detail: sample.evidence.detail,
            facts: sample.evidence.facts,
        }));
        records.extend(Stall::united(stalls).into_iter().map(|stall| {
            let (begin_ns, end_ns) =
                (self.since_start(Nanos::new(stall.begin_ns)), self.since_start(Nanos::new(stall.end_ns)));
            Record::Stall(Stall { begin_ns, end_ns, ..stall })
        }));
        records.extend(self.samples.records(taken, self.start, self.delivered));
        for record in &records {
            self.write(record)?;
        }
        Ok(records)
    }

    /// Writes and returns the last records: incomplete intervals and the end.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn close(&mut self, at: Nanos, reason: EndReason) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        while let Some((&end, pending)) = self.open.first_key_value() {
            if pending.missing > 0 {
                let text = format!(
                    "{} of {} loops did not deliver their last interval",
                    pending.missing,
                    self.recycled.len()
                );
                let comment = Record::Comment { at_ns: self.since_start(end), level: 0, text };
                self.write(&comment)?;
                records.push(comment);
            }
            records.extend(self.finish(end)?);
        }
        for record in self.samples.close(self.since_start(at)) {
            self.write(&record)?;
            records.push(record);
        }
        let end = Record::End { at_ns: self.since_start(at), reason, unfinished: self.unfinished };
        self.write(&end)?;
        records.push(end);
        Ok(records)
    }
}

/// Keeps the earliest examples of each class over all loops, in order of time.
fn keep_few(samples: &mut Vec<ErrorSample>) {
    samples.sort_by_key(|sample| sample.at_ns);
    let mut kept = HashMap::new();
    samples.retain(|sample| {
        let count = kept.entry(sample.kind).or_insert(0);
        *count += 1;
        *count <= SAMPLES_PER_CLASS
    });
}
