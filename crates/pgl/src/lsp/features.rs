//! The features of the language server: diagnostics, hover, definitions, completion.

use serde_json::{Value as Json, json};

use crate::calls::{Builtin, CALLS};
use crate::check::hir::Symbol;
use crate::codes::Severity;
use crate::lsp::analysis::Analysis;
use crate::lsp::position::{range_of, uri_of};
use crate::lsp::values;
use crate::source::{FileId, Loader, Span};
use crate::types::{ADDR_FIELDS, BASIC, Base, Rec, Ty, stat_completions, type_names};

/// Diagnostics in the document; those in included files are reported at the directive that includes the file.
pub fn diagnostics(analysis: &Analysis) -> Vec<Json> {
    analysis
        .findings
        .iter()
        .map(|finding| {
            let mut span = finding.span.unwrap_or(Span::new(FileId(0), 0, 0));
            let mut text = finding.message.clone();
            if span.file != FileId(0) {
                text = format!("{} ({})", text, analysis.sources.place(span));
            }
            while let Some(from) = analysis.sources.file(span.file).included_from {
                span = from;
            }
            for extra in finding.notes.iter().chain(&finding.help) {
                text.push('\n');
                text.push_str(extra);
            }
            let severity = match finding.severity {
                Severity::Error => 1,
                Severity::Warning => 2,
                Severity::Note => 3,
            };
            let related: Vec<Json> = finding
                .labels
                .iter()
                .filter(|label| !analysis.is_library(label.span.file))
                .map(|label| json!({ "location": location(analysis, label.span), "message": label.text }))
                .collect();
            json!({
                "range": range_of(analysis.main(), span),
                "severity": severity,
                "code": finding.code.id(),
                "source": "polygraph",
                "message": text,
                "relatedInformation": related,
            })
        })
        .collect()
}

pub(super) fn location(analysis: &Analysis, span: Span) -> Json {
    let file = analysis.sources.file(span.file);
    json!({ "uri": uri_of(&file.name), "range": range_of(file, span) })
}

/// The meaning of the name under the cursor.
pub fn hover(analysis: &Analysis, offset: u32) -> Json {
    let Some(reference) = analysis.reference_at(offset) else { return Json::Null };
    let text = match &reference.target {
        Symbol::Var(var) => {
            let var = &analysis.program.vars[var.0 as usize];
            format!("```pgl\n{} {}\n```\n{}", var.ty, var.name, type_doc(var.ty.base))
        }
        Symbol::Field(rec, index) => field_doc(*rec, *index as usize),
        Symbol::AddrField(index) => match ADDR_FIELDS.get(*index as usize) {
            Some((name, base, doc)) => format!("```pgl\n{base} {name}\n```\n{doc}"),
            None => return Json::Null,
        },
        Symbol::Stat(member) => {
            format!("```pgl\n{} {}\n```\nA member of StatSample.", member.base, member.path)
        }
        Symbol::Type(base) => format!("```pgl\n{base}\n```\n{}", type_doc(*base)),
        Symbol::Call(call) => call_doc(*call),
    };
    json!({
        "contents": { "kind": "markdown", "value": text },
        "range": range_of(analysis.main(), reference.span),
    })
}

fn field_doc(rec: Rec, index: usize) -> String {
    let Some(field) = rec.def().fields.get(index) else { return String::new() };
    format!(
        "```pgl\n{} {}.{}\n```\n{}{}",
        field.ty,
        rec.name(),
        field.name,
        field.doc.trim(),
        default_text(field)
    )
}

fn default_text(field: &crate::types::FieldDef) -> String {
    match crate::docs::default_of(field) {
        Some(default) => format!("\n\nDefault: `{default}`"),
        None => String::new(),
    }
}

fn type_doc(base: Base) -> String {
    match base {
        Base::Record(rec) => rec.def().doc.trim().to_owned(),
        base => BASIC
            .iter()
            .find(|(_, known, _)| *known == base)
            .map_or(String::new(), |(.., doc)| (*doc).to_owned()),
    }
}

fn call_doc(call: Builtin) -> String {
    let def = call.def();
    format!("```pgl\n{}\n```\n{}", def.form, def.doc)
}

/// The declaration of the variable under the cursor.
pub fn definition(analysis: &Analysis, offset: u32) -> Json {
    match analysis.reference_at(offset).map(|reference| &reference.target) {
        Some(Symbol::Var(var)) => {
            let span = analysis.program.vars[var.0 as usize].span;
            if analysis.is_library(span.file) { Json::Null } else { location(analysis, span) }
        }
        // An include leads to the file.
        _ => {
            let included = analysis.sources.files().iter().enumerate().find(|(index, file)| {
                !analysis.is_library(FileId(*index as u32))
                    && file.included_from.is_some_and(|from| {
                        from.file == FileId(0) && from.start <= offset && offset <= from.end
                    })
            });
            match included {
                Some((_, file)) => {
                    let start = json!({ "line": 0, "character": 0 });
                    json!({ "uri": uri_of(&file.name), "range": { "start": start, "end": start } })
                }
                None => Json::Null,
            }
        }
    }
}

/// Kinds of completions in the protocol.
const FUNCTION: u8 = 3;
const FIELD: u8 = 5;
const VARIABLE: u8 = 6;
const CLASS: u8 = 7;
const KEYWORD: u8 = 14;

/// Completions at the cursor.
pub fn completion(analysis: &Analysis, offset: u32, loader: &dyn Loader) -> Json {
    let text = analysis.main().text.get(..offset as usize).unwrap_or("");
    if let Some(files) = values::included(analysis, text, loader) {
        return files;
    }
    let assigned = values::assigned(text);
    if let Some((field, true)) = &assigned {
        return json!(values::words(field, true));
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = text.trim_end_matches(is_word);
    if let Some(owner) = before.strip_suffix('.') {
        let start = owner.trim_end_matches(|c: char| is_word(c) || c == '.').len();
        return json!(fields_of(analysis, &owner[start..], offset));
    }
    let mut items = assigned.as_ref().map_or(Vec::new(), |(field, _)| values::words(field, false));
    let wanted = assigned.and_then(|(field, _)| type_of(analysis, &field, text));
    for owner in open_blocks(text).iter().rev() {
        if let Some(Base::Record(rec)) = type_of(analysis, owner, text).map(|ty| ty.base) {
            items.extend(record_fields(rec));
        }
    }
    let vars = analysis.program.vars.iter().filter(|var| var.global);
    items.extend(vars.map(|var| {
        let mut found = item(&var.name, VARIABLE, &var.ty.to_string(), &type_doc(var.ty.base));
        // Variables of the right type come first.
        if wanted.is_some_and(|wanted| wanted.base == var.ty.base) {
            found["sortText"] = json!(format!("0{}", var.name));
        }
        found
    }));
    items.extend(CALLS.iter().map(|def| item(def.name, FUNCTION, def.form, def.doc)));
    items.extend(type_names().map(|name| {
        let doc = crate::types::declarable(name).map_or(String::new(), type_doc);
        item(name, CLASS, "type", &doc)
    }));
    let keywords = ["if", "then", "else", "every", "do", "lmt", "now", "nmt", "true", "false"];
    items.extend(keywords.iter().map(|word| item(word, KEYWORD, "keyword", "")));
    json!(items)
}

fn item(label: &str, kind: u8, detail: &str, doc: &str) -> Json {
    json!({ "label": label, "kind": kind, "detail": detail, "documentation": { "kind": "markdown", "value": doc } })
}

fn record_fields(rec: Rec) -> Vec<Json> {
    let fields = &rec.def().fields;
    fields.iter().map(|field| item(field.name, FIELD, &field.ty.to_string(), field.doc.trim())).collect()
}

fn fields_of(analysis: &Analysis, owner: &str, offset: u32) -> Vec<Json> {
    let text = analysis.main().text.get(..offset as usize).unwrap_or("");
    match type_of(analysis, owner, text) {
        Some(Ty { base: Base::Record(Rec::StatSample), array: false }) => {
            stat_completions().iter().map(|path| item(path, FIELD, "", "A member of StatSample.")).collect()
        }
        Some(Ty { base: Base::Record(rec), array: false }) => record_fields(rec),
        Some(Ty { base: Base::Addr | Base::DynName, array: false }) => {
            ADDR_FIELDS.iter().map(|(name, base, doc)| item(name, FIELD, &base.to_string(), doc)).collect()
        }
        _ => Vec::new(),
    }
}

/// The type of a path, looked up through the blocks that are open at the end of `text`.
fn type_of(analysis: &Analysis, path: &str, text: &str) -> Option<Ty> {
    let mut words = path.split('.');
    let first = words.next()?;
    let var = |name: &str| {
        let vars = &analysis.program.vars;
        vars.iter().rev().find(|var| &*var.name == name).map(|var| var.ty)
    };
    // Fields of the enclosing blocks come before variables.
    let blocks = open_blocks(text);
    let mut ty = None;
    let mut around: Option<Ty> = None;
    for (depth, block) in blocks.iter().enumerate() {
        let through = around.and_then(|ty| field(ty, block.split('.').next().unwrap_or("")));
        let start = if depth > 0 && through.is_some() { around } else { None };
        around = match start {
            Some(ty) => block.split('.').try_fold(ty, field),
            None => {
                let mut parts = block.split('.');
                let root = parts.next().and_then(var);
                root.and_then(|ty| parts.try_fold(ty, field))
            }
        };
        if *block != path
            && let Some(found) = around.and_then(|ty| field(ty, first))
        {
            ty = Some(found);
        }
    }
    words.try_fold(ty.or_else(|| var(first))?, field)
}

fn field(ty: Ty, name: &str) -> Option<Ty> {
    crate::types::field_of(ty, name).map(|(_, ty)| ty)
}

/// The targets of the blocks that are still open at the end of a text, outermost first.
fn open_blocks(text: &str) -> Vec<String> {
    let mut quiet = crate::diagnostic::Diagnostics::new(0);
    let tokens: Vec<_> = crate::syntax::lexer::lex(text, FileId(0), &mut quiet)
        .into_iter()
        .filter(|lexeme| !lexeme.token.is_trivia())
        .collect();
    use crate::syntax::token::Token;
    let mut open: Vec<Option<String>> = Vec::new();
    for (index, lexeme) in tokens.iter().enumerate() {
        match lexeme.token {
            Token::LBrace => {
                let assigned = index >= 2 && tokens[index - 1].token == Token::Assign;
                let mut start = index.saturating_sub(1);
                while assigned && start > 0 && matches!(tokens[start - 1].token, Token::Ident | Token::Dot) {
                    // Two words in a row are a type and a name.
                    let two = tokens[start].token == Token::Ident && tokens[start - 1].token == Token::Ident;
                    if two {
                        break;
                    }
                    start -= 1;
                }
                let path = tokens[start..index.saturating_sub(1).max(start)]
                    .iter()
                    .map(|lexeme| &text[lexeme.start as usize..lexeme.end as usize])
                    .collect::<String>();
                open.push(assigned.then_some(path));
            }
            Token::RBrace => {
                open.pop();
            }
            _ => {}
        }
    }
    open.into_iter().flatten().collect()
}
