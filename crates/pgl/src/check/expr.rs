//! Types of expressions.

use crate::check::hir::{Expr, ExprKind};
use crate::check::{Checker, an};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::ops::{binary_type, converts, unary_type};
use crate::source::Span;
use crate::syntax::tree::{self, BinaryOp, UnaryOp};
use crate::types::{Base, Ty};
use crate::value::Value;

impl Checker<'_> {
    /// An expression with its type. After a finding the type is unknown, and nothing more is said about it.
    pub(super) fn expr(&mut self, expr: &tree::Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            tree::ExprKind::Value(value) => {
                Expr { kind: ExprKind::Value(value.clone()), ty: value.ty(), span }
            }
            tree::ExprKind::Path(path) => match self.place(path) {
                Some(place) => Expr { ty: place.ty, kind: ExprKind::Read(place), span },
                None => poison(span),
            },
            tree::ExprKind::Call(call) => self.function(call, span),
            tree::ExprKind::Unary(op, inner) => self.unary(*op, inner, span),
            tree::ExprKind::Chain(first, rest) => self.chain(first, rest, span),
            tree::ExprKind::Array(items) => self.array(items, span),
            tree::ExprKind::Error => poison(span),
        }
    }

    /// An expression whose value goes to something of type `to` called `name`.
    pub(super) fn value_for(
        &mut self,
        expr: &tree::Expr,
        to: Ty,
        name: &str,
        declared: Option<Span>,
    ) -> Expr {
        let value = self.expr(expr);
        if converts(value.ty, to) {
            return value;
        }
        let from = value.ty;
        let finding = no_conversion(from, to, name, value.span).also_at(
            declared.filter(|declared| *declared != value.span),
            format!("`{name}` is {}", an(&to.to_string())),
        );
        self.report(finding);
        poison(value.span)
    }

    /// A probability: a number, or a string that holds one.
    pub(super) fn probability(&mut self, expr: &tree::Expr) -> Expr {
        let value = self.expr(expr);
        let good =
            !value.ty.array && matches!(value.ty.base, Base::Int | Base::Float | Base::Str | Base::Unknown);
        if good {
            return value;
        }
        let text = format!("a probability is a number such as 10%, not {}", an(&value.ty.to_string()));
        self.report(Diagnostic::new(Code::NoConversion, value.span, text));
        poison(value.span)
    }

    fn function(&mut self, call: &tree::Call, span: Span) -> Expr {
        let args: Vec<Expr> = call.args.iter().map(|arg| self.expr(arg)).collect();
        let Some(def) = self.call_def(call, &args) else { return poison(span) };
        if !def.is_function() {
            let text = format!("`{}` yields no value; it is a statement of its own", def.name);
            self.report(Diagnostic::new(Code::NotAllowedHere, call.span, text));
            return poison(span);
        }
        let types: Vec<Ty> = args.iter().map(|arg| arg.ty).collect();
        Expr { ty: def.result(&types), kind: ExprKind::Call(def.call, args), span }
    }

    fn unary(&mut self, op: UnaryOp, inner: &tree::Expr, span: Span) -> Expr {
        let inner = self.expr(inner);
        let Some(ty) = unary_type(op, inner.ty) else {
            let text = format!("`{}` cannot be applied to {}", op.sign(), an(&inner.ty.to_string()));
            self.report(Diagnostic::new(Code::NoOperator, span, text));
            return poison(span);
        };
        Expr { kind: ExprKind::Unary(op, Box::new(inner)), ty, span }
    }

    fn chain(&mut self, first: &tree::Expr, rest: &[(BinaryOp, Span, tree::Expr)], span: Span) -> Expr {
        let first = self.expr(first);
        let mut ty = first.ty;
        let mut so_far = first.span;
        let mut checked = Vec::with_capacity(rest.len());
        for (op, sign, right) in rest {
            let right = self.expr(right);
            match binary_type(*op, ty, right.ty) {
                Some(result) => ty = result,
                None => {
                    let finding = no_operator(*op, *sign, ty, so_far, right.ty, right.span);
                    self.report(finding);
                    ty = Ty::UNKNOWN;
                    checked.push((*op, *sign, poison(right.span)));
                    continue;
                }
            }
            so_far = so_far.to(right.span);
            checked.push((*op, *sign, right));
        }
        Expr { kind: ExprKind::Chain(Box::new(first), checked), ty, span }
    }

    fn array(&mut self, items: &[(tree::Expr, Option<tree::Expr>)], span: Span) -> Expr {
        let mut base = None;
        let mut checked = Vec::with_capacity(items.len());
        for (value, prob) in items {
            let value = self.expr(value);
            let prob = prob.as_ref().map(|prob| self.probability(prob));
            let of = match value.ty.base {
                Base::AddrRange => Base::Addr,
                Base::StrRange => Base::Str,
                of => of,
            };
            base = Some(if base.is_none_or(|known| known == of) { of } else { Base::Unknown });
            checked.push((value, prob));
        }
        Expr { kind: ExprKind::Array(checked), ty: Ty::array_of(base.unwrap_or(Base::Unknown)), span }
    }
}

/// The finding for operands that do not go together.
pub(crate) fn no_operator(
    op: BinaryOp,
    sign: Span,
    left: Ty,
    at: Span,
    right: Ty,
    right_at: Span,
) -> Diagnostic {
    let (l, r) = (left.to_string(), right.to_string());
    let sign_text = op.sign();
    if let Some(at) = [(left, at), (right, right_at)].into_iter().find(|(ty, _)| ty.base == Base::Undef) {
        return Diagnostic::new(Code::UndefOperand, at.1, "a value must be filled in here")
            .note("undef() is allowed only as a whole right-hand side");
    }
    if left.base == Base::Qualifier {
        let text = format!("a qualifier stands before a time distribution, not before {}", an(&r));
        return Diagnostic::new(Code::BadQualifier, right_at, text)
            .help("write `nmt + const(1hour)`, or `nmt + 0` for no gap");
    }
    if op == BinaryOp::Clone {
        let text = format!("the factor of `**` is an int, not {}", an(&r));
        return Diagnostic::new(Code::BadCloneFactor, right_at, text);
    }
    let text = format!("there is no `{sign_text}` between {} and {}", an(&l), an(&r));
    let mut finding = Diagnostic::new(Code::NoOperator, sign, text)
        .also(at, format!("this is {}", an(&l)))
        .also(right_at, format!("this is {}", an(&r)));
    let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
    if equality && (left.base == Base::Str || right.base == Base::Str) {
        finding = finding.help("strings cannot be compared");
    } else if equality && matches!(left.base, Base::Float | Base::Rate | Base::Bwidth) {
        finding =
            finding.help("compare with `<=` and `>=`; equality of computed numbers is a matter of luck");
    } else if left.base == Base::AddrRange {
        finding = finding.help("put the range into an array first: `['...'] + x`");
    } else if op == BinaryOp::Add && left.base == Base::Str {
        finding = finding.help("strings cannot be joined; print() takes several arguments");
    } else if left.base == Base::Int && matches!(right.base, Base::Time | Base::Size | Base::Rate) {
        finding = finding.help("only on the right does `0` stand for a time, size or rate");
    }
    finding
}

/// The finding for a value that does not fit its target.
pub(crate) fn no_conversion(from: Ty, to: Ty, name: &str, span: Span) -> Diagnostic {
    let text = format!("`{name}` takes {}, not {}", an(&to.to_string()), an(&from.to_string()));
    let finding =
        Diagnostic::new(Code::NoConversion, span, text).label(format!("this is {}", an(&from.to_string())));
    match (from.base, to.base) {
        _ if to.array && !from.array => finding.help("an array is written in brackets: `[ x ]`"),
        _ if from.array && !to.array => finding.help("a single value is wanted here, not an array"),
        (Base::AddrRange, Base::Addr) => finding.help("this is a range of addresses; a single one is wanted"),
        (Base::Float, Base::Int) => finding.help("use int(x) to cut off the fraction"),
        (Base::Distr(_), Base::Distr(to)) => {
            let example = match to {
                crate::value::Domain::Float => "const(5.0)",
                crate::value::Domain::Time => "const(5sec)",
                crate::value::Domain::Size => "const(5KB)",
                crate::value::Domain::Int => "const(5)",
            };
            finding.help(format!("the type of the first argument decides: `{example}`"))
        }
        (_, Base::Distr(_)) => finding.help("use const(x) for a distribution that always yields x"),
        (Base::Int | Base::Float, Base::Rate) => finding.help("a rate is a division: `10/sec`"),
        (Base::Int | Base::Float, Base::Bwidth) => finding.help("a bandwidth is a division: `55Kb/sec`"),
        (Base::Int | Base::Float, Base::Time) => finding.help("a time has a unit: `10sec`"),
        (Base::Int | Base::Float, Base::Size) => finding.help("a size has a unit: `10KB`"),
        (Base::Size, Base::Bwidth) => finding.help("a bandwidth is a size per time: `55Kb/sec`"),
        (Base::Int | Base::Float | Base::Bool, Base::Str) => finding.help("a string stands in quotes"),
        (Base::Str, Base::Int | Base::Float) => {
            finding.help("read a number from a string with int(x) or float(x)")
        }
        (Base::Str, Base::Addr) => finding.help("addresses stand in single quotes: '10.0.0.1:80'"),
        (Base::Addr, Base::Str) => finding.help("strings stand in double quotes"),
        _ => finding,
    }
}

pub(super) fn poison(span: Span) -> Expr {
    Expr { kind: ExprKind::Poison, ty: Ty::UNKNOWN, span }
}

impl Expr {
    /// The value of a literal.
    pub fn literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Value(value) => Some(value),
            _ => None,
        }
    }
}
