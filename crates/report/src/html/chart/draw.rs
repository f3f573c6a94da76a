//! The static drawing of lines and points, by charts-rs.

use charts_rs::{AxisScale, AxisType, Box as Edges, LineChart, Series as Drawing, Symbol};

use super::labels::{decade, decades, exponent, nines, steps};
use super::svg::{AXIS, GRID, MARK, TEXT, WIDTH, align_last_text, embed, frame, line, relabel, x_ticks};
use super::{Chart, MARK_DASH, MARKS, Series, Shape, XAxis, dash};

/// Marks around labels of the x axis, which are rewritten.
const LABEL: (char, char) = ('\u{e000}', '\u{e001}');
/// Marks around labels of the y axis, which are rewritten: charts-rs writes one decimal at most, 0.01 as 0 and 1,250 as
/// 1.2k.
pub(super) const Y_LABEL: (char, char) = ('\u{e002}', '\u{e003}');
/// Steps of a linear y axis.
pub(super) const STEPS: usize = 5;
/// A dash pattern that makes a line invisible.
const NO_LINE: &str = "0,99999";

/// Distance of the labels of the y axis from the axis.
pub(super) const LABEL_GAP: f64 = 8.0;

/// Widest character of labels in their font size of 12.
const CHARACTER: f64 = 7.6;

/// Where the axes of a drawing are, and which values they span.
#[derive(Clone, Debug)]
pub struct Axes {
    /// Left, top, right and bottom of the plot, in units of the drawing.
    pub frame: [f64; 4],
    /// Values at the left and at the right end.
    pub x: [f64; 2],
    /// Values at the lower and at the upper end.
    pub y: [f64; 2],
}

/// The picture of a chart whose series have at least a value each, and its axes.
pub fn svg(chart: &Chart) -> Option<(String, Axes)> {
    let svg = plot(chart).svg().ok()?;
    let page = embed(
        &svg,
        &chart.id,
        &chart.title,
        &chart.about,
        chart.height,
        chart.series.iter().map(Series::style),
    );
    let frame = frame(&page)?;
    let [left, _, _, bottom] = frame;
    let ticks = x_ticks(&page, bottom);
    let page = relabel(&page, LABEL, |page, index, label| {
        let label = match chart.x_axis {
            XAxis::Nines => nines(label),
            XAxis::Log(_) => exponent(label),
            _ => label.to_owned(),
        };
        if let Some(&tick) = ticks.get(index) {
            // A label must not leave the picture.
            let is_inside = tick + CHARACTER * label.chars().count() as f64 / 2.0 <= f64::from(WIDTH);
            let (x, anchor) = if is_inside { (tick, "middle") } else { (f64::from(WIDTH), "end") };
            align_last_text(page, x, anchor);
        }
        label
    });
    // Labels of the y axis come from the top down.
    let labels = match chart.log {
        true => {
            let (low, high) = y_decades(chart);
            (low..=high).rev().map(decade).collect()
        }
        false => steps(top(chart), STEPS),
    };
    let page = relabel(&page, Y_LABEL, |page, index, _| {
        align_last_text(page, left - LABEL_GAP, "end");
        labels.get(index).cloned().unwrap_or_default()
    });
    let y = match chart.log {
        true => <[i32; 2]>::from(y_decades(chart)).map(|power| 10f64.powi(power)),
        false => [0.0, top(chart)],
    };
    let x = match chart.x_axis {
        XAxis::Log(_) => x_ends(chart).map(|power| 10f64.powf(power)),
        _ => x_ends(chart),
    };
    Some((page, Axes { frame, x, y }))
}

/// Ends of the x axis; of a logarithmic one their exponents.
fn x_ends(chart: &Chart) -> [f64; 2] {
    let (first, last) = chart.x_range();
    let [first, last] = match chart.x_axis {
        XAxis::Log(_) => <[i32; 2]>::from(decades(first, last)).map(f64::from),
        XAxis::Nines | XAxis::Percent => [first, last],
        _ => [first.min(0.0), last],
    };
    if first < last { [first, last] } else { [first - 0.5, last + 0.5] }
}

pub(super) fn plot(chart: &Chart) -> LineChart {
    let log_x = matches!(chart.x_axis, XAxis::Log(_));
    let at = |x: f64| if log_x { x.log10() } else { x };
    let mut series: Vec<Drawing> = chart.series.iter().map(|series| drawing(series, at)).collect();
    let top = top(chart);
    if !chart.marks.is_empty() {
        series.push(marks(chart, top));
    }
    let mut plot = LineChart::new(series, Vec::new());
    plot.width = WIDTH;
    plot.height = chart.height;
    plot.margin = Edges { left: 4.0, top: 6.0, right: 18.0, bottom: 4.0 };
    plot.background_color = charts_rs::Color::transparent();
    plot.font_family = "system-ui".into();
    plot.compact = true;
    // The legend of the page shows dashes; that of charts-rs does not.
    plot.legend.show = Some(false);
    plot.series.stroke_width = 1.8;
    plot.series.smooth = false;
    plot.series.symbol = Some(Symbol::None);
    plot.series.colors = chart.series.iter().map(|series| line(series.style())).chain([MARK]).collect();
    plot.grid.stroke_color = GRID;
    let [first, last] = x_ends(chart);
    (plot.x_axis.min, plot.x_axis.max) = (Some(first), Some(last));
    plot.x_axis.kind = AxisType::Value;
    plot.x_axis.values = chart.series[0].points.iter().map(|(x, _)| at(*x)).collect();
    plot.x_axis.stroke_color = AXIS;
    plot.x_axis.font.color = TEXT;
    plot.x_axis.font.size = 12.0;
    plot.x_axis.title = chart.x_axis.title().to_owned();
    plot.x_axis.formatter = Some(format!("{}{{c}}{}", LABEL.0, LABEL.1));
    let y = &mut plot.y_axis_configs[0];
    y.stroke_color = AXIS;
    y.font.color = TEXT;
    y.font.size = 12.0;
    y.title = Some(chart.y_title.clone());
    if chart.log {
        // One step per decade, so that grid lines are at the labels.
        let (low, high) = y_decades(chart);
        y.scale = AxisScale::Log(10.0);
        y.formatter = Some(y_label(&(low..=high).map(decade).collect::<Vec<_>>()));
        y.split_number = (high - low) as usize;
        y.min = Some(10f32.powi(low));
        y.max = Some(10f32.powi(high));
    } else {
        y.min = Some(0.0);
        y.max = Some(top as f32);
        y.formatter = Some(y_label(&steps(top, STEPS)));
        y.split_number = STEPS;
    }
    plot
}

/// The format of labels of the y axis that will be rewritten as `labels`. It is as wide as the widest of them, because
/// charts-rs leaves room for the text that it writes.
pub(super) fn y_label(labels: &[String]) -> String {
    let widest = labels.iter().max_by_key(|label| label.chars().count()).map_or("", String::as_str);
    format!("{}{widest}{}", Y_LABEL.0, Y_LABEL.1)
}

fn drawing(series: &Series, at: impl Fn(f64) -> f64) -> Drawing {
    let values = series.points.iter().map(|(_, y)| y.map(|y| y as f32)).collect();
    let mut drawing = Drawing::new_nullable(series.name.clone(), values);
    drawing.x_values = Some(series.points.iter().map(|(x, _)| at(*x)).collect());
    match series.shape {
        Shape::Line => {
            drawing.stroke_dash_array = Some(dash(series.style()).to_owned()).filter(|dash| !dash.is_empty());
        }
        Shape::Marked => {
            drawing.stroke_dash_array = Some(dash(series.style()).to_owned()).filter(|dash| !dash.is_empty());
            drawing.symbol = Some(Symbol::Circle(3.0, Some(line(series.style()))));
        }
        Shape::Points => {
            drawing.stroke_dash_array = Some(NO_LINE.to_owned());
            drawing.symbol = Some(Symbol::Circle(3.0, Some(line(series.style()))));
        }
    }
    drawing
}

/// Vertical marks as a series that goes up and leaves a gap after each mark.
fn marks(chart: &Chart, top: f64) -> Drawing {
    let bottom = if chart.log { 10f64.powi(y_decades(chart).0) } else { 0.0 };
    let mut series = Drawing::new_nullable(
        MARKS.to_owned(),
        chart.marks.iter().flat_map(|_| [Some(bottom as f32), Some(top as f32), None]).collect(),
    );
    series.x_values = Some(chart.marks.iter().flat_map(|&at| [at, at, at]).collect());
    series.stroke_dash_array = Some(MARK_DASH.to_owned());
    series.index = Some(chart.series.len());
    series
}

fn y_decades(chart: &Chart) -> (i32, i32) {
    decades(chart.values().fold(f64::MAX, f64::min), chart.values().fold(0.0, f64::max))
}

/// Upper end of the y axis: the natural one, or a round value above all values.
fn top(chart: &Chart) -> f64 {
    let max = chart.values().fold(0.0, f64::max);
    if let Some(natural) = chart.y_max.filter(|&natural| natural >= max) {
        return natural;
    }
    if chart.log {
        return 10f64.powi(y_decades(chart).1);
    }
    round_top(max)
}

/// Five round steps, a little above the largest value.
pub(super) fn round_top(max: f64) -> f64 {
    if max <= 0.0 {
        return 1.0;
    }
    let step = max * 1.02 / 5.0;
    let power = 10f64.powf(step.log10().floor());
    let fits = |n: &f64| n * power >= step;
    let nice = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].into_iter().find(fits).unwrap_or(10.0);
    5.0 * nice * power
}
