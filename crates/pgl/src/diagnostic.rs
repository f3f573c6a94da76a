//! What the front end has to say, as plain data. Rendering lives in [`crate::render`].

use serde::Serialize;

use crate::codes::{Code, Severity};
use crate::source::{SourceMap, Span};

/// A second place that helps to understand the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is to be seen there.
    pub text: String,
}

/// One finding: what, where, why and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnostic {
    /// Stable identifier; `explain` tells more about it.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One line that stands alone.
    pub message: String,
    /// Where it is; `None` if no place in any file is to blame (a missing main file, a setting).
    pub span: Option<Span>,
    /// A few words that stand at the underlined place.
    pub label: String,
    /// Other places.
    pub labels: Vec<Label>,
    /// Facts worth knowing.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A finding of the class `code`, with that class's severity.
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

    /// Words at the underlined place.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Another place.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Another place, if there is one.
    pub fn also_at(self, span: Option<Span>, text: impl Into<String>) -> Self {
        match span {
            Some(span) => self.also(span, text),
            None => self,
        }
    }

    /// A fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// "Did you mean", if some known name is close.
    pub fn did_you_mean<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(word, known) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// The finding with places spelled out as file, line and column, for programs.
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

/// Collects findings and stops collecting, not working, at a limit.
#[derive(Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    limit: usize,
    errors: usize,
    dropped: usize,
}

impl Diagnostics {
    /// Keeps at most `limit` findings.
    pub fn new(limit: usize) -> Self {
        Self { list: Vec::new(), limit, errors: 0, dropped: 0 }
    }

    /// Takes a finding. A second one of the same class at the same place says nothing new.
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
        // Repeats come close together, so a short look back suffices and keeps this linear.
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

    /// True when further findings would be dropped.
    pub fn is_full(&self) -> bool {
        self.list.len() >= self.limit
    }

    /// The findings, errors first, with a last line about those that were dropped.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        if self.dropped > 0 {
            let text = format!("{} more findings are not shown", self.dropped);
            self.list.push(Diagnostic::new(Code::TooManyFindings, None, text));
        }
        self.list
    }
}

/// The known name nearest to `word`, if it is near enough to be a slip of the pen.
///
/// A slip is a few wrong letters, or a left out part of a name with underscores.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match word.len() {
        // One letter is near to any other.
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
        // The first letter is seldom wrong.
        .min_by_key(|(distance, name)| (*distance, name.as_bytes().first() != word.as_bytes().first()))
        .map(|(_, name)| name);
    // The beginning of a name is a good hint even if much is missing: `addr` for `addresses`.
    let begun = |name: &&str| {
        let start = name.get(..word.len()).filter(|_| word.len() >= 3);
        start.is_some_and(|start| start.eq_ignore_ascii_case(word)) && *name != word
    };
    let near = near.or_else(|| known.iter().copied().filter(begun).min_by_key(|name| name.len()));
    // A forgotten middle part is too far away for the distance: `peak_rate` for `peak_req_rate`.
    near.or_else(|| {
        let has_parts = |name: &&str| {
            let mut parts = name.split('_');
            word.contains('_') && word.split('_').all(|part| parts.any(|known| known == part))
        };
        known.into_iter().find(has_parts)
    })
}

/// Edit distance with transposition; a change of letter case costs nothing, underscores neither.
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
