//! Hints from the layout of a text about missing braces.

use crate::source::{SourceMap, Span};
use crate::syntax::tree::Block;

/// The largest number of blanks at the start of a line that are considered.
const WIDEST: usize = 200;

/// The number of blanks before the first word of a line, and whether the position is that of the word.
fn indent(sources: &SourceMap, at: Span) -> (usize, bool) {
    let file = sources.file(at.file);
    let start = file.line_start(file.line(at.start)).unwrap_or(0) as usize;
    let line = file.text.get(start..).unwrap_or("");
    let blanks = line.bytes().take(WIDEST).take_while(|c| matches!(c, b' ' | b'\t')).count();
    (blanks, start + blanks == at.start as usize)
}

/// True if a closing brace starts a line that is indented less than the line of its opening brace.
pub fn is_crooked(sources: &SourceMap, open: Span, close: Span) -> bool {
    let (left, first) = indent(sources, close);
    open.file == close.file && first && left < indent(sources, open).0
}

/// The opening brace of a block, and the first statement in it that is not indented more than the block: the
/// closing brace is probably missing before it.
pub fn missing_brace(sources: &SourceMap, block: &Block, open: Span) -> Option<(Span, Span)> {
    let outer = indent(sources, open).0;
    let line = sources.file(open.file).line(open.start);
    let outside = |at: &Span| {
        let (left, first) = indent(sources, *at);
        at.file == open.file && sources.file(at.file).line(at.start) > line && first && left <= outer
    };
    let found = block.body.iter().map(|stmt| stmt.span).find(outside)?;
    let word = Span { end: found.start.saturating_add(1).min(found.end), ..found };
    Some((open, word))
}
