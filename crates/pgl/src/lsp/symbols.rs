//! Names across a document and its inclusions: outline, references, renaming.

use std::collections::{BTreeMap, HashMap};
use std::io;

use serde_json::{Value as Json, json};

use crate::check::hir::{Init, Reference, Stmt, Symbol, VarId};
use crate::lsp::analysis::Analysis;
use crate::lsp::features::location;
use crate::lsp::position::{range_of, uri_of};
use crate::source::{FileId, Loader, Span};
use crate::syntax::is_constant;
use crate::types::{Base, Ty};

/// Kinds of symbols in the protocol.
const OBJECT: u8 = 19;
const ARRAY: u8 = 18;
const VARIABLE: u8 = 13;

/// The variables that a document declares; those of blocks are below the variable of the block.
pub fn outline(analysis: &Analysis) -> Json {
    json!(declared(analysis, &analysis.program.body))
}

fn declared(analysis: &Analysis, body: &[Stmt]) -> Vec<Json> {
    let mut symbols = Vec::new();
    for stmt in body {
        match stmt {
            Stmt::Declare(var, init, span) => {
                let inner = match init {
                    Some(Init::Fill(body)) => declared(analysis, body),
                    _ => Vec::new(),
                };
                symbols.extend(symbol(analysis, *var, *span, inner));
            }
            Stmt::Fill(_, body) => symbols.extend(declared(analysis, body)),
            Stmt::If(_, then, otherwise) => {
                symbols.extend(declared(analysis, then));
                symbols.extend(declared(analysis, otherwise));
            }
            _ => {}
        }
    }
    symbols
}

fn symbol(analysis: &Analysis, var: VarId, span: Span, children: Vec<Json>) -> Option<Json> {
    let var = &analysis.program.vars[var.0 as usize];
    // The other branch of an `if` may declare the same variable; its position is the first one.
    let inside = var.span.file == span.file && span.start <= var.span.start && var.span.end <= span.end;
    if span.file != FileId(0) || !inside {
        return None;
    }
    let kind = match var.ty {
        Ty { array: true, .. } => ARRAY,
        Ty { base: Base::Record(_), .. } => OBJECT,
        _ => VARIABLE,
    };
    Some(json!({
        "name": &*var.name,
        "detail": var.ty.to_string(),
        "kind": kind,
        "range": range_of(analysis.main(), span),
        "selectionRange": range_of(analysis.main(), var.span),
        "children": children,
    }))
}

/// All uses of a symbol, each once.
fn uses<'a>(analysis: &'a Analysis, target: &Symbol) -> Vec<&'a Reference> {
    let mut found: Vec<_> =
        analysis.references.iter().filter(|reference| reference.target == *target).collect();
    let place = |reference: &Reference| (reference.span.file, reference.span.start, reference.span.end);
    found.sort_by_key(|reference| place(reference));
    found.dedup_by_key(|reference| place(reference));
    found
}

/// The positions where the name under the cursor is used.
pub fn references(analysis: &Analysis, offset: u32, with_declaration: bool) -> Json {
    let Some(reference) = analysis.reference_at(offset) else { return Json::Null };
    let declared = match &reference.target {
        Symbol::Var(var) => Some(analysis.program.vars[var.0 as usize].span),
        _ => None,
    };
    let found = uses(analysis, &reference.target);
    let found = found.into_iter().filter(|used| with_declaration || Some(used.span) != declared);
    let found = found.filter(|used| !analysis.is_library(used.span.file));
    json!(found.map(|used| location(analysis, used.span)).collect::<Vec<_>>())
}

/// Files as they would be after a change.
struct Changed<'a> {
    loader: &'a dyn Loader,
    texts: HashMap<&'a str, String>,
}

impl Loader for Changed<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.texts.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => self.loader.read(path),
        }
    }

    fn library(&self) -> Option<&str> {
        self.loader.library()
    }

    fn is_library(&self, path: &str) -> bool {
        self.loader.is_library(path)
    }
}

/// Renames the variable under the cursor. The error says why that is not possible.
pub fn rename(analysis: &Analysis, offset: u32, name: &str, loader: &dyn Loader) -> Result<Json, String> {
    let target = analysis.reference_at(offset).map(|reference| &reference.target);
    let Some(Symbol::Var(var)) = target else {
        return Err("only variables have names that can be changed".to_owned());
    };
    if !is_name(name) {
        return Err(format!("`{name}` is not a valid name of a variable"));
    }
    let found = uses(analysis, &Symbol::Var(*var));
    let mut spans: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for used in &found {
        spans.entry(used.span.file.0).or_default().push(used.span);
    }
    if found.iter().any(|used| analysis.is_library(used.span.file)) {
        return Err("this name is used in a built-in file, which cannot be changed".to_owned());
    }
    if !stays_the_same(analysis, &spans, found.len(), name, loader) {
        return Err(format!("`{name}` means something else at one of these places"));
    }
    let mut changes = serde_json::Map::new();
    for (file, spans) in spans {
        let file = analysis.sources.file(FileId(file));
        let edits = spans.iter().map(|span| json!({ "range": range_of(file, *span), "newText": name }));
        changes.insert(uri_of(&file.name), json!(edits.collect::<Vec<_>>()));
    }
    Ok(json!({ "changes": changes }))
}

fn is_name(name: &str) -> bool {
    let mut quiet = crate::diagnostic::Diagnostics::new(0);
    let lexemes = crate::syntax::lexer::lex(name, FileId(0), &mut quiet);
    let [word] = &lexemes[..] else { return false };
    word.token == crate::syntax::token::Token::Ident && !is_constant(name)
}

/// True if the program with the new name has the same variables, and this one is used as often as before.
fn stays_the_same(
    analysis: &Analysis,
    spans: &BTreeMap<u32, Vec<Span>>,
    count: usize,
    name: &str,
    loader: &dyn Loader,
) -> bool {
    let mut texts = HashMap::new();
    for (file, spans) in spans {
        let file = analysis.sources.file(FileId(*file));
        let mut text = file.text.clone();
        for span in spans.iter().rev() {
            text.replace_range(span.start as usize..span.end as usize, name);
        }
        texts.insert(&*file.name, text);
    }
    let main = analysis.main();
    let text = texts.get(&*main.name).unwrap_or(&main.text).clone();
    let changed = Changed { loader, texts };
    let after = Analysis::new(&main.name, text, &changed, analysis.search_path.clone());
    let most = |analysis: &Analysis, name: &str| {
        let vars = analysis.program.vars.iter().enumerate().filter(|(_, var)| *var.name == *name);
        vars.map(|(index, _)| uses(analysis, &Symbol::Var(VarId(index as u32))).len()).max()
    };
    let codes = |analysis: &Analysis| {
        let mut codes: Vec<_> = analysis.findings.iter().map(|finding| finding.code.id()).collect();
        codes.sort_unstable();
        codes
    };
    after.program.vars.len() == analysis.program.vars.len()
        && most(&after, name) == Some(count)
        && codes(&after) == codes(analysis)
}
