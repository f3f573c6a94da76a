//! Values of expressions.

use std::sync::Arc;

use crate::check::hir::{ArrayItem, Expr, ExprKind};
use crate::check::no_operator;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::Evaluator;
use crate::ops::{OpError, binary, unary};
use crate::source::Span;
use crate::syntax::tree::{BinaryOp, UnaryOp};
use crate::types::Base;
use crate::value::{Array, ArrayElement, Domain, Value, show};

impl Evaluator<'_> {
    /// The value of an expression; [`Value::Undef`] only for `undef()` itself.
    pub(super) fn expr(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Value(value) => value.clone(),
            ExprKind::Read(place) => self.read(place),
            ExprKind::Call(call, args) => self.function(*call, args, expr.span),
            ExprKind::Unary(op, inner) => {
                let value = self.defined(inner);
                self.unary(*op, &value, expr.span)
            }
            ExprKind::Chain(first, rest) => {
                // Operands of a sum or product get its type, if that is more than an int.
                let ty = expr.ty.base;
                let wanted = if makes_fraction(ty) { Some(ty) } else { self.wanted };
                let outer = std::mem::replace(&mut self.wanted, wanted);
                let value = self.chain(first, rest);
                self.wanted = outer;
                value
            }
            ExprKind::Array(items) => self.array(items, expr.span),
            ExprKind::Poison => Value::Poison,
        }
    }

    /// The value of an expression that will be converted to this type.
    pub(super) fn expr_wanted(&mut self, expr: &Expr, wanted: Option<Base>) -> Value {
        let outer = std::mem::replace(&mut self.wanted, wanted);
        let value = self.expr(expr);
        self.wanted = outer;
        value
    }

    /// The value of an expression that must be defined.
    pub(super) fn defined(&mut self, expr: &Expr) -> Value {
        match self.expr(expr) {
            Value::Undef => {
                let mut finding = Diagnostic::new(
                    Code::UndefOperand,
                    expr.span,
                    "a value must be filled in here",
                )
                .note(
                    "undef() is allowed only as a whole right-hand side; here it marks a place for a value",
                );
                if let Some(name) = &self.target {
                    finding = finding.help(format!(
                        "replace undef() in the file, or set the whole value with `--set {name}=VALUE`"
                    ));
                }
                self.report(finding)
            }
            value => value,
        }
    }

    fn unary(&mut self, op: UnaryOp, value: &Value, span: Span) -> Value {
        match unary(op, value) {
            Ok(value) => value,
            Err(OpError::Limit(limit)) => self.limit(limit, span),
            Err(_) => {
                let text = format!("`{}` cannot be applied to this", op.sign());
                self.report(Diagnostic::new(Code::NoOperator, span, text))
            }
        }
    }

    fn chain(&mut self, first: &Expr, rest: &[(BinaryOp, Span, Expr)]) -> Value {
        let mut value = self.defined(first);
        let mut at = first.span;
        for (op, sign, right_expr) in rest {
            let right = self.defined(right_expr);
            // Concatenation and comparison of arrays look at every item.
            let looks_at_items = matches!(op, BinaryOp::Add | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Range);
            if looks_at_items && !self.charge(items_seen(*op, &value, &right), *sign) {
                return Value::Poison;
            }
            value = match binary(*op, &value, &right) {
                Ok(made) => {
                    self.warn_vanished(*op, &value, &right, &made, at.to(right_expr.span));
                    made
                }
                Err(error) => self.op_error(error, *op, *sign, (&value, at), (&right, right_expr.span)),
            };
            at = at.to(right_expr.span);
        }
        value
    }

    /// Warns about `55/80` where a share is expected: dividing ints drops the fraction.
    fn warn_vanished(&mut self, op: BinaryOp, left: &Value, right: &Value, made: &Value, span: Span) {
        let (BinaryOp::Div, Value::Int(a), Value::Int(b), Value::Int(0)) = (op, left, right, made) else {
            return;
        };
        if *a != 0 && self.wanted.is_some_and(makes_fraction) {
            let text = format!("{a}/{b} is 0: a division of ints drops the fraction");
            let mut finding = Diagnostic::new(Code::IntDivision, span, text);
            finding = match self.wanted {
                Some(Base::Float | Base::Distr(Domain::Float)) if a.abs() < 100 && b.abs() <= 100 => finding
                    .help(format!("to keep the fraction, write `{a}.0/{b}`, or `{a}%/{b}%` for shares")),
                _ => finding.help(format!("to keep the fraction, write a float: `{a}.0/{b}`")),
            };
            self.report(finding);
        }
    }

    fn op_error(
        &mut self,
        error: OpError,
        op: BinaryOp,
        sign: Span,
        left: (&Value, Span),
        right: (&Value, Span),
    ) -> Value {
        let finding = match error {
            OpError::NoOperator => {
                let finding = no_operator(op, sign, left.0.ty(), left.1, right.0.ty(), right.1);
                match right.0 {
                    Value::Int(n) if *n != 0 => {
                        finding.note(format!("only 0 can stand for a quantity; this is {n}"))
                    }
                    _ => finding,
                }
            }
            OpError::Overflow => {
                let text = format!("the result of `{}` is out of range", op.sign());
                Diagnostic::new(Code::Overflow, left.1.to(right.1), text).note(format!(
                    "{} {} {}",
                    show(left.0),
                    op.sign(),
                    show(right.0)
                ))
            }
            OpError::ZeroDivision => Diagnostic::new(Code::ZeroDivision, right.1, "division by zero")
                .label(format!("this is {}", show(right.0))),
            OpError::NegativeClone(n) => {
                let text = format!("{n} copies cannot be made");
                Diagnostic::new(Code::BadCount, right.1, text).help("the factor of `**` must be 0 or more")
            }
            OpError::Limit(limit) => return self.limit(limit, left.1.to(right.1)),
        };
        self.report(finding)
    }

    fn array(&mut self, items: &[ArrayItem], span: Span) -> Value {
        if !self.charge(items.len() as u64, span) {
            return Value::Poison;
        }
        let mut made = Vec::with_capacity(items.len());
        let mut poison = false;
        for (expr, prob) in items {
            let value = self.defined(expr);
            let prob = match prob {
                Some(prob) => match self.probability(prob) {
                    Some(prob) => Some(prob),
                    None => {
                        poison = true;
                        None
                    }
                },
                None => None,
            };
            poison |= value == Value::Poison;
            made.push(ArrayElement { value, prob });
        }
        if poison {
            return Value::Poison;
        }
        match Array::new(made) {
            Ok(array) => {
                let (_, odd) = array.level();
                let array = Value::Array(Arc::new(array));
                if let Some(sum) = odd {
                    self.odd_probabilities(sum, span, Some(&array));
                }
                array
            }
            Err(limit) => self.limit(limit, span),
        }
    }

    /// A probability; `None` after a diagnostic.
    pub(super) fn probability(&mut self, expr: &Expr) -> Option<f64> {
        let outer = self.wanted.replace(Base::Float);
        let value = self.defined(expr);
        self.wanted = outer;
        let prob = match &value {
            Value::Poison => return None,
            Value::Str(text) => super::calls::number_in(text),
            value => value.number(),
        };
        match prob {
            Some(prob) if prob >= 0.0 && prob.is_finite() => Some(prob),
            Some(prob) => {
                let text = format!("a probability cannot be {}%", show(&Value::Float(prob * 100.0)));
                self.report(Diagnostic::new(Code::BadCount, expr.span, text));
                None
            }
            None => {
                let text = format!("{} is not a probability", show(&value));
                self.report(Diagnostic::new(Code::BadNumberString, expr.span, text));
                None
            }
        }
    }

    pub(super) fn odd_probabilities(&mut self, sum: f64, span: Span, array: Option<&Value>) {
        let percent = crate::value::significant(sum * 100.0, 4);
        let text = format!("the probabilities add up to {percent}%, not to 100%");
        let mut finding = Diagnostic::new(Code::Probabilities, span, text).note("they are scaled");
        if let Some(array) = array.filter(|array| array.weight() < 64) {
            finding = finding.note(format!("the array is {}", super::shorten(&show(array))));
        }
        self.report(finding);
    }
}

/// True for types whose values are not whole numbers.
fn makes_fraction(base: Base) -> bool {
    match base {
        Base::Distr(domain) => domain != Domain::Int,
        base => matches!(base, Base::Float | Base::Time | Base::Size | Base::Rate | Base::Bwidth),
    }
}

/// The number of items that an operator processes.
fn items_seen(op: BinaryOp, left: &Value, right: &Value) -> u64 {
    match (op, left, right) {
        (BinaryOp::Range, Value::Int(a), Value::Int(b)) => u64::from(a.abs_diff(*b)) + 1,
        (BinaryOp::Add, Value::Array(a), Value::Array(b)) => (a.items().len() + b.items().len()) as u64,
        (BinaryOp::Add, Value::Array(a), _) => a.items().len() as u64 + 1,
        (BinaryOp::Eq | BinaryOp::Ne, Value::Array(a), Value::Array(b)) => a.len().saturating_add(b.len()),
        _ => 0,
    }
}
