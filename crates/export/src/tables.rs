//! Tables of the records of logs: descriptions of runs, and events.

use polygraph_report::LogSource;
use polygraph_report::facts::ProcessFacts;
use polygraph_report::lr::end_reason;
use polygraph_stats::evidence::fact;
use polygraph_stats::{ErrorKind, Header, Interval, Xact};
use serde_json::{Map, json};

use crate::table::{BOOL, CellValue, ColumnSpec, FLOAT, INT, TEXT, TIME, Table};
use crate::write::{ExportError, TableFile};

/// A log's number among those exported; rows of all tables name it.
pub(crate) const LOG: ColumnSpec<'static> = ("log", "", "number of the log, from 0: see runs", INT);

/// Seconds since the start of the log's process.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// The time of day at `ns` of a log.
pub(crate) fn time_of_day(header: &Header, ns: u64) -> CellValue {
    CellValue::Time(i64::try_from((header.start_unix_ns + ns) / 1000).ok())
}

/// A row, and why it cannot be written.
type Pushed = Result<(), ExportError>;

pub fn runs() -> Table {
    Table::new(
        "runs",
        "a log: a process of one side",
        [
            LOG,
            ("file", "", "file of the log", TEXT),
            ("side", "", "client or server", TEXT),
            ("version", "", "version of the program", TEXT),
            ("label", "", "label of the run", TEXT),
            ("workload", "", "name of the workload", TEXT),
            ("started", "", "start of the process", TIME),
            ("pid", "", "id of the process", INT),
            ("loops", "", "event loops", INT),
            ("offered_rate", "/s", "planned request rate; null for closed loops and servers", FLOAT),
            ("offered_dhr", "%", "planned document hit ratio", FLOAT),
            ("command", "", "command line", TEXT),
            ("end_reason", "", "why the run ended; null if the process was killed", TEXT),
            ("unfinished", "", "unfinished transactions at the end", INT),
            ("missing", "", "what is missing in the log; null if it is complete", TEXT),
        ],
    )
}

/// Adds the row of a log.
pub fn add_run(table: &mut TableFile, number: usize, process: &ProcessFacts) -> Pushed {
    let header = &process.header;
    table.push([
        number.into(),
        process.log.as_str().into(),
        header.side.name().into(),
        header.version.as_str().into(),
        header.label.as_str().into(),
        header.workload.as_str().into(),
        time_of_day(header, 0),
        header.pid.into(),
        header.loops.into(),
        header.offered_rate.into(),
        header.offered_dhr.map(|ratio| 100.0 * ratio).into(),
        polygraph_report::text::command(&header.command).into(),
        process.end.as_ref().map(end_reason).into(),
        process.unfinished.into(),
        Some(process.missing.join("; ")).filter(|missing| !missing.is_empty()).into(),
    ])
}

pub fn settings() -> Table {
    Table::new(
        "settings",
        "an effective setting, or a property of the machine",
        [
            LOG,
            ("kind", "", "setting or environment", TEXT),
            ("name", "", "name of the setting", TEXT),
            ("value", "", "value of the setting", TEXT),
        ],
    )
}

/// Adds the rows of a log.
pub fn add_settings(table: &mut TableFile, number: usize, header: &Header) -> Pushed {
    for (kind, pairs) in [("setting", &header.settings), ("environment", &header.environment)] {
        for (name, value) in pairs {
            table.push([number.into(), kind.into(), name.as_str().into(), value.as_str().into()])?;
        }
    }
    Ok(())
}

pub fn phases() -> Table {
    Table::new(
        "phases",
        "a phase of a log, planned or not",
        [
            LOG,
            ("phase", "", "name of the phase", TEXT),
            ("number", "", "position in the plan, from 0", INT),
            ("is_primary", "", "whether the workload measures the phase", BOOL),
            ("log_stats", "", "whether its statistics are part of those of the whole run", BOOL),
            ("goal_duration", "s", "planned duration", FLOAT),
            ("goal_xactions", "", "planned number of transactions", INT),
            ("goal_fill_size", "bytes", "planned fill of the cache", INT),
            ("goal_errors", "", "errors that end the test: a share if below 1, otherwise a number", FLOAT),
            ("begin_s", "s", "start, since the start of the process; null if the phase did not start", FLOAT),
            ("end_s", "s", "end, since the start of the process; null if the log does not contain it", FLOAT),
            ("complete", "", "whether its goal was met; null if the log does not contain its end", BOOL),
        ],
    )
}

/// When a phase of a log began, when it ended, and whether its goal was met; as far as the log contains it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseTimes {
    pub begin_ns: Option<u64>,
    pub end: Option<(u64, bool)>,
}

/// Adds the rows of a log. `times` are those of its phases by number.
pub fn add_phases(
    table: &mut TableFile,
    number: usize,
    header: &Header,
    times: impl Fn(u32) -> PhaseTimes,
) -> Pushed {
    for (index, plan) in (0u32..).zip(&header.phases) {
        let PhaseTimes { begin_ns, end } = times(index);
        table.push([
            number.into(),
            plan.name.as_str().into(),
            index.into(),
            plan.primary.into(),
            plan.log_stats.into(),
            plan.duration_s.into(),
            plan.xactions.into(),
            plan.fill_bytes.into(),
            plan.errors.into(),
            begin_ns.map(seconds).into(),
            end.map(|(at_ns, _)| seconds(at_ns)).into(),
            end.map(|(_, complete)| complete).into(),
        ])?;
    }
    Ok(())
}

pub fn errors() -> Table {
    Table::new(
        "errors",
        "an error class in an interval",
        [
            LOG,
            ("phase", "", "name of the phase", TEXT),
            ("begin_s", "s", "start of the interval, since the start of the process", FLOAT),
            ("end_s", "s", "end of the interval", FLOAT),
            ("number", "", "number of the class in the catalogue (docs/reference/generated/errors.md)", TEXT),
            ("name", "", "name of the class", TEXT),
            ("nature", "", "nature of the class: content, caching, message, access, slow, bench", TEXT),
            ("fails", "", "true: the error fails the transaction; false: it is only noted", BOOL),
            ("count", "", "number of occurrences", INT),
        ],
    )
}

/// Adds the rows of an interval.
pub fn add_errors(table: &mut TableFile, number: usize, log: &impl LogSource, interval: &Interval) -> Pushed {
    for kind in ErrorKind::all().filter(|&kind| interval.block.errors[kind] > 0) {
        table.push([
            number.into(),
            log.phase_name(interval.phase).into(),
            seconds(interval.begin_ns).into(),
            seconds(interval.end_ns).into(),
            kind.number().into(),
            kind.name().into(),
            kind.nature().word().into(),
            kind.fails().into(),
            interval.block.errors[kind].into(),
        ])?;
    }
    Ok(())
}

/// Facts with their own columns, and the names of these columns.
const FACTS: [(&str, &str, &str); 9] = [
    (fact::URL, "url", "requested URL"),
    (fact::REQUEST, "request", "method and kind of the request"),
    (fact::XACT, "xact", "id of the transaction"),
    (fact::ROBOT, "robot", "number of the robot"),
    (fact::CLIENT, "client", "address of the robot"),
    (fact::PEER, "peer", "address to which the request was sent"),
    (fact::SERVER, "server", "server that generated the reply"),
    (fact::EXPECTED, "expected", "expected value"),
    (fact::SEEN, "seen", "actual value"),
];

pub fn error_samples() -> Table {
    let first = [
        LOG,
        ("at_s", "s", "time since the start of the process", FLOAT),
        ("at", "", "when", TIME),
        ("number", "", "number of the class in the catalogue (docs/reference/generated/errors.md)", TEXT),
        ("name", "", "name of the class", TEXT),
        ("detail", "", "what was found, in one line", TEXT),
    ];
    let known = FACTS.iter().map(|&(_, name, text)| (name, "", text, TEXT));
    let rest = [("facts", "", "further facts as a JSON object of lists", TEXT)];
    Table::new("error_samples", "an example of an error", first.into_iter().chain(known).chain(rest))
}

/// Adds the row of an example.
pub fn add_error_sample(
    table: &mut TableFile,
    number: usize,
    header: &Header,
    at_ns: u64,
    (kind, detail, facts): (ErrorKind, &str, &[(String, String)]),
) -> Pushed {
    let known = |wanted: &str| facts.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let mut others = Map::new();
    for (name, value) in facts.iter().filter(|(name, _)| !FACTS.iter().any(|(known, ..)| known == name)) {
        let list = others.entry(name.clone()).or_insert_with(|| json!([]));
        list.as_array_mut().into_iter().for_each(|list| list.push(json!(value)));
    }
    let first = [
        number.into(),
        seconds(at_ns).into(),
        time_of_day(header, at_ns),
        kind.number().into(),
        kind.name().into(),
        detail.into(),
    ];
    let known = FACTS.iter().map(|(name, ..)| CellValue::from(known(name)));
    table.push(first.into_iter().chain(known).chain([serde_json::Value::Object(others).to_string().into()]))
}

pub fn xacts() -> Table {
    Table::new(
        "xacts",
        "a transaction of a sample (`StatsSample` of the workload)",
        [
            LOG,
            ("sample", "", "name of the sample", TEXT),
            ("xact", "", "id of the transaction; null if the request had none", TEXT),
            ("started", "", "start of the transaction", TIME),
            ("ended_s", "s", "end of the transaction, since the start of the process", FLOAT),
            ("lifetime", "ms", "time from start to end", FLOAT),
            ("queued", "ms", "time from the scheduled to the actual start; null for servers", FLOAT),
            ("connection", "", "number of the connection within its event loop", INT),
            ("object", "", "path of the object's URL, or the whole URL if it is a foreign one", TEXT),
            ("size", "bytes", "bytes of the reply", INT),
            ("status", "", "status code; null if it was aborted without a reply", INT),
            ("robot", "", "number of the robot; null for servers", INT),
            ("server", "", "number of the server", INT),
            ("ims", "s", "`If-Modified-Since` in seconds since 1970; null for robots", INT),
        ],
    )
}

/// Adds the rows of a part of a sample.
pub fn add_xacts(
    table: &mut TableFile,
    number: usize,
    header: &Header,
    sample: &str,
    xacts: &[Xact],
) -> Pushed {
    for xact in xacts {
        table.push([
            number.into(),
            sample.into(),
            Some(xact.id.clone()).filter(|id| !id.is_empty()).into(),
            time_of_day(header, xact.ended_ns.saturating_sub(1000 * xact.lifetime_us)),
            seconds(xact.ended_ns).into(),
            (xact.lifetime_us as f64 * 1e-3).into(),
            xact.queued_us.map(|us| us as f64 * 1e-3).into(),
            xact.connection.into(),
            xact.object.as_str().into(),
            xact.size.into(),
            Some(u64::from(xact.status)).filter(|&status| status > 0).into(),
            xact.robot.into(),
            xact.server.into(),
            xact.ims.into(),
        ])?;
    }
    Ok(())
}

pub fn messages() -> Table {
    Table::new(
        "messages",
        "a console message, shown or not",
        [
            LOG,
            ("at_s", "s", "time since the start of the process", FLOAT),
            ("at", "", "when", TIME),
            ("level", "", "lowest verbosity level at which it is shown", INT),
            ("text", "", "the message", TEXT),
        ],
    )
}

/// Adds the row of a message.
pub fn add_message(
    table: &mut TableFile,
    number: usize,
    header: &Header,
    at_ns: u64,
    (level, text): (u8, &str),
) -> Pushed {
    table.push([
        number.into(),
        seconds(at_ns).into(),
        time_of_day(header, at_ns),
        u64::from(level).into(),
        text.into(),
    ])
}
