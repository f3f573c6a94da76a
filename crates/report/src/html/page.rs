//! The frame of every page: one file that includes its styles and its script and loads nothing.
//!
//! A page is data ([`Page`], [`Section`], [`Part`]); [`Page::html`] writes it and escapes all text. The content security
//! policy allows only the script with the right digest, so quotations from logs cannot run.

use std::sync::LazyLock;

use base64::Engine as _;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::chart::{RenderedChart, escape, script_data};
use super::table::Table;

/// The script of the page.
const SCRIPT: &str = include_str!("../../assets/report.js");
/// The styles of the page.
const STYLE: &str = include_str!("../../assets/report.css");

/// The frame of the page, after the macro that shows a part.
const TEMPLATE: &str =
    concat!(include_str!("../../templates/part.html"), include_str!("../../templates/page.html"));

/// SHA-256 digest of the script for the content security policy, in Base64.
static DIGEST: LazyLock<String> =
    LazyLock::new(|| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT)));

/// A page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// Title of the page.
    pub title: String,
    /// A line below the title: time, duration, number of processes.
    pub subtitle: String,
    /// The verdict, if there is one.
    pub banner: Option<Banner>,
    /// Names and values below the subtitle, for example the device.
    pub facts: Vec<(String, String)>,
    /// The headline figures.
    pub tiles: Vec<Tile>,
    /// What the headline figures refer to; may be empty.
    pub lead: String,
    /// The rest of the first screen, below the headline figures.
    pub first: Vec<Part>,
    /// The sections below the first screen.
    pub sections: Vec<Section>,
    /// The last line.
    pub footer: String,
}

/// A verdict at the top of a page.
#[derive(Clone, Debug, Serialize)]
pub struct Banner {
    /// The word, for example `VALID`.
    pub word: String,
    /// What the word means.
    pub meaning: String,
    /// How good the verdict is.
    pub tone: Tone,
    /// The findings that decided the verdict.
    pub reasons: Vec<String>,
    /// What to do about these findings.
    pub remedy: Option<&'static str>,
    /// Warnings for those who use the figures.
    pub warnings: Vec<String>,
}

/// How good a verdict is; decides its colour and icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Tone {
    /// The test passed.
    #[serde(rename = "valid")]
    Good,
    /// The test failed.
    #[serde(rename = "failed")]
    Bad,
    /// The figures allow no conclusion.
    #[serde(rename = "invalid")]
    Doubtful,
}

/// A headline figure of the first screen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tile {
    /// Name of the figure.
    pub name: String,
    /// The figure as text.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// A line of detail.
    pub more: String,
    /// The figure is a reason why the run is not valid.
    pub bad: bool,
}

/// A section of the page; the table of contents links to it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// Identifier for links within the page.
    pub id: String,
    /// Heading of the section.
    pub title: String,
    /// What the section shows, in a sentence or two.
    pub about: String,
    /// The content in order.
    pub parts: Vec<Part>,
}

impl Section {
    /// A section without parts.
    pub fn new(id: impl Into<String>, title: impl Into<String>, about: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), about: about.into(), parts: Vec::new() }
    }

    /// Adds parts.
    #[must_use]
    pub fn with<P: Into<Part>>(mut self, parts: impl IntoIterator<Item = P>) -> Section {
        self.parts.extend(parts.into_iter().map(P::into));
        self
    }
}

/// A piece of content in a section.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", content = "content", rename_all = "lowercase")]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Conclusions, a line each.
    Notes(Vec<String>),
    /// Failures, a line each.
    Faults(Vec<String>),
    /// A command or another text in a fixed-width font.
    Code(String),
    /// A table.
    Table(Table),
    /// A chart.
    Figure(RenderedChart),
    /// Names and values, for example settings.
    Pairs(Vec<(String, String)>),
    /// Terms and their definitions.
    Terms(Vec<Term>),
    /// Examples of errors.
    Examples(Vec<Example>),
    /// Parts that readers can unfold; they are always open in print.
    Fold {
        /// Identifier for links within the page; may be empty.
        id: String,
        /// The line that is always visible.
        summary: String,
        /// The content that can be unfolded.
        parts: Vec<Part>,
    },
}

impl From<Table> for Part {
    fn from(table: Table) -> Part {
        Part::Table(table)
    }
}

impl From<RenderedChart> for Part {
    fn from(figure: RenderedChart) -> Part {
        Part::Figure(figure)
    }
}

/// An entry of a glossary.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    /// The term.
    pub name: String,
    /// Its definition.
    pub text: String,
}

/// An example of an error.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// When the error occurred.
    pub at: String,
    /// Class of the error.
    pub class: String,
    /// What happened, in a line.
    pub detail: String,
    /// Further details: names and values.
    pub facts: Vec<(String, String)>,
}

/// What the template shows.
#[derive(Serialize)]
struct Shell<'a> {
    page: &'a Page,
    style: &'static str,
    script: &'static str,
    digest: &'a str,
    charts: String,
}

impl Page {
    /// The page as the text of an HTML file.
    pub fn html(&self) -> String {
        let mut charts = Vec::new();
        collect_charts(&self.first, &mut charts);
        self.sections.iter().for_each(|section| collect_charts(&section.parts, &mut charts));
        let interactive = charts.iter().filter_map(|chart| Some((chart.id.as_str(), chart.data.as_ref()?)));
        let charts = script_data(interactive);
        let shell = Shell { page: self, style: STYLE, script: SCRIPT, digest: &DIGEST, charts };
        let environment = environment();
        let template = environment.template_from_str(TEMPLATE).expect("the tests parse the template");
        template.render(Serde(shell)).expect("the template shows what the types of a page have")
    }
}

/// Templates in which a name that is not there is an error, and every text is escaped.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // Minijinja escapes slashes too, of which reports have many.
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        Ok(out.write_str(&if value.is_safe() { text } else { escape(&text) })?)
    });
    environment
}

/// The charts among `parts`, folded ones too.
fn collect_charts<'a>(parts: &'a [Part], charts: &mut Vec<&'a RenderedChart>) {
    for part in parts {
        match part {
            Part::Figure(chart) => charts.push(chart),
            Part::Fold { parts, .. } => collect_charts(parts, charts),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::LegendEntry;
    use crate::html::table::{Mark, columns, row};

    /// The compiler does not see whether the template has all kinds. One that it does not have is an error when it is rendered.
    #[test]
    fn every_kind_of_part_is_shown() {
        let text = || "a < b".to_owned();
        let mut table = Table::new(text(), columns(&["a", "b"]), vec![row("c", [text()])]);
        table.marks.push((0, 1, Mark::Better));
        let key = |dash, series| LegendEntry { name: text(), colour: "red".to_owned(), dash, series };
        let figure = RenderedChart {
            id: "fig".to_owned(),
            title: text(),
            about: text(),
            svg: "<svg></svg>".to_owned(),
            legend: vec![key(None, Some(0)), key(Some("1,2"), None)],
            columns: vec![text()],
            rows: vec![vec![text()]],
            data: None,
        };
        let pairs = || vec![("name".to_owned(), text())];
        let example = Example { at: "1".to_owned(), class: "c1".to_owned(), detail: text(), facts: pairs() };
        let parts = [
            (Part::Heading(text()), "<h3>a &lt; b</h3>"),
            (Part::Text(text()), "<p>a &lt; b</p>"),
            (Part::Notes(vec![text()]), "<li>a &lt; b</li>"),
            (Part::Faults(vec![text()]), "<li>a &lt; b</li>"),
            (Part::Code(text()), "<code>a &lt; b</code>"),
            (Part::Table(table), "<th scope=\"row\">c</th><td class=\"better\">a &lt; b</td>"),
            (Part::Figure(figure), "<span data-series=\"0\">"),
            (Part::Pairs(pairs()), "<th scope=\"row\">name</th><td>a &lt; b</td>"),
            (Part::Terms(vec![Term { name: "t".to_owned(), text: text() }]), "<dt>t</dt><dd>a &lt; b</dd>"),
            (Part::Examples(vec![example]), "<code>a &lt; b</code>"),
        ];
        for (part, html) in parts {
            let plain = Page { first: vec![part.clone()], ..Page::default() };
            let fold = Part::Fold { id: "more".to_owned(), summary: text(), parts: vec![part] };
            let folded = Page { sections: vec![Section::new("s", "", "").with([fold])], ..Page::default() };
            for page in [plain, folded] {
                let shown = page.html();
                assert!(
                    shown.contains(html) && !shown.contains("a < b"),
                    "{html} is missing or not escaped: {shown}"
                );
            }
        }
    }
}
