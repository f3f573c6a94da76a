//! Names and types: turns the tree into a program in which every name is resolved.
//!
//! Checks that depend on values (zero where a quantity is expected, undefined fields, elements of arrays) are
//! done by the evaluator. Scripts of phases are checked last, because they see every global variable.

mod expr;

pub(crate) use expr::{no_conversion, no_operator};
pub mod hir;
mod names;
mod slips;

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::calls::{self, CallContext};
use crate::check::hir::{Expr, Init, Place, Program, Reference, Script, Stmt, Symbol, Var, VarId};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::hints::an;
use crate::ops::converts;
use crate::source::Span;
use crate::syntax::is_constant;
use crate::syntax::tree::{self, AssignValue, Block, StmtKind};
use crate::types::{Base, Rec, Ty, declarable, field_of, type_names};

/// A setting from outside the program: its name, and its value as a tree.
pub struct Setting {
    /// The text before `=`.
    pub name: String,
    /// The value.
    pub value: tree::Expr,
}

/// Checks a program.
pub fn check<'a>(
    body: &'a [tree::Stmt],
    settings: &[Setting],
    out: &'a mut Diagnostics,
) -> (Program, Vec<Reference>) {
    let mut checker = Checker {
        out,
        program: Program::default(),
        references: Vec::new(),
        contexts: vec![Context::default()],
        siblings: FxHashMap::default(),
        root: body,
        scripts: Vec::new(),
        mode: Mode::Static,
        wanted: None,
    };
    let body = checker.statements(body);
    checker.program.body = body;
    checker.check_scripts();
    for setting in settings {
        checker.setting(setting);
    }
    (checker.program, checker.references)
}

/// Where statements run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Static,
    Script,
    Every,
}

/// A block `name = { }`, or the whole program.
#[derive(Default)]
struct Context {
    /// The record that is filled; `None` for the whole program.
    place: Option<Place>,
    locals: FxHashMap<Box<str>, VarId>,
}

struct Checker<'a> {
    out: &'a mut Diagnostics,
    program: Program,
    references: Vec<Reference>,
    contexts: Vec<Context>,
    /// Names declared in the other branch of an `if`: at most one of the two branches is taken.
    siblings: FxHashMap<Box<str>, VarId>,
    /// The statements of the whole program.
    root: &'a [tree::Stmt],
    scripts: Vec<&'a Block>,
    mode: Mode,
    /// The type that is expected at an expression, for advice.
    wanted: Option<Ty>,
}

impl<'a> Checker<'a> {
    fn report(&mut self, finding: Diagnostic) {
        self.out.push(finding);
    }

    fn statements(&mut self, body: &'a [tree::Stmt]) -> Vec<Stmt> {
        let mut checked = Vec::with_capacity(body.len());
        for stmt in body {
            self.statement(stmt, &mut checked);
        }
        checked
    }

    fn statement(&mut self, stmt: &'a tree::Stmt, checked: &mut Vec<Stmt>) {
        let done = match &stmt.kind {
            StmtKind::Declare { ty, array, name, init } => {
                self.declare(ty, *array, name, init.as_ref(), stmt.span)
            }
            StmtKind::Assign(path, right) => self.assign(path, right),
            StmtKind::Group(targets, value) => self.group(targets, value, stmt.span),
            StmtKind::Call(call) => self.procedure(call),
            StmtKind::If(condition, then, otherwise) => self.if_else(condition, then, otherwise.as_ref()),
            StmtKind::Every(goal, body) => self.every(goal, body, stmt.span),
            // A bare block opens no scope, so its statements belong to the block around it.
            StmtKind::Block(block) => {
                for stmt in &block.body {
                    self.statement(stmt, checked);
                }
                return;
            }
            StmtKind::Error => Stmt::Poison(None),
        };
        checked.push(done);
    }

    fn declare(
        &mut self,
        ty: &tree::Ident,
        array: bool,
        name: &tree::Path,
        init: Option<&'a AssignValue>,
        span: Span,
    ) -> Stmt {
        let word = &name.words[0];
        let ty = self.declared_type(ty, array);
        if name.words.len() > 1 {
            let text = format!("`{}` cannot be declared: only plain names can", name.text());
            let help = format!("the field already exists; assign a value to it: `{} = ...;`", name.text());
            self.report(Diagnostic::new(Code::DottedDeclaration, name.span(), text).help(help));
            self.right_alone(init);
            return Stmt::Poison(None);
        }
        if is_constant(&word.text) {
            let text = format!("`{}` is a unit or truth value and cannot be a variable", word.text);
            self.report(Diagnostic::new(Code::Unexpected, word.span, text).help("choose another name"));
            self.right_alone(init);
            return Stmt::Poison(None);
        }
        let var = self.add_var(word, ty);
        let init = match init {
            None => None,
            Some(AssignValue::Expr(expr)) => {
                let expr = self.value_for(expr, ty, &word.text, Some(word.span));
                Some(Init::Value(expr))
            }
            Some(AssignValue::Block(block)) => {
                let place = Place { var, fields: Vec::new(), stat: None, ty, span: word.span };
                self.fill(place, block).map(Init::Fill)
            }
        };
        Stmt::Declare(var, init, span)
    }

    fn declared_type(&mut self, word: &tree::Ident, array: bool) -> Ty {
        if let Some(base) = declarable(&word.text) {
            self.references.push(Reference { span: word.span, target: Symbol::Type(base) });
            return Ty { base, array };
        }
        let mut finding =
            Diagnostic::new(Code::UnknownType, word.span, format!("`{}` is not a type", word.text));
        finding = match &*word.text {
            "Agent" => {
                finding.note("Agent is the common part of Robot, Server and Proxy; declare one of these")
            }
            "Range" => finding.note("declare a SingleRange or MultiRange"),
            "DutState" | "Sniffer" | "AddrSubst" | "Dumper" | "TmSzStatSample" | "HrStatSample"
            | "AggrStatSample" | "LevelStatSample" => finding.note("the language has no such type"),
            "str" | "String" => finding.help("did you mean `string`?"),
            "duration" => finding.help("did you mean `time`?"),
            "percent" | "double" | "real" => finding.help("did you mean `float`?"),
            "integer" | "long" => finding.help("did you mean `int`?"),
            "boolean" => finding.help("did you mean `bool`?"),
            "bandwidth" => finding.help("did you mean `bwidth`?"),
            other => finding.did_you_mean(other, type_names()),
        };
        self.report(finding);
        Ty { base: Base::Unknown, array }
    }

    /// Checks a right-hand side whose target is invalid.
    fn right_alone(&mut self, right: Option<&AssignValue>) {
        if let Some(AssignValue::Expr(expr)) = right {
            self.expr(expr);
        }
    }

    fn add_var(&mut self, word: &tree::Ident, ty: Ty) -> VarId {
        let innermost = self.contexts.len() - 1;
        if let Some(var) = self.siblings.get(&word.text).copied() {
            let known = self.program.vars[var.0 as usize].ty;
            if known == ty && !self.contexts[innermost].locals.contains_key(&word.text) {
                self.contexts[innermost].locals.insert(word.text.clone(), var);
                self.references.push(Reference { span: word.span, target: Symbol::Var(var) });
                return var;
            }
        }
        let var = VarId(self.program.vars.len() as u32);
        let global = innermost == 0 && self.mode == Mode::Static;
        self.program.vars.push(Var { name: word.text.clone(), ty, span: word.span, global });
        self.references.push(Reference { span: word.span, target: Symbol::Var(var) });
        if innermost > 0 {
            self.warn_hiding(word);
        }
        match self.contexts[innermost].locals.entry(word.text.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(var);
            }
            Entry::Occupied(mut entry) => {
                let first = self.program.vars[entry.get().0 as usize].span;
                entry.insert(var);
                let text = format!("`{}` is declared twice", word.text);
                let mut finding = Diagnostic::new(Code::Redeclared, word.span, text)
                    .label("declared again here")
                    .also(first, "declared here first");
                if first.file == word.span.file && first.start == word.span.start {
                    finding = finding.note("the file was included twice");
                }
                self.report(finding.help("assign without a type to change the value"));
            }
        }
        var
    }

    fn warn_hiding(&mut self, word: &tree::Ident) {
        let inner = self.contexts.len() - 1;
        let own_field =
            self.contexts[inner].place.as_ref().is_some_and(|place| field_of(place.ty, &word.text).is_some());
        if own_field {
            let text = format!(
                "the variable `{}` can never be used, because this block has a field of that name",
                word.text
            );
            self.report(Diagnostic::new(Code::Shadows, word.span, text).help("choose another name"));
            return;
        }
        let outer = &self.contexts[..inner];
        let hidden = outer.iter().rev().find_map(|context| context.locals.get(&word.text));
        if let Some(hidden) = hidden {
            let first = self.program.vars[hidden.0 as usize].span;
            let text = format!("`{}` hides a variable of an enclosing block", word.text);
            self.report(
                Diagnostic::new(Code::Shadows, word.span, text).also(first, "this variable is hidden"),
            );
        }
    }

    fn assign(&mut self, path: &'a tree::Path, right: &'a AssignValue) -> Stmt {
        match right {
            AssignValue::Expr(expr) => {
                // The right-hand side is evaluated before the target is looked up.
                let place = match self.target(path) {
                    Ok(place) => place,
                    Err(stmt) => {
                        self.expr(expr);
                        return *stmt;
                    }
                };
                if let Some(member) = &place.stat {
                    let text = format!("`{}` can only be read", member.path);
                    self.report(Diagnostic::new(Code::NotAllowedHere, path.span(), text));
                    return Stmt::Poison(None);
                }
                let declared = self.program.vars[place.var.0 as usize].span;
                let at = place.fields.is_empty().then_some(declared);
                let value = self.value_for(expr, place.ty, &self.program.name(&place), at);
                self.warn_from_itself(&place, &value);
                Stmt::Assign(place, value)
            }
            AssignValue::Block(block) => {
                let place = match self.target(path) {
                    Ok(place) => place,
                    Err(stmt) => return *stmt,
                };
                if place.ty == Ty::one(Base::Code) {
                    return Stmt::Store(place, self.add_script(block));
                }
                match self.fill(place.clone(), block) {
                    Some(body) => Stmt::Fill(place, body),
                    None => Stmt::Poison(Some(place)),
                }
            }
        }
    }

    fn add_script(&mut self, block: &'a Block) -> u32 {
        let number = self.program.scripts.len() as u32;
        self.program.scripts.push(Script { body: Vec::new(), span: block.span });
        self.scripts.push(block);
        number
    }

    /// Checks the code of a block that fills a record.
    fn fill(&mut self, place: Place, block: &'a Block) -> Option<Vec<Stmt>> {
        // Workloads of Polygraph 4 have `ssl_wraps = { };`, which has no effect.
        if place.ty.array && block.body.is_empty() {
            return Some(Vec::new());
        }
        let is_record = matches!(place.ty, Ty { base: Base::Record(_) | Base::Unknown, array: false });
        if !is_record {
            let text = format!("a block cannot be assigned to {}", an(&place.ty.to_string()));
            let mut finding = Diagnostic::new(Code::NotFillable, place.span, text)
                .note("`name = { ... }` sets fields of a record");
            if let (Base::Record(rec), true) = (place.ty.base, place.ty.array) {
                let name = rec.name();
                finding =
                    finding.help(format!("declare a variable, `{name} x = {{ ... }};`, and assign `[ x ]`"));
            }
            self.report(finding);
            return None;
        }
        if place.ty.is_unknown() {
            // Without a type nothing in the block can be checked.
            return None;
        }
        self.contexts.push(Context { place: Some(place), locals: FxHashMap::default() });
        let siblings = std::mem::take(&mut self.siblings);
        let body = self.statements(&block.body);
        self.siblings = siblings;
        self.contexts.pop();
        Some(body)
    }

    fn group(
        &mut self,
        targets: &[(tree::Path, Option<tree::Expr>)],
        value: &tree::Expr,
        span: Span,
    ) -> Stmt {
        let value = self.expr(value);
        let mut places = Vec::new();
        let mut bad = false;
        for (path, prob) in targets {
            let prob = prob.as_ref().map(|prob| self.probability(prob));
            match self.target(path) {
                Ok(place) => places.push((place, prob)),
                Err(_) => bad = true,
            }
        }
        // If one target is invalid, the shares of the others are unknown.
        let value = if bad { expr::poison(value.span) } else { value };
        Stmt::Group(places, value, span)
    }

    fn procedure(&mut self, call: &tree::CallExpr) -> Stmt {
        let args: Vec<Expr> = call.args.iter().map(|arg| self.expr(arg)).collect();
        let Some(def) = self.call_def(call, &args) else {
            // Later checks must know that something unknown is used or scheduled.
            return match calls::find(&call.name.text).map(|def| def.call) {
                Some(known @ (calls::Builtin::Use | calls::Builtin::Schedule))
                    if self.mode == Mode::Static =>
                {
                    let bad = |arg: Expr| match arg.ty.base {
                        Base::Record(_) if !arg.ty.array => arg,
                        _ => expr::poison(arg.span),
                    };
                    Stmt::Call(known, args.into_iter().map(bad).collect(), call.span)
                }
                _ => Stmt::Poison(None),
            };
        };
        if def.is_function() {
            let text = format!("`{}` is a function: its value must be used", def.name);
            self.report(Diagnostic::new(Code::NotAllowedHere, call.span, text));
            return Stmt::Poison(None);
        }
        Stmt::Call(def.call, args, call.span)
    }

    /// The description of a called name, if the call is valid.
    fn call_def(&mut self, call: &tree::CallExpr, args: &[Expr]) -> Option<&'static calls::CallDef> {
        let name = &*call.name.text;
        let Some(def) = calls::find(name) else {
            let mut finding = Diagnostic::new(
                Code::UnknownCall,
                call.name.span,
                format!("`{name}` is not a function or procedure"),
            );
            finding = match calls::replacement(name) {
                Some(advice) => finding.help(advice),
                None => finding.did_you_mean(name, calls::CALLS.iter().map(|def| def.name)),
            };
            self.report(finding);
            return None;
        };
        self.references.push(Reference { span: call.name.span, target: Symbol::Call(def.call) });
        let allowed = match (def.place, self.mode) {
            (CallContext::Both, _) => true,
            (CallContext::Static, mode) => mode == Mode::Static,
            (CallContext::Script, mode) => mode != Mode::Static,
            (CallContext::Every, mode) => mode == Mode::Every,
        };
        if !allowed {
            let place = match def.place {
                CallContext::Static => "outside of phase scripts",
                CallContext::Every => "inside `every` in a phase script",
                _ => "in phase scripts",
            };
            let text = format!("`{name}` is only allowed {place}");
            self.report(Diagnostic::new(Code::NotAllowedHere, call.span, text));
            return None;
        }
        let mut good = true;
        let too_many = !args.is_empty() && def.param(args.len() - 1).is_none();
        if args.len() < def.params.len() || too_many {
            let text = format!("`{name}` does not take {} argument{}", args.len(), plural(args.len()));
            self.report(
                Diagnostic::new(Code::WrongArgumentCount, call.span, text)
                    .help(format!("it is written `{}`", def.form)),
            );
            good = false;
        }
        for (index, arg) in args.iter().enumerate() {
            let Some(param) = def.param(index) else { continue };
            if param.accepts(arg.ty) {
                continue;
            }
            good = false;
            let usable = matches!(param, calls::Param::Usable | calls::Param::Schedulable);
            let code = if usable { Code::NotUsable } else { Code::WrongArgument };
            let found = an(&arg.ty.to_string());
            let text = format!("argument {} of `{name}` must be {}, not {found}", index + 1, param.wanted());
            let mut finding = Diagnostic::new(code, arg.span, text).label(format!("this is {found}"));
            if usable && arg.ty.array {
                finding = finding.help("list the elements one by one");
            }
            self.report(finding.note(format!("it is written `{}`", def.form)));
        }
        good.then_some(def)
    }

    fn if_else(&mut self, condition: &'a tree::Expr, then: &'a Block, otherwise: Option<&'a Block>) -> Stmt {
        let condition = self.expr(condition);
        let is_truth =
            !condition.ty.array && matches!(condition.ty.base, Base::Bool | Base::Int | Base::Unknown);
        if !is_truth {
            let found = an(&condition.ty.to_string());
            let text = format!("a condition must be true or false, but this is {found}");
            self.report(Diagnostic::new(Code::BadCondition, condition.span, text));
        }
        let innermost = self.contexts.len() - 1;
        let before: Vec<Box<str>> = self.contexts[innermost].locals.keys().cloned().collect();
        let outer_siblings = self.siblings.clone();
        let then = self.statements(&then.body);
        let Some(otherwise) = otherwise else { return Stmt::If(condition, then, Vec::new()) };
        // Variables of the first branch do not exist in the second, which may declare them too.
        let known: std::collections::HashSet<Box<str>> = before.into_iter().collect();
        let locals = &mut self.contexts[innermost].locals;
        let fresh: Vec<(Box<str>, VarId)> =
            locals.iter().filter(|(name, _)| !known.contains(*name)).map(|(n, v)| (n.clone(), *v)).collect();
        for (name, var) in &fresh {
            locals.remove(name);
            self.siblings.insert(name.clone(), *var);
        }
        let otherwise = self.statements(&otherwise.body);
        self.siblings = outer_siblings;
        for (name, var) in fresh {
            self.contexts[innermost].locals.entry(name).or_insert(var);
        }
        Stmt::If(condition, then, otherwise)
    }

    fn every(&mut self, goal: &'a tree::Expr, body: &'a Block, span: Span) -> Stmt {
        if self.mode == Mode::Static {
            self.report(
                Diagnostic::new(
                    Code::EveryInStatic,
                    span.part(0, 5),
                    "`every` is only allowed in phase scripts",
                )
                .help("put it into the script of a phase: `script = { every ... do { ... } };`"),
            );
            return Stmt::Poison(None);
        }
        let goal = self.expr(goal);
        if goal.ty != Ty::one(Base::Record(Rec::Goal)) && !goal.ty.is_unknown() {
            let text = format!("`every` takes a Goal, not {}", an(&goal.ty.to_string()));
            self.report(Diagnostic::new(Code::NoConversion, goal.span, text));
        }
        // The block is separate code: it sees global variables, not those of the script around it.
        let outer = self.contexts.split_off(1);
        let mode = std::mem::replace(&mut self.mode, Mode::Every);
        let siblings = std::mem::take(&mut self.siblings);
        self.contexts.push(Context::default());
        let body = self.statements(&body.body);
        self.contexts.pop();
        self.contexts.extend(outer);
        self.mode = mode;
        self.siblings = siblings;
        Stmt::Every(goal, std::sync::Arc::new(body), span)
    }

    fn check_scripts(&mut self) {
        let mut next = 0;
        while let Some(block) = self.scripts.get(next).copied() {
            self.contexts.truncate(1);
            self.contexts.push(Context::default());
            self.mode = Mode::Script;
            let body = self.statements(&block.body);
            self.program.scripts[next].body = body;
            next += 1;
        }
        self.contexts.truncate(1);
        self.mode = Mode::Static;
    }

    fn setting(&mut self, setting: &Setting) {
        let value = self.expr(&setting.value);
        let words: Vec<&str> = setting.name.split('.').map(str::trim).collect();
        let good_word =
            |word: &&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if !words.iter().all(good_word) {
            let text = format!("`{}` is not a name that can be set", setting.name);
            self.report(Diagnostic::new(Code::BadSetting, None, text));
            return;
        }
        let words = words.iter().map(|word| tree::Ident { text: (*word).into(), span: value.span }).collect();
        let path = tree::Path { words };
        let errors = self.out.error_count();
        let Some(place) = self.quiet_place(&path) else {
            if self.out.error_count() == errors {
                let globals = self.contexts[0].locals.keys().map(|name| &**name);
                let first = &*path.words[0].text;
                let text = match path.words.len() {
                    1 => format!("the program declares no `{first}` at its top level"),
                    _ => format!("the program has no `{}`", setting.name),
                };
                let finding = Diagnostic::new(Code::BadSetting, None, text).did_you_mean(first, globals);
                self.report(finding);
            }
            return;
        };
        if !converts(value.ty, place.ty) {
            let text = format!(
                "`{}` is {} and cannot be set to {}",
                setting.name,
                an(&place.ty.to_string()),
                an(&value.ty.to_string())
            );
            self.report(Diagnostic::new(Code::BadSetting, value.span, text));
            return;
        }
        self.program.settings.push((place, value));
    }
}

/// The plural ending for this count.
pub(crate) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
