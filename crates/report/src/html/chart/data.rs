//! Figures as data for the script of the page.

use serde_json::{Value, json};

use super::{Across, Chart, HeatMap, Shape};

/// A number with about five significant digits: more cannot be seen, and would make pages large.
pub fn short(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(if value.is_finite() { Some(0) } else { None });
    }
    let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 9);
    let scale = 10f64.powi(digits);
    let rounded = (value * scale).round() / scale;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(rounded) }
}

fn maybe(value: Option<f64>) -> Value {
    value.map_or(Value::Null, short)
}

/// The kind of an x axis as the script knows it.
fn kind(across: &Across) -> &'static str {
    match across {
        Across::Seconds | Across::Minutes | Across::Hours => "time",
        Across::Percent => "percent",
        Across::Nines => "nines",
        Across::Linear(_) => "linear",
        Across::Log(_) => "log",
    }
}

fn escape(value: &Value) -> String {
    // Within a script element only `<` could end it early.
    value.to_string().replace('<', "\\u003c")
}

pub fn chart(chart: &Chart) -> String {
    let shared = chart.shares_x();
    let xs = |points: &[(f64, Option<f64>)]| points.iter().map(|(x, _)| short(*x)).collect::<Vec<_>>();
    let series: Vec<Value> = chart
        .series
        .iter()
        .map(|series| {
            let y: Vec<Value> = series.points.iter().map(|(_, y)| maybe(*y)).collect();
            let mut one = json!({ "n": series.name, "s": series.style(), "y": y });
            if series.shape == Shape::Points {
                one["p"] = json!(1);
            }
            if !shared {
                one["x"] = json!(xs(&series.points));
            }
            one
        })
        .collect();
    let mut all = json!({
        "k": kind(&chart.across),
        "xt": chart.across.title(),
        "yt": chart.y_title,
        "log": chart.log,
        "series": series,
        "marks": chart.marks.iter().map(|at| short(*at)).collect::<Vec<_>>(),
    });
    if shared {
        all["x"] = json!(xs(&chart.series[0].points));
    }
    if let Some(max) = chart.y_max {
        all["max"] = short(max);
    }
    escape(&all)
}

/// Columns as lists of (bin, count) pairs, one after the other.
pub fn heat(map: &HeatMap) -> String {
    let columns: Vec<Vec<u64>> = map
        .columns
        .iter()
        .map(|column| {
            let used = column.iter().enumerate().filter(|(_, count)| **count > 0);
            used.flat_map(|(bin, count)| [bin as u64, *count]).collect()
        })
        .collect();
    escape(&json!({
        "k": "heat",
        "xt": map.across.title(),
        "yt": map.y_title,
        "x": map.starts.iter().map(|x| short(*x)).collect::<Vec<_>>(),
        "w": short(map.width),
        "edges": map.edges.iter().map(|edge| short(*edge)).collect::<Vec<_>>(),
        "cells": columns,
        "marks": map.marks.iter().map(|at| short(*at)).collect::<Vec<_>>(),
    }))
}
