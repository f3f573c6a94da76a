//! Runs a checked program in one pass, statement by statement. Values are copied, and evaluation is eager.

mod calls;
mod data;
mod expr;
mod group;
mod live;
mod random;
mod schemes;

use std::sync::Arc;

pub(crate) use live::{ScriptState, run_in};
pub(crate) use random::LoadTimeRandom;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Compat;
use crate::Options;
use crate::check::hir::{Expr, ExprKind, Init, Place, Program, Stmt, VarId};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::hints::{self, an};
use crate::ops::{convert, truth};
use crate::source::{Loader, SourceMap, Span};
use crate::types::{Base, Ty, fresh};
use crate::value::{ArrayLimit, MAX_DEPTH, Record, Slot, Value, show};

/// A record that was used or scheduled: a snapshot and its position.
#[derive(Debug, Clone)]
pub struct UsedRecord {
    /// The record.
    pub record: Arc<Record>,
    /// The name of the variable, if the argument is one.
    pub name: Option<String>,
    /// The position of the argument.
    pub span: Span,
}

/// The effects of a program.
#[derive(Debug, Default)]
pub struct Evaluation {
    /// Arguments of `use()` in order.
    pub used: Vec<UsedRecord>,
    /// Arguments of `schedule()` in order.
    pub scheduled: Vec<UsedRecord>,
    /// The last `working_set_length()`, in microseconds.
    pub working_set_length: Option<(i64, Span)>,
    /// The last `working_set_cap()`.
    pub working_set_cap: Option<(i32, Span)>,
    /// The last `compat()`.
    pub compat: Option<Compat>,
    /// Groups of `note_substitutes()`.
    pub substitutes: Vec<Value>,
    /// Lines of `print()`.
    pub output: Vec<String>,
    /// The peak_req_rate, per second, of the last bench that addresses of robots were computed from.
    pub planned_rate: Option<f64>,
    /// True if something unknown was used, because of an error.
    pub unknown_use: bool,
    /// The variables at the end of the program; phase scripts see the global ones.
    pub(crate) vars: Vec<VarState>,
}

/// Runs a program.
pub fn run(
    program: &Program,
    sources: &SourceMap,
    loader: &dyn Loader,
    options: &Options,
    out: &mut Diagnostics,
) -> Evaluation {
    let mut settings: FxHashMap<VarId, Vec<usize>> = FxHashMap::default();
    for (index, (place, _)) in program.settings.iter().enumerate() {
        settings.entry(place.var).or_default().push(index);
    }
    let state = || VarState { declared: false, slot: Slot { value: Value::Undef, at: None } };
    let mut machine = Evaluator {
        program,
        sources,
        loader,
        options,
        out,
        vars: program.vars.iter().map(|_| state()).collect(),
        settings,
        applied: vec![false; program.settings.len()],
        applying: false,
        outcome: Evaluation::default(),
        budget: options.limits.work,
        exhausted: false,
        target: None,
        wanted: None,
        told_undefined: FxHashSet::default(),
        random: LoadTimeRandom::new(options.global_seed),
        told_accounts: false,
        unique: 0,
        live: None,
    };
    machine.statements(&program.body);
    machine.report_idle_settings();
    machine.outcome.vars = machine.vars;
    machine.outcome
}

/// A variable while a program runs.
#[derive(Debug, Clone)]
pub(crate) struct VarState {
    pub(crate) declared: bool,
    slot: Slot,
}

struct Evaluator<'a> {
    program: &'a Program,
    sources: &'a SourceMap,
    loader: &'a dyn Loader,
    options: &'a Options,
    out: &'a mut Diagnostics,
    vars: Vec<VarState>,
    /// Settings by the variable they concern.
    settings: FxHashMap<VarId, Vec<usize>>,
    applied: Vec<bool>,
    applying: bool,
    outcome: Evaluation,
    /// The number of array items that may still be computed.
    budget: u64,
    exhausted: bool,
    /// The name that the value is computed for.
    target: Option<String>,
    /// The type that the value will have.
    wanted: Option<Base>,
    /// Assignments and declarations that left something undefined, for which a diagnostic exists.
    told_undefined: FxHashSet<Span>,
    random: LoadTimeRandom,
    /// The note about accounts was reported.
    told_accounts: bool,
    unique: u64,
    /// The running test, for scripts.
    live: Option<live::Live<'a>>,
}

impl Evaluator<'_> {
    fn report(&mut self, finding: Diagnostic) -> Value {
        self.out.push(finding);
        Value::Poison
    }

    /// Charges the work on `items` items; false, with a diagnostic, if a program does too much.
    fn charge(&mut self, items: u64, span: Span) -> bool {
        if items <= self.budget {
            self.budget -= items;
            return true;
        }
        if !self.exhausted {
            let text = "the program computes too many array items";
            let note = format!("all its arrays together may have at most {} items", self.options.limits.work);
            self.report(Diagnostic::new(Code::TooManyItems, span, text).note(note));
        }
        self.exhausted = true;
        false
    }

    fn limit(&mut self, limit: ArrayLimit, span: Span) -> Value {
        let finding = match limit {
            ArrayLimit::Items => Diagnostic::new(Code::TooManyItems, span, "too many items")
                .note(format!("an array or range may have at most {} items", crate::value::MAX_ITEMS)),
            ArrayLimit::Depth => Diagnostic::new(Code::TooDeep, span, "values are nested too deeply here")
                .note(format!("arrays and records may be nested at most {MAX_DEPTH} levels deep")),
        };
        self.report(finding)
    }

    fn statements(&mut self, body: &[Stmt]) {
        for stmt in body {
            if self.exhausted || self.broke_off() {
                return;
            }
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Declare(var, init, _) => self.declare(*var, init.as_ref()),
            Stmt::Assign(place, expr) => {
                if !self.is_set(place) {
                    let value = self.value_for(expr, place);
                    self.assign(place, value, expr.span);
                }
            }
            Stmt::Fill(place, body) => self.fill(place, body),
            Stmt::Store(place, script) => {
                let span = self.program.scripts[*script as usize].span;
                self.assign(place, Value::Code(*script), span);
            }
            Stmt::Group(targets, value, span) => self.group(targets, value, *span),
            Stmt::Call(call, args, span) => self.procedure(*call, args, *span),
            Stmt::If(condition, then, otherwise) => {
                let value = self.defined(condition);
                match truth(&value) {
                    Some(true) => self.statements(then),
                    Some(false) => self.statements(otherwise),
                    None if matches!(value, Value::Unknown(_)) => self.statements(otherwise),
                    // The condition is unknown, so what the branches would declare is unknown too.
                    None => {
                        self.poison_declared(then);
                        self.poison_declared(otherwise);
                    }
                }
            }
            Stmt::Every(goal, body, span) => self.every(goal, body, *span),
            Stmt::Poison(None) => {}
            Stmt::Doubt(place) => {
                let slot = slot_mut(&mut self.vars[place.var.0 as usize].slot, &place.fields);
                if let Some(Value::Record(record)) = slot.map(|slot| &mut slot.value) {
                    doubt(record);
                }
            }
            Stmt::Poison(Some(place)) => {
                if !self.is_set(place) {
                    self.assign(place, Value::Poison, place.span);
                }
            }
        }
    }

    fn poison_declared(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Declare(var, ..) => {
                    let at = None;
                    self.vars[var.0 as usize] =
                        VarState { declared: true, slot: Slot { value: Value::Poison, at } };
                }
                Stmt::If(_, then, otherwise) => {
                    self.poison_declared(then);
                    self.poison_declared(otherwise);
                }
                _ => {}
            }
        }
    }

    fn declare(&mut self, var: VarId, init: Option<&Init>) {
        let info = &self.program.vars[var.0 as usize];
        let value = match info.ty {
            Ty { base: Base::Record(rec), array: false } => Value::Record(fresh(rec)),
            Ty { base: Base::Unknown, .. } => Value::Poison,
            _ => Value::Undef,
        };
        self.vars[var.0 as usize] = VarState { declared: true, slot: Slot { value, at: None } };
        let place = Place { var, fields: Vec::new(), stat: None, ty: info.ty, span: info.span };
        if self.is_set(&place) {
            return;
        }
        match init {
            None => self.apply_below(&place),
            Some(Init::Value(expr)) => {
                let value = self.value_for(expr, &place);
                self.assign(&place, value, expr.span);
            }
            Some(Init::Fill(body)) => {
                self.apply_below(&place);
                self.statements(body);
            }
        }
    }

    fn fill(&mut self, place: &Place, body: &[Stmt]) {
        // An empty block for an array has no effect.
        if self.is_set(place) || (place.ty.array && body.is_empty()) {
            return;
        }
        match self.peek(place) {
            Some(Value::Record(_)) => self.statements(body),
            Some(Value::Poison) => {}
            _ => {
                let name = self.name(place);
                let finding = Diagnostic::new(
                    Code::NotFillable,
                    place.span,
                    format!("`{name}` is undefined and cannot be filled"),
                )
                .help(format!("declare a variable `{} x = {{ ... }};` and assign `{name} = x;`", place.ty));
                self.report(finding);
            }
        }
    }

    /// The value of an expression, converted to the type of a place.
    fn value_for(&mut self, expr: &Expr, place: &Place) -> Value {
        let outer = self.target.replace(self.name(place));
        let value = self.expr_wanted(expr, Some(place.ty.base));
        let name = std::mem::replace(&mut self.target, outer).unwrap_or_default();
        self.converted(value, place.ty, &name, expr)
    }

    fn converted(&mut self, value: Value, to: Ty, name: &str, expr: &Expr) -> Value {
        if to.is_unknown() {
            return Value::Poison;
        }
        let from = value.ty();
        // Converting an array processes no items; converting a range makes an array of one.
        match convert(value.clone(), to) {
            Some(value) => value,
            None if to.array && from.array => self.wrong_element(&value, to, name, expr),
            None => {
                let mut finding = crate::check::no_conversion(from, to, name, expr);
                if let (Value::Int(n), false) = (&value, to.array) {
                    finding = finding
                        .note(format!("only the int 0 can stand for {}; this is {n}", an(&to.to_string())));
                }
                self.report(finding)
            }
        }
    }

    fn wrong_element(&mut self, value: &Value, to: Ty, name: &str, expr: &Expr) -> Value {
        let mut wrong = None;
        let fits = |value: &Value| convert(single(value), to).is_some();
        find_leaf(value, &mut |leaf| {
            if wrong.is_none() && !fits(leaf) {
                wrong = Some(leaf.clone());
            }
            wrong.is_some()
        });
        let wrong = wrong.unwrap_or(Value::Undef);
        let found = an(&wrong.ty().to_string());
        let span = element_span(expr, to).unwrap_or(expr.span);
        let wanted = Ty::one(to.base).to_string();
        let text = format!("all elements of `{name}` must be of type {wanted}, but one is {found}");
        let mut finding = Diagnostic::new(Code::WrongElement, span, text);
        if span == expr.span {
            finding = finding.note(format!("the element is {}", shorten(&show(&wrong))));
        }
        finding = match (&wrong, to.base) {
            (Value::Int(n), Base::Float) => {
                finding.help(format!("elements are not converted: write `{n}.0` for `{n}`"))
            }
            _ => finding.help(hints::how_element(to.base)),
        };
        self.report(finding)
    }

    /// True if a setting determines the value of exactly this place; the value is then assigned.
    fn is_set(&mut self, place: &Place) -> bool {
        if self.applying || self.settings.is_empty() {
            return false;
        }
        let Some(indices) = self.settings.get(&place.var) else { return false };
        let found = indices.iter().copied().find(|i| self.program.settings[*i].0.fields == place.fields);
        match found {
            Some(index) => {
                self.apply(index);
                true
            }
            None => false,
        }
    }

    /// Assigns the values of settings for fields below a place that was just assigned.
    fn apply_below(&mut self, place: &Place) {
        if self.applying || self.settings.is_empty() {
            return;
        }
        for index in self.settings.get(&place.var).cloned().unwrap_or_default() {
            let fields = &self.program.settings[index].0.fields;
            if fields.len() > place.fields.len() && fields.starts_with(&place.fields) {
                self.apply(index);
            }
        }
    }

    fn apply(&mut self, index: usize) {
        let (place, expr) = &self.program.settings[index];
        self.applied[index] = true;
        self.applying = true;
        let value = self.value_for(expr, place);
        self.assign(place, value, expr.span);
        self.applying = false;
    }

    fn report_idle_settings(&mut self) {
        for (index, (place, _)) in self.program.settings.iter().enumerate() {
            if !self.applied[index] {
                let text = format!("the setting of `{}` was never used", self.name(place));
                let help = "its declaration is in a branch that is not taken";
                self.report(Diagnostic::new(Code::BadSetting, None, text).help(help));
            }
        }
    }

    fn assign(&mut self, place: &Place, value: Value, at: Span) {
        if value.depth() as usize + place.fields.len() > MAX_DEPTH as usize {
            self.limit(ArrayLimit::Depth, at);
            return;
        }
        if value.weight() > crate::value::MAX_ITEMS {
            self.limit(ArrayLimit::Items, at);
            return;
        }
        let undeclared = !self.vars[place.var.0 as usize].declared;
        if undeclared {
            self.not_declared(place);
            return;
        }
        let slot = &mut self.vars[place.var.0 as usize].slot;
        if let Err(text) = store(slot, &place.fields, value, at) {
            if let Some(text) = text {
                let name = self.name(place);
                self.report(Diagnostic::new(Code::Undefined, place.span, text.replace("{}", &name)));
            }
            return;
        }
        self.apply_below(place);
    }

    fn not_declared(&mut self, place: &Place) -> Value {
        let var = &self.program.vars[place.var.0 as usize];
        let text = format!("`{}` is declared in a branch that was not taken", var.name);
        let finding =
            Diagnostic::new(Code::UndeclaredName, place.span, text).also(var.span, "the declaration is here");
        self.report(finding)
    }

    /// The value of a place, if it exists.
    fn peek(&self, place: &Place) -> Option<Value> {
        let state = &self.vars[place.var.0 as usize];
        let mut slot = &state.slot;
        for field in &place.fields {
            match &slot.value {
                Value::Record(record) => slot = record.slots.get(*field as usize)?,
                value => return addr_field(value, *field),
            }
        }
        Some(slot.value.clone())
    }

    /// The value of a place; a diagnostic if it is undefined.
    fn read(&mut self, place: &Place) -> Value {
        if !self.vars[place.var.0 as usize].declared {
            return self.not_declared(place);
        }
        if let Some(member) = place.stat {
            return match self.peek(place) {
                Some(Value::Stats(stats)) => live::stat_value(&*stats.0, member),
                _ => {
                    let text = format!(
                        "`{}` has no statistics: assign currentSample() or currentPhase() first",
                        self.name(place)
                    );
                    self.report(Diagnostic::new(Code::Undefined, place.span, text))
                }
            };
        }
        match self.peek(place) {
            None | Some(Value::Undef) => self.undefined(place),
            Some(value) => value,
        }
    }

    /// The position of the nearest assignment on the path to a place.
    fn assigned_at(&self, place: &Place) -> Option<Span> {
        let mut slot = &self.vars[place.var.0 as usize].slot;
        let mut at = slot.at;
        for field in &place.fields {
            let Value::Record(record) = &slot.value else { break };
            let Some(next) = record.slots.get(*field as usize) else { break };
            slot = next;
            at = slot.at.or(if slot.value == Value::Undef { None } else { at });
        }
        at
    }

    fn undefined(&mut self, place: &Place) -> Value {
        let name = self.name(place);
        let var = &self.program.vars[place.var.0 as usize];
        let left_at = self.assigned_at(place).or(place.fields.is_empty().then_some(var.span));
        // One diagnostic for each undefined value, however often it is read.
        if left_at.is_some_and(|at| !self.told_undefined.insert(at)) {
            return Value::Poison;
        }
        let mut finding = Diagnostic::new(Code::Undefined, place.span, format!("`{name}` is undefined"));
        finding = match self.assigned_at(place) {
            Some(at) => finding.also(at, "it was left undefined here"),
            None if place.fields.is_empty() => finding.also(var.span, "it was declared here without a value"),
            None => finding,
        };
        // The diagnostic would be dropped, and searching the program takes long.
        let below = if self.out.is_full() { None } else { self.program.given_below(place) };
        if let Some(below) = below {
            let help = "a value is copied when it is read: move the line that assigns it before this one";
            return self.report(finding.also(below, "it is assigned only here").help(help));
        }
        if self.assigned_at(place).is_none() && !place.fields.is_empty() {
            finding = finding.note(format!("`{name}` was never assigned a value"));
        }
        // A field hides a variable of its name, which is easy to overlook if the field is undefined.
        let word = self.sources.slice(place.span);
        if !place.fields.is_empty() && !word.contains('.') {
            let hidden = self.program.vars.iter().find(|var| var.global && &*var.name == word);
            if let Some(hidden) = hidden {
                finding = finding
                    .also(hidden.span, "this variable is hidden by the field of the same name")
                    .help("give the variable another name");
            }
        }
        let example = match place.ty.base {
            Base::Record(_) | Base::AnyRange | Base::Unknown => "VALUE".to_owned(),
            _ => hints::example(place.ty),
        };
        let how = match place.fields.is_empty() {
            true => {
                format!("give `{name}` a value where it is declared, e.g. `{} {name} = {example};`", place.ty)
            }
            false => format!("give it a value before this line, e.g. `{name} = {example};`"),
        };
        let set = match (var.global, example.contains(char::is_whitespace)) {
            (true, true) => format!(", or with `--set \"{name}={example}\"`"),
            (true, false) => format!(", or with `--set {name}={example}`"),
            (false, _) => String::new(),
        };
        finding = finding.help(format!("{how}{set}"));
        self.report(finding)
    }

    /// The full name of a place.
    fn name(&self, place: &Place) -> String {
        self.program.name(place)
    }
}

/// A single value as an array of one, for checks of element types.
fn single(value: &Value) -> Value {
    crate::value::Array::of([value.clone()]).map_or(Value::Undef, |array| Value::Array(Arc::new(array)))
}

/// Visits elements, without expanding ranges, until `stop` returns true.
fn find_leaf(value: &Value, stop: &mut dyn FnMut(&Value) -> bool) -> bool {
    match value {
        Value::Array(array) => array.items().iter().any(|item| find_leaf(&item.value, stop)),
        leaf => stop(leaf),
    }
}

/// The position of the first element of an array literal with the wrong type.
fn element_span(expr: &Expr, to: Ty) -> Option<Span> {
    let ExprKind::Array(items) = &expr.kind else { return None };
    items.iter().find_map(|(item, _)| {
        let base = match item.ty.base {
            Base::AddrRange => Base::Addr,
            Base::StrRange => Base::Str,
            base => base,
        };
        if base == to.base || base == Base::Unknown {
            return element_span(item, to);
        }
        let fits = crate::ops::fits(crate::value::ElemType::All(base), to.base);
        (!fits).then_some(item.span)
    })
}

/// The start of a long text.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A field of an address.
fn addr_field(value: &Value, field: u16) -> Option<Value> {
    let (addr, prob) = match value {
        Value::Addr(addr) => (addr, None),
        Value::DynName(addr, prob) => (addr, Some(*prob)),
        Value::Poison => return Some(Value::Poison),
        _ => return None,
    };
    match field {
        0 => addr.interface.as_ref().map(|name| Value::Str(name.clone())),
        1 => Some(Value::str(&addr.host.to_string())),
        2 => addr.port.map(|port| Value::Int(port.into())),
        3 => addr.subnet.map(|subnet| Value::Int(subnet.into())),
        _ => prob.map(Value::Float),
    }
}

/// A slot or a field below it, if the path leads through records.
fn slot_mut<'a>(slot: &'a mut Slot, fields: &[u16]) -> Option<&'a mut Slot> {
    let Some((field, rest)) = fields.split_first() else { return Some(slot) };
    match &mut slot.value {
        Value::Record(record) => slot_mut(Arc::make_mut(record).slots.get_mut(*field as usize)?, rest),
        _ => None,
    }
}

/// Marks all undefined fields as assigned but unknown, also those of records inside.
fn doubt(record: &mut Arc<Record>) {
    for slot in &mut Arc::make_mut(record).slots {
        match &mut slot.value {
            Value::Record(inner) => doubt(inner),
            Value::Undef => slot.value = Value::Poison,
            _ => {}
        }
    }
}

/// Puts a value into a slot or a field below it. The error is a text about the place `{}`, or `None` if a
/// diagnostic was reported.
fn store(slot: &mut Slot, fields: &[u16], value: Value, at: Span) -> Result<(), Option<&'static str>> {
    let Some((field, rest)) = fields.split_first() else {
        *slot = Slot { value, at: Some(at) };
        return Ok(());
    };
    match &mut slot.value {
        Value::Record(record) => {
            let record = Arc::make_mut(record);
            let slot = record.slots.get_mut(*field as usize).ok_or(Some("`{}` is undefined"))?;
            store(slot, rest, value, at)
        }
        Value::Addr(addr) | Value::DynName(addr, _) => {
            set_addr_field(Arc::make_mut(addr), *field, &value).map_err(Some)
        }
        Value::Poison => Err(None),
        _ => Err(Some("`{}` cannot be set: the value that contains it is undefined")),
    }
}

fn set_addr_field(addr: &mut polygraph_addr::Addr, field: u16, value: &Value) -> Result<(), &'static str> {
    match (field, value) {
        (_, Value::Poison) => {}
        (0, Value::Str(text)) => addr.interface = Some(text.clone()),
        (0, Value::Undef) => addr.interface = None,
        (1, Value::Str(text)) => match polygraph_addr::Addr::parse(text) {
            Ok(parsed) => addr.host = parsed.host,
            Err(_) => return Err("`{}` takes an IP address or name"),
        },
        (2, Value::Undef) => addr.port = None,
        (2, Value::Int(port)) => match u16::try_from(*port) {
            Ok(port) if port > 0 => addr.port = Some(port),
            _ => return Err("`{}` takes a port from 1 to 65535"),
        },
        (3, Value::Undef) => addr.subnet = None,
        (3, Value::Int(subnet)) => {
            let widest = if matches!(addr.host, polygraph_addr::Host::V6(_)) { 128 } else { 32 };
            match u8::try_from(*subnet) {
                Ok(subnet) if (1..=widest).contains(&subnet) => addr.subnet = Some(subnet),
                _ => return Err("`{}` takes the length of a network prefix"),
            }
        }
        _ => return Err("`{}` cannot be set to this"),
    }
    Ok(())
}
