//! Bar charts: values side by side for each of a few categories.

use charts_rs::{BarChart, Box as Edges, Color, Series as Drawing};

use super::draw::{LABEL_GAP, STEPS, Y_LABEL, round_top, y_label};
use super::labels::steps;
use super::svg::{AXIS, GRID, HEIGHT, TEXT, WIDTH, align_last_text, embed, frame, line, relabel};
use super::{LegendEntry, RenderedChart, colour};
use crate::text;

/// With more bars than this, the numbers above them would overlap.
const NUMBERED_MAX: usize = 24;

/// A bar chart.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Identifier within the page.
    pub id: String,
    /// Title in a few words.
    pub title: String,
    /// Explanation in a sentence or two.
    pub about: String,
    /// Heading of the column of categories.
    pub of: String,
    /// Title of the y axis, with the unit.
    pub y_title: String,
    /// Names of the categories.
    pub categories: Vec<String>,
    /// Name and values of each group of bars, a value for each category.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

impl Bars {
    /// Draws the chart; `None` without a positive value.
    pub fn draw(self) -> Option<RenderedChart> {
        let max = self.groups.iter().flat_map(|(_, values)| values).flatten().copied().fold(0.0, f64::max);
        if max <= 0.0 || !max.is_finite() {
            return None;
        }
        let svg = self.plot(max).svg().ok()?;
        let labels = steps(round_top(max), STEPS);
        let svg = embed(&svg, &self.id, &self.title, &self.about, HEIGHT, 0..self.groups.len());
        let left = frame(&svg)?[0];
        let svg = relabel(&svg, Y_LABEL, |page, index, _| {
            align_last_text(page, left - LABEL_GAP, "end");
            labels.get(index).cloned().unwrap_or_default()
        });
        let legend = self.groups.iter().enumerate().map(|(i, (name, _))| LegendEntry {
            name: name.clone(),
            colour: colour(i),
            dash: None,
            series: None,
        });
        let row = |(i, name): (usize, &String)| {
            let values = self.groups.iter().map(|(_, values)| text::short(values.get(i).copied().flatten()));
            std::iter::once(name.clone()).chain(values).collect()
        };
        Some(RenderedChart {
            svg,
            legend: legend.collect(),
            columns: std::iter::once(self.of.clone())
                .chain(self.groups.iter().map(|(name, _)| name.clone()))
                .collect(),
            rows: self.categories.iter().enumerate().map(row).collect(),
            data: None,
            id: self.id,
            title: self.title,
            about: self.about,
        })
    }

    fn plot(&self, max: f64) -> BarChart {
        // The number shows the value of a bar that is too low to see.
        let numbered = self.groups.len() * self.categories.len() <= NUMBERED_MAX;
        let series = self.groups.iter().map(|(name, values)| {
            let values = values.iter().map(|v| v.map(|v| v as f32)).collect();
            let mut bars = Drawing::new_nullable(name.clone(), values);
            bars.label_show = numbered;
            bars
        });
        let mut plot = BarChart::new(series.collect(), self.categories.clone());
        plot.width = WIDTH;
        plot.height = HEIGHT;
        plot.margin = Edges { left: 4.0, top: 6.0, right: 18.0, bottom: 4.0 };
        plot.background_color = Color::transparent();
        plot.font_family = "system-ui".into();
        plot.compact = true;
        plot.legend.show = Some(false);
        plot.series.colors = (0..self.groups.len()).map(line).collect();
        plot.series.label.font.color = TEXT;
        plot.series.label.font.size = 11.0;
        plot.grid.stroke_color = GRID;
        plot.x_axis.stroke_color = AXIS;
        plot.x_axis.font.color = TEXT;
        plot.x_axis.font.size = 12.0;
        let y = &mut plot.y_axis_configs[0];
        y.stroke_color = AXIS;
        y.font.color = TEXT;
        y.font.size = 12.0;
        y.title = Some(self.y_title.clone());
        y.min = Some(0.0);
        y.max = Some(round_top(max) as f32);
        y.split_number = STEPS;
        y.formatter = Some(y_label(&steps(round_top(max), STEPS)));
        plot
    }
}
