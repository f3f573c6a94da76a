//! Operators and conversions: on types, for the checker, and on values, for the evaluator. A test verifies that
//! the two agree.

use std::sync::Arc;

use crate::syntax::tree::{BinaryOp, UnaryOp};
use crate::types::{Base, Rec, Ty, fresh};
use crate::value::{
    Array, ArrayElement, ArrayLimit, Distr, Domain, ElemType, Matcher, Re, Record, Shape, Value, flatten,
};

/// Why an operator or conversion has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum OpError {
    /// The operator does not exist for these types.
    NoOperator,
    /// The result is out of range.
    Overflow,
    /// The divisor is zero.
    ZeroDivision,
    /// The clone factor is negative.
    NegativeClone(i32),
    /// The result has too many items or is nested too deeply.
    Limit(ArrayLimit),
}

use Base as B;
use BinaryOp as Op;

/// The type of `left op right`; `None` if there is no such operator.
///
/// An int on the right of a quantity is accepted, since it may be the zero that is valid for any quantity.
pub fn binary_type(op: Op, left: Ty, right: Ty) -> Option<Ty> {
    if left.is_unknown() || right.is_unknown() {
        return Some(match op {
            Op::Or | Op::And | Op::Xor if left.base != B::Re && right.base != B::Re => Ty::one(B::Bool),
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => Ty::one(B::Bool),
            Op::Clone => Ty::array_of(B::Unknown),
            _ => Ty::UNKNOWN,
        });
    }
    if op == Op::Clone {
        return (right == Ty::one(B::Int)).then_some(Ty::array_of(B::Unknown));
    }
    if left.array {
        return match op {
            Op::Add => Some(Ty::array_of(if right.base == left.base { left.base } else { B::Unknown })),
            Op::Eq | Op::Ne if right.array => Some(Ty::one(B::Bool)),
            _ => None,
        };
    }
    if right.array {
        return None;
    }
    let one = |base| Some(Ty::one(base));
    match op {
        Op::Range => (left.base == B::Int && right.base == B::Int).then_some(Ty::array_of(B::Int)),
        Op::Or | Op::And | Op::Xor => match (left.base, right.base) {
            (B::Re, B::Re) => one(B::Re),
            (B::Bool | B::Int, B::Bool | B::Int) => one(B::Bool),
            _ => None,
        },
        Op::Eq | Op::Ne => match (left.base, right.base) {
            (B::Bool | B::Int, B::Bool | B::Int) => one(B::Bool),
            (B::Time, B::Time | B::Int) | (B::Size, B::Size | B::Int) => one(B::Bool),
            _ => None,
        },
        Op::Lt | Op::Le | Op::Gt | Op::Ge => match (left.base, right.base) {
            (B::Int | B::Float, B::Int | B::Float) => one(B::Bool),
            (a, b) if a == b && is_quantity(a) => one(B::Bool),
            (a, B::Int) if is_quantity(a) => one(B::Bool),
            _ => None,
        },
        Op::Add | Op::Sub => match (left.base, right.base) {
            (B::Int, B::Int) => one(B::Int),
            (B::Int | B::Float, B::Int | B::Float) => one(B::Float),
            (a, b) if is_quantity(a) && (b == a || b == B::Int) => one(a),
            (B::Qualifier, B::Distr(Domain::Time) | B::Int) if op == Op::Add => one(B::Distr(Domain::Time)),
            _ => None,
        },
        Op::Mul => match (left.base, right.base) {
            (B::Int, B::Int) => one(B::Int),
            (B::Int | B::Float, B::Int | B::Float) => one(B::Float),
            (a, B::Int | B::Float) | (B::Int | B::Float, a) if is_quantity(a) => one(a),
            (B::Rate, B::Time) | (B::Time, B::Rate) => one(B::Float),
            (B::Size, B::Rate) | (B::Rate, B::Size) => one(B::Bwidth),
            (B::Bwidth, B::Time) | (B::Time, B::Bwidth) => one(B::Size),
            _ => None,
        },
        Op::Div => match (left.base, right.base) {
            (B::Int, B::Int) => one(B::Int),
            (B::Int | B::Float, B::Int | B::Float) => one(B::Float),
            (B::Int | B::Float, B::Time) => one(B::Rate),
            (B::Int | B::Float, B::Rate) => one(B::Time),
            (a, b) if a == b && is_quantity(a) => one(B::Float),
            (a, B::Int | B::Float) if is_quantity(a) => one(a),
            (B::Size, B::Time) => one(B::Bwidth),
            (B::Size, B::Bwidth) => one(B::Time),
            _ => None,
        },
        Op::Mod => (left.base == B::Int && right.base == B::Int).then_some(Ty::one(B::Int)),
        Op::Pow => match (left.base, right.base) {
            (B::Int, B::Int) => one(B::Int),
            (B::Int | B::Float, B::Int | B::Float) => one(B::Float),
            _ => None,
        },
        Op::Clone => None,
    }
}

fn is_quantity(base: Base) -> bool {
    matches!(base, B::Time | B::Size | B::Rate | B::Bwidth)
}

/// The type of `op operand`; `None` if there is no such operator.
pub fn unary_type(op: UnaryOp, ty: Ty) -> Option<Ty> {
    if ty.is_unknown() {
        return Some(ty);
    }
    let fits = !ty.array
        && match op {
            UnaryOp::Not => {
                return match ty.base {
                    B::Bool | B::Int if !ty.array => Some(Ty::one(B::Bool)),
                    B::Re if !ty.array => Some(ty),
                    _ => None,
                };
            }
            UnaryOp::Plus | UnaryOp::Minus => matches!(ty.base, B::Int | B::Float) || is_quantity(ty.base),
        };
    fits.then_some(ty)
}

/// The value of `op value`.
///
/// # Errors
/// If there is no such operator, or the result is out of range.
pub fn unary(op: UnaryOp, value: &Value) -> Result<Value, OpError> {
    Ok(match (op, value) {
        (_, Value::Poison) => Value::Poison,
        (UnaryOp::Not, Value::Unknown(_)) => Value::Bool(false),
        (_, Value::Unknown(_)) => value.clone(),
        (UnaryOp::Not, Value::Bool(value)) => Value::Bool(!value),
        (UnaryOp::Not, Value::Int(value)) => Value::Bool(*value == 0),
        (UnaryOp::Not, Value::Re(re)) => re_value(Matcher::Not(re.clone()))?,
        (UnaryOp::Plus, Value::Int(_) | Value::Float(_) | Value::Time(_) | Value::Size(_)) => value.clone(),
        (UnaryOp::Plus, Value::Rate(_) | Value::Bwidth(_)) => value.clone(),
        (UnaryOp::Minus, Value::Int(value)) => Value::Int(-value),
        (UnaryOp::Minus, Value::Float(value)) => Value::Float(-value),
        (UnaryOp::Minus, Value::Time(us)) => Value::Time(-us),
        (UnaryOp::Minus, Value::Size(bytes)) => Value::Size(-bytes),
        (UnaryOp::Minus, Value::Rate(rate)) => Value::Rate(-rate),
        (UnaryOp::Minus, Value::Bwidth(rate)) => Value::Bwidth(-rate),
        _ => return Err(OpError::NoOperator),
    })
}

/// A quantity as a float in its base unit, with its type.
fn quantity(value: &Value) -> Option<(Base, f64)> {
    Some(match value {
        Value::Time(us) => (B::Time, *us as f64 / 1e6),
        Value::Size(bytes) => (B::Size, *bytes as f64),
        Value::Rate(rate) => (B::Rate, *rate),
        Value::Bwidth(rate) => (B::Bwidth, *rate),
        _ => return None,
    })
}

/// The inverse of [`quantity`].
fn from_quantity(base: Base, amount: f64) -> Result<Value, OpError> {
    // 2^63 as a float: the first value that does not fit an i64.
    let whole = |amount: f64| match amount.abs() < 9_223_372_036_854_775_808.0 {
        true => Ok(amount as i64),
        false => Err(OpError::Overflow),
    };
    if !amount.is_finite() {
        return Err(OpError::Overflow);
    }
    Ok(match base {
        B::Time => Value::Time(whole((amount * 1e6).round())?),
        B::Size => Value::Size(whole(amount.round())?),
        B::Rate => Value::Rate(amount),
        B::Bwidth => Value::Bwidth(amount),
        _ => Value::Float(amount),
    })
}

fn float(value: f64) -> Result<Value, OpError> {
    if value.is_finite() { Ok(Value::Float(value)) } else { Err(OpError::Overflow) }
}

fn int(value: i64) -> Result<Value, OpError> {
    // The smallest 32-bit integer is left out, so that every int can be negated.
    let fits = value.abs() <= i64::from(i32::MAX);
    if fits { Ok(Value::Int(value as i32)) } else { Err(OpError::Overflow) }
}

/// True for numbers that cannot be divisors.
fn is_zero(value: f64) -> bool {
    value.abs() < 1e-8
}

/// The value of `left op right`.
///
/// # Errors
/// If there is no such operator, or the result is out of range or too large.
pub fn binary(op: Op, left: &Value, right: &Value) -> Result<Value, OpError> {
    if *left == Value::Poison || *right == Value::Poison {
        return Ok(Value::Poison);
    }
    if matches!(left, Value::Unknown(_)) || matches!(right, Value::Unknown(_)) {
        return match binary_type(op, left.ty(), right.ty()) {
            Some(ty) if ty == Ty::one(B::Bool) => Ok(Value::Bool(false)),
            Some(ty) => Ok(Value::Unknown(ty.base)),
            None => Err(OpError::NoOperator),
        };
    }
    match op {
        Op::Clone => return clone_of(left, right),
        Op::Range => return int_range(left, right),
        Op::Or | Op::And | Op::Xor => return logic(op, left, right),
        Op::Eq | Op::Ne => return equal(left, right).map(|same| Value::Bool(same == (op == Op::Eq))),
        _ => {}
    }
    if let (Value::Array(array), Op::Add) = (left, op) {
        return append(array, right);
    }
    if let (Value::Qualifier(qualifier), Op::Add) = (left, op) {
        let distr = match right {
            Value::Distr(distr) if distr.domain == Domain::Time => (**distr).clone(),
            Value::Int(0) => Distr { domain: Domain::Time, shape: Shape::Const(0.0), qualifier: None },
            _ => return Err(OpError::NoOperator),
        };
        // In `d = 0; nmt + d`, no distribution means no gap.
        let shape = if distr.shape == Shape::None { Shape::Const(0.0) } else { distr.shape };
        return Ok(Value::Distr(Arc::new(Distr { shape, qualifier: Some(*qualifier), ..distr })));
    }
    match op {
        Op::Lt | Op::Le | Op::Gt | Op::Ge => compare(op, left, right),
        Op::Add | Op::Sub => add(op == Op::Add, left, right),
        Op::Mul => multiply(left, right),
        Op::Div => divide(left, right),
        Op::Mod => match (left, right) {
            (Value::Int(_), Value::Int(0)) => Err(OpError::ZeroDivision),
            (Value::Int(a), Value::Int(b)) => int(i64::from(*a) % i64::from(*b)),
            _ => Err(OpError::NoOperator),
        },
        Op::Pow => power(left, right),
        _ => Err(OpError::NoOperator),
    }
}

fn compare(op: Op, left: &Value, right: &Value) -> Result<Value, OpError> {
    let order = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.partial_cmp(b),
        // Whole units compare exactly.
        (Value::Time(a), Value::Time(b)) | (Value::Size(a), Value::Size(b)) => a.partial_cmp(b),
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => match (quantity(left), quantity(right), right) {
                (Some((a, x)), Some((b, y)), _) if a == b => x.partial_cmp(&y),
                (Some((_, x)), None, Value::Int(0)) => x.partial_cmp(&0.0),
                _ => return Err(OpError::NoOperator),
            },
        },
    };
    let order = order.ok_or(OpError::Overflow)?;
    Ok(Value::Bool(match op {
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Gt => order.is_gt(),
        _ => order.is_ge(),
    }))
}

fn add(plus: bool, left: &Value, right: &Value) -> Result<Value, OpError> {
    let sign = if plus { 1 } else { -1 };
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => int(i64::from(*a) + sign * i64::from(*b)),
        (Value::Time(a), Value::Time(b)) => exact(plus, *a, *b).map(Value::Time),
        (Value::Size(a), Value::Size(b)) => exact(plus, *a, *b).map(Value::Size),
        (Value::Time(_) | Value::Size(_) | Value::Rate(_) | Value::Bwidth(_), Value::Int(0)) => {
            Ok(left.clone())
        }
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => float(a + sign as f64 * b),
            _ => match (quantity(left), quantity(right)) {
                (Some((a, x)), Some((b, y))) if a == b => from_quantity(a, x + sign as f64 * y),
                _ => Err(OpError::NoOperator),
            },
        },
    }
}

fn exact(plus: bool, a: i64, b: i64) -> Result<i64, OpError> {
    let sum = if plus { a.checked_add(b) } else { a.checked_sub(b) };
    // The smallest integer is left out, so that every quantity can be negated.
    sum.filter(|sum| *sum != i64::MIN).ok_or(OpError::Overflow)
}

fn multiply(left: &Value, right: &Value) -> Result<Value, OpError> {
    // Whole multiples of whole units stay exact.
    let times = |amount: i64, factor: i32| {
        amount.checked_mul(i64::from(factor)).filter(|n| *n != i64::MIN).ok_or(OpError::Overflow)
    };
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => return int(i64::from(*a) * i64::from(*b)),
        (Value::Time(us), Value::Int(n)) | (Value::Int(n), Value::Time(us)) => {
            return times(*us, *n).map(Value::Time);
        }
        (Value::Size(bytes), Value::Int(n)) | (Value::Int(n), Value::Size(bytes)) => {
            return times(*bytes, *n).map(Value::Size);
        }
        _ => {}
    }
    match (left.number(), right.number(), quantity(left), quantity(right)) {
        (Some(a), Some(b), ..) => float(a * b),
        (Some(a), None, _, Some((base, amount))) | (None, Some(a), Some((base, amount)), _) => {
            from_quantity(base, a * amount)
        }
        (None, None, Some((a, x)), Some((b, y))) => {
            let base = match (a, b) {
                (B::Rate, B::Time) | (B::Time, B::Rate) => B::Float,
                (B::Size, B::Rate) | (B::Rate, B::Size) => B::Bwidth,
                (B::Bwidth, B::Time) | (B::Time, B::Bwidth) => B::Size,
                _ => return Err(OpError::NoOperator),
            };
            from_quantity(base, x * y)
        }
        _ => Err(OpError::NoOperator),
    }
}

fn divide(left: &Value, right: &Value) -> Result<Value, OpError> {
    match (left, right) {
        (_, Value::Int(0)) if left.number().or(quantity(left).map(|(_, x)| x)).is_some() => {
            return Err(OpError::ZeroDivision);
        }
        (Value::Int(a), Value::Int(b)) => return int(i64::from(*a) / i64::from(*b)),
        _ => {}
    }
    let base = match (left.number(), right.number(), quantity(left), quantity(right)) {
        (Some(_), Some(_), ..) => B::Float,
        (Some(_), None, _, Some((B::Time, _))) => B::Rate,
        (Some(_), None, _, Some((B::Rate, _))) => B::Time,
        (None, Some(_), Some((base, _)), _) => base,
        (None, None, Some((a, _)), Some((b, _))) => match (a, b) {
            (a, b) if a == b => B::Float,
            (B::Size, B::Time) => B::Bwidth,
            (B::Size, B::Bwidth) => B::Time,
            _ => return Err(OpError::NoOperator),
        },
        _ => return Err(OpError::NoOperator),
    };
    let amount = |value: &Value| value.number().or(quantity(value).map(|(_, x)| x)).unwrap_or(0.0);
    let (dividend, divisor) = (amount(left), amount(right));
    if is_zero(divisor) {
        return Err(OpError::ZeroDivision);
    }
    from_quantity(base, dividend / divisor)
}

fn power(left: &Value, right: &Value) -> Result<Value, OpError> {
    match (left, right) {
        (Value::Int(0), Value::Int(n)) if *n < 0 => Err(OpError::ZeroDivision),
        (Value::Int(base), Value::Int(n)) if *n < 0 => Ok(Value::Int(match (base.abs(), n % 2 == 0) {
            (1, false) => *base,
            (1, true) => 1,
            _ => 0,
        })),
        (Value::Int(base), Value::Int(n)) => {
            i64::from(*base).checked_pow(*n as u32).ok_or(OpError::Overflow).and_then(int)
        }
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => float(a.powf(b)),
            _ => Err(OpError::NoOperator),
        },
    }
}

fn logic(op: Op, left: &Value, right: &Value) -> Result<Value, OpError> {
    if let (Value::Re(a), Value::Re(b)) = (left, right) {
        return re_value(match op {
            Op::And => Matcher::All(vec![a.clone(), b.clone()]),
            Op::Or => Matcher::Any(vec![a.clone(), b.clone()]),
            _ => Matcher::Xor(a.clone(), b.clone()),
        });
    }
    let (Some(a), Some(b)) = (truth(left), truth(right)) else { return Err(OpError::NoOperator) };
    Ok(Value::Bool(match op {
        Op::And => a && b,
        Op::Or => a || b,
        _ => a != b,
    }))
}

/// A regular expression of a checked size.
///
/// # Errors
/// If it is too large or nested too deeply.
pub fn re_value(matcher: Matcher) -> Result<Value, OpError> {
    Re::new(matcher).map(|re| Value::Re(Arc::new(re))).map_err(OpError::Limit)
}

/// The truth of a bool or int.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Int(value) => Some(*value != 0),
        _ => None,
    }
}

fn equal(left: &Value, right: &Value) -> Result<bool, OpError> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Time(a), Value::Time(b)) | (Value::Size(a), Value::Size(b)) => Ok(a == b),
        (Value::Time(a) | Value::Size(a), Value::Int(0)) => Ok(*a == 0),
        (Value::Array(a), Value::Array(b)) => {
            let mut items = Vec::new();
            if a.len() != b.len() {
                return Ok(false);
            }
            flatten(left, crate::value::CloneOrder::Position, &mut |value, _| items.push(value));
            let mut same = true;
            let mut items = items.into_iter();
            flatten(right, crate::value::CloneOrder::Position, &mut |value, _| {
                same &= items.next() == Some(value)
            });
            Ok(same)
        }
        _ => match (truth(left), truth(right)) {
            (Some(a), Some(b)) => Ok(a == b),
            _ => Err(OpError::NoOperator),
        },
    }
}

fn clone_of(value: &Value, factor: &Value) -> Result<Value, OpError> {
    match factor {
        Value::Int(n) if *n < 0 => Err(OpError::NegativeClone(*n)),
        Value::Int(n) => {
            let item = ArrayElement { value: value.clone(), prob: None };
            Array::cloned(vec![item], *n as u32)
                .map(|array| Value::Array(Arc::new(array)))
                .map_err(OpError::Limit)
        }
        _ => Err(OpError::NoOperator),
    }
}

/// The largest number of ints that `a .. b` makes.
const MAX_INTS: u64 = 1 << 20;

fn int_range(left: &Value, right: &Value) -> Result<Value, OpError> {
    let (Value::Int(a), Value::Int(b)) = (left, right) else { return Err(OpError::NoOperator) };
    if u64::from(a.abs_diff(*b)) >= MAX_INTS {
        return Err(OpError::Limit(ArrayLimit::Items));
    }
    let values: Vec<Value> =
        if a <= b { (*a..=*b).map(Value::Int).collect() } else { (*b..=*a).rev().map(Value::Int).collect() };
    Array::of(values).map(|array| Value::Array(Arc::new(array))).map_err(OpError::Limit)
}

fn append(array: &Arc<Array>, right: &Value) -> Result<Value, OpError> {
    let mut items = match array.repeat() {
        1 => array.items().to_vec(),
        _ => vec![ArrayElement { value: Value::Array(array.clone()), prob: None }],
    };
    match right {
        Value::Array(more) if more.repeat() == 1 => items.extend_from_slice(more.items()),
        other => items.push(ArrayElement { value: other.clone(), prob: None }),
    }
    Array::new(items).map(|array| Value::Array(Arc::new(array))).map_err(OpError::Limit)
}

/// True if a value of the type `from` may be converted to the type `to`. Zero and elements of arrays are
/// checked when the value is known.
pub fn converts(from: Ty, to: Ty) -> bool {
    if from.is_unknown() || to.is_unknown() || from == to || from.base == B::Undef {
        return true;
    }
    if to.array {
        let range = match to.base {
            B::Addr => from.base == B::AddrRange,
            B::Str => from.base == B::StrRange,
            _ => false,
        };
        return from.array || range;
    }
    !from.array
        && match (from.base, to.base) {
            (B::Int, B::Float | B::Bool | B::Distr(_)) => true,
            (B::Int, to) => is_quantity(to),
            (B::DynName, B::Addr) => true,
            (B::Record(Rec::Robot), B::Record(Rec::ClientBehavior)) => true,
            (B::Record(Rec::ClientBehavior), B::Record(Rec::Robot)) => true,
            _ => false,
        }
}

/// The value as one of the type `to`; `None` if there is no conversion.
pub fn convert(value: Value, to: Ty) -> Option<Value> {
    if matches!(value, Value::Undef | Value::Poison) {
        return Some(value);
    }
    if matches!(value, Value::Unknown(_)) {
        return converts(value.ty(), to).then_some(Value::Unknown(to.base));
    }
    if to.array {
        return match &value {
            Value::Array(array) => match array.elem() {
                None => Some(Value::Poison),
                Some(elem) => fits(elem, to.base).then_some(value),
            },
            Value::AddrRange(_) if to.base == B::Addr => in_array(value),
            Value::StrRange(_) if to.base == B::Str => in_array(value),
            _ => None,
        };
    }
    if value.ty() == to {
        return Some(value);
    }
    match (&value, to.base) {
        (Value::Int(value), B::Float) => Some(Value::Float(f64::from(*value))),
        (Value::Int(value), B::Bool) => Some(Value::Bool(*value != 0)),
        (Value::Int(0), B::Time) => Some(Value::Time(0)),
        (Value::Int(0), B::Size) => Some(Value::Size(0)),
        (Value::Int(0), B::Rate) => Some(Value::Rate(0.0)),
        (Value::Int(0), B::Bwidth) => Some(Value::Bwidth(0.0)),
        (Value::Int(0), B::Distr(domain)) => {
            Some(Value::Distr(Arc::new(Distr { domain, shape: Shape::None, qualifier: None })))
        }
        (Value::DynName(..), B::Addr) => Some(value),
        (Value::Record(record), B::Record(to)) => {
            common_fields(record, to).map(|r| Value::Record(Arc::new(r)))
        }
        _ => None,
    }
}

fn in_array(value: Value) -> Option<Value> {
    Array::of([value]).ok().map(|array| Value::Array(Arc::new(array)))
}

/// True if array elements of the type `elem` are allowed in an array of `base`. Elements are not converted.
pub fn fits(elem: ElemType, base: Base) -> bool {
    match elem {
        ElemType::None => true,
        ElemType::Mixed => false,
        ElemType::All(elem) => {
            elem == base
                || (base == B::AnyRange && matches!(elem, B::Record(Rec::SingleRange | Rec::MultiRange)))
                || (base == B::Addr && elem == B::DynName)
        }
    }
}

/// Converts a Robot to a ClientBehavior or the reverse: common fields are copied.
fn common_fields(record: &Record, to: Rec) -> Option<Record> {
    if !matches!((record.rec, to), (Rec::Robot, Rec::ClientBehavior) | (Rec::ClientBehavior, Rec::Robot)) {
        return None;
    }
    let mut result = (*fresh(to)).clone();
    for (slot, field) in result.slots.iter_mut().zip(&to.def().fields) {
        if let Some(known) = record.slot(field.name) {
            *slot = known.clone();
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Qualifier;

    /// A value of each type that operators know or do not know.
    fn samples() -> Vec<Value> {
        let distr =
            |domain| Value::Distr(Arc::new(Distr { domain, shape: Shape::Const(1.0), qualifier: None }));
        vec![
            Value::Bool(true),
            Value::Int(0),
            Value::Int(3),
            Value::Float(2.5),
            Value::str("x"),
            Value::Time(5_000_000),
            Value::Size(1024),
            Value::Rate(2.0),
            Value::Bwidth(100.0),
            Value::UniqId(1),
            distr(Domain::Time),
            distr(Domain::Int),
            Value::Qualifier(Qualifier::Nmt),
            Value::Array(Arc::new(Array::of([Value::Int(1)]).expect("small"))),
            Value::Record(fresh(Rec::Goal)),
        ]
    }

    const OPS: &[Op] = &[
        Op::Range,
        Op::Clone,
        Op::Or,
        Op::And,
        Op::Xor,
        Op::Eq,
        Op::Ne,
        Op::Lt,
        Op::Le,
        Op::Gt,
        Op::Ge,
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Mod,
        Op::Pow,
    ];

    #[test]
    fn types_and_values_agree() {
        for (op, left, right) in OPS
            .iter()
            .flat_map(|op| samples().into_iter().map(move |left| (*op, left)))
            .flat_map(|(op, left)| samples().into_iter().map(move |right| (op, left.clone(), right)))
        {
            let what = format!("{left:?} {} {right:?}", op.sign());
            match (binary_type(op, left.ty(), right.ty()), binary(op, &left, &right)) {
                (Some(ty), Ok(value)) if ty.array => assert!(value.ty().array, "{what} gives {value:?}"),
                (Some(ty), Ok(value)) => assert_eq!(value.ty(), ty, "{what}"),
                // Only zero is converted on the right, which the types cannot show.
                (Some(_), Err(OpError::NoOperator)) => assert_eq!(right, Value::Int(3), "{what}"),
                (Some(_), Err(_)) => {}
                (None, Ok(value)) => panic!("{what} gives {value:?}, and the checker refuses it"),
                (None, Err(_)) => {}
            }
        }
    }

    #[test]
    fn conversions_of_types_and_values_agree() {
        for (value, to) in
            samples().into_iter().flat_map(|a| samples().into_iter().map(move |b| (a.clone(), b.ty())))
        {
            if convert(value.clone(), to).is_some() {
                assert!(converts(value.ty(), to), "{value:?} to {to}");
            }
        }
        assert_eq!(convert(Value::Int(0), Ty::one(B::Rate)), Some(Value::Rate(0.0)));
        assert_eq!(convert(Value::Int(1), Ty::one(B::Rate)), None);
        assert_eq!(convert(Value::Float(1.0), Ty::one(B::Int)), None);
        assert_eq!(convert(Value::Bool(true), Ty::one(B::Int)), None);
    }
}
