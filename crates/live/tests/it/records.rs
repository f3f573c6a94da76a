//! Records of a run for tests.

use polygraph_stats::{
    Block, Class, EndReason, ErrorKind, Finished, Header, Interval, Nanos, PlannedPhase, Record, Side,
};

/// The length of an interval in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// The header of a run with the phases `warm` and `meas`, which starts at 1,700,000,000 s.
pub fn header(side: Side) -> Header {
    let phase = |name: &str, primary: bool| PlannedPhase {
        name: name.into(),
        primary,
        log_stats: true,
        duration_s: Some(10.0),
        xactions: None,
        fill_bytes: None,
        errors: None,
        load: polygraph_stats::PlannedLoad::FULL,
    };
    Header {
        side,
        version: "0.2.0".into(),
        label: "label".into(),
        start_unix_ns: 1_700_000_000 * SECOND,
        pid: 42,
        environment: vec![("host".into(), "lab1".into())],
        command: Vec::new(),
        settings: Vec::new(),
        workload: "PolyMix-1".into(),
        loops: 1,
        phases: vec![phase("warm", false), phase("meas", true)],
        offered_rate: Some(100.0),
        offered_dhr: Some(0.5),
        limits: Default::default(),
        contents: Vec::new(),
        workload_text: String::new(),
    }
}

/// Second number `second` of a run: 60 hits of 10 ms, 40 misses of 30 ms, an error; 7 open connections.
pub fn interval(second: u64) -> Record {
    let mut block = Block::new();
    for number in 0..100 {
        let hit = number < 60;
        block.finish(&Finished {
            class: if hit { Class::Hit } else { Class::Miss },
            rptm_us: if hit { 10_000 } else { 30_000 },
            size: 1000,
            offered_hit: number < 70,
            ..Finished::default()
        });
    }
    block.count_error(ErrorKind::all().find(|kind| kind.fails()).unwrap());
    let now = Nanos::new((second + 1) * SECOND);
    (0..101).for_each(|_| block.xacts.enter(now));
    (0..101).for_each(|_| block.xacts.leave(now));
    block.conns.set(now, 7);
    block.populus.set(now, 3);
    Record::Interval(Box::new(Interval {
        phase: u32::from(second >= 10),
        begin_ns: second * SECOND,
        end_ns: (second + 1) * SECOND,
        cpu_ns: SECOND / 10,
        busiest_loop_ns: SECOND / 10,
        throttled_ns: 0,
        rss_bytes: 1 << 20,
        clock_step_ns: 0,
        block,
    }))
}

/// The records of a run of `seconds`, without its end.
pub fn run(side: Side, seconds: u64) -> Vec<Record> {
    let mut records = vec![Record::Header(Box::new(header(side)))];
    for second in 0..seconds {
        let at_ns = second * SECOND;
        match second {
            0 => records.push(Record::PhaseBegin { at_ns, phase: 0 }),
            10 => {
                records.push(Record::PhaseEnd { at_ns, phase: 0, complete: true });
                records.push(Record::PhaseBegin { at_ns, phase: 1 });
            }
            _ => {}
        }
        records.push(interval(second));
    }
    records
}

/// The end of a run.
pub fn end(seconds: u64) -> [Record; 2] {
    let at_ns = seconds * SECOND;
    [
        Record::PhaseEnd { at_ns, phase: 1, complete: true },
        Record::End { at_ns, reason: EndReason::Finished, unfinished: 0 },
    ]
}
