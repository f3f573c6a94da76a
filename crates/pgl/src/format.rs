//! The formatter: it normalises blanks and indentation and leaves everything else as the author wrote it.
//!
//! It works on tokens, so comments keep their positions and unfinished code is preserved. Line breaks inside a
//! statement stay as they are, and a block on one line stays on one line. Formatting is idempotent.

use crate::diagnostic::Diagnostics;
use crate::source::{FileId, SourceMap};
use crate::syntax::lexer::lex;
use crate::syntax::preprocess::plain;
use crate::syntax::token::{Lexeme, Token};

/// Formats the text of one file.
///
/// # Errors
/// The reason why the text cannot be formatted: syntax errors.
pub fn format(text: &str) -> Result<String, String> {
    let mut sources = SourceMap::default();
    let file = sources.add("", text.to_owned(), None);
    let mut out = Diagnostics::new(10);
    let lexemes = lex(text, file, &mut out);
    check_syntax(text, &lexemes, &sources, out)?;
    let formatted = Writer::new(text, &lexemes).run();
    // A formatter must not change a program; this check is cheap.
    let mut quiet = Diagnostics::new(1);
    let again = lex(&formatted, FileId(0), &mut quiet);
    if words(text, &lexemes).eq(words(&formatted, &again)) {
        Ok(formatted)
    } else {
        Err("formatting would change the meaning of this file".to_owned())
    }
}

/// Formats the bytes of a file. Comments may have any encoding; their bytes do not change.
///
/// # Errors
/// The reason why the file cannot be formatted: syntax errors.
pub fn format_bytes(bytes: &[u8]) -> Result<Vec<u8>, String> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return format(text).map(String::into_bytes);
    }
    // Each byte is represented by one character. Outside of comments only ASCII is allowed.
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    Ok(format(&text)?.chars().map(|c| c as u8).collect())
}

/// Refuses a text with syntax errors, whose layout is unclear.
fn check_syntax(text: &str, lexemes: &[Lexeme], sources: &SourceMap, out: Diagnostics) -> Result<(), String> {
    let file = FileId(0);
    let mut out = out;
    let good_tokens = !out.has_errors();
    if good_tokens {
        crate::syntax::parse(&plain(lexemes, file, text.len()), sources, &mut out);
    }
    // The output of a command is part of the program but not of the text; most commands yield a value.
    if good_tokens && out.has_errors() && lexemes.iter().any(|lexeme| lexeme.token == Token::Command) {
        let as_value = |lexeme: &Lexeme| match lexeme.token {
            Token::Command => Lexeme { token: Token::Str, ..*lexeme },
            _ => *lexeme,
        };
        let lexemes: Vec<Lexeme> = lexemes.iter().map(as_value).collect();
        let mut second = Diagnostics::new(10);
        crate::syntax::parse(&plain(&lexemes, file, text.len()), sources, &mut second);
        if !second.has_errors() {
            return Ok(());
        }
    }
    match out.finish().into_iter().find(|finding| finding.severity == crate::Severity::Error) {
        Some(finding) => {
            let line = finding.span.map_or(0, |span| sources.file(file).line_col(span.start).0);
            Err(format!("line {line}: {}; a file with errors is not formatted", finding.message))
        }
        None => Ok(()),
    }
}

/// The tokens and comments of a text, without blanks.
fn words<'a>(text: &'a str, lexemes: &'a [Lexeme]) -> impl Iterator<Item = (Token, &'a str)> {
    lexemes
        .iter()
        .filter(|lexeme| lexeme.token != Token::Blank)
        .map(move |lexeme| (lexeme.token, trimmed(&text[lexeme.start as usize..lexeme.end as usize])))
}

/// A comment without the blanks at its end. Only ASCII blanks count, because other bytes belong to characters.
fn trimmed(text: &str) -> &str {
    text.trim_end_matches([' ', '\t', '\r', '\n', '\x0b', '\x0c'])
}

/// An open bracket.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// A block over several lines.
    Block,
    /// A block on one line.
    Inline,
    /// A parenthesis or array.
    Bracket,
}

/// A token with information about the blanks before it.
#[derive(Clone, Copy)]
struct Piece<'a> {
    token: Token,
    text: &'a str,
    /// The number of line ends before the token.
    lines: usize,
    /// True if there are blanks before the token.
    blank: bool,
    /// For a brace that opens a block: true if the block is on one line.
    inline: bool,
}

struct Writer<'a> {
    pieces: Vec<Piece<'a>>,
    /// For each token, the token before it that is not a comment.
    before: Vec<Option<Token>>,
    open: Vec<Open>,
    out: String,
}

const INDENT: usize = 4;

impl<'a> Writer<'a> {
    fn new(text: &'a str, lexemes: &[Lexeme]) -> Self {
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        let (mut lines, mut blank) = (0, false);
        for lexeme in lexemes {
            let words = &text[lexeme.start as usize..lexeme.end as usize];
            if lexeme.token == Token::Blank {
                lines += words.matches('\n').count();
                blank = true;
                continue;
            }
            pieces.push(Piece { token: lexeme.token, text: trimmed(words), lines, blank, inline: false });
            (lines, blank) = (0, false);
        }
        mark_inline(&mut pieces);
        let mut last = None;
        let before = pieces.iter().map(|piece| match piece.token {
            token if is_comment(token) => last,
            token => last.replace(token),
        });
        let before = before.collect();
        Self { pieces, before, open: Vec::new(), out: String::with_capacity(text.len()) }
    }

    fn run(mut self) -> String {
        for index in 0..self.pieces.len() {
            let piece = self.pieces[index];
            let before = index.checked_sub(1).map(|index| self.pieces[index]);
            let closes = match piece.token {
                Token::RBrace | Token::RParen | Token::RBracket => self.open.pop(),
                _ => None,
            };
            if let Some(before) = before {
                self.separate(before, piece, index, closes);
            }
            self.out.push_str(piece.text);
            match piece.token {
                Token::LBrace if piece.inline => self.open.push(Open::Inline),
                Token::LBrace => self.open.push(Open::Block),
                Token::LParen | Token::LBracket => self.open.push(Open::Bracket),
                _ => {}
            }
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Writes the blanks between two tokens.
    fn separate(&mut self, before: Piece<'a>, piece: Piece<'a>, index: usize, closes: Option<Open>) {
        let in_block = matches!(self.open.last(), None | Some(Open::Block));
        let comment = matches!(piece.token, Token::LineComment | Token::BlockComment);
        let after_statement = in_block
            && (matches!(before.token, Token::Semicolon | Token::LBrace | Token::RBrace | Token::Directive)
                || (is_comment(before.token) && self.starts_statement(index)));
        let joins = before.token == Token::RBrace && matches!(piece.token, Token::Semicolon | Token::Else);
        let must = before.token == Token::LineComment
            || piece.token == Token::Directive
            || before.token == Token::Directive
            || closes == Some(Open::Block);
        let starts = after_statement
            && closes != Some(Open::Inline)
            && !joins
            && !(is_comment(before.token) && piece.lines == 0);
        // A comment at the end of a line stays there.
        let trailing = comment
            && piece.lines == 0
            && before.token != Token::LineComment
            && before.token != Token::Directive;
        let keeps = piece.lines > 0
            && !joins
            && piece.token != Token::LBrace
            && piece.token != Token::Semicolon
            && closes != Some(Open::Inline)
            && self.open.last() != Some(&Open::Inline);
        if !(must || keeps || (starts && !trailing)) {
            if self.wants_blank(before, piece, index) {
                self.out.push(' ');
            }
            return;
        }
        let empty = piece.lines > 1
            && before.token != Token::LBrace
            && closes != Some(Open::Block)
            && (starts || is_comment(before.token) || comment || piece.token == Token::Directive);
        self.out.push_str(if empty { "\n\n" } else { "\n" });
        if piece.token == Token::Directive {
            return;
        }
        let blocks = self.open.iter().filter(|open| **open == Open::Block).count();
        let brackets = self.open.iter().rev().take_while(|open| **open == Open::Bracket).count();
        let continues = brackets == 0 && closes.is_none() && !starts && !self.starts_statement(index);
        let levels = blocks + brackets + usize::from(continues);
        self.out.extend(std::iter::repeat_n(' ', levels * INDENT));
    }

    /// True if the token starts a statement: only comments are between it and the end of the one before.
    fn starts_statement(&self, index: usize) -> bool {
        self.before[index].is_none_or(|token| {
            matches!(token, Token::Semicolon | Token::LBrace | Token::RBrace | Token::Directive)
        })
    }

    /// True if there is a blank between two tokens on a line.
    fn wants_blank(&self, before: Piece<'a>, piece: Piece<'a>, index: usize) -> bool {
        use Token as T;
        match (before.token, piece.token) {
            (T::LineComment | T::BlockComment, _) | (_, T::LineComment | T::BlockComment) => true,
            (_, T::Comma | T::Semicolon | T::RParen | T::Dot) => false,
            (_, T::Colon) | (T::LParen | T::Dot, _) => false,
            (T::LBracket, T::RBracket) => false,
            // Both `[a]` and `[ a ]` are common.
            (T::LBracket, _) | (_, T::RBracket) => piece.blank,
            (T::Ident, T::LParen) => false,
            // `addr[] a` is a type; `[a] = ` is a group of targets.
            (T::Ident, T::LBracket) => {
                self.pieces.get(index + 1).is_none_or(|next| next.token != T::RBracket)
            }
            (T::Ident, T::Regex) => piece.blank,
            _ if self.is_prefix(index - 1) => false,
            // Rates are divisions, and `10/sec` is written without blanks; a product may have blanks.
            (T::Slash | T::Star | T::Caret, _) => self.is_wide(index - 1),
            (_, T::Slash | T::Star | T::Caret) => self.is_wide(index),
            _ => true,
        }
    }

    /// True if there is anything but plain operands around an operator.
    fn is_wide(&self, index: usize) -> bool {
        // A line end follows a directive, even where the text has none.
        let comment = |piece: Option<&Piece<'_>>| {
            piece.is_some_and(|piece| is_comment(piece.token) || piece.token == Token::Directive)
        };
        let next = self.pieces.get(index + 1);
        let before = index.checked_sub(1).and_then(|index| self.pieces.get(index));
        self.pieces[index].blank || next.is_some_and(|next| next.blank) || comment(next) || comment(before)
    }

    /// True if the token is a sign before its operand.
    fn is_prefix(&self, index: usize) -> bool {
        use Token as T;
        if !matches!(self.pieces[index].token, T::Plus | T::Minus | T::Not) {
            return false;
        }
        if self.pieces[index].token == T::Not {
            return true;
        }
        let ends_operand = self.before[index].is_some_and(|token| {
            matches!(
                token,
                T::Ident
                    | T::Int
                    | T::Float
                    | T::Percent
                    | T::Measure
                    | T::Str
                    | T::Quoted
                    | T::Command
                    | T::Regex
                    | T::RParen
                    | T::RBracket
                    | T::Lmt
                    | T::Now
                    | T::Nmt
            )
        });
        !ends_operand
    }
}

fn is_comment(token: Token) -> bool {
    matches!(token, Token::LineComment | Token::BlockComment)
}

/// Marks blocks that are on one line.
fn mark_inline(pieces: &mut [Piece<'_>]) {
    let mut open: Vec<(usize, bool)> = Vec::new();
    for index in 0..pieces.len() {
        let broken = pieces[index].lines > 0
            || pieces[index].text.contains('\n')
            || pieces[index].token == Token::LineComment;
        let empty =
            pieces[index].token == Token::RBrace && index > 0 && pieces[index - 1].token == Token::LBrace;
        if broken && !empty {
            // A line end inside a block is inside all blocks around it.
            for (_, inline) in open.iter_mut().rev() {
                if !*inline {
                    break;
                }
                *inline = false;
            }
        }
        match pieces[index].token {
            Token::LBrace => open.push((index, true)),
            Token::RBrace => {
                if let Some((start, inline)) = open.pop() {
                    pieces[start].inline = inline;
                    // A block with line ends breaks those around it, even if it is the last one.
                    if !inline && let Some((_, outer)) = open.last_mut() {
                        *outer = false;
                    }
                }
            }
            _ => {}
        }
    }
}
