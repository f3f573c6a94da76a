use std::fs;
use std::path::Path;

use polygraph_report::VerdictOutcome;
use polygraph_report::peak::PeakStatus;
use polygraph_stats::{Block, EndReason, Finished, Header, Interval, LogWriter, PlannedPhase, Record, Side};
use tempfile::TempDir;

use super::*;

/// Writes a run of ten seconds with `rate` replies per second that took 100 ms each.
fn write_run(directory: &Path, rate: u64, end: Option<EndReason>) {
    fs::create_dir_all(directory).unwrap();
    let plan = PlannedPhase {
        name: "meas".into(),
        primary: true,
        log_stats: true,
        duration_s: Some(10.0),
        xactions: None,
        errors: None,
        load: polygraph_stats::PlannedLoad::FULL,
        fill_bytes: None,
    };
    let header = Header {
        side: Side::Client,
        version: "0.1.0".into(),
        label: "a label".into(),
        start_unix_ns: 1_700_000_000_000_000_000 + rate * 1_000_000_000,
        pid: 1,
        environment: vec![],
        command: vec![],
        settings: vec![("proxy".into(), "127.0.0.1:3128".into())],
        workload: "PolyMix-1".into(),
        loops: 1,
        phases: vec![plan],
        offered_rate: None,
        offered_dhr: None,
        limits: Default::default(),
        contents: vec![],
        workload_text: String::new(),
    };
    let second = 1_000_000_000;
    let mut block = Block::new();
    for i in 0..rate * 10 {
        block.xacts.enter(polygraph_stats::Nanos::new(i * second / rate));
        block.xacts.leave(polygraph_stats::Nanos::new(i * second / rate));
        block.finish(&Finished { rptm_us: 100_000, size: 1000, ..Finished::default() });
        block.verified.due += 1;
        block.verified.replies += 1;
    }
    block.close(10 * second);
    let interval = Interval {
        phase: 0,
        begin_ns: 0,
        end_ns: 10 * second,
        cpu_ns: 0,
        busiest_loop_ns: 0,
        throttled_ns: 0,
        rss_bytes: 0,
        clock_step_ns: 0,
        block,
    };
    let mut records = vec![
        Record::Header(Box::new(header)),
        Record::PhaseBegin { at_ns: 0, phase: 0 },
        Record::Interval(Box::new(interval)),
        Record::PhaseEnd { at_ns: 10 * second, phase: 0, complete: true },
    ];
    records.extend(end.map(|reason| Record::End { at_ns: 10 * second, reason, unfinished: 0 }));
    let mut log = LogWriter::create(&directory.join("client.log")).unwrap();
    records.iter().for_each(|record| log.write(record).unwrap());
}

/// A directory with the runs `a` (100/s), `b` (200/s) and what is none.
fn runs() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    write_run(&directory.path().join("a"), 100, Some(EndReason::Finished));
    write_run(&directory.path().join("b"), 200, Some(EndReason::Finished));
    fs::write(directory.path().join("b/manifest.json"), r#"{"device": {"name": "squid", "version": "6.6"}}"#)
        .unwrap();
    fs::create_dir(directory.path().join("notes")).unwrap();
    fs::write(directory.path().join("readme.txt"), "not a run").unwrap();
    directory
}

fn listed(index: &Index) -> Vec<String> {
    index.list(&RunFilter::default()).unwrap().into_iter().map(|entry| entry.name).collect()
}

fn refreshed(directory: &Path) -> Index {
    let mut index = Index::open(directory).unwrap();
    index.refresh().unwrap();
    index
}

#[test]
fn a_directory_is_listed_without_anybody_having_recorded_anything() {
    let directory = runs();
    let index = refreshed(directory.path());
    assert_eq!(listed(&index), ["a", "b"]);
    let all = index.list(&RunFilter::default()).unwrap();
    assert_eq!(all[1].device, "squid 6.6");
    assert_eq!(
        (all[0].standing, all[0].figure("rate")),
        (RunStatus::Judged(VerdictOutcome::Valid), Some(100.0))
    );
    assert_eq!((all[0].figure("rptm_mean_ms"), all[0].figure("dhr_percent")), (Some(100.0), Some(0.0)));
    assert_eq!(all[0].json()["begin"], "2023-11-14T22:15:00Z");
}

#[test]
fn what_was_recorded_is_read_back_as_it_was() {
    let directory = runs();
    let run = Run::open(&directory.path().join("a")).unwrap();
    record(&run).unwrap();
    let index = Index::open(directory.path()).unwrap();
    assert_eq!(index.list(&RunFilter::default()).unwrap(), [IndexedRun::of(&run)]);
}

#[test]
fn runs_that_change_vanish_or_break_are_noticed() {
    let directory = runs();
    let path = directory.path();
    refreshed(path);
    write_run(&path.join("a"), 300, Some(EndReason::Interrupted));
    fs::remove_dir_all(path.join("b")).unwrap();
    fs::create_dir(path.join("c")).unwrap();
    fs::write(path.join("c/client.log"), "rubbish").unwrap();
    fs::write(path.join("c/manifest.json"), "{}").unwrap();
    let all = refreshed(path).list(&RunFilter::default()).unwrap();
    let standings: Vec<_> = all.iter().map(|entry| (entry.name.as_str(), entry.standing)).collect();
    assert_eq!(standings, [("a", RunStatus::Judged(VerdictOutcome::Invalid)), ("c", RunStatus::Unreadable)]);
    assert_eq!(all[0].figure("rate"), Some(300.0));
    assert!(all[1].reason.contains("not a polygraph log"), "{}", all[1].reason);
}

/// A directory that nobody made for a run may have logs of other programs, too.
#[test]
fn other_programs_have_logs_too() {
    let directory = runs();
    let path = directory.path();
    fs::create_dir(path.join("web")).unwrap();
    fs::write(path.join("web/access.log"), "GET / 200").unwrap();
    fs::write(path.join("web/error.log"), "").unwrap();
    assert_eq!(listed(&refreshed(path)), ["a", "b"]);
    for name in ["access.log", "error.log"] {
        fs::rename(path.join("web").join(name), path.join("a").join(name)).unwrap();
    }
    let all = refreshed(path).list(&RunFilter::default()).unwrap();
    assert!(all.iter().all(|entry| entry.standing != RunStatus::Unreadable), "{all:?}");
}

#[test]
fn the_logs_of_a_device_are_not_those_of_a_run() {
    let directory = runs();
    let path = directory.path();
    fs::create_dir(path.join("device")).unwrap();
    fs::write(path.join("device/access.log"), "GET / 200").unwrap();
    assert_eq!(listed(&refreshed(path)), ["a", "b"]);
    // A user may give a result directory this name.
    fs::remove_dir_all(path.join("device")).unwrap();
    fs::rename(path.join("b"), path.join("device")).unwrap();
    assert_eq!(listed(&refreshed(path)), ["a", "device"]);
}

/// Writes the file of a search, and its runs `step-1` (50/s) and `step-2` (100/s).
fn write_search(directory: &Path, status: &str, peak_run: Option<&str>) {
    write_run(&directory.join("step-1"), 50, Some(EndReason::Finished));
    write_run(&directory.join("step-2"), 100, Some(EndReason::Finished));
    let summary = serde_json::json!({
        "begin_s": 1_700_000_050, "status": status, "text": "what came of it", "peak_run": peak_run, "last_run": "step-2",
    });
    let file = serde_json::json!({ "version": "0.4.0", "summary": summary });
    fs::write(directory.join("peak.json"), file.to_string()).unwrap();
}

#[test]
fn searches_are_listed_with_their_results() {
    let directory = runs();
    let path = directory.path();
    write_search(&path.join("s"), "searching", None);
    let search = || {
        let searches = RunFilter { name: Some("s".into()), ..RunFilter::default() };
        let all = refreshed(path).list(&searches).unwrap();
        assert_eq!(all.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["s"]);
        all.into_iter().next().unwrap()
    };
    let searching = search();
    assert_eq!(searching.standing, RunStatus::Search(PeakStatus::Searching));
    // What is known before there is a result.
    assert_eq!((searching.workload.as_str(), searching.device.as_str()), ("PolyMix-1", "127.0.0.1:3128"));
    assert_eq!((searching.figure("rate"), searching.begin_s), (None, 1_700_000_050));
    write_search(&path.join("s"), "not_reached", Some("step-1"));
    let done = search();
    assert_eq!(
        (done.standing, done.verdict()),
        (RunStatus::Search(PeakStatus::NotReached), "NOT REACHED".into())
    );
    assert_eq!((done.figure("rate"), done.reason.as_str()), (Some(50.0), "what came of it"));
    assert_eq!(
        (&done.json()["kind"], &done.json()["verdict"]),
        (&"peak search".into(), &"NOT REACHED".into())
    );
    // The index has it, too.
    assert_eq!(Index::open(path).unwrap().list(&RunFilter::default()).unwrap()[0], done);
    let wanted = RunFilter { standing: RunStatus::from_word("not reached"), ..RunFilter::default() };
    assert_eq!(refreshed(path).list(&wanted).unwrap(), [done]);
    // Version 0.3.0 wrote no summary, and if its search is resumed, nobody knows when it began.
    fs::write(path.join("s/peak.json"), r#"{ "version": "0.3.0", "steps": [] }"#).unwrap();
    let old = search();
    assert_eq!(old.standing, RunStatus::Unreadable);
    let advice = format!("`polygraph peak --resume {}`", path.join("s").display());
    assert!(
        old.reason.starts_with("a peak search by version 0.3.0") && old.reason.contains(&advice),
        "{}",
        old.reason
    );
    let resumed =
        r#"{ "version": "0.3.0", "summary": { "status": "found", "text": "peak", "peak_run": "step-1" } }"#;
    fs::write(path.join("s/peak.json"), resumed).unwrap();
    assert_eq!((search().standing, search().begin_s), (RunStatus::Search(PeakStatus::Found), 1_700_000_050));
    fs::write(path.join("s/peak.json"), "{").unwrap();
    assert!(search().reason.starts_with("peak.json is damaged"), "{}", search().reason);
}

#[expect(clippy::disallowed_methods, reason = "files of the test are an hour old")]
#[test]
fn a_run_that_goes_on_is_listed_but_not_remembered() {
    let directory = runs();
    write_run(&directory.path().join("c"), 300, None);
    let index = refreshed(directory.path());
    let running = RunFilter { standing: Some(RunStatus::Running), ..RunFilter::default() };
    assert_eq!(index.list(&running).unwrap()[0].name, "c");
    assert_eq!(listed(&Index::open(directory.path()).unwrap()), ["a", "b"]);
    // Long after its process died it is no longer going on.
    let log = fs::File::options().append(true).open(directory.path().join("c/client.log")).unwrap();
    log.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    let all = refreshed(directory.path()).list(&RunFilter::default()).unwrap();
    assert_eq!(all[2].standing, RunStatus::Judged(VerdictOutcome::Invalid));
}

#[test]
fn filters() {
    let directory = runs();
    let index = refreshed(directory.path());
    let names = |filter: RunFilter| -> Vec<String> {
        index.list(&filter).unwrap().into_iter().map(|entry| entry.name).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(names(RunFilter { workload: some("polymix"), ..RunFilter::default() }), ["a", "b"]);
    assert_eq!(names(RunFilter { device: some("SQUID"), ..RunFilter::default() }), ["b"]);
    assert_eq!(names(RunFilter { name: some("label"), ..RunFilter::default() }), ["a", "b"]);
    assert_eq!(names(RunFilter { since_s: Some(1_700_000_150), ..RunFilter::default() }), ["b"]);
    assert!(
        names(RunFilter {
            standing: Some(RunStatus::Judged(VerdictOutcome::Failed)),
            ..RunFilter::default()
        })
        .is_empty()
    );
}

/// What stands where the index should be, and whether the file can be used after all.
#[test]
fn a_damaged_index_is_replaced() {
    let directory = runs();
    let path = directory.path().join(FILE);
    refreshed(directory.path());
    let good = fs::read(&path).unwrap();
    let mut scribbled = good.clone();
    scribbled[100..].iter_mut().step_by(7).for_each(|byte| *byte ^= 0x5a);
    let cases: [Vec<u8>; 4] = [
        b"this is no database at all, but long enough to look".repeat(50),
        Vec::new(),
        scribbled,
        good[..5000].to_vec(),
    ];
    for bytes in cases {
        fs::write(&path, bytes).unwrap();
        assert_eq!(listed(&refreshed(directory.path())), ["a", "b"]);
    }
    // A table of a version that never was.
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.execute_batch("DROP TABLE runs; CREATE TABLE runs (x); PRAGMA user_version = 99").unwrap();
    drop(foreign);
    assert_eq!(listed(&refreshed(directory.path())), ["a", "b"]);
}

#[test]
fn rebuilding_reads_everything_anew() {
    let directory = runs();
    refreshed(directory.path());
    let database = rusqlite::Connection::open(directory.path().join(FILE)).unwrap();
    database.execute("UPDATE runs SET workload = 'something else'", []).unwrap();
    drop(database);
    assert_eq!(
        refreshed(directory.path()).list(&RunFilter::default()).unwrap()[0].workload,
        "something else"
    );
    let index = Index::rebuild(directory.path()).unwrap();
    assert_eq!(index.list(&RunFilter::default()).unwrap()[0].workload, "PolyMix-1");
    let left = fs::read_dir(directory.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert_eq!(left.filter(|name| name.starts_with(FILE)).collect::<Vec<_>>(), [FILE]);
}

#[test]
fn many_add_list_and_rebuild_at_once() {
    let directory = runs();
    let path = directory.path();
    let names: Vec<String> = (0..24).map(|i| format!("run-{i:02}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(move || {
                write_run(&path.join(name), 50, Some(EndReason::Finished));
                record(&Run::open(&path.join(name)).unwrap()).unwrap();
            });
        }
        scope.spawn(move || (0..5).for_each(|_| drop(refreshed(path))));
    });
    let index = Index::open(path).unwrap();
    assert!(names.iter().all(|name| listed(&index).contains(name)), "{:?}", listed(&index));
    // Not even while all is read anew does anybody fail.
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(move || record(&Run::open(&path.join(name)).unwrap()).unwrap());
        }
        scope.spawn(move || (0..5).for_each(|_| drop(Index::rebuild(path).unwrap())));
    });
    assert_eq!(listed(&refreshed(path)).len(), names.len() + 2);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_listed_from_memory() {
    let directory = runs();
    let mut index = Index::in_memory(directory.path()).unwrap();
    index.refresh().unwrap();
    assert_eq!(listed(&index), ["a", "b"]);
    assert!(!directory.path().join(FILE).exists());
    let nowhere = Index::in_memory(Path::new("/nonexistent")).unwrap().refresh();
    assert!(matches!(nowhere, Err(IndexError::Directory { .. })));
}
