//! The syntax tree: statements and expressions as written, with their positions.

use crate::source::Span;
use crate::value::Value;

/// A name with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Ident {
    /// The name.
    pub text: Box<str>,
    /// The position of the name.
    pub span: Span,
}

/// A dotted name: `a.b.c`.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The words, at least one.
    pub words: Vec<Ident>,
}

impl Path {
    /// The whole path.
    pub fn span(&self) -> Span {
        self.words[0].span.to(self.words[self.words.len() - 1].span)
    }

    /// The path as written.
    pub fn text(&self) -> String {
        self.words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(".")
    }
}

/// A sequence of statements in braces.
#[derive(Debug, Clone)]
pub struct Block {
    /// The statements.
    pub body: Vec<Stmt>,
    /// The range from brace to brace.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// The kind of the statement.
    pub kind: StmtKind,
    /// The position of the statement.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Debug, Clone)]
pub enum StmtKind {
    /// `Type name = value;`
    Declare {
        /// The type's name without brackets.
        ty: Ident,
        /// True for `Type[]`.
        array: bool,
        /// The declared name; more than one word is an error that is reported later.
        name: Path,
        /// The initial value.
        init: Option<AssignValue>,
    },
    /// `path = value;`
    Assign(Path, AssignValue),
    /// `[a: 10%, b] = value;`
    Group(Vec<(Path, Option<Expr>)>, Expr),
    /// A call as a statement: `name(arguments);`.
    Call(CallExpr),
    /// `if condition then { } else { }`
    If(Expr, Block, Option<Block>),
    /// `every goal do { }`
    Every(Expr, Block),
    /// `{ }`
    Block(Block),
    /// A statement with a syntax error.
    Error,
}

/// The right-hand side of an assignment.
#[derive(Debug, Clone)]
pub enum AssignValue {
    /// A value.
    Expr(Expr),
    /// Code that runs with the target as its context, or that is stored.
    Block(Block),
}

/// A call: `name(arguments)`.
#[derive(Debug, Clone)]
pub struct CallExpr {
    /// The called name.
    pub name: Ident,
    /// The arguments.
    pub args: Vec<Expr>,
    /// The range from the name to the closing parenthesis.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// The kind of the expression.
    pub kind: ExprKind,
    /// The position of the expression.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A literal.
    Value(Value),
    /// A variable or field.
    Path(Path),
    /// A function call.
    Call(Box<CallExpr>),
    /// `-x`, `+x`, `!x`
    Unary(UnaryOp, Box<Expr>),
    /// Operators of one level, applied from left to right: `a - b + c`. The chain is flat, so that a long sum
    /// is not a deep tree.
    Chain(Box<Expr>, Vec<(BinaryOp, Span, Expr)>),
    /// `[a, b: 10%]`
    Array(Vec<ArrayItem>),
    /// A number with a word that is not a unit. Its probable meaning depends on the context, so the checker
    /// reports it.
    BadUnit(Box<BadUnit>),
    /// An expression with a syntax error.
    Error,
}

/// An element of an array with its probability. There may be millions of them, few with probabilities.
pub type ArrayItem = (Expr, Option<Box<Expr>>);

/// A number directly followed by a word that is not a unit.
#[derive(Debug, Clone)]
pub struct BadUnit {
    /// The digits.
    pub number: Box<str>,
    /// The word.
    pub unit: Box<str>,
}

/// Operators before their operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// The operator `+`.
    Plus,
    /// The operator `-`.
    Minus,
    /// The operator `!`.
    Not,
}

impl UnaryOp {
    /// The sign.
    pub fn sign(self) -> &'static str {
        match self {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
            UnaryOp::Not => "!",
        }
    }
}

/// Operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; `sign` gives the spelling")]
pub enum BinaryOp {
    Range,
    Clone,
    Or,
    And,
    Xor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
}

impl BinaryOp {
    /// True for operators whose operands have the type of the result.
    pub fn is_sum(self) -> bool {
        matches!(self, BinaryOp::Add | BinaryOp::Sub)
    }

    /// The sign.
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOp::Range => "..",
            BinaryOp::Clone => "**",
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Xor => "^^",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Pow => "^",
        }
    }
}
