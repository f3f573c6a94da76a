//! What all drawings have in common: colours that the page replaces, the position of the plot, labels.

use charts_rs::Color;

pub(super) const WIDTH: f32 = 900.0;
pub(super) const HEIGHT: f32 = 300.0;

/// Placeholder colours: red and green mark them as placeholders, blue is the number.
pub(super) const AXIS: Color = Color { r: 2, g: 254, b: 1, a: 255 };
pub(super) const GRID: Color = Color { r: 2, g: 254, b: 2, a: 255 };
pub(super) const TEXT: Color = Color { r: 2, g: 254, b: 3, a: 255 };
pub(super) const MARK: Color = Color { r: 2, g: 254, b: 4, a: 255 };

/// Placeholder of the colour of a series.
pub(super) fn line(style: usize) -> Color {
    Color { r: 1, g: 254, b: style as u8, a: 255 }
}

/// Makes a drawing part of the page: it scales with the page, takes its colours, and has a title and a description.
/// `styles` are the styles of its series.
pub(super) fn embed(
    svg: &str,
    id: &str,
    title: &str,
    about: &str,
    height: f32,
    styles: impl IntoIterator<Item = usize>,
) -> String {
    let body = svg.find('>').map_or("", |end| &svg[end + 1..]);
    let mut page = format!("{}{body}", open(id, title, about, height));
    let colours = styles.into_iter().map(|style| (line(style), super::colour(style)));
    let fixed = [(AXIS, "axis"), (GRID, "grid"), (TEXT, "muted"), (MARK, "mark")]
        .map(|(colour, name)| (colour, format!("var(--{name})")));
    for (colour, variable) in colours.chain(fixed) {
        page = page.replace(&colour.hex(), &variable);
    }
    page
}

/// The opening tag of a figure's `svg` element.
fn open(id: &str, title: &str, about: &str, height: f32) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
         <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
        escape(title),
        escape(about)
    )
}

/// Left, top, right and bottom of the plot within a drawing of charts-rs: the y axis goes down from its upper left
/// corner, and the lines of the grid go right from there.
pub(super) fn frame(page: &str) -> Option<[f64; 4]> {
    let path = |group: &str| {
        let (_, rest) = page.split_once(&format!("<g stroke=\"var(--{group})\"><path d=\"M"))?;
        let mut numbers = rest.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
        let mut next = || numbers.next()?.parse::<f64>().ok();
        Some([next()?, next()?, next()?])
    };
    let ([left, top, height], [_, _, width]) = (path("axis")?, path("grid")?);
    Some([left, top, left + width, top + height])
}

/// Where the ticks of the x axis are: they go down from the bottom of the plot.
pub(super) fn x_ticks(page: &str, bottom: f64) -> Vec<f64> {
    let tick = format!(" {bottom}v5");
    let starts = page.split('M').filter(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    starts.filter_map(|part| part.split_once(&tick)?.0.parse().ok()).collect()
}

/// Moves the text element that `page` ends in to a horizontal position, aligned there as `anchor` says.
pub(super) fn align_last_text(page: &mut String, x: f64, anchor: &str) {
    let Some(text) = page.rfind("<text") else { return };
    let Some(from) = page[text..].find(" x=\"").map(|at| text + at) else { return };
    let Some(to) = page[from + 4..].find('"').map(|at| from + 5 + at) else { return };
    page.replace_range(from..to, &format!(" x=\"{x}\" text-anchor=\"{anchor}\""));
}

/// Rewrites labels between two marks. `new` gets the drawing up to the label, the number of the label, and its text.
pub(super) fn relabel(
    svg: &str,
    marks: (char, char),
    new: impl Fn(&mut String, usize, &str) -> String,
) -> String {
    let mut out = String::with_capacity(svg.len());
    let (mut rest, mut index) = (svg, 0);
    while let Some((before, label)) = rest.split_once(marks.0) {
        let (label, after) = label.split_once(marks.1).unwrap_or((label, ""));
        out.push_str(before);
        let label = new(&mut out, index, label);
        out.push_str(&label);
        (rest, index) = (after, index + 1);
    }
    out + rest
}

pub(in crate::html) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
