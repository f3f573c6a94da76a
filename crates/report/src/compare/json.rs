//! A comparison as JSON.

use serde_json::{Value, json};

use super::{ComparedFigure, ComparedPhases, Comparison, FigureChange};

/// All results: groups and their runs, differences between the runs, figures with differences and intervals, the method.
/// Undefined values are null.
pub fn json(comparison: &Comparison<'_>) -> Value {
    let groups = comparison.groups.iter().map(|group| {
        let runs = group.runs.iter().map(|run| {
            json!({
                "path": run.path.display().to_string(),
                "workload": run.facts.main_side().header().workload,
                "device": run.device(),
                "verdict": run.facts.verdict.outcome.word(),
                "limit": run.facts.verdict.limit.map(|party| party.name()),
            })
        });
        json!({ "name": group.name, "runs": runs.collect::<Vec<_>>() })
    });
    let differs = comparison.differs.iter().map(|differs| {
        json!({
            "weight": differs.weight.word(),
            "what": differs.what,
            "run": differs.run,
            "first": differs.values.as_ref().map(|(first, _)| first),
            "this": differs.values.as_ref().map(|(_, this)| this),
            "diff": differs.diff,
        })
    });
    json!({
        "groups": groups.collect::<Vec<_>>(),
        "comparable": !comparison.refused(),
        "differs": differs.collect::<Vec<_>>(),
        "confidence": comparison.options.confidence,
        "confidence_of_each": comparison.single_confidence,
        "confidence_of_conditions": comparison.asked_confidence,
        "delta_percent": 100.0 * comparison.options.delta,
        "method": comparison.method(),
        "parts": comparison.parts.iter().map(part).collect::<Vec<_>>(),
        "found": comparison.found().count(),
    })
}

fn part(part: &ComparedPhases) -> Value {
    json!({
        "phase": part.phase,
        "seconds": part.seconds,
        "blocks": part.blocks,
        "figures": part.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &ComparedFigure) -> Value {
    json!({
        "name": row.figure.name,
        "unit": row.figure.unit.symbol(),
        "better": row.better.word(),
        "values": row.values,
        "best": row.best,
        "changes": row.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn change(change: &FigureChange) -> Value {
    json!({
        "by": change.difference.map(|difference| difference.by),
        "percent": change.percent,
        "plus_minus": change.plus_minus,
        "standard_error": change.difference.and_then(|difference| difference.standard_error),
        "degrees_of_freedom": change.difference.map(|difference| difference.degrees),
        "verdict": change.judgement.word(),
    })
}
