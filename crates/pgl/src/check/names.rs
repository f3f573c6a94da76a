//! Finding what a path stands for; section 2.5 of the language reference.

use crate::check::hir::{Place, Reference, Target};
use crate::check::{Checker, field_of};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::syntax::tree::{Path, Word};
use crate::types::{ADDR_FIELDS, Base, Rec, Ty, stat_completions, stat_member};

/// Why a path stands for nothing.
enum Missing {
    /// The first word is no variable or field in sight.
    Name,
    /// The word with this index is no field of this type.
    Field(usize, Ty),
    /// The words from this index are no member of a StatSample.
    Stat(usize),
    /// A finding was reported before.
    Known,
}

impl Checker<'_> {
    /// What a path stands for; a finding is reported if it stands for nothing.
    pub(super) fn place(&mut self, path: &Path) -> Option<Place> {
        match self.find(path) {
            Ok(place) => Some(place),
            Err(missing) => {
                self.report_missing(path, &missing);
                None
            }
        }
    }

    /// As [`Self::place`], but without a finding for a first word that is not known.
    pub(super) fn quiet_place(&mut self, path: &Path) -> Option<Place> {
        match self.find(path) {
            Ok(place) => Some(place),
            Err(Missing::Name) => None,
            Err(missing) => {
                self.report_missing(path, &missing);
                None
            }
        }
    }

    /// As [`Self::resolve`], and old names of bench settings are led to where they are now.
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
        words.extend(now.split('.').map(|text| Word { text: text.into(), span: last.span }));
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
            None => self.references.push(Reference { span: first.span, target: Target::Var(place.var) }),
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
                self.references.push(Reference { span, target: Target::Stat(member) });
                return Ok(place);
            }
            let (field, ty) = field_of(place.ty, &word.text).ok_or(Missing::Field(index, place.ty))?;
            let of = place.ty;
            place.fields.push(field);
            place.ty = ty;
            let target = match of.base {
                Base::Record(rec) => Target::Field(rec, field),
                _ => Target::AddrField(field),
            };
            self.references.push(Reference { span: word.span, target });
        }
        Ok(place)
    }

    fn note_field(&mut self, span: crate::source::Span, place: &Place) {
        // The type that has the field is found by walking down again; paths are short.
        let mut ty = self.program.vars[place.var.0 as usize].ty;
        let mut target = None;
        for field in &place.fields {
            match ty.base {
                Base::Record(rec) => {
                    target = Some(Target::Field(rec, *field));
                    ty = rec.def().fields[*field as usize].ty;
                }
                _ => target = Some(Target::AddrField(*field)),
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

    fn report_missing(&mut self, path: &Path, missing: &Missing) {
        let finding = match missing {
            Missing::Known => return,
            Missing::Name => {
                let word = &path.words[0];
                let mut names: Vec<&str> = Vec::new();
                let mut owner = None;
                for context in self.contexts.iter().rev() {
                    if let Some(place) = &context.place
                        && let Base::Record(rec) = place.ty.base
                    {
                        owner = owner.or(Some(rec));
                        names.extend(rec.def().fields.iter().map(|field| field.name));
                    }
                    names.extend(context.locals.keys().map(|name| &**name));
                }
                let text = match owner {
                    Some(rec) => format!(
                        "`{}` is neither a field of {} nor a declared variable",
                        word.text,
                        rec.name()
                    ),
                    None => format!("`{}` was not declared", word.text),
                };
                let code = if owner.is_some() { Code::UnknownField } else { Code::UndeclaredName };
                // With many names the order of a hash map must not decide which of two good guesses is shown.
                names.sort_unstable();
                Diagnostic::new(code, word.span, text).did_you_mean(&word.text, names.iter().copied())
            }
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
                let finding = Diagnostic::new(Code::UnknownField, word.span, text)
                    .did_you_mean(&word.text, known.iter().copied());
                if known.len() <= 8 && !known.is_empty() {
                    finding.note(format!("its fields are {}", known.join(", ")))
                } else {
                    finding
                }
            }
            Missing::Stat(index) => {
                let span = path.words[*index].span.to(path.words[path.words.len() - 1].span);
                let rest = path.words[*index..].iter().map(|word| &*word.text).collect::<Vec<_>>().join(".");
                let all = stat_completions();
                Diagnostic::new(Code::UnknownField, span, format!("a StatSample has no member `{rest}`"))
                    .did_you_mean(&rest, all.iter().copied())
            }
        };
        self.report(finding);
    }
}

/// Fields of older releases that moved into another record.
pub(super) fn moved_field(name: &str) -> Option<&'static str> {
    Some(match name {
        "client_addr_mask" => "client_side.addr_mask",
        "server_addr_mask" => "server_side.addr_mask",
        _ => return None,
    })
}
