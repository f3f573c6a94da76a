//! Configured header fields (`docs/reference/language.md`, "Probabilities").

use crate::rng::Random;

/// Header fields that a message carries with a probability.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HeaderRule {
    /// Probability (0 to 1).
    pub prob: f64,
    /// The fields.
    pub what: HeaderChoice,
}

/// What a [`HeaderRule`] is about.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum HeaderChoice {
    /// A single field.
    One {
        /// Its name.
        name: String,
        /// Its value, may be empty.
        value: String,
    },
    /// Several rules that are included or left out together; each then decides for itself.
    Group(Vec<HeaderRule>),
}

/// Whether a message may carry a field with this name.
pub fn may_draw(rules: &[HeaderRule], wanted: &str) -> bool {
    rules.iter().any(|rule| match &rule.what {
        HeaderChoice::One { name, .. } => name.eq_ignore_ascii_case(wanted),
        HeaderChoice::Group(rules) => may_draw(rules, wanted),
    })
}

/// Draws the fields of a message and hands each to `add`.
pub fn draw_headers<'a>(
    rules: &'a [HeaderRule],
    rng: &mut impl Random,
    add: &mut impl FnMut(&'a str, &'a str),
) {
    for rule in rules {
        if rule.prob < 1.0 && !rng.event(rule.prob) {
            continue;
        }
        match &rule.what {
            HeaderChoice::One { name, value } => add(name, value),
            HeaderChoice::Group(rules) => draw_headers(rules, rng, add),
        }
    }
}
