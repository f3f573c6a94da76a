//! Completion of values: words that a field accepts, variables of its type, files to include.

use serde_json::{Value as Json, json};

use crate::lsp::analysis::Analysis;
use crate::source::{FileId, Loader};
use crate::syntax::lexer::lex;
use crate::syntax::token::Token;
use crate::workload::words_of;

/// Kinds of completions in the protocol.
const VALUE: u8 = 12;
const FILE: u8 = 17;
const FOLDER: u8 = 19;

/// Completions of an unfinished `#include` at the end of `text`; `None` elsewhere.
pub fn included(analysis: &Analysis, text: &str, loader: &dyn Loader) -> Option<Json> {
    let line = text.rsplit('\n').next()?;
    let rest = line.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let begun = rest.strip_prefix('"').filter(|name| !name.contains('"'))?;
    let folder = begun.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<String> = Vec::new();
    let beside = analysis.main().name.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned();
    let within = format!("{beside}/include");
    let library = loader.library().map(str::to_owned);
    for root in analysis.search_path.iter().chain([&beside, &within]).chain(&library) {
        names.extend(loader.list(&format!("{root}/{folder}")));
    }
    names.sort_unstable();
    names.dedup();
    let own = analysis.main().name.rsplit('/').next().unwrap_or("");
    let items = names.iter().filter(|name| name.ends_with('/') || (name.ends_with(".pg") && *name != own));
    let item = |name: &String| {
        let kind = if name.ends_with('/') { FOLDER } else { FILE };
        json!({ "label": name, "kind": kind })
    };
    Some(json!(items.map(item).collect::<Vec<_>>()))
}

/// The field or variable that the statement at the end of `text` assigns to, and whether a string is open
/// there.
pub fn assigned(text: &str) -> Option<(String, bool)> {
    let mut quiet = crate::diagnostic::Diagnostics::new(0);
    let lexemes = lex(text, FileId(0), &mut quiet);
    let word = |at: usize| &text[lexemes[at].start as usize..lexemes[at].end as usize];
    let open = lexemes
        .last()
        .is_some_and(|last| last.token == Token::Bad && text[last.start as usize..].starts_with('"'));
    let solid: Vec<usize> = (0..lexemes.len()).filter(|at| !lexemes[*at].token.is_trivia()).collect();
    let end = |at: &&usize| {
        matches!(lexemes[**at].token, Token::Semicolon | Token::LBrace | Token::RBrace | Token::Directive)
    };
    let start = solid.iter().rposition(|at| end(&at)).map_or(0, |at| at + 1);
    let statement = &solid[start..];
    // The last one, because an unfinished statement may run into the next.
    let equals = statement.iter().rposition(|at| lexemes[*at].token == Token::Assign)?;
    let target = statement[..equals].last().filter(|at| lexemes[**at].token == Token::Ident)?;
    Some((word(*target).to_owned(), open))
}

/// The words that a field accepts.
pub fn words(field: &str, open: bool) -> Vec<Json> {
    let quoted = |word: &&str| if open { (*word).to_owned() } else { format!("\"{word}\"") };
    let item = |word: &&str| json!({ "label": quoted(word), "kind": VALUE, "detail": field, "sortText": format!("0{word}") });
    words_of(field).iter().map(item).collect()
}
