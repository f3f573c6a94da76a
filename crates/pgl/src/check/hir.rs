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
    /// Name of the variable.
    pub name: Box<str>,
    /// Type of the variable.
    pub ty: Ty,
    /// The position of the declaration.
    pub span: Span,
    /// True for global variables.
    pub global: bool,
}

/// A variable, or a field below one at any depth.
#[derive(Debug, Clone)]
pub struct Place {
    /// The variable.
    pub var: VarId,
    /// The path through the fields, each by its index in the table of its type.
    pub fields: Vec<u16>,
    /// A member of a StatSample at the end of the path.
    pub stat: Option<StatMember>,
    /// The type at the end of the path.
    pub ty: Ty,
    /// The position of the path in the program.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub enum Stmt {
    /// Declares a variable with its default or an initial value.
    Declare(VarId, Option<Init>, Span),
    /// Assigns a value.
    Assign(Place, Expr),
    /// Runs code with a record as its context.
    Fill(Place, Vec<Stmt>),
    /// Stores code.
    Store(Place, u32),
    /// Splits an array among targets.
    Group(Vec<(Place, Option<Expr>)>, Expr, Span),
    /// Calls a procedure.
    Call(Builtin, Vec<Expr>, Span),
    /// Runs one of two branches.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Starts a watchdog; only in phase scripts.
    Every(Expr, std::sync::Arc<Vec<Stmt>>, Span),
    /// An unknown field of this record was meant, so its undefined fields may have values.
    Doubt(Place),
    /// A statement with an error. If it would have assigned to a place, the value of that place is unknown.
    Poison(Option<Place>),
}

/// The initial value of a variable.
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
    /// The kind of the expression.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: Ty,
    /// Its position in the program.
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
    /// An expression with an error.
    Poison,
}

/// The code of a phase script. It is checked against the global variables; its own variables are among those of
/// the program.
#[derive(Debug, Clone)]
pub struct Script {
    /// The statements.
    pub body: Vec<Stmt>,
    /// The position of the script in the program.
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
    /// The places and values of settings from outside the program.
    pub settings: Vec<(Place, Expr)>,
}

impl Program {
    /// The full name of a place: the variable and the fields of the path.
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

    /// The position of a later assignment to a place, or to what it is a part of.
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

/// A use of a name, for the language server.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The position of the use.
    pub span: Span,
    /// The meaning of the name.
    pub target: Symbol,
}

/// The meaning of a name.
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
