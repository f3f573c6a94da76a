//! Charts as data for the script of the page (`assets/report.js`).

use serde_json::{Map, Value, json};

use super::draw::Axes;
use super::{Chart, Shape, XAxis};

/// A number with about five significant digits: more are not visible and would make pages larger.
pub fn short(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(if value.is_finite() { Some(0) } else { None });
    }
    let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 9);
    let scale = 10f64.powi(digits);
    let rounded = (value * scale).round() / scale;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(rounded) }
}

pub fn maybe(value: Option<f64>) -> Value {
    value.map_or(Value::Null, short)
}

/// The name of the kind of an x axis in the data.
fn kind(x_axis: &XAxis) -> &'static str {
    match x_axis {
        XAxis::Seconds | XAxis::Minutes | XAxis::Hours => "time",
        XAxis::Percent => "percent",
        XAxis::Nines => "nines",
        XAxis::Linear(_) => "linear",
        XAxis::Log(_) => "log",
    }
}

/// All charts of a page in one object: `x` has each list of x values once, and series name it by its index.
pub fn script_data<'a>(charts: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let mut lists: Vec<Value> = Vec::new();
    let charts: Map<String, Value> = charts
        .map(|(id, chart)| {
            let mut chart = chart.clone();
            for series in chart.get_mut("series").and_then(Value::as_array_mut).into_iter().flatten() {
                let x = series["x"].take();
                let known = lists.iter().position(|list| *list == x);
                series["x"] = json!(known.unwrap_or(lists.len()));
                if known.is_none() {
                    lists.push(x);
                }
            }
            (id.to_owned(), chart)
        })
        .collect();
    // Within a script element only `<` could end it early.
    json!({ "x": lists, "charts": charts }).to_string().replace('<', "\\u003c")
}

/// What all kinds of charts have.
pub fn common(
    chart_kind: &str,
    x_axis: &XAxis,
    y_title: &str,
    marks: &[f64],
    height: f32,
    axes: &Axes,
) -> Value {
    json!({
        "kind": chart_kind,
        "xt": x_axis.title(),
        "xu": x_axis.unit(),
        "yt": y_title,
        "marks": marks.iter().map(|at| short(*at)).collect::<Vec<_>>(),
        "height": height,
        "frame": axes.frame.map(short),
        "xr": axes.x.map(short),
        "yr": axes.y.map(short),
    })
}

/// A chart of lines and points.
pub fn chart(chart: &Chart, axes: &Axes) -> Value {
    let series = chart.series.iter().map(|series| {
        json!({
            "name": series.name,
            "style": series.style(),
            "shape": match series.shape {
                Shape::Line => "line",
                Shape::Points => "points",
                Shape::Marked => "marked",
            },
            "x": series.points.iter().map(|(x, _)| short(*x)).collect::<Vec<_>>(),
            "y": series.points.iter().map(|(_, y)| maybe(*y)).collect::<Vec<_>>(),
        })
    });
    let mut all =
        common(kind(&chart.x_axis), &chart.x_axis, &chart.y_title, &chart.marks, chart.height, axes);
    all["series"] = series.collect();
    all["log"] = json!(chart.log);
    all["max"] = maybe(chart.y_max);
    all
}
