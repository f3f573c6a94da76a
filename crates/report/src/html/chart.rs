//! Figures: lines over a common axis, drawn by charts-rs as SVG, then made part of the page.
//!
//! Colours are placeholders to the drawing library and become CSS variables afterwards, so that one figure
//! serves light, dark and print. Lines differ by dash pattern too, not by colour alone. Each figure has a
//! title and a description for those who do not see it, and a table of its values.

use charts_rs::{AxisScale, AxisType, Box as Edges, Color, LineChart, Series, Symbol};

use crate::text;

/// Lines get colours and dashes by their position.
const DASHES: [&str; 6] = ["", "8,3", "2,3", "10,3,2,3", "5,2", "1,2"];
/// Placeholders; red and green mark them as ours, blue is the number.
const LINE: Color = Color { r: 1, g: 254, b: 0, a: 255 };
const AXIS: Color = Color { r: 2, g: 254, b: 1, a: 255 };
const GRID: Color = Color { r: 2, g: 254, b: 2, a: 255 };
const TEXT: Color = Color { r: 2, g: 254, b: 3, a: 255 };
const MARK: Color = Color { r: 2, g: 254, b: 4, a: 255 };
/// Around labels of the x axis that are to be rewritten.
const LABEL: (char, char) = ('\u{e000}', '\u{e001}');
/// Around labels of a logarithmic y axis that begins below 0.1: the library writes 0.01 as 0.
const DECADE: (char, char) = ('\u{e002}', '\u{e003}');

/// Name and dashes of vertical marks.
const MARKS: &str = "limits of phases";
const MARK_DASH: &str = "3,4";

fn dash(index: usize) -> &'static str {
    DASHES[index % DASHES.len()]
}

const WIDTH: f32 = 900.0;
const HEIGHT: f32 = 300.0;

/// A line of a figure.
pub struct Line {
    /// Its name in the legend.
    pub name: &'static str,
    /// Its values at the figure's x values; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
    /// Which colour and dashes it has.
    style: usize,
}

impl Line {
    /// A line.
    pub fn new(name: &'static str, values: Vec<Option<f64>>) -> Line {
        Line { name, values, style: 0 }
    }
}

/// What the x axis shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Across {
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
}

impl Across {
    /// The unit of time for a run of so many seconds, and its length in seconds.
    pub fn time(seconds: f64) -> (Across, f64) {
        match seconds {
            s if s <= 600.0 => (Across::Seconds, 1.0),
            s if s <= 6.0 * 3600.0 => (Across::Minutes, 60.0),
            _ => (Across::Hours, 3600.0),
        }
    }

    fn is_time(self) -> bool {
        matches!(self, Across::Seconds | Across::Minutes | Across::Hours)
    }
}

/// A figure.
pub struct Chart {
    /// Identifies it within the page.
    pub id: &'static str,
    /// What it shows, a few words.
    pub title: &'static str,
    /// What it means, a sentence or two.
    pub about: String,
    /// Meaning of the x axis.
    pub across: Across,
    /// Positions on the x axis.
    pub x: Vec<f64>,
    /// Title of the y axis, with the unit.
    pub y_title: &'static str,
    /// Logarithmic y axis; values that are not positive are left out.
    pub log: bool,
    /// Upper end of the y axis, if it has a natural one.
    pub y_max: Option<f64>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Positions of vertical marks: limits of phases.
    pub marks: Vec<f64>,
}

/// A figure as it goes into the page.
pub struct Drawn {
    /// Identifies it within the page.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What it means.
    pub about: String,
    /// The picture.
    pub svg: String,
    /// Its lines: name, CSS colour and dash pattern.
    pub legend: Vec<(&'static str, String, &'static str)>,
    /// Names of the columns of the table.
    pub columns: Vec<String>,
    /// Rows of the table.
    pub rows: Vec<Vec<String>>,
}

impl Chart {
    /// Draws the figure. Lines of less than two values are left out; `None` if no line remains.
    pub fn draw(mut self) -> Option<Drawn> {
        // Styles go by the first position, so that a class looks the same in all figures.
        self.lines.iter_mut().enumerate().for_each(|(index, line)| line.style = index);
        self.lines.retain(|line| line.values.iter().flatten().filter(|v| !self.log || **v > 0.0).count() > 1);
        if self.lines.is_empty() {
            return None;
        }
        let svg = self.plot().svg().ok()?;
        Some(Drawn {
            svg: self.adopt(&svg),
            legend: self.legend(),
            columns: self.columns(),
            rows: self.rows(),
            id: self.id,
            title: self.title,
            about: self.about,
        })
    }

    fn plot(&self) -> LineChart {
        let mut series: Vec<Series> = self.lines.iter().map(|line| self.series(line)).collect();
        let top = self.top();
        if !self.marks.is_empty() {
            series.push(self.mark_series(top));
        }
        let mut chart = LineChart::new(series, Vec::new());
        chart.width = WIDTH;
        chart.height = HEIGHT;
        chart.margin = Edges { left: 4.0, top: 6.0, right: 18.0, bottom: 4.0 };
        chart.background_color = Color::transparent();
        chart.font_family = "system-ui".into();
        chart.compact = true;
        // The page has a legend of its own, which shows dashes.
        chart.legend.show = Some(false);
        chart.series.stroke_width = 1.8;
        chart.series.smooth = false;
        chart.series.symbol = Some(Symbol::None);
        chart.series.colors =
            self.lines.iter().map(|line| Color { b: line.style as u8, ..LINE }).chain([MARK]).collect();
        chart.grid.stroke_color = GRID;
        chart.x_axis.kind = AxisType::Value;
        chart.x_axis.values = self.x.clone();
        chart.x_axis.stroke_color = AXIS;
        chart.x_axis.font.color = TEXT;
        chart.x_axis.font.size = 12.0;
        chart.x_axis.title = self.x_title().to_owned();
        if self.across == Across::Nines {
            chart.x_axis.formatter = Some(format!("{}{{c}}{}", LABEL.0, LABEL.1));
        }
        chart.x_axis.min = Some(if self.across.is_time() { 0.0 } else { self.x[0] });
        let y = &mut chart.y_axis_configs[0];
        y.stroke_color = AXIS;
        y.font.color = TEXT;
        y.font.size = 12.0;
        y.title = Some(self.y_title.to_owned());
        if self.log {
            // One step a decade, or lines of the grid would miss the labels.
            let (low, high) = self.decades();
            y.scale = AxisScale::Log(10.0);
            if low < -1 {
                y.formatter = Some(format!("{}{{c}}{}", DECADE.0, DECADE.1));
            }
            y.split_number = (high - low) as usize;
            y.min = Some(10f32.powi(low));
            y.max = Some(10f32.powi(high));
        } else {
            y.min = Some(0.0);
            y.max = Some(top as f32);
            y.split_number = 5;
        }
        chart
    }

    fn series(&self, line: &Line) -> Series {
        let drawable = |value: &Option<f64>| value.filter(|v| !self.log || *v > 0.0).map(|v| v as f32);
        let mut series =
            Series::new_nullable(line.name.to_owned(), line.values.iter().map(drawable).collect());
        series.stroke_dash_array = Some(dash(line.style).to_owned()).filter(|dash| !dash.is_empty());
        series
    }

    /// Vertical lines are a series of their own that goes up and leaves a gap.
    fn mark_series(&self, top: f64) -> Series {
        let bottom = if self.log { 10f64.powi(self.decades().0) } else { 0.0 };
        let mut series = Series::new_nullable(
            MARKS.to_owned(),
            self.marks.iter().flat_map(|_| [Some(bottom as f32), Some(top as f32), None]).collect(),
        );
        series.x_values = Some(self.marks.iter().flat_map(|&at| [at, at, at]).collect());
        series.stroke_dash_array = Some(MARK_DASH.to_owned());
        series.index = Some(self.lines.len());
        series
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| &line.values).filter_map(|value| *value)
    }

    /// Powers of ten at the ends of a logarithmic axis.
    fn decades(&self) -> (i32, i32) {
        let positive = || self.values().filter(|v| *v > 0.0);
        let low = positive().fold(f64::MAX, f64::min).log10().floor() as i32;
        let high = positive().fold(0.0, f64::max).log10().ceil() as i32;
        (low, high.max(low + 1))
    }

    /// Upper end of the y axis: the natural one, or a round number above all values.
    fn top(&self) -> f64 {
        let max = self.values().fold(0.0, f64::max);
        if let Some(natural) = self.y_max.filter(|&natural| natural >= max) {
            return natural;
        }
        if self.log {
            return 10f64.powi(self.decades().1);
        }
        if max <= 0.0 {
            return 1.0;
        }
        // Five round steps, a little above the largest value. Labels have one decimal, so that small steps must
        // not have two.
        let step = max * 1.02 / 5.0;
        let power = 10f64.powf(step.log10().floor());
        let fits = |n: &f64| n * power >= step && (power >= 1.0 || n.fract() == 0.0);
        let nice = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].into_iter().find(fits).unwrap_or(10.0);
        5.0 * nice * power
    }

    fn x_title(&self) -> &'static str {
        match self.across {
            Across::Seconds => "seconds since the start of the run",
            Across::Minutes => "minutes since the start of the run",
            Across::Hours => "hours since the start of the run",
            Across::Percent => "percent of all replies that took no longer",
            Across::Nines => "share of all replies that took no longer",
        }
    }

    /// Makes the drawing a part of the page: scales with it, takes its colours, tells what it is.
    fn adopt(&self, svg: &str) -> String {
        let body = svg.find('>').map_or("", |end| &svg[end + 1..]);
        let mut page = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{body}",
            escape(self.title),
            escape(&self.about),
            id = self.id,
        );
        let colours = self
            .lines
            .iter()
            .map(|line| line.style)
            .map(|i| (Color { b: i as u8, ..LINE }, format!("var(--line-{i})")));
        let fixed = [(AXIS, "axis"), (GRID, "grid"), (TEXT, "muted"), (MARK, "mark")]
            .map(|(colour, name)| (colour, format!("var(--{name})")));
        for (colour, variable) in colours.chain(fixed) {
            page = page.replace(&colour.hex(), &variable);
        }
        let page = relabel(&page, LABEL, |_, label| nines_label(label).to_owned());
        // Labels of the y axis come from the top down.
        let (_, high) = self.decades();
        relabel(&page, DECADE, |index, _| decade_label(high - index))
    }

    fn legend(&self) -> Vec<(&'static str, String, &'static str)> {
        let lines = self
            .lines
            .iter()
            .map(|line| (line.name, format!("var(--line-{})", line.style), dash(line.style)));
        let marks = (!self.marks.is_empty()).then(|| (MARKS, "var(--mark)".to_owned(), MARK_DASH));
        lines.chain(marks).collect()
    }

    fn columns(&self) -> Vec<String> {
        let x = match self.across {
            Across::Seconds => "s",
            Across::Minutes => "min",
            Across::Hours => "h",
            Across::Percent | Across::Nines => "%",
        };
        std::iter::once(x.to_owned()).chain(self.lines.iter().map(|line| line.name.to_owned())).collect()
    }

    /// At most 120 rows: tables are for reading; all values are in the log.
    fn rows(&self) -> Vec<Vec<String>> {
        let every = self.x.len().div_ceil(120);
        let row = |i: usize| {
            let x = match self.across {
                Across::Seconds | Across::Minutes | Across::Hours => text::number(Some(self.x[i]), 2),
                Across::Percent => text::number(Some(self.x[i]), 0),
                Across::Nines => text::number(Some(100.0 * share_of_nines(self.x[i])), 3),
            };
            let values = self.lines.iter().map(|line| text::short(line.values.get(i).copied().flatten()));
            std::iter::once(x).chain(values).collect()
        };
        (0..self.x.len()).step_by(every).map(row).collect()
    }
}

/// The share (0 to 1) that so many nines stand for.
pub fn share_of_nines(nines: f64) -> f64 {
    1.0 - 10f64.powf(-nines)
}

/// Rewrites labels that stand between two marks, knowing which in a row it is and what it was.
fn relabel(svg: &str, marks: (char, char), new: impl Fn(i32, &str) -> String) -> String {
    let mut out = String::with_capacity(svg.len());
    let (mut rest, mut index) = (svg, 0);
    while let Some((before, label)) = rest.split_once(marks.0) {
        let (label, after) = label.split_once(marks.1).unwrap_or((label, ""));
        out.push_str(before);
        out.push_str(&new(index, label));
        (rest, index) = (after, index + 1);
    }
    out + rest
}

fn decade_label(exponent: i32) -> String {
    match exponent {
        ..0 => format!("{:.1$}", 10f64.powi(exponent), exponent.unsigned_abs() as usize),
        0..3 => format!("{}", 10f64.powi(exponent)),
        3..6 => format!("{}k", 10f64.powi(exponent - 3)),
        6.. => format!("{}M", 10f64.powi(exponent - 6)),
    }
}

fn nines_label(label: &str) -> &'static str {
    match label {
        "0" => "0 %",
        "1" => "90 %",
        "2" => "99 %",
        "3" => "99.9 %",
        "4" => "99.99 %",
        "5" => "99.999 %",
        _ => "",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Line>) -> Chart {
        Chart {
            id: "c",
            title: "A <title>",
            about: "about & more".into(),
            across: Across::Nines,
            x: vec![0.0, 1.0, 2.0, 3.0],
            y_title: "ms",
            log: true,
            y_max: None,
            lines,
            marks: vec![1.0],
        }
    }

    #[test]
    fn drawings_take_colours_and_labels_of_the_page() {
        let line = |name, values: [f64; 4]| Line::new(name, values.map(Some).to_vec());
        let drawn =
            chart(vec![line("a", [1.0, 5.0, 7.0, 90.0]), line("b", [0.0, 2.0, 3.0, 4.0])]).draw().unwrap();
        for wanted in
            ["var(--line-0)", "var(--line-1)", "var(--grid)", "var(--muted)", ">99 %<", "A &lt;title&gt;"]
        {
            assert!(drawn.svg.contains(wanted), "{wanted} is missing in {}", drawn.svg);
        }
        assert!(
            !drawn.svg.to_uppercase().contains("#01FE")
                && !drawn.svg.to_uppercase().contains("#02FE")
                && !drawn.svg.contains(LABEL.0)
        );
        assert_eq!(drawn.rows[2], ["99.000", "7.00", "3.00"]);
    }

    #[test]
    fn decades_are_labelled_from_the_bottom_up() {
        let values = vec![Some(0.02), Some(0.3), Some(40.0), Some(500.0)];
        let svg = chart(vec![Line::new("a", values)]).draw().unwrap().svg;
        // Where each label is written: the y attribute of the text element it ends.
        let height = |label: &str| -> f64 {
            let text = &svg[..svg.find(&format!(">{label}<")).unwrap_or_else(|| panic!("{label} in {svg}"))];
            let at = text.rfind(" y=\"").unwrap() + 4;
            text[at..].split('"').next().unwrap().parse().unwrap()
        };
        let heights = ["0.01", "0.1", "1", "10", "100", "1k"].map(height);
        assert!(heights.is_sorted_by(|a, b| a > b), "{heights:?}");
    }

    #[test]
    fn nothing_to_show_is_no_figure() {
        assert!(chart(vec![Line::new("a", vec![None; 4])]).draw().is_none());
        assert!(chart(vec![Line::new("a", vec![Some(0.0); 4])]).draw().is_none(), "log of zero");
    }
}
