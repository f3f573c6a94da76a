//! The frame of every page: one file that includes its styles and its script and loads nothing.
//!
//! A page is data ([`Page`], [`Section`], [`Part`]); [`Page::html`] writes it and escapes all text. The content security
//! policy allows only the script with the right digest, so quotations from logs cannot run.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::chart::{RenderedChart, script_data};
use super::table::Table;

/// The script of the page.
const SCRIPT: &str = include_str!("../../assets/report.js");
/// The styles of the page.
const STYLE: &str = include_str!("../../assets/report.css");

/// SHA-256 digest of the script for the content security policy, in Base64.
static DIGEST: LazyLock<String> =
    LazyLock::new(|| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT)));

/// A page.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug)]
pub struct Banner {
    /// The word, for example `VALID`.
    pub word: String,
    /// What the word means.
    pub meaning: String,
    /// How good the verdict is.
    pub tone: Tone,
    /// The findings that decided the verdict.
    pub reasons: Vec<String>,
    /// Warnings for those who use the figures.
    pub warnings: Vec<String>,
}

/// How good a verdict is; decides its colour and icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The test passed.
    Good,
    /// The test failed.
    Bad,
    /// The figures allow no conclusion.
    Doubtful,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "valid",
            Tone::Bad => "failed",
            Tone::Doubtful => "invalid",
        }
    }

    fn icon(self) -> &'static str {
        match self {
            Tone::Good => "✓",
            Tone::Bad => "✕",
            Tone::Doubtful => "?",
        }
    }
}

/// A headline figure of the first screen.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, Template)]
#[template(path = "part.html")]
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

impl Part {
    /// The part as HTML.
    fn html(&self) -> String {
        self.render().expect("rendering into a string cannot fail")
    }
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
#[derive(Clone, Debug)]
pub struct Term {
    /// The term.
    pub name: String,
    /// Its definition.
    pub text: String,
}

/// An example of an error.
#[derive(Clone, Debug)]
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

#[derive(Template)]
#[template(path = "page.html")]
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
        shell.render().expect("rendering into a string cannot fail")
    }
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
