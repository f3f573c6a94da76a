//! The aggregator of one side: merges what its loops hand over into intervals, writes the log, tells observers.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;

use polygraph_link::Nanos;
use polygraph_stats::stall::Stall;
use polygraph_stats::{
    Block, EndReason, ErrorSample, Header, Interval, LogWriter, Record, TransactionSample,
};

use crate::host::Host;
use crate::loop_driver::IntervalReport;
use crate::transaction_samples::TransactionSamples;

/// Examples of errors of one class written per interval, at most.
const SAMPLES_PER_CLASS: usize = 4;

/// The aggregator of one side of a run.
#[derive(Debug)]
pub struct SideAggregator {
    host: Host,
    header: Header,
    start: Nanos,
    log: Option<LogWriter<std::fs::File>>,
    /// Where samples of single transactions go, if not into the log.
    sample_log: Option<LogWriter<std::fs::File>>,
    samples: TransactionSamples,
    /// Where used blocks go back to, by loop.
    back: Vec<Sender<Box<Block>>>,
    /// Intervals for which not all loops have delivered yet, by end.
    open: BTreeMap<Nanos, Pending>,
    /// Difference of the time of day to the monotonic clock at the last interval.
    clock_offset: i128,
    unfinished: u64,
    /// Errors that no loop counts, for the next interval.
    errors: Vec<ErrorSample>,
    /// End of the last complete interval, since the start.
    delivered: u64,
}

#[derive(Debug)]
struct Pending {
    missing: usize,
    interval: Interval,
    samples: Vec<ErrorSample>,
    taken: Vec<TransactionSample>,
    stalls: Vec<Stall>,
    /// Resident memory of the processes that loops live in, by process id.
    memory: BTreeMap<u32, u64>,
}

impl SideAggregator {
    /// Opens the aggregator at `start`, with the log at `path` if there is to be one, and samples of single transactions at
    /// `sample_path` if they are to have a log of their own.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn open(
        host: Host,
        mut header: Header,
        start: Nanos,
        [path, sample_path]: [Option<&Path>; 2],
        samples: TransactionSamples,
        back: Vec<Sender<Box<Block>>>,
    ) -> io::Result<SideAggregator> {
        header.start_unix_ns = (start as i128 + host.clock_offset()) as u64;
        header.loops = back.len() as u32;
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
            back,
            open: BTreeMap::new(),
            clock_offset: host.clock_offset(),
            unfinished: 0,
            errors: Vec::new(),
            delivered: 0,
        })
    }

    /// What the run is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// End of the last complete interval in nanoseconds since the start of the run.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Nanoseconds from the start of the run to `at`.
    pub fn since_start(&self, at: Nanos) -> u64 {
        at.saturating_sub(self.start)
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

    /// Counts an error that happened beside all loops.
    pub fn note_error(&mut self, error: ErrorSample) {
        self.errors.push(error);
    }

    /// Takes what a loop hands over. If that completes an interval, its records are returned (and written).
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn take(&mut self, from: IntervalReport) -> io::Result<Vec<Record>> {
        let IntervalReport {
            index,
            phase,
            begin,
            end,
            mut block,
            samples,
            taken,
            cpu_ns,
            process,
            rss_bytes,
            stalls,
            ..
        } = from;
        let pending = self.open.entry(end).or_insert_with(|| Pending {
            missing: self.back.len(),
            interval: Interval {
                phase: phase as u32,
                begin_ns: begin.saturating_sub(self.start),
                end_ns: end.saturating_sub(self.start),
                cpu_ns: 0,
                busiest_loop_ns: 0,
                rss_bytes: 0,
                clock_step_ns: 0,
                block: Block::new(),
            },
            samples: Vec::new(),
            taken: Vec::new(),
            stalls: Vec::new(),
            memory: BTreeMap::new(),
        });
        pending.missing -= 1;
        pending.memory.insert(process, rss_bytes);
        pending.interval.cpu_ns += cpu_ns;
        pending.interval.busiest_loop_ns = pending.interval.busiest_loop_ns.max(cpu_ns);
        pending.interval.block.merge(&block);
        pending.samples.extend(samples);
        pending.taken.extend(taken);
        pending.stalls.extend(stalls);
        block.clear();
        // A loop that has ended has no use for it.
        let _ = self.back[index].send(block);
        match pending.missing {
            0 => self.finish(end),
            _ => Ok(Vec::new()),
        }
    }

    fn finish(&mut self, end: Nanos) -> io::Result<Vec<Record>> {
        let Some(Pending { mut interval, mut samples, taken, stalls, mut memory, .. }) =
            self.open.remove(&end)
        else {
            return Ok(Vec::new());
        };
        for error in self.errors.drain(..) {
            interval.block.count_error(error.kind);
            samples.push(error);
        }
        let offset = self.host.clock_offset();
        interval.clock_step_ns = (offset - self.clock_offset) as i64;
        self.clock_offset = offset;
        memory.insert(self.host.process(), self.host.resident_bytes());
        interval.rss_bytes = memory.values().sum();
        self.unfinished = interval.block.xacts.last;
        self.delivered = interval.end_ns;
        keep_few(&mut samples);
        let mut records = vec![Record::Interval(Box::new(interval))];
        records.extend(samples.into_iter().map(|sample| Record::ErrorSample {
            at_ns: self.since_start(sample.at_ns),
            kind: sample.kind,
            detail: sample.evidence.detail,
            facts: sample.evidence.facts,
        }));
        records.extend(Stall::united(stalls).into_iter().map(|stall| {
            let (begin_ns, end_ns) = (self.since_start(stall.begin_ns), self.since_start(stall.end_ns));
            Record::Stall(Stall { begin_ns, end_ns, ..stall })
        }));
        records.extend(self.samples.records(taken, self.start, self.delivered));
        for record in &records {
            self.write(record)?;
        }
        Ok(records)
    }

    /// Closes the aggregator: the last records, for intervals that a loop did not deliver and for the end.
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
                    self.back.len()
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

/// The earliest examples of each class, whatever loop they are from, in the order of time.
fn keep_few(samples: &mut Vec<ErrorSample>) {
    samples.sort_by_key(|sample| sample.at_ns);
    let mut kept = HashMap::new();
    samples.retain(|sample| {
        let count = kept.entry(sample.kind).or_insert(0);
        *count += 1;
        *count <= SAMPLES_PER_CLASS
    });
}
