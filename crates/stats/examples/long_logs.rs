//! Makes the logs of a long run of many processes from the logs of a short one: `long_logs OUT HOURS PROCESSES LOG...`.
//!
//! Every phase becomes longer by the same factor: its intervals are repeated, each process starting with another one.
//! The result has as many intervals, of the same size, as a run of that length would have, and is made in seconds.
//! `bench/whole_run.py` measures with it what reports of long runs cost.

use std::path::Path;

use polygraph_stats::log::LogError;
use polygraph_stats::{Header, Interval, LogWriter, ReadLog, Record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, hours, processes, logs @ ..] = &arguments[..] else {
        return Err("usage: long_logs OUT HOURS PROCESSES LOG...".into());
    };
    let (hours, processes): (f64, usize) = (hours.parse()?, processes.parse()?);
    let short = logs.iter().map(|log| ReadLog::open(Path::new(log))).collect::<Result<Vec<_>, LogError>>()?;
    std::fs::create_dir_all(out)?;
    for number in 0..processes {
        let log = &short[number % short.len()];
        let name = format!("{}{}.log", log.header.side.name(), number / short.len() + 1);
        lengthen(log, &Path::new(out).join(name), hours * 3600.0, number)?;
    }
    Ok(())
}

fn lengthen(log: &ReadLog, path: &Path, seconds: f64, number: usize) -> std::io::Result<()> {
    let length = log.intervals().map(|interval| interval.end_ns).max().unwrap_or(1);
    let factor = seconds * 1e9 / length as f64;
    let mut header: Header = log.header.clone();
    header.pid += number as u32;
    for phase in &mut header.phases {
        phase.duration_s = phase.duration_s.map(|seconds| seconds * factor);
        phase.xactions = phase.xactions.map(|count| (count as f64 * factor) as u64);
    }
    let mut writer = LogWriter::create(path)?;
    writer.write(&Record::Header(Box::new(header)))?;
    let stretched = |at_ns: u64| (at_ns as f64 * factor) as u64;
    let mut now = 0;
    for record in &log.records {
        match record {
            Record::PhaseBegin { phase, .. } => {
                writer.write(&Record::PhaseBegin { at_ns: now, phase: *phase })?;
                let of_phase: Vec<&Interval> = log.intervals().filter(|one| one.phase == *phase).collect();
                let end = of_phase.last().map_or(now, |last| stretched(last.end_ns));
                for interval in of_phase.iter().cycle().skip(number * 7 % of_phase.len().max(1)) {
                    if now >= end {
                        break;
                    }
                    let mut interval = (*interval).clone();
                    let length = interval.end_ns - interval.begin_ns;
                    (interval.begin_ns, interval.end_ns) = (now, now + length);
                    now += length;
                    writer.write(&Record::Interval(Box::new(interval)))?;
                }
            }
            Record::PhaseEnd { phase, complete, .. } => {
                writer.write(&Record::PhaseEnd { at_ns: now, phase: *phase, complete: *complete })?;
            }
            Record::End { reason, unfinished, .. } => {
                let (reason, unfinished) = (reason.clone(), *unfinished);
                writer.write(&Record::End { at_ns: now, reason, unfinished })?;
            }
            Record::Interval(_) | Record::Header(_) => {}
            other => writer.write(other)?,
        }
    }
    Ok(())
}
