//! Charts: what they show as plain data, and how they get into a page.
//!
//! ```text
//! Chart --draw--> RenderedChart { SVG, table of values, data for the script }
//! Bars, HeatMap --draw--> RenderedChart
//! ```
//!
//! charts-rs draws the static SVG, which needs no script. Where scripts run, `assets/report.js` adds a crosshair, zoom
//! and switching of series on top of it. Colours are CSS variables, so the same SVG serves light mode, dark mode and
//! print. Series differ by dash pattern as well as by colour. Each chart has a title and a description for screen
//! readers, and a table of its values.

mod bars;
mod data;
mod draw;
mod heat;
mod labels;
mod svg;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::text;

pub use bars::Bars;
pub(super) use data::script_data;
pub use heat::HeatMap;
pub use labels::share_of_nines;
pub(super) use svg::escape;

/// Dash patterns by style. The page has two colours for each (`--line-0` to `--line-11`).
const DASHES: [&str; 6] = ["", "8,3", "2,3", "10,3,2,3", "5,2", "6,2,1,2,1,2"];
/// Name of the vertical marks in the legend.
const MARKS: &str = "phase boundaries";
/// Dash pattern of the vertical marks.
const MARK_DASH: &str = "3,4";
/// Largest number of rows of a table; the log has all values.
const ROWS_MAX: usize = 120;

fn dash(index: usize) -> &'static str {
    // The second half of the colours uses the dashes in another order.
    DASHES[(index + 3 * (index / DASHES.len())) % DASHES.len()]
}

fn colour(index: usize) -> String {
    format!("var(--line-{})", index % (2 * DASHES.len()))
}

/// How the points of a series are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line.
    Line,
    /// Separate points.
    Points,
    /// A line with its points marked.
    Marked,
}

/// A series of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Positions and values; `None` leaves a gap in a line.
    pub points: Vec<(f64, Option<f64>)>,
    /// How the points are shown.
    pub shape: Shape,
    /// Number of its colour and dash pattern; by default its position in the chart.
    pub style: Option<usize>,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, Option<f64>)>) -> Series {
        Series { name: name.into(), points, shape: Shape::Line, style: None }
    }

    /// Separate points.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().map(|(x, y)| (x, Some(y))).collect();
        Series { name: name.into(), points, shape: Shape::Points, style: None }
    }

    /// A line whose points are marked, to tell measured values from the line between them.
    pub fn marked(name: impl Into<String>, points: Vec<(f64, Option<f64>)>) -> Series {
        Series { shape: Shape::Marked, ..Series::line(name, points) }
    }

    /// Sets the number of the colour and dash pattern.
    #[must_use]
    pub fn styled(self, style: usize) -> Series {
        Series { style: Some(style), ..self }
    }

    fn style(&self) -> usize {
        self.style.unwrap_or(0)
    }
}

/// What the x axis shows.
#[derive(Clone, Debug, PartialEq)]
pub enum XAxis {
    /// Seconds since the start of the run.
    Seconds,
    /// Minutes since the start of the run.
    Minutes,
    /// Hours since the start of the run.
    Hours,
    /// Percent of all values.
    Percent,
    /// Number of nines: 1 is 90 %, 2 is 99 %, and so on.
    Nines,
    /// Numbers from 0, with the title of the axis.
    Linear(String),
    /// Positive numbers on a logarithmic axis, with its title.
    Log(String),
}

impl XAxis {
    /// The unit of time that suits a run of `seconds`, and its length in seconds.
    pub fn time(seconds: f64) -> (XAxis, f64) {
        match seconds {
            s if s <= 600.0 => (XAxis::Seconds, 1.0),
            s if s <= 6.0 * 3600.0 => (XAxis::Minutes, 60.0),
            _ => (XAxis::Hours, 3600.0),
        }
    }

    fn title(&self) -> &str {
        match self {
            XAxis::Seconds => "seconds since the start of the run",
            XAxis::Minutes => "minutes since the start of the run",
            XAxis::Hours => "hours since the start of the run",
            XAxis::Percent => "percent of all replies that took no longer",
            XAxis::Nines => "share of all replies that took no longer",
            XAxis::Linear(title) | XAxis::Log(title) => title,
        }
    }

    /// Heading of the column of x values.
    fn column(&self) -> &str {
        match self {
            XAxis::Seconds => "s",
            XAxis::Minutes => "min",
            XAxis::Hours => "h",
            XAxis::Percent | XAxis::Nines => "%",
            XAxis::Linear(title) | XAxis::Log(title) => title,
        }
    }

    /// What follows an x value in running text.
    fn unit(&self) -> &str {
        match self {
            XAxis::Percent => "% of the replies",
            XAxis::Nines => "",
            _ => self.column(),
        }
    }

    /// An x value in a table.
    fn text(&self, x: f64) -> String {
        match self {
            XAxis::Seconds | XAxis::Minutes | XAxis::Hours => text::number(Some(x), 2),
            XAxis::Percent => text::number(Some(x), 0),
            XAxis::Nines => text::number(Some(100.0 * share_of_nines(x)), 3),
            XAxis::Linear(_) | XAxis::Log(_) => text::short(Some(x)),
        }
    }
}

/// A chart of lines or points over an x axis.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Identifier within the page.
    pub id: String,
    /// Title in a few words.
    pub title: String,
    /// Explanation in a sentence or two.
    pub about: String,
    /// Meaning of the x axis.
    pub x_axis: XAxis,
    /// Title of the y axis, with the unit.
    pub y_title: String,
    /// Whether the y axis is logarithmic; such an axis leaves out values that are not positive.
    pub log: bool,
    /// Natural upper end of the y axis, for example 100 %.
    pub y_max: Option<f64>,
    /// The series in the order of the legend.
    pub series: Vec<Series>,
    /// Positions of vertical marks: phase boundaries.
    pub marks: Vec<f64>,
    /// Height of the drawing; its width is 900 in the same unit.
    pub height: f32,
}

/// A chart ready for a page.
#[derive(Clone, Debug, Serialize)]
pub struct RenderedChart {
    /// Identifier within the page.
    pub id: String,
    /// Title in a few words.
    pub title: String,
    /// Explanation in a sentence or two.
    pub about: String,
    /// The picture: an `svg` element.
    pub svg: String,
    /// Entries of the legend.
    pub legend: Vec<LegendEntry>,
    /// Names of the columns of the table.
    pub columns: Vec<String>,
    /// Rows of the table.
    pub rows: Vec<Vec<String>>,
    /// The data that the script works with; `None` for charts that are static only.
    #[serde(skip)]
    pub data: Option<serde_json::Value>,
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegendEntry {
    /// Name of the series.
    pub name: String,
    /// CSS colour.
    pub colour: String,
    /// Dash pattern of a line; `None` for points and areas.
    pub dash: Option<&'static str>,
    /// Number of the series that the entry shows and hides; `None` for marks and shades.
    pub series: Option<usize>,
}

impl Chart {
    /// An empty chart over seconds with linear axes.
    pub fn new(id: impl Into<String>, title: impl Into<String>, y_title: impl Into<String>) -> Chart {
        Chart {
            id: id.into(),
            title: title.into(),
            about: String::new(),
            x_axis: XAxis::Seconds,
            y_title: y_title.into(),
            log: false,
            y_max: None,
            series: Vec::new(),
            marks: Vec::new(),
            height: svg::HEIGHT,
        }
    }

    /// Sets the explanation.
    #[must_use]
    pub fn about(self, about: impl Into<String>) -> Chart {
        Chart { about: about.into(), ..self }
    }

    /// Sets the x axis.
    #[must_use]
    pub fn x_axis(self, x_axis: XAxis) -> Chart {
        Chart { x_axis, ..self }
    }

    /// Makes the y axis logarithmic.
    #[must_use]
    pub fn log(self) -> Chart {
        Chart { log: true, ..self }
    }

    /// Makes the y axis logarithmic if values differ by more than a factor of fifty.
    #[must_use]
    pub fn log_if_wide(self) -> Chart {
        let values = || self.values().filter(|v| *v > 0.0);
        let log = values().fold(0.0, f64::max) > 50.0 * values().fold(f64::MAX, f64::min);
        Chart { log, ..self }
    }

    /// Ends the y axis at `max` unless values exceed it.
    #[must_use]
    pub fn up_to(self, max: f64) -> Chart {
        Chart { y_max: Some(max), ..self }
    }

    /// Sets the height of the drawing.
    #[must_use]
    pub fn high(self, height: f32) -> Chart {
        Chart { height, ..self }
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// Draws the chart. Lines with fewer than two values and series without points are left out; `None` if nothing remains.
    pub fn draw(mut self) -> Option<RenderedChart> {
        // Styles are assigned before series are left out, so that a class looks the same in all charts.
        self.series.iter_mut().enumerate().for_each(|(index, series)| {
            series.style.get_or_insert(index);
        });
        let (log, log_x) = (self.log, matches!(self.x_axis, XAxis::Log(_)));
        for series in &mut self.series {
            series.points.retain(|(x, _)| x.is_finite() && (!log_x || *x > 0.0));
            series
                .points
                .iter_mut()
                .for_each(|(_, y)| *y = y.filter(|y| y.is_finite() && (!log || *y > 0.0)));
        }
        self.series.retain(|series| {
            let least = if series.shape == Shape::Line { 2 } else { 1 };
            series.points.iter().filter(|(_, y)| y.is_some()).count() >= least
        });
        if self.series.is_empty() {
            return None;
        }
        let (columns, rows) = self.table();
        let (svg, axes) = draw::svg(&self)?;
        Some(RenderedChart {
            svg,
            legend: self.legend(),
            columns,
            rows,
            data: Some(data::chart(&self, &axes)),
            id: self.id,
            title: self.title,
            about: self.about,
        })
    }

    /// All values of all series.
    fn values(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| &series.points).filter_map(|(_, y)| *y)
    }

    /// Smallest and largest x value.
    fn x_range(&self) -> (f64, f64) {
        let all = || self.series.iter().flat_map(|series| &series.points).map(|(x, _)| *x);
        (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max))
    }

    /// Whether all series have the same x values.
    fn shares_x(&self) -> bool {
        self.series.windows(2).all(|pair| {
            pair[0].points.len() == pair[1].points.len()
                && pair[0].points.iter().zip(&pair[1].points).all(|(a, b)| a.0 == b.0)
        })
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let series = self.series.iter().enumerate().map(|(number, series)| LegendEntry {
            name: series.name.clone(),
            colour: colour(series.style()),
            dash: (series.shape != Shape::Points).then(|| dash(series.style())),
            series: Some(number),
        });
        let marks = (!self.marks.is_empty()).then(|| LegendEntry {
            name: MARKS.to_owned(),
            colour: "var(--mark)".to_owned(),
            dash: Some(MARK_DASH),
            series: None,
        });
        series.chain(marks).collect()
    }

    /// Columns and rows of the table of values: a column for each series, with its unit, if all have the same x values,
    /// otherwise a row for each point.
    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let x = self.x_axis.column().to_owned();
        if self.shares_x() {
            let column = |series: &Series| match series.name.contains(&self.y_title) {
                true => series.name.clone(),
                false => format!("{}, {}", series.name, self.y_title),
            };
            let columns = std::iter::once(x).chain(self.series.iter().map(column));
            let points = &self.series[0].points;
            let row = |i: usize| {
                let values = self.series.iter().map(|series| text::short(series.points[i].1));
                std::iter::once(self.x_axis.text(points[i].0)).chain(values).collect()
            };
            let every = points.len().div_ceil(ROWS_MAX).max(1);
            return (columns.collect(), (0..points.len()).step_by(every).map(row).collect());
        }
        let all: Vec<_> = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(move |(x, y)| (series, *x, *y)))
            .filter(|(_, _, y)| y.is_some())
            .collect();
        let row = |(series, x, y): &(&Series, f64, Option<f64>)| {
            vec![series.name.clone(), self.x_axis.text(*x), text::short(*y)]
        };
        let every = all.len().div_ceil(ROWS_MAX).max(1);
        (vec![String::new(), x, self.y_title.clone()], all.iter().step_by(every).map(row).collect())
    }
}
