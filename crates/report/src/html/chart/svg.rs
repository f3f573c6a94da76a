//! What all drawings have in common: placeholders for colours, and their place in the page.

use charts_rs::Color;

pub(super) const WIDTH: f32 = 900.0;
pub(super) const HEIGHT: f32 = 300.0;

/// Placeholders; red and green mark them as ours, blue is the number.
pub(super) const AXIS: Color = Color { r: 2, g: 254, b: 1, a: 255 };
pub(super) const GRID: Color = Color { r: 2, g: 254, b: 2, a: 255 };
pub(super) const TEXT: Color = Color { r: 2, g: 254, b: 3, a: 255 };
pub(super) const MARK: Color = Color { r: 2, g: 254, b: 4, a: 255 };

/// The placeholder of a line's colour.
pub(super) fn line(style: usize) -> Color {
    Color { r: 1, g: 254, b: style as u8, a: 255 }
}

/// Makes a drawing a part of the page: it scales with it, takes its colours, tells what it is. `styles` are the lines
/// in it.
pub(super) fn adopt(
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

/// The begin of a figure's `svg` element.
fn open(id: &str, title: &str, about: &str, height: f32) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
         <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
        escape(title),
        escape(about)
    )
}

/// Rewrites labels that stand between two marks, knowing which in a row it is and what it was.
pub(super) fn relabel(svg: &str, marks: (char, char), new: impl Fn(i32, &str) -> String) -> String {
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

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
