//! What reading logs takes: the peak of allocated memory of all threads.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polygraph_report::compare::{CompareOptions, RunGroup, compare};
use polygraph_report::lr::LrOptions;
use polygraph_report::ltrace::TraceOptions;
use polygraph_report::lx::{LxOptions, extract};
use polygraph_report::run_dir::WholeRun;
use polygraph_report::{LogSource, fold_files, lr, ltrace};
use polygraph_stats::{BinSet, Block, Class, Finished, Header, Interval, LogFile, LogWriter, Record, Side};
use polygraph_testing::memory::{Counting, peak_of};

/// Tests take turns, because the counters are those of the process.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        limits: Default::default(),
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
            throttled_ns: 0,
            rss_bytes: 0,
            clock_step_ns: 0,
            block: block.clone(),
        };
        log.write(&Record::Interval(Box::new(interval))).unwrap();
    }
    path
}

/// What a task takes for a log of 20 intervals and for one of 200.
fn compared<T>(task: &str, mut work: impl FnMut(&Path) -> T) {
    let directory = tempfile::tempdir().unwrap();
    let [short, long] = [20, 200].map(|seconds| write(directory.path(), seconds));
    // What is made once, such as the table of figures.
    work(&short);
    let [few, many] = [short, long].map(|log| peak_of(|| work(&log)).1);
    assert!(many < few + few / 2 + (1 << 20), "{task}: {few} bytes for a short log, {many} for a long one");
}

#[test]
fn a_reader_holds_one_record() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let log = LogFile::open(&write(directory.path(), 50)).unwrap();
    let mut intervals = log.records().filter(|record| matches!(**record, Record::Interval(_)));
    let (first, one) = peak_of(|| intervals.next().unwrap());
    drop(first);
    let (count, all) = peak_of(|| intervals.by_ref().count());
    assert_eq!(count, 49);
    assert!(all <= one + (64 << 10), "{one} bytes for one record, {all} for all");
}

#[test]
fn folding_takes_no_more_memory_for_longer_runs() {
    let _turn = turn();
    compared("fold", |log| {
        let facts = fold_files(&[log.to_owned()]).unwrap();
        assert!(facts.client.unwrap().total.unwrap().block.ok_count() >= 20 * 6000);
    });
}

#[test]
fn commands_take_no_more_memory_for_longer_runs() {
    let _turn = turn();
    let open = |log: &Path| [LogFile::open(log).unwrap()];
    compared("lx", |log| extract(&open(log), &LxOptions::default()).unwrap());
    compared("lr", |log| lr(&open(log), LrOptions::default(), &mut std::io::sink()).unwrap());
    compared("lr --phase", |log| {
        lr(&open(log), LrOptions { phases: true, ..LrOptions::default() }, &mut std::io::sink()).unwrap()
    });
    let objects = ["time", "rep_rate", "baseline.rptm"].map(str::to_owned).to_vec();
    let following = TraceOptions { objects, window_s: 5.0, ..TraceOptions::default() };
    let sliding = TraceOptions { smooth_slide: true, ..following.clone() };
    compared("ltrace", |log| ltrace(&open(log), &following).unwrap());
    compared("ltrace --smooth_slide", |log| ltrace(&open(log), &sliding).unwrap());
    compared("compare", |log| {
        let group = |name: &str| RunGroup {
            name: name.into(),
            runs: vec![WholeRun::open(log, BinSet::NONE).unwrap()],
        };
        let groups = [group("one"), group("two")];
        assert_eq!(compare(&groups, CompareOptions::default()).unwrap().parts[0].blocks, 20);
    });
}
