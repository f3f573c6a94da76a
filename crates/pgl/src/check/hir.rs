//! The checked program: every name is resolved, every expression has a type.

use crate::calls::Builtin;
use crate::source::Span;
use crate::syntax::tree::{BinaryOp, UnaryOp};
use crate::types::{StatMember, Ty};
use crate::value::Value;

/// Index of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VarId(pub u32);

/// A declared variable.
#[derive(Debug, Clone)]
pub struct Var {
    /// Its name.
    pub name: Box<str>,
    /// Its type.
    pub ty: Ty,
    /// Where it is declared.
    pub span: Span,
    /// True for global variables.
    pub global: bool,
}

/// A variable or a field of one, however deep.
#[derive(Debug, Clone)]
pub struct Place {
    /// The variable.
    pub var: VarId,
    /// The way through the fields, each by its place in the table of its type.
    pub fields: Vec<u16>,
    /// A member of a StatSample at the end of the way.
    pub stat: Option<StatMember>,
    /// The type of what is there.
    pub ty: Ty,
    /// Where the path is written.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub enum Stmt {
    /// A variable begins to exist, with its default or a first value.
    Declare(VarId, Option<Init>, Span),
    /// A value is assigned.
    Assign(Place, Expr),
    /// Code runs with a record as its context.
    Fill(Place, Vec<Stmt>),
    /// Code is stored.
    Store(Place, u32),
    /// An array is split among targets.
    Group(Vec<(Place, Option<Expr>)>, Expr, Span),
    /// A procedure is called.
    Call(Builtin, Vec<Expr>, Span),
    /// One of two ways is taken.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// A watchdog is started; only in phase scripts.
    Every(Expr, std::sync::Arc<Vec<Stmt>>, Span),
    /// Some field of this record was meant, but not known which. Nothing may be concluded from undefined ones.
    Doubt(Place),
    /// Something a finding was reported about. If it would have given a value to a place, that is not known now.
    Poison(Option<Place>),
}

/// The first value of a variable.
#[derive(Debug, Clone)]
pub enum Init {
    /// A value.
    Value(Expr),
    /// Code that fills the record.
    Fill(Vec<Stmt>),
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Which one.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Its place.
    pub span: Span,
}

/// An element of an array with its probability.
pub type ArrayItem = (Expr, Option<Box<Expr>>);

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A literal.
    Value(Value),
    /// A variable or field.
    Read(Box<Place>),
    /// A function call.
    Call(Builtin, Vec<Expr>),
    /// An operator before its operand.
    Unary(UnaryOp, Box<Expr>),
    /// Operators applied from left to right.
    Chain(Box<Expr>, Vec<(BinaryOp, Span, Expr)>),
    /// An array.
    Array(Vec<ArrayItem>),
    /// Something a finding was reported about.
    Poison,
}

/// The code of a phase script. It is checked against the global variables; its own are among the program's.
#[derive(Debug, Clone)]
pub struct Script {
    /// The statements.
    pub body: Vec<Stmt>,
    /// Where it is written.
    pub span: Span,
}

/// A checked program.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The statements.
    pub body: Vec<Stmt>,
    /// All variables.
    pub vars: Vec<Var>,
    /// All phase scripts.
    pub scripts: Vec<Script>,
    /// Places and values given by settings.
    pub settings: Vec<(Place, Expr)>,
}

impl Program {
    /// The full name of a place: the variable, and the fields on the way.
    pub fn name(&self, place: &Place) -> String {
        let var = &self.vars[place.var.0 as usize];
        let mut name = var.name.to_string();
        let mut ty = var.ty;
        for field in &place.fields {
            name.push('.');
            match ty.base {
                crate::types::Base::Record(rec) => {
                    let def = &rec.def().fields[*field as usize];
                    name.push_str(def.name);
                    ty = def.ty;
                }
                _ => name
                    .push_str(crate::types::ADDR_FIELDS.get(*field as usize).map_or("?", |(name, ..)| name)),
            }
        }
        name
    }

    /// Where a place, or what it is a part of, is given a value behind the place where it is written.
    pub fn given_below(&self, place: &Place) -> Option<Span> {
        given(&self.body, place)
    }

    /// The right-hand side that is written at a place.
    pub fn expr_at(&self, span: Span) -> Option<&Expr> {
        let settings = self.settings.iter().map(|(_, expr)| expr);
        settings.into_iter().find(|expr| expr.span == span).or_else(|| expr_in(&self.body, span))
    }
}

fn given(body: &[Stmt], wanted: &Place) -> Option<Span> {
    let at = wanted.span;
    let behind = |span: Span| span.file == at.file && span.start >= at.end;
    let gives = |place: &Place| {
        place.var == wanted.var && wanted.fields.starts_with(&place.fields) && behind(place.span)
    };
    body.iter().find_map(|stmt| match stmt {
        Stmt::Assign(place, _) if gives(place) => Some(place.span),
        Stmt::Group(places, ..) => places.iter().map(|(place, _)| place).find(|p| gives(p)).map(|p| p.span),
        Stmt::Fill(_, body) | Stmt::Declare(_, Some(Init::Fill(body)), _) => given(body, wanted),
        Stmt::If(_, then, otherwise) => given(then, wanted).or_else(|| given(otherwise, wanted)),
        _ => None,
    })
}

fn expr_in(body: &[Stmt], span: Span) -> Option<&Expr> {
    body.iter().find_map(|stmt| match stmt {
        Stmt::Assign(_, expr) | Stmt::Declare(_, Some(Init::Value(expr)), _) | Stmt::Group(_, expr, _) => {
            (expr.span == span).then_some(expr)
        }
        Stmt::Fill(_, body) | Stmt::Declare(_, Some(Init::Fill(body)), _) => expr_in(body, span),
        Stmt::If(_, then, otherwise) => expr_in(then, span).or_else(|| expr_in(otherwise, span)),
        _ => None,
    })
}

impl Expr {
    /// The value of a literal.
    pub fn literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The first literal among the elements of an array literal that passes a test.
    pub fn element(&self, test: &dyn Fn(&Value) -> bool) -> Option<Span> {
        match &self.kind {
            ExprKind::Array(items) => items.iter().find_map(|(item, _)| item.element(test)),
            ExprKind::Value(value) => test(value).then_some(self.span),
            _ => None,
        }
    }
}

/// A use of a name: for the language server.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Where it is used.
    pub span: Span,
    /// What it is.
    pub target: Symbol,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Symbol {
    /// A variable.
    Var(VarId),
    /// A field of a record type.
    Field(crate::types::Rec, u16),
    /// A field of an address.
    AddrField(u16),
    /// A member of a StatSample.
    Stat(StatMember),
    /// A type.
    Type(crate::types::Base),
    /// A built-in call.
    Call(Builtin),
}
