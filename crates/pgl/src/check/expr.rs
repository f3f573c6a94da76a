//! Types of expressions.

use crate::calls::{self, CallResult};
use crate::check::Checker;
use crate::check::hir::{Expr, ExprKind};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, closest};
use crate::hints::{self, an, drawn};
use crate::ops::{binary_type, converts, unary_type};
use crate::source::Span;
use crate::syntax;
use crate::syntax::tree::{self, BinaryOp, UnaryOp};
use crate::types::{Base, Ty};
use crate::value::{Domain, Value};

impl Checker<'_> {
    /// An expression with its type. After a diagnostic the type is unknown, and no further diagnostics about it
    /// follow.
    pub(super) fn expr(&mut self, expr: &tree::Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            tree::ExprKind::Value(value) => {
                Expr { kind: ExprKind::Value(value.clone()), ty: value.ty(), span }
            }
            tree::ExprKind::BadUnit(unit) => {
                let finding = bad_unit(unit, self.wanted, span);
                self.report(finding);
                poison(span)
            }
            tree::ExprKind::Path(path) => match self.source(path) {
                Some(place) => Expr { ty: place.ty, kind: ExprKind::Read(Box::new(place)), span },
                None => poison(span),
            },
            tree::ExprKind::Call(call) => self.function(call, span),
            tree::ExprKind::Unary(op, inner) => self.unary(*op, inner, span),
            tree::ExprKind::Chain(first, rest) => self.chain(first, rest, span),
            tree::ExprKind::Array(items) => self.array(items, span),
            tree::ExprKind::Error => poison(span),
        }
    }

    /// An expression where a value of this type is expected, as far as that is known. The type affects advice
    /// only.
    pub(super) fn expr_wanted(&mut self, expr: &tree::Expr, wanted: Option<Ty>) -> Expr {
        let outer = std::mem::replace(&mut self.wanted, wanted);
        let value = self.expr(expr);
        self.wanted = outer;
        value
    }

    /// An expression whose value is assigned to something of type `to` called `name`.
    pub(super) fn value_for(
        &mut self,
        expr: &tree::Expr,
        to: Ty,
        name: &str,
        declared: Option<Span>,
    ) -> Expr {
        let value = self.expr_wanted(expr, Some(to));
        if converts(value.ty, to) {
            return value;
        }
        let from = value.ty;
        let finding = no_conversion(from, to, name, &value).also_at(
            declared.filter(|declared| *declared != value.span),
            format!("`{name}` is {}", an(&to.to_string())),
        );
        self.report(finding);
        poison(value.span)
    }

    /// A probability: a number, or a string with a number in it.
    pub(super) fn probability(&mut self, expr: &tree::Expr) -> Expr {
        let value = self.expr_wanted(expr, Some(Ty::one(Base::Float)));
        let good =
            !value.ty.array && matches!(value.ty.base, Base::Int | Base::Float | Base::Str | Base::Unknown);
        if good {
            return value;
        }
        let text = format!("a probability is a number such as 10%, not {}", an(&value.ty.to_string()));
        self.report(Diagnostic::new(Code::NoConversion, value.span, text));
        poison(value.span)
    }

    fn function(&mut self, call: &tree::CallExpr, span: Span) -> Expr {
        let wanted = match (calls::find(&call.name.text).map(|def| def.yields), self.wanted) {
            (Some(CallResult::DistrOfFirst), Some(Ty { base: Base::Distr(domain), array: false })) => {
                Some(Ty::one(drawn(domain)))
            }
            (Some(CallResult::First), wanted) => wanted,
            _ => None,
        };
        let args: Vec<Expr> = call.args.iter().map(|arg| self.part(arg, wanted)).collect();
        let Some(def) = self.call_def(call, &args) else { return poison(span) };
        if !def.is_function() {
            let text = format!("`{}` returns no value; write it as a separate statement", def.name);
            self.report(Diagnostic::new(Code::NotAllowedHere, call.span, text));
            return poison(span);
        }
        let types: Vec<Ty> = args.iter().map(|arg| arg.ty).collect();
        Expr { ty: def.result(&types), kind: ExprKind::Call(def.call, args), span }
    }

    /// An operand or argument. Whether an `undef()` there matters is known only when the program runs, because
    /// a setting may replace it.
    fn part(&mut self, expr: &tree::Expr, wanted: Option<Ty>) -> Expr {
        let value = self.expr_wanted(expr, wanted);
        let waits = value.ty.base == Base::Undef && self.mode == super::Mode::Static;
        if waits { Expr { ty: Ty::UNKNOWN, ..value } } else { value }
    }

    fn unary(&mut self, op: UnaryOp, inner: &tree::Expr, span: Span) -> Expr {
        let inner = self.part(inner, self.wanted);
        let Some(ty) = unary_type(op, inner.ty) else {
            let text = format!("`{}` cannot be applied to {}", op.sign(), an(&inner.ty.to_string()));
            self.report(Diagnostic::new(Code::NoOperator, span, text));
            return poison(span);
        };
        Expr { kind: ExprKind::Unary(op, Box::new(inner)), ty, span }
    }

    fn chain(&mut self, first: &tree::Expr, rest: &[(BinaryOp, Span, tree::Expr)], span: Span) -> Expr {
        // All terms of a sum have the type of the sum; with other operators, usually the first operand has the
        // type of the result.
        let of_rest = self.wanted.filter(|_| rest.iter().all(|(op, ..)| op.is_sum()));
        let first = self.part(first, self.wanted);
        let mut ty = first.ty;
        let mut so_far = first.span;
        let mut checked = Vec::with_capacity(rest.len());
        for (op, sign, right) in rest {
            let right = self.part(right, of_rest);
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
            self.share_as_number(*op, checked.last().map_or(&first, |(_, _, before)| before), &right);
            so_far = so_far.to(right.span);
            checked.push((*op, *sign, right));
        }
        Expr { kind: ExprKind::Chain(Box::new(first), checked), ty, span }
    }

    /// Warns if a statistic that is a share is compared with a number above 1.
    fn share_as_number(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        let share = |expr: &Expr| match &expr.kind {
            ExprKind::Read(place) => place.stat.filter(|member| member.is_share()),
            _ => None,
        };
        let number = |expr: &Expr| expr.literal().and_then(Value::number).filter(|number| *number > 1.0);
        let compares = matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge);
        let found = share(left).zip(number(right)).map(|found| (found, right.span));
        let found = found.or_else(|| share(right).zip(number(left)).map(|found| (found, left.span)));
        let Some(((member, number), at)) = found.filter(|_| compares) else { return };
        let text = format!("`{}` is a share, which cannot be {number}", member.path);
        let help = format!("for {number} percent write `{number}%`");
        self.report(Diagnostic::new(Code::ShareAsNumber, at, text).help(help));
    }

    fn array(&mut self, items: &[tree::ArrayItem], span: Span) -> Expr {
        let mut base = None;
        let mut checked = Vec::with_capacity(items.len());
        let wanted = self.wanted.map(|wanted| Ty::one(wanted.base));
        for (value, prob) in items {
            let value = self.part(value, wanted);
            let prob = prob.as_ref().map(|prob| Box::new(self.probability(prob)));
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

/// The diagnostic for operands that an operator does not combine.
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
        let text = format!("a qualifier must be followed by a time distribution, not by {}", an(&r));
        return Diagnostic::new(Code::BadQualifier, right_at, text)
            .help("write `nmt + const(1hour)`, or `nmt + 0` for no gap");
    }
    if op == BinaryOp::Clone {
        let text = format!("the factor of `**` must be an int, not {}", an(&r));
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
        finding = finding.help("compare with `<=` and `>=`; computed numbers are rarely exactly equal");
    } else if left.base == Base::AddrRange {
        finding = finding.help("put the range into an array first: `['...'] + x`");
    } else if op == BinaryOp::Add && left.base == Base::Str {
        finding = finding.help("strings cannot be joined; print() takes several arguments");
    } else if left.base == Base::Int && matches!(right.base, Base::Time | Base::Size | Base::Rate) {
        finding = finding.help("`0` can stand for a time, size or rate only on the right");
    }
    finding
}

/// The diagnostic for a value that does not fit its target.
pub(crate) fn no_conversion(from: Ty, to: Ty, name: &str, expr: &Expr) -> Diagnostic {
    let text = format!("`{name}` takes {}, not {}", an(&to.to_string()), an(&from.to_string()));
    Diagnostic::new(Code::NoConversion, expr.span, text)
        .label(format!("this is {}", an(&from.to_string())))
        .help(hints::instead(from, to, expr))
}

/// The diagnostic for a number with a word that is not a unit, where a value of the type `wanted` is expected.
fn bad_unit(literal: &tree::BadUnit, wanted: Option<Ty>, span: Span) -> Diagnostic {
    let tree::BadUnit { number, unit } = literal;
    let at = span.part(number.len(), number.len() + unit.len());
    let finding = Diagnostic::new(Code::UnknownUnit, at, format!("`{unit}` is not a unit"));
    let (times, sizes) = (names(syntax::TIME_UNITS), names(syntax::SIZE_UNITS));
    let wanted = wanted.map(|wanted| wanted.base);
    let known: &[&str] = match wanted {
        Some(Base::Float | Base::Distr(Domain::Float)) => {
            return finding
                .note("this must be a number without a unit, or a share with `%`")
                .help(format!("write a share such as `{number}%`, or a number such as `0.8`"));
        }
        Some(Base::Int | Base::Distr(Domain::Int)) => {
            return finding.help(format!("an int has no unit: `{number}`"));
        }
        Some(Base::Rate) => return finding.help(format!("a rate is a division: `{number}/sec`")),
        Some(Base::Time | Base::Distr(Domain::Time)) => &times,
        Some(Base::Size | Base::Distr(Domain::Size) | Base::Bwidth) => &sizes,
        _ => &[],
    };
    let finding = match known {
        [] => finding.note(format!(
            "units of time: {}; of size: {}; `%` makes a share",
            times.join(" "),
            sizes.join(" ")
        )),
        known => finding.note(format!("the units that fit here are {}", known.join(" "))),
    };
    let alias = syntax::unit_alias(unit, |name| known.contains(&name));
    // A single letter is similar to all others, so only its usual meaning counts, and only where that fits.
    let all: Vec<&str> = times.iter().chain(&sizes).copied().collect();
    let near = || closest(unit, if known.is_empty() { &all } else { known }.iter().copied());
    let guess = match unit.len() {
        1 => alias.filter(|name| known.contains(name)),
        _ => alias.filter(|name| known.is_empty() || known.contains(name)).or_else(near),
    };
    match (guess, wanted.filter(|_| !known.is_empty())) {
        (Some(name), Some(Base::Bwidth)) => finding.help(format!("did you mean `{number}{name}/sec`?")),
        (Some(name), _) => finding.help(format!("did you mean `{number}{name}`?")),
        (None, Some(base)) => finding.help(hints::how(Ty::one(base))),
        (None, None) => finding,
    }
}

fn names(units: &'static [(&'static str, i64)]) -> Vec<&'static str> {
    units.iter().map(|(name, _)| *name).collect()
}

pub(super) fn poison(span: Span) -> Expr {
    Expr { kind: ExprKind::Poison, ty: Ty::UNKNOWN, span }
}
