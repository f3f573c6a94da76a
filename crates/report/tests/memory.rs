//! What folding a log takes. A test of its own program, for it looks at the peak of the whole process.

use std::fs;
use std::path::{Path, PathBuf};

use polygraph_report::{Log, fold_files};
use polygraph_stats::{Block, Class, Finished, Header, Interval, LogWriter, Record, Side};

const SECOND: u64 = 1_000_000_000;

/// A log of so many seconds, with histograms as a busy client fills them.
fn write(directory: &Path, seconds: u64) -> PathBuf {
    let mut block = Block::new();
    for step in 0..2000 {
        for class in [Class::Hit, Class::Miss, Class::Uncachable] {
            let rptm_us = 100 + 700 * step;
            block.finish(&Finished {
                class,
                rptm_us,
                due_rptm_us: Some(rptm_us),
                size: 300 + 90 * step,
                ..Finished::default()
            });
        }
    }
    let path = directory.join(format!("{seconds}.log"));
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
        contents: Vec::new(),
        workload_text: String::new(),
    };
    log.write(&Record::Header(Box::new(header))).unwrap();
    for second in 0..seconds {
        let interval = Interval {
            phase: 0,
            begin_ns: second * SECOND,
            end_ns: (second + 1) * SECOND,
            cpu_ns: 0,
            busiest_loop_ns: 0,
            rss_bytes: 0,
            clock_step_ns: 0,
            block: block.clone(),
        };
        log.write(&Record::Interval(Box::new(interval))).unwrap();
    }
    path
}

/// The most memory that this process has had so far, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A log of twenty times the length takes no more memory to fold, but much to read as a whole.
#[test]
fn folding_takes_no_more_memory_for_longer_runs() {
    let directory = tempfile::tempdir().unwrap();
    let [short, long] = [20, 400].map(|seconds| write(directory.path(), seconds));
    let bytes = fs::metadata(&long).unwrap().len();
    fold_files(&[short]).unwrap();
    let before = peak();
    let facts = fold_files(std::slice::from_ref(&long)).unwrap();
    assert_eq!(facts.client.unwrap().total.unwrap().block.ok_count(), 400 * 6000);
    let folded = peak() - before;
    assert!(folded < bytes / 4, "folding {bytes} bytes took {folded} more");
    let whole = Log::open(&long).unwrap();
    assert!(peak() - before > bytes, "{}: a log in memory is larger than on disk", whole.name);
}
