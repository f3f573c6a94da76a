//! Diagnostics as text: the source line with the position underlined, other positions, notes and advice.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::codes::Severity;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceMap, Span};

/// The style of rendered text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    Plain,
    /// With terminal colours.
    Color,
}

/// A diagnostic as text of several lines, ending with a line end.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, style: Style) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&*diagnostic.message).id(diagnostic.code.id());
    let mut group = Group::with_title(title);
    let mut spans: Vec<(Span, &str, bool)> = Vec::new();
    if let Some(span) = diagnostic.span {
        spans.push((span, &diagnostic.label, true));
    }
    spans.extend(diagnostic.labels.iter().map(|label| (label.span, &*label.text, false)));
    let mut files: Vec<_> = spans.iter().map(|(span, ..)| span.file).collect();
    files.dedup();
    let mut shown = Vec::new();
    for file in files {
        if shown.contains(&file) {
            continue;
        }
        shown.push(file);
        let source = sources.file(file);
        // Only the lines around the positions are passed on, because a program may have megabytes.
        let (start, end) = window(&spans, file, &source.text);
        if longest_line(&source.text[start..end]) > WIDEST {
            let at = spans.iter().find(|(span, ..)| span.file == file).map_or(0, |(span, ..)| span.start);
            let (line, column) = source.line_col(at);
            group = group.element(Origin::path(&*source.name).line(line).char_column(column));
            continue;
        }
        let annotations: Vec<_> = spans
            .iter()
            .filter(|(span, ..)| span.file == file)
            .map(|(span, text, primary)| {
                let kind = if *primary { AnnotationKind::Primary } else { AnnotationKind::Context };
                let range = inside(*span, &source.text);
                let annotation = kind.span(range.start - start..range.end - start);
                if text.is_empty() { annotation } else { annotation.label(*text) }
            })
            .collect();
        let snippet = Snippet::source(&source.text[start..end])
            .line_start(source.line_col(start as u32).0)
            .path(&*source.name)
            .annotations(annotations);
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(&**note));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(&**help));
    }
    for line in inclusion_chain(diagnostic, sources) {
        group = group.element(Level::NOTE.message(line));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Color => Renderer::styled(),
    };
    let mut text = renderer.render(&[group]).to_string();
    if diagnostic.span.is_none() && diagnostic.labels.is_empty() {
        text = without_empty_frame(&text);
    }
    text.push('\n');
    text
}

/// Removes the empty frame line between title and notes of a diagnostic without a position.
fn without_empty_frame(text: &str) -> String {
    let is_bar = |line: &str| line.contains('|') && !line.contains(['=', '`']);
    let lines = text.lines().enumerate().filter(|(index, line)| *index != 1 || !is_bar(line));
    lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

/// The inclusions that led to the file of a diagnostic, innermost first.
fn inclusion_chain(diagnostic: &Diagnostic, sources: &SourceMap) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = diagnostic.span.and_then(|span| sources.file(span.file).included_from);
    while let Some(span) = at {
        lines.push(format!("included from {}", sources.place(span)));
        at = sources.file(span.file).included_from;
    }
    // The middle of a chain that reaches the limit repeats itself.
    if lines.len() > 8 {
        let hidden = lines.len() - 6;
        lines.splice(3..3 + hidden, [format!("({hidden} more inclusions)")]);
    }
    lines
}

/// The bytes of a span that exist, moved to the boundaries of characters.
fn inside(span: Span, text: &str) -> std::ops::Range<usize> {
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = floor(span.start as usize);
    let end = floor(span.end as usize).max(start);
    start..end
}

/// The longest line that is shown, in bytes: a program may be one line of megabytes.
const WIDEST: usize = 2000;

fn longest_line(text: &str) -> usize {
    text.split('\n').map(str::len).max().unwrap_or(0)
}

/// The whole lines that contain all positions of a file.
fn window(spans: &[(Span, &str, bool)], file: crate::source::FileId, text: &str) -> (usize, usize) {
    let ranges: Vec<_> =
        spans.iter().filter(|(span, ..)| span.file == file).map(|(span, ..)| inside(*span, text)).collect();
    let first = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    let last = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    let start = text[..first].rfind('\n').map_or(0, |at| at + 1);
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
    (start, end)
}
