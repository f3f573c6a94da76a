//! What an export takes: the peak of allocated memory of all threads.

use std::path::{Path, PathBuf};

use polygraph_export::{Format, export};
use polygraph_stats::{Block, Class, Finished, Header, Interval, LogFile, LogWriter, Record, Side};
use polygraph_testing::memory::{Counting, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SECOND: u64 = 1_000_000_000;

/// A log of so many intervals of a second.
fn write(directory: &Path, intervals: u64) -> PathBuf {
    let mut block = Block::new();
    block.finish(&Finished { class: Class::Hit, rptm_us: 100, size: 300, ..Finished::default() });
    let path = directory.join(format!("{intervals}.log"));
    let mut log = LogWriter::create(&path).unwrap();
    let header = Header {
        side: Side::Client,
        version: "0".into(),
        label: String::new(),
        start_unix_ns: 0,
        pid: 1,
        environment: Vec::new(),
        command: Vec::new(),
        settings: Vec::new(),
        workload: String::new(),
        loops: 1,
        phases: Vec::new(),
        offered_rate: None,
        offered_dhr: None,
        limits: Default::default(),
        contents: Vec::new(),
        workload_text: String::new(),
    };
    log.write(&Record::Header(Box::new(header))).unwrap();
    for second in 0..intervals {
        let interval = Interval {
            phase: 0,
            begin_ns: second * SECOND,
            end_ns: (second + 1) * SECOND,
            cpu_ns: 0,
            busiest_loop_ns: 0,
            throttled_ns: 0,
            rss_bytes: 0,
            clock_step_ns: 0,
            block: block.clone(),
        };
        log.write(&Record::Interval(Box::new(interval))).unwrap();
    }
    path
}

/// Tables are written in parts of 8192 rows, so the logs are longer than that. Their intervals are nearly empty.
#[test]
fn an_export_takes_no_more_memory_for_longer_runs() {
    let directory = tempfile::tempdir().unwrap();
    let logs = [9_000, 18_000].map(|intervals| write(directory.path(), intervals));
    for format in [Format::Csv, Format::Parquet] {
        let run = |log: &Path| {
            let logs = [LogFile::open(log).unwrap()];
            peak_of(|| export(&logs, &directory.path().join("tables"), format).unwrap())
        };
        // What is made once, such as the table of figures.
        run(&logs[0]);
        let [(_, few), (done, many)] = [run(&logs[0]), run(&logs[1])];
        assert!(done.rows > 18_000 && done.tables == 10);
        assert!(many < few + few / 8, "{format:?}: {few} bytes for a short log, {many} for a long one");
    }
}
