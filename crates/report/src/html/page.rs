//! The shell of every page: one file with its styles and scripts in it, which asks nobody for anything.
//!
//! A page is data ([`Page`], [`Section`], [`Part`]); [`Page::html`] writes it. All text is escaped here. Scripts are
//! allowed by their digest only, so nothing that a log quotes can run.

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

/// What a browser compares the script with.
static DIGEST: LazyLock<String> =
    LazyLock::new(|| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT)));

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the page.
    pub title: String,
    /// A line below it: when, how long, what.
    pub subtitle: String,
    /// The judgement, if there is one.
    pub banner: Option<Banner>,
    /// What the page is about, below the subtitle: names and values.
    pub facts: Vec<(String, String)>,
    /// Large numbers.
    pub tiles: Vec<Tile>,
    /// What the large numbers are of.
    pub lead: String,
    /// What belongs on the first screen, below the large numbers.
    pub first: Vec<Part>,
    /// The parts of the page.
    pub sections: Vec<Section>,
    /// The last line.
    pub footer: String,
}

/// A judgement in a word, at the top of a page.
#[derive(Clone, Debug)]
pub struct Banner {
    /// The word, for example `VALID`.
    pub word: String,
    /// What the word means.
    pub meaning: String,
    /// What the word is worth.
    pub tone: Tone,
    /// Why.
    pub reasons: Vec<String>,
    /// What is to be known when the figures are read.
    pub warnings: Vec<String>,
}

/// What a judgement is worth: gives colour and sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// Failed.
    Bad,
    /// Nothing can be said.
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

/// A large number of the first screen.
#[derive(Clone, Debug, Default)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The number.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// A line of detail.
    pub more: String,
    /// It is what went wrong.
    pub bad: bool,
}

/// A part of the page with a place in its contents.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its address within the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows, a sentence or two.
    pub about: String,
    /// What is in it.
    pub parts: Vec<Part>,
}

impl Section {
    /// A section without parts.
    pub fn new(id: impl Into<String>, title: impl Into<String>, about: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), about: about.into(), parts: Vec::new() }
    }

    /// With further parts.
    #[must_use]
    pub fn with<P: Into<Part>>(mut self, parts: impl IntoIterator<Item = P>) -> Section {
        self.parts.extend(parts.into_iter().map(P::into));
        self
    }
}

/// Something in a section.
#[derive(Clone, Debug, Template)]
#[template(path = "part.html")]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Conclusions, a line each.
    Notes(Vec<String>),
    /// What went wrong, a line each.
    Faults(Vec<String>),
    /// A command or a text to be shown as it is.
    Code(String),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(RenderedChart),
    /// Names and values, for example settings.
    Pairs(Vec<(String, String)>),
    /// Words and what they mean.
    Terms(Vec<Term>),
    /// Examples of errors.
    Examples(Vec<Example>),
    /// Parts that are shown when they are asked for, and on paper.
    Fold {
        /// Its address within the page, may be empty.
        id: String,
        /// What is in it.
        summary: String,
        /// The parts.
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
    /// The word.
    pub name: String,
    /// What it means.
    pub text: String,
}

/// An example of an error.
#[derive(Clone, Debug)]
pub struct Example {
    /// When it was seen.
    pub at: String,
    /// What it is an example of.
    pub class: String,
    /// What was seen, a line.
    pub detail: String,
    /// Facts by name.
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
    /// The page as a file.
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
