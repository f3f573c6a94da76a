//! Advice for syntax of other languages that users try.

use crate::calls;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::SourceMap;
use crate::syntax::literal::{SIZE_UNITS, TIME_UNITS, bare_unit};
use crate::syntax::preprocess::Tok;
use crate::syntax::token::Token;
use crate::types::declarable;

/// The longest part of a program that advice repeats.
const QUOTED: usize = 40;

/// Advice about the first token of `rest`, which cannot follow the tokens `before`.
pub fn of(before: &[Tok], rest: &[Tok], sources: &SourceMap) -> Option<String> {
    let text = |tok: &Tok| sources.slice(tok.span);
    let here = rest.first()?;
    let last = before.last();
    let is_number = |tok: &Tok| matches!(tok.token, Token::Int | Token::Float);
    match (last.map(|tok| tok.token), here.token) {
        (Some(Token::Percent), Token::Int) => {
            Some("`7%3` is `7%` followed by `3`; for the remainder, write `7 % 3` with blanks".to_owned())
        }
        (Some(Token::Int | Token::Float | Token::Measure), Token::Ident) if text(here) == "per" => {
            let unit = rest.get(1).filter(|tok| tok.token == Token::Ident).map_or("sec", text);
            Some(format!("\"per\" is a division: `{}/{}`", text(last?), usual(unit).unwrap_or(unit)))
        }
        (Some(Token::Int | Token::Float), Token::Ident) => {
            let unit = usual(text(here))?;
            Some(format!("a unit must directly follow its number: `{}{unit}`", text(last?)))
        }
        (Some(Token::Modulo), _) => {
            let number = before.iter().rev().nth(1).filter(|tok| is_number(tok))?;
            Some(format!("a percent sign must directly follow its number: `{}%`", text(number)))
        }
        (Some(Token::Ident), Token::Colon) => {
            Some(format!("a value is assigned with `=`: `{} = ...;`", text(last?)))
        }
        (Some(Token::Ident), Token::Str | Token::Quoted | Token::Int | Token::Float | Token::Measure)
            if calls::find(text(last?)).is_some() =>
        {
            Some(format!(
                "the arguments of a call are written in parentheses: `{}({});`",
                text(last?),
                text(here)
            ))
        }
        (_, Token::Assign) => Some("`=` assigns a value, as a separate statement; `==` compares".to_owned()),
        _ => None,
    }
}

/// The unit that a word usually means.
fn usual(word: &str) -> Option<&str> {
    let known = TIME_UNITS.iter().chain(SIZE_UNITS).any(|(unit, _)| *unit == word);
    if known { Some(word) } else { bare_unit(word) }
}

/// The diagnostic about a call without parentheses: `use R, S;`.
pub fn bare_call(tokens: &[Tok], sources: &SourceMap) -> Option<Diagnostic> {
    let [call, next, ..] = tokens else { return None };
    let name = sources.slice(call.span);
    if next.token != Token::Ident || declarable(name).is_some() {
        return None;
    }
    calls::find(name)?;
    let end = tokens.iter().take(QUOTED).position(|tok| tok.token == Token::Semicolon);
    let args = end.map(|end| sources.slice(next.span.to(tokens[end - 1].span)));
    let args = args.filter(|args| args.len() <= QUOTED && !args.contains('\n')).unwrap_or("...");
    let text = format!("`{name}` is a call, and its arguments must be in parentheses");
    Some(Diagnostic::new(Code::Unexpected, call.span, text).help(format!("write `{name}({args});`")))
}
