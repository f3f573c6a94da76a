//! Diagnostics of the front end as plain data. [`crate::render`] turns them into text.

use serde::Serialize;

use crate::codes::{Code, Severity};
use crate::source::{SourceMap, Span};

/// A second position that explains the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Label {
    /// The position in a text.
    pub span: Span,
    /// The text at this position.
    pub text: String,
}

/// A diagnostic: what is wrong, where, why, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnostic {
    /// Stable identifier; `explain` prints details about it.
    pub code: Code,
    /// The severity of the diagnostic.
    pub severity: Severity,
    /// One line that is understandable alone.
    pub message: String,
    /// The position; `None` if no position in a file is concerned (a missing main file, a setting).
    pub span: Option<Span>,
    /// A few words at the underlined position.
    pub label: String,
    /// Other places.
    pub labels: Vec<Label>,
    /// Facts that help to understand the problem.
    pub notes: Vec<String>,
    /// Advice on how to solve the problem.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic of the class `code`, with that class's severity.
    pub fn new(code: Code, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: message.into(),
            span: span.into(),
            label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Sets the words at the underlined position.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds another position.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds another position, if there is one.
    pub fn also_at(self, span: Option<Span>, text: impl Into<String>) -> Self {
        match span {
            Some(span) => self.also(span, text),
            None => self,
        }
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds "did you mean" if a known name is similar.
    pub fn did_you_mean<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(word, known) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// The diagnostic with positions as file, line and column, for programs.
    pub fn to_json(&self, sources: &SourceMap) -> serde_json::Value {
        let place = |span: Span, text: &str| {
            let file = sources.file(span.file);
            let (line, column) = file.line_col(span.start);
            let (end_line, end_column) = file.line_col(span.end);
            serde_json::json!({
                "file": file.name, "line": line, "column": column, "end_line": end_line, "end_column": end_column,
                "text": text,
            })
        };
        serde_json::json!({
            "id": self.code.id(),
            "severity": self.severity,
            "message": self.message,
            "place": self.span.map(|span| place(span, &self.label)),
            "labels": self.labels.iter().map(|label| place(label.span, &label.text)).collect::<Vec<_>>(),
            "notes": self.notes,
            "help": self.help,
        })
    }
}

/// Collects diagnostics up to a limit; checks continue beyond it.
#[derive(Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    limit: usize,
    errors: usize,
    dropped: usize,
}

impl Diagnostics {
    /// Keeps at most `limit` diagnostics.
    pub fn new(limit: usize) -> Self {
        Self { list: Vec::new(), limit, errors: 0, dropped: 0 }
    }

    /// Takes a diagnostic, unless one of the same class at the same position is known.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.list.len() >= self.limit {
            self.dropped += 1;
            return;
        }
        let same = |known: &Diagnostic| {
            known.code == diagnostic.code
                && known.span == diagnostic.span
                && known.message == diagnostic.message
        };
        // Repeats are close to each other, so a short search suffices and the whole stays linear.
        if !self.list.iter().rev().take(16).any(same) {
            self.list.push(diagnostic);
        }
    }

    /// True once an error was reported.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors so far.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// True when further diagnostics would be dropped.
    pub fn is_full(&self) -> bool {
        self.list.len() >= self.limit
    }

    /// The diagnostics, errors first, with a last line about those that were dropped.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        if self.dropped > 0 {
            let text = format!("{} more findings are not shown", self.dropped);
            self.list.push(Diagnostic::new(Code::TooManyFindings, None, text));
        }
        self.list
    }
}

/// The known name most similar to `word`, if it is similar enough to be a typing error.
///
/// A typing error is a few wrong letters, or a missing part of a name with underscores.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match word.len() {
        // A single letter is similar to all others.
        0..=1 => 0,
        2..=3 => 1,
        4..=5 => 2,
        len => (len / 3).min(4),
    };
    let known: Vec<&str> = known.into_iter().collect();
    let near = known
        .iter()
        .copied()
        .filter(|name| *name != word && name.len().abs_diff(word.len()) <= limit)
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        // The first letter is rarely wrong.
        .min_by_key(|(distance, name)| (*distance, name.as_bytes().first() != word.as_bytes().first()))
        .map(|(_, name)| name);
    // The start of a name is a good hint even if much is missing: `addr` for `addresses`.
    let begun = |name: &&str| {
        let start = name.get(..word.len()).filter(|_| word.len() >= 3);
        start.is_some_and(|start| start.eq_ignore_ascii_case(word)) && *name != word
    };
    let near = near.or_else(|| known.iter().copied().filter(begun).min_by_key(|name| name.len()));
    // A missing middle part exceeds the distance: `peak_rate` for `peak_req_rate`.
    near.or_else(|| {
        let has_parts = |name: &&str| {
            let mut parts = name.split('_');
            word.contains('_') && word.split('_').all(|part| parts.any(|known| known == part))
        };
        known.into_iter().find(has_parts)
    })
}

/// Edit distance with transpositions; letter case and underscores cost nothing.
fn distance(a: &str, b: &str) -> usize {
    let clean =
        |s: &str| s.bytes().filter(|c| *c != b'_').map(|c| c.to_ascii_lowercase()).collect::<Vec<_>>();
    let (a, b) = (clean(a), clean(b));
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let swap = usize::from(a[i] != b[j]);
            row[j + 1] = (last[j] + swap).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
