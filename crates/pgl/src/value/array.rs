//! Arrays: nested, with probabilities, partly lazy.

use std::sync::Arc;

use crate::types::{Base, Rec};
use crate::value::Value;

/// The deepest nesting of arrays and records in a value.
pub const MAX_DEPTH: u32 = 64;
/// The largest number of items in an array or range, and of parts in a value.
pub const MAX_ITEMS: u64 = 1 << 24;

/// An element of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayElement {
    /// The element: a single value, a range or another array.
    pub value: Value,
    /// Its probability, if one was given.
    pub prob: Option<f64>,
}

/// An array, or `repeat` copies of its items: `x ** n` is an array with the item x and n copies.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    items: Vec<ArrayElement>,
    repeat: u32,
    len: u64,
    depth: u32,
    weight: u64,
    any_prob: bool,
    elem: Option<ElemType>,
}

/// The order of the copies in a clone (`docs/reference/language.md`, "Cloning and order").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneOrder {
    /// The whole array repeatedly: a b a b. For agents and aliases.
    Agents,
    /// Each member repeatedly: a a b b. For everything else.
    Position,
}

/// Why an array cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayLimit {
    /// The array would have more than [`MAX_ITEMS`] items.
    Items,
    /// The array would be nested deeper than [`MAX_DEPTH`].
    Depth,
}

impl Array {
    /// An array of these items.
    ///
    /// # Errors
    /// If it would exceed a limit.
    pub fn new(items: Vec<ArrayElement>) -> Result<Self, ArrayLimit> {
        Self::cloned(items, 1)
    }

    /// An array of plain values.
    ///
    /// # Errors
    /// If it would exceed a limit.
    pub fn of(values: impl IntoIterator<Item = Value>) -> Result<Self, ArrayLimit> {
        Self::new(values.into_iter().map(|value| ArrayElement { value, prob: None }).collect())
    }

    /// `repeat` copies of these items.
    ///
    /// # Errors
    /// If it would exceed a limit.
    pub fn cloned(items: Vec<ArrayElement>, repeat: u32) -> Result<Self, ArrayLimit> {
        let sum =
            |of: fn(&Value) -> u64| items.iter().fold(0u64, |n, item| n.saturating_add(of(&item.value)));
        let len = sum(Value::len).saturating_mul(u64::from(repeat));
        let weight = sum(Value::weight).saturating_add(1);
        let depth = 1 + items.iter().map(|item| item.value.depth()).max().unwrap_or(0);
        if len > MAX_ITEMS || weight > MAX_ITEMS {
            return Err(ArrayLimit::Items);
        }
        if depth > MAX_DEPTH {
            return Err(ArrayLimit::Depth);
        }
        let nested = |item: &ArrayElement| matches!(&item.value, Value::Array(array) if array.any_prob);
        let any_prob = items.iter().any(|item| item.prob.is_some() || nested(item));
        let mut elem = Some(ElemType::None);
        for item in &items {
            elem = match (elem, ElemType::of(&item.value)) {
                (Some(elem), Some(more)) => Some(elem.join(more)),
                _ => None,
            };
        }
        Ok(Self { items, repeat, len, depth, weight, any_prob, elem })
    }

    /// The elements of the outer level.
    pub fn items(&self) -> &[ArrayElement] {
        &self.items
    }

    /// The number of copies of the elements.
    pub fn repeat(&self) -> u32 {
        self.repeat
    }

    /// Number of items, nested ones included.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The nesting depth of arrays and records.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The number of parts.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The type of all items; `None` if one is unknown because a diagnostic was reported.
    pub fn elem(&self) -> Option<ElemType> {
        self.elem
    }

    /// True if an item, also of a nested array, has a probability.
    pub fn any_prob(&self) -> bool {
        self.any_prob
    }

    /// The probability of each element of the outer level (`docs/reference/language.md`, "Probabilities"). The
    /// second result is the sum of the given probabilities if it deserves a warning.
    pub fn level(&self) -> (Vec<f64>, Option<f64>) {
        let count = self.items.len() as f64;
        let given = self.items.iter().filter_map(|item| item.prob);
        let (listed, sum) = given.fold((0usize, 0.0), |(n, sum), prob| (n + 1, sum + prob));
        let all = listed == self.items.len();
        let rest = count - listed as f64;
        let (scale, each, odd) = if listed == 0 {
            (1.0, 1.0 / count, false)
        } else if sum >= 1.01 - 1e-12 {
            (1.0 / sum, 0.0, true)
        } else if !all {
            (1.0, ((1.0 - sum) / rest).max(0.0), false)
        } else if sum > 0.99 + 1e-12 {
            (1.0, 0.0, false)
        } else if sum <= 0.0 {
            return (vec![1.0 / count; self.items.len()], Some(sum));
        } else {
            (1.0 / sum, 0.0, true)
        };
        let probs = self.items.iter().map(|item| item.prob.map_or(each, |prob| prob * scale)).collect();
        (probs, odd.then_some(sum))
    }
}

/// Calls `visit` for every single item of a value, ranges expanded, with its overall probability.
pub fn flatten(value: &Value, order: CloneOrder, visit: &mut dyn FnMut(Value, f64)) {
    walk(value, order, 1, 1.0, visit);
}

fn walk(value: &Value, order: CloneOrder, copies: u32, prob: f64, visit: &mut dyn FnMut(Value, f64)) {
    let mut members = |len: u64, member: &mut dyn FnMut(u64) -> Option<Value>| {
        let share = prob / len as f64 / f64::from(copies);
        for index in 0..len {
            let Some(value) = member(index) else { return };
            for _ in 0..copies {
                visit(value.clone(), share);
            }
        }
    };
    match value {
        Value::Array(array) if array.is_empty() => {}
        Value::Array(array) => {
            let (probs, _) = array.level();
            match order {
                CloneOrder::Agents => {
                    let share = prob / f64::from(array.repeat);
                    for _ in 0..array.repeat {
                        for (item, prob) in array.items.iter().zip(&probs) {
                            walk(&item.value, order, copies, share * prob, visit);
                        }
                    }
                }
                CloneOrder::Position => {
                    let copies = copies.saturating_mul(array.repeat);
                    for (item, item_prob) in array.items.iter().zip(&probs) {
                        walk(&item.value, order, copies, prob * item_prob, visit);
                    }
                }
            }
        }
        Value::AddrRange(range) => {
            members(range.len(), &mut |index| range.get(index).map(|addr| Value::Addr(Arc::new(addr))));
        }
        Value::StrRange(range) => {
            members(range.len(), &mut |index| range.get(index).map(|text| Value::Str(text.into())));
        }
        single => members(1, &mut |_| Some(single.clone())),
    }
}

/// All single items of a value with their overall probabilities.
pub fn flat(value: &Value, order: CloneOrder) -> Vec<(Value, f64)> {
    let mut all = Vec::with_capacity(value.len().min(MAX_ITEMS) as usize);
    flatten(value, order, &mut |value, prob| all.push((value, prob)));
    all
}

/// The type of all elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElemType {
    /// The array is empty.
    None,
    /// All elements have this type.
    All(Base),
    /// The elements have different types.
    Mixed,
}

impl ElemType {
    /// The type of the elements of an item: for a range, the type that it yields.
    pub fn of(value: &Value) -> Option<ElemType> {
        Some(match value {
            Value::Poison => return None,
            Value::Array(array) => return array.elem(),
            Value::AddrRange(_) | Value::Addr(_) => ElemType::All(Base::Addr),
            Value::StrRange(_) => ElemType::All(Base::Str),
            value => ElemType::All(value.ty().base),
        })
    }

    /// The common type of both.
    pub fn join(self, other: ElemType) -> ElemType {
        let ranges = |elem| matches!(elem, Base::Record(Rec::SingleRange | Rec::MultiRange) | Base::AnyRange);
        match (self, other) {
            (ElemType::None, elem) | (elem, ElemType::None) => elem,
            (ElemType::All(a), ElemType::All(b)) if a == b => self,
            (ElemType::All(Base::Addr | Base::DynName), ElemType::All(Base::Addr | Base::DynName)) => {
                ElemType::All(Base::Addr)
            }
            (ElemType::All(a), ElemType::All(b)) if ranges(a) && ranges(b) => ElemType::All(Base::AnyRange),
            _ => ElemType::Mixed,
        }
    }
}
