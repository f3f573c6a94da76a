//! The phases of a test as a table for people (`docs/reference/statistics.md`, "Phase table").

use polygraph_pgl::value::{show_size, show_time};

use crate::factor::{Factor, Inherited};
use crate::goal::Goal;
use crate::phases::{Phase, Schedule};

/// Names of the columns.
const COLUMNS: [&str; 11] = [
    "phase", "pop_beg", "pop_end", "load_beg", "load_end", "rec_beg", "rec_end", "smsg_beg", "smsg_end",
    "goal", "flags",
];

/// One line for each phase, below the column names. A value that depends on how the phase before ends is `?`.
pub fn table(schedule: &Schedule) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(schedule.phases.iter().map(row));
    let widths: [usize; COLUMNS.len()] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; COLUMNS.len()]| {
        let cells = row.iter().zip(widths).enumerate().map(|(at, (cell, width))| match at {
            // Words are aligned to the left, numbers to the right.
            0 | 10 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(phase: &Phase) -> [String; COLUMNS.len()] {
    let (factors, inherited) = (&phase.factors, &phase.inherited);
    let [pop_beg, pop_end] = ends(factors.populus, inherited.populus);
    let [load_beg, load_end] = ends(factors.load, inherited.load);
    let [rec_beg, rec_end] = ends(factors.recur, inherited.recur);
    let [smsg_beg, smsg_end] = ends(factors.special_msg, inherited.special_msg);
    let flags = [
        (!phase.log_stats, "!log"),
        (phase.wait_wss_freeze, "wwss"),
        (!phase.synchronize, "!sync"),
        (phase.primary, "prime"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(holds, _)| *holds).map(|(_, flag)| *flag).collect();
    let name = phase.name.clone();
    let (goal, flags) = (goal(&phase.goal), flags.join(","));
    [name, pop_beg, pop_end, load_beg, load_end, rec_beg, rec_end, smsg_beg, smsg_end, goal, flags]
}

fn ends(factor: Factor, inherited: Inherited) -> [String; 2] {
    let (unknown, value) = ("?".to_owned(), |value: f64| format!("{value:.2}"));
    match inherited {
        Inherited::Nothing => [value(factor.beg), value(factor.end)],
        Inherited::Begin => [unknown, value(factor.end)],
        Inherited::Whole => [unknown.clone(), unknown],
    }
}

fn goal(goal: &Goal) -> String {
    let parts = [
        goal.duration.map(|seconds| show_time((seconds * 1e6) as i64)),
        goal.xactions.map(|count| format!("{count}xact")),
        goal.fill_size.map(|bytes| format!("{}fill", show_size(bytes as f64))),
        goal.errors.map(|errors| match errors < 1.0 {
            true => format!("{:.0}%err", errors * 100.0),
            false => format!("{errors:.0}err"),
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(":") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::{Factors, Inheritance};

    #[test]
    fn a_table_by_example() {
        let goal = |duration, fill_size, errors| Goal { duration, fill_size, errors, xactions: None };
        let fill = Phase {
            name: "fill".into(),
            goal: goal(None, Some(2 << 30), Some(0.03)),
            factors: Factors { recur: Factor::flat(0.05), ..Factors::ONE },
            wait_wss_freeze: true,
            synchronize: true,
            ..Phase::default()
        };
        let top = Phase {
            name: "top1".into(),
            goal: goal(Some(14_400.0), None, None),
            factors: Factors { recur: Factor { beg: 0.05, end: 1.0 }, ..Factors::ONE },
            inherited: Inheritance {
                populus: Inherited::Whole,
                recur: Inherited::Begin,
                ..Inheritance::default()
            },
            log_stats: true,
            primary: true,
            ..Phase::default()
        };
        let schedule = Schedule { phases: vec![fill, top], working_set: None };
        let expected = "\
phase  pop_beg  pop_end  load_beg  load_end  rec_beg  rec_end  smsg_beg  smsg_end           goal  flags
fill      1.00     1.00      1.00      1.00     0.05     0.05      1.00      1.00  2GBfill:3%err  !log,wwss
top1         ?        ?      1.00      1.00        ?     1.00      1.00      1.00          4hour  !sync,prime";
        assert_eq!(table(&schedule), expected);
    }
}
