//! Heat maps: the distribution of values in each column.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::draw::Axes;
use super::{Chart, LegendEntry, ROWS_MAX, RenderedChart, Series, XAxis, data, draw};
use crate::text;

/// Largest share of the values of a column for each shade but the last.
const SHADES: [f64; 5] = [0.01, 0.03, 0.10, 0.20, 0.40];
/// Opacity of each shade in percent.
const OPACITY: [u32; 6] = [12, 26, 42, 60, 80, 100];

/// A heat map: columns of counts over logarithmic bins of values.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Identifier within the page.
    pub id: String,
    /// Title in a few words.
    pub title: String,
    /// Explanation in a sentence or two.
    pub about: String,
    /// Meaning of the x axis, a linear one.
    pub x_axis: XAxis,
    /// Title of the y axis, with the unit.
    pub y_title: String,
    /// Start of each column on the x axis.
    pub starts: Vec<f64>,
    /// Width of the columns.
    pub width: f64,
    /// Edges of the bins: ascending, positive, one more than there are bins.
    pub edges: Vec<f64>,
    /// Count of each bin of each column.
    pub columns: Vec<Vec<u64>>,
    /// Positions of vertical marks: phase boundaries.
    pub marks: Vec<f64>,
}

/// Shade of a share of a column.
fn shade(share: f64) -> usize {
    SHADES.iter().position(|&end| share <= end).unwrap_or(SHADES.len())
}

impl HeatMap {
    /// Draws the heat map; `None` with fewer than two columns that have values.
    pub fn draw(mut self) -> Option<RenderedChart> {
        self.trim()?;
        let (svg, axes) = self.svg()?;
        let (columns, rows) = self.table();
        Some(RenderedChart {
            svg,
            legend: self.legend(),
            columns,
            rows,
            data: Some(script_values(&self, &axes)),
            id: self.id,
            title: self.title,
            about: self.about,
        })
    }

    /// Removes empty bins below and above all values.
    fn trim(&mut self) -> Option<()> {
        let used = |bin: usize| self.columns.iter().any(|column| column.get(bin).is_some_and(|n| *n > 0));
        let bins = self.edges.len().checked_sub(1)?;
        let first = (0..bins).find(|&bin| used(bin))?;
        let last = (0..bins).rev().find(|&bin| used(bin))?;
        if self.columns.iter().filter(|column| column.iter().any(|n| *n > 0)).count() < 2 {
            return None;
        }
        self.edges = self.edges[first..=last + 1].to_vec();
        for column in &mut self.columns {
            *column = (first..=last).map(|bin| column.get(bin).copied().unwrap_or(0)).collect();
        }
        Some(())
    }

    /// The axes are those of a chart with one line, whose place the cells take.
    fn svg(&self) -> Option<(String, Axes)> {
        let (x0, x1) = (*self.starts.first()?, self.starts.last()? + self.width);
        let (y0, y1) = (*self.edges.first()?, *self.edges.last()?);
        let empty = Chart {
            x_axis: self.x_axis.clone(),
            log: true,
            marks: self.marks.clone(),
            ..Chart::new(&self.id, &self.title, &self.y_title)
        };
        let empty = empty
            .about(&self.about)
            .with(Series::line("frame", vec![(x0, Some(y0)), (x1, Some(y1))]).styled(0));
        let (svg, axes) = draw::svg(&empty)?;
        let colour = svg.find("var(--line-0)")?;
        let (from, to) = (svg[..colour].rfind('<')?, colour + svg[colour..].find("/>")? + 2);
        let [left, top, right, bottom] = axes.frame;
        let x = |value: f64| left + (value - axes.x[0]) / (axes.x[1] - axes.x[0]) * (right - left);
        let y =
            |value: f64| bottom + (value / axes.y[0]).ln() / (axes.y[1] / axes.y[0]).ln() * (top - bottom);
        let mut shades: [String; 6] = Default::default();
        for (start, column) in self.starts.iter().zip(&self.columns) {
            let all: u64 = column.iter().sum();
            let (from, to) = (x(*start), x(start + self.width));
            for (bin, &count) in column.iter().enumerate().filter(|(_, count)| **count > 0) {
                let (low, high) = (y(self.edges[bin]), y(self.edges[bin + 1]));
                let path = &mut shades[shade(count as f64 / all as f64)];
                let _ = write!(path, "M{from:.1} {low:.1}H{to:.1}V{high:.1}H{from:.1}z");
            }
        }
        let cells: String = shades
            .iter()
            .zip(OPACITY)
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, percent)| {
                format!(
                    "<path d=\"{path}\" fill=\"var(--line-0)\" fill-opacity=\"{}\"/>",
                    f64::from(percent) / 100.0
                )
            })
            .collect();
        Some((format!("{}{cells}{}", &svg[..from], &svg[to..]), axes))
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        (0..OPACITY.len())
            .map(|i| LegendEntry {
                name: match SHADES.get(i) {
                    Some(end) => format!("up to {}", percent(*end)),
                    None => "more".to_owned(),
                },
                colour: format!("color-mix(in srgb, var(--line-0) {}%, transparent)", OPACITY[i]),
                dash: None,
                series: None,
            })
            .collect()
    }

    /// Shares of the values of each column by decade.
    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let top = |edge: f64| (edge * 0.999_999).log10().ceil() as i32;
        let decades = top(self.edges[1])..=top(*self.edges.last().unwrap_or(&1.0));
        let head = decades
            .clone()
            .map(|power| format!("% to {} {}", text::short(Some(10f64.powi(power))), self.y_title));
        let columns = std::iter::once(self.x_axis.column().to_owned()).chain(head).collect();
        let every = self.columns.len().div_ceil(ROWS_MAX / 2).max(1);
        let row = |i: usize| {
            let counts = &self.columns[i];
            let all: u64 = counts.iter().sum();
            let share = |power: i32| {
                let of = counts.iter().enumerate().filter(|(bin, _)| top(self.edges[bin + 1]) == power);
                let part: u64 = of.map(|(_, count)| *count).sum();
                text::number((all > 0).then(|| 100.0 * part as f64 / all as f64), 2)
            };
            std::iter::once(self.x_axis.text(self.starts[i])).chain(decades.clone().map(share)).collect()
        };
        (columns, (0..self.columns.len()).step_by(every).map(row).collect())
    }
}

/// The heat map as the script reads it: each column is a list of bins and counts in turn.
fn script_values(map: &HeatMap, axes: &Axes) -> Value {
    let columns: Vec<Vec<u64>> = map
        .columns
        .iter()
        .map(|column| {
            let used = column.iter().enumerate().filter(|(_, count)| **count > 0);
            used.flat_map(|(bin, count)| [bin as u64, *count]).collect()
        })
        .collect();
    let mut all = data::common("heat", &map.x_axis, &map.y_title, &map.marks, super::svg::HEIGHT, axes);
    all["start"] = data::maybe(map.starts.first().copied());
    all["width"] = data::short(map.width);
    all["edges"] = map.edges.iter().map(|edge| data::short(*edge)).collect();
    all["cells"] = json!(columns);
    all
}
