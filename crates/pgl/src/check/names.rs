//! Resolution of paths (`docs/reference/language.md`, "Names and scopes").

use crate::check::Checker;
use crate::check::hir::{Place, Reference, Stmt, Symbol};
use crate::check::slips::declared_below;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, closest};
use crate::hints;
use crate::syntax;
use crate::syntax::tree::{Ident, Path};
use crate::types::{ADDR_FIELDS, Base, Rec, Ty, field_of, stat_completions, stat_member};

/// Why a path cannot be resolved.
enum Missing {
    /// The first word is not a visible variable or field.
    Name,
    /// The word with this index is not a field of this type.
    Field(usize, Ty),
    /// The words from this index are not a member of a StatSample.
    Stat(usize),
    /// A diagnostic was reported before.
    Known,
}

impl Checker<'_> {
    /// The place that a path in an expression means; a diagnostic if there is none.
    pub(super) fn source(&mut self, path: &Path) -> Option<Place> {
        match self.find(path) {
            Ok(place) => Some(place),
            Err(missing) => {
                self.report_missing(path, &missing, true);
                None
            }
        }
    }

    /// The place that a path on the left means. If there is none, a diagnostic is reported, and the statement
    /// returned marks what the assignment makes unknown.
    pub(super) fn target(&mut self, path: &Path) -> Result<Place, Box<Stmt>> {
        let missing = match self.find(path) {
            Ok(place) => return Ok(place),
            Err(missing) => missing,
        };
        let meant = self.report_missing(path, &missing, false);
        let references = self.references.len();
        let (from, record) = match missing {
            Missing::Known | Missing::Stat(_) => return Err(Box::new(Stmt::Poison(None))),
            Missing::Name => (0, self.contexts.last().and_then(|context| context.place.clone())),
            Missing::Field(index, _) => {
                let words = path.words[..index].to_vec();
                (index, self.resolve(&Path { words }).ok())
            }
        };
        let meant = meant.and_then(|name| {
            let span = path.words[from].span;
            let mut words = path.words[..from].to_vec();
            words.extend(name.split('.').map(|text| Ident { text: text.into(), span }));
            words.extend_from_slice(&path.words[from + 1..]);
            self.resolve(&Path { words }).ok()
        });
        self.references.truncate(references);
        Err(Box::new(match (meant, record) {
            (Some(place), _) if place.stat.is_none() => Stmt::Poison(Some(place)),
            (_, Some(record)) => Stmt::Doubt(record),
            _ => Stmt::Poison(None),
        }))
    }

    /// As [`Self::source`], but without a diagnostic for an unknown first word.
    pub(super) fn quiet_place(&mut self, path: &Path) -> Option<Place> {
        match self.find(path) {
            Ok(place) => Some(place),
            Err(Missing::Name) => None,
            Err(missing) => {
                self.report_missing(path, &missing, false);
                None
            }
        }
    }

    /// As [`Self::resolve`], and maps old names of bench settings to the current ones.
    fn find(&mut self, path: &Path) -> Result<Place, Missing> {
        match self.resolve(path) {
            Err(missing @ (Missing::Name | Missing::Field(..))) => match self.old_form(path) {
                Some(place) => Ok(place),
                None => Err(missing),
            },
            other => other,
        }
    }

    fn old_form(&mut self, path: &Path) -> Option<Place> {
        let last = path.words.last()?;
        let now = moved_field(&last.text)?;
        let mut words = path.words[..path.words.len() - 1].to_vec();
        words.extend(now.split('.').map(|text| Ident { text: text.into(), span: last.span }));
        let place = self.resolve(&Path { words }).ok()?;
        let text = format!("`{}` is the old name of `{now}`", last.text);
        self.report(Diagnostic::new(Code::Deprecated, last.span, text).help(format!("write `{now}`")));
        Some(place)
    }

    fn resolve(&mut self, path: &Path) -> Result<Place, Missing> {
        let first = &path.words[0];
        let mut place = self.first(&first.text).ok_or(Missing::Name)?;
        place.span = path.span();
        match place.fields.last() {
            None => self.references.push(Reference { span: first.span, target: Symbol::Var(place.var) }),
            Some(_) => self.note_field(first.span, &place),
        }
        for (index, word) in path.words.iter().enumerate().skip(1) {
            if place.ty.is_unknown() {
                return Err(Missing::Known);
            }
            if place.ty == Ty::one(Base::Record(Rec::StatSample)) {
                let rest = path.words[index..].iter().map(|word| &*word.text).collect::<Vec<_>>().join(".");
                let member = stat_member(&rest).ok_or(Missing::Stat(index))?;
                place.stat = Some(member);
                place.ty = Ty::one(member.base);
                let span = word.span.to(path.words[path.words.len() - 1].span);
                self.references.push(Reference { span, target: Symbol::Stat(member) });
                return Ok(place);
            }
            let (field, ty) = field_of(place.ty, &word.text).ok_or(Missing::Field(index, place.ty))?;
            let of = place.ty;
            place.fields.push(field);
            place.ty = ty;
            let target = match of.base {
                Base::Record(rec) => Symbol::Field(rec, field),
                _ => Symbol::AddrField(field),
            };
            self.references.push(Reference { span: word.span, target });
        }
        Ok(place)
    }

    fn note_field(&mut self, span: crate::source::Span, place: &Place) {
        // The type that has the field is found by descending again; paths are short.
        let mut ty = self.program.vars[place.var.0 as usize].ty;
        let mut target = None;
        for field in &place.fields {
            match ty.base {
                Base::Record(rec) => {
                    target = Some(Symbol::Field(rec, *field));
                    ty = rec.def().fields[*field as usize].ty;
                }
                _ => target = Some(Symbol::AddrField(*field)),
            }
        }
        if let Some(target) = target {
            self.references.push(Reference { span, target });
        }
    }

    /// The first word of a path: a field of the innermost block, one of its variables, and so on outwards.
    fn first(&self, word: &str) -> Option<Place> {
        for context in self.contexts.iter().rev() {
            if let Some(place) = &context.place
                && let Some((field, ty)) = field_of(place.ty, word)
            {
                let mut place = place.clone();
                place.fields.push(field);
                place.ty = ty;
                return Some(place);
            }
            if let Some(var) = context.locals.get(word) {
                let info = &self.program.vars[var.0 as usize];
                return Some(Place {
                    var: *var,
                    fields: Vec::new(),
                    stat: None,
                    ty: info.ty,
                    span: info.span,
                });
            }
        }
        None
    }

    /// Reports an unresolved path, with suggestions for the word in question.
    fn report_missing(&mut self, path: &Path, missing: &Missing, reading: bool) -> Option<String> {
        if self.out.is_full() && !matches!(missing, Missing::Known) {
            // The diagnostic would be dropped, and suggestions search all names.
            self.report(Diagnostic::new(Code::UndeclaredName, path.span(), ""));
            return None;
        }
        let (finding, meant) = match missing {
            Missing::Known => return None,
            Missing::Name => self.unknown_name(path, reading),
            Missing::Field(index, ty) => {
                let word = &path.words[*index];
                let known: Vec<&str> = match ty.base {
                    Base::Record(rec) if !ty.array => {
                        rec.def().fields.iter().map(|field| field.name).collect()
                    }
                    Base::Addr | Base::DynName if !ty.array => {
                        ADDR_FIELDS.iter().map(|(name, ..)| *name).collect()
                    }
                    _ => Vec::new(),
                };
                let text = match known.is_empty() {
                    true => format!("a value of type {ty} has no fields"),
                    false => format!("{ty} has no field `{}`", word.text),
                };
                let guesses = guesses(&word.text, &known, record(*ty));
                let mut finding = suggest(Diagnostic::new(Code::UnknownField, word.span, text), &guesses);
                if known.len() <= 8 && !known.is_empty() {
                    finding = finding.note(format!("its fields are {}", known.join(", ")));
                }
                (finding, single(guesses))
            }
            Missing::Stat(index) => {
                let span = path.words[*index].span.to(path.words[path.words.len() - 1].span);
                let rest = path.words[*index..].iter().map(|word| &*word.text).collect::<Vec<_>>().join(".");
                let all = stat_completions();
                let text = format!("a StatSample has no member `{rest}`");
                let finding = Diagnostic::new(Code::UnknownField, span, text);
                (finding.did_you_mean(&rest, all.iter().copied()), None)
            }
        };
        self.report(finding);
        meant
    }

    /// The diagnostic for an unknown first word, and the probable meaning.
    fn unknown_name(&self, path: &Path, reading: bool) -> (Diagnostic, Option<String>) {
        let word = &path.words[0];
        if let Some(unit) = syntax::bare_unit(&word.text).filter(|_| reading && path.words.len() == 1) {
            let text = format!(
                "unknown name `{}`: neither a variable nor a unit that can be used without a number",
                word.text
            );
            let finding = Diagnostic::new(Code::UndeclaredName, word.span, text)
                .note(format!("these units can be used without a number: {}", syntax::BARE.join(" ")))
                .help(format!("write `{unit}`"));
            return (finding, None);
        }
        let mut names: Vec<&str> = Vec::new();
        let mut owner = None;
        for context in self.contexts.iter().rev() {
            if let Some(rec) = context.place.as_ref().and_then(|place| record(place.ty)) {
                owner = owner.or(Some(rec));
                names.extend(rec.def().fields.iter().map(|field| field.name));
            }
            names.extend(context.locals.keys().map(|name| &**name));
        }
        // With many names, the order of a hash map must not decide which of two good suggestions is shown.
        names.sort_unstable();
        let (code, neither) = match owner {
            Some(rec) => {
                (Code::UnknownField, format!("neither a field of {} nor a declared variable", rec.name()))
            }
            None => (Code::UndeclaredName, "it was not declared".to_owned()),
        };
        let guesses = guesses(&word.text, &names, owner);
        let finding = Diagnostic::new(code, word.span, format!("unknown name `{}`: {neither}", word.text));
        let mut finding = suggest(finding, &guesses);
        if let (Some(rec), false, true) = (owner, reading, guesses.is_empty()) {
            let fields: Vec<&str> = rec.def().fields.iter().map(|field| field.name).collect();
            if fields.len() <= 30 {
                finding = finding.note(format!("the fields of {} are {}", rec.name(), fields.join(", ")));
            }
        }
        if let Some(below) = declared_below(self.root, &word.text, word.span) {
            let help = "a program is read from top to bottom: move the declaration before its first use";
            return (finding.also(below, "it is declared only here").help(help), None);
        }
        if reading {
            let name = &word.text;
            let declaration = match self.wanted {
                // A word with a field after it is a record of some type.
                _ if path.words.len() > 1 => format!("`TYPE {name} = {{ ... }};`"),
                Some(ty) if !ty.is_unknown() => {
                    let example = match ty.base {
                        Base::Record(_) | Base::AnyRange if ty.array => "[ x ]".to_owned(),
                        Base::Record(_) | Base::AnyRange => "{ ... }".to_owned(),
                        _ => hints::example(ty),
                    };
                    format!("e.g. `{ty} {name} = {example};`")
                }
                _ => format!("`TYPE {name} = ...;`"),
            };
            finding =
                finding.help(format!("declare it before this line, {declaration}, or write the value here"));
        }
        (finding, single(guesses))
    }
}

/// The type of a record.
fn record(ty: Ty) -> Option<Rec> {
    match ty.base {
        Base::Record(rec) if !ty.array => Some(rec),
        _ => None,
    }
}

/// Suggestions for a word: a name with similar spelling, or a field of a record inside `owner`.
fn guesses(word: &str, names: &[&str], owner: Option<Rec>) -> Vec<String> {
    let inner: Vec<(&'static str, String)> = owner.map_or(Vec::new(), nested_fields);
    let nested = |name: &str| -> Vec<String> {
        inner.iter().filter(|(last, _)| *last == name).map(|(_, path)| path.clone()).collect()
    };
    let exact = nested(word);
    if !exact.is_empty() {
        return exact;
    }
    if let Some(name) = closest(word, names.iter().copied()) {
        return vec![name.to_owned()];
    }
    closest(word, inner.iter().map(|(last, _)| *last)).map_or(Vec::new(), nested)
}

/// Fields of the records that are fields of a record, with their paths.
fn nested_fields(rec: Rec) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for field in &rec.def().fields {
        for inner in record(field.ty).map_or(&[][..], |inner| &inner.def().fields) {
            found.push((inner.name, format!("{}.{}", field.name, inner.name)));
        }
    }
    found
}

/// Adds "did you mean" with all suggestions, unless there are too many.
fn suggest(finding: Diagnostic, guesses: &[String]) -> Diagnostic {
    if guesses.is_empty() || guesses.len() > 4 {
        return finding;
    }
    let list: Vec<String> = guesses.iter().map(|guess| format!("`{guess}`")).collect();
    finding.help(format!("did you mean {}?", list.join(" or ")))
}

fn single(mut guesses: Vec<String>) -> Option<String> {
    if guesses.len() == 1 { guesses.pop() } else { None }
}

/// Fields of older releases that moved into another record.
pub(super) fn moved_field(name: &str) -> Option<&'static str> {
    Some(match name {
        "client_addr_mask" => "client_side.addr_mask",
        "server_addr_mask" => "server_side.addr_mask",
        _ => return None,
    })
}
