//! Values of programs. Copying a value is cheap: large values are shared until they are changed.

mod array;
mod distr;
mod record;
mod regex;
mod show;
mod stats;

use std::sync::Arc;

use polygraph_addr::{Addr, AddrRange, TextRange};

pub use array::{Array, ArrayElement, ArrayLimit, CloneOrder, ElemType, MAX_DEPTH, MAX_ITEMS, flat, flatten};
pub use distr::{Distr, Domain, PopDistr, Qualifier, Shape, TableBin};
pub use record::{Record, Slot};
pub use regex::{MatchScope, Matcher, Pattern, Re};
pub use show::{exact, show, show_size, show_time, significant};
pub use stats::{Statistics, Stats};

use crate::types::{Base, Ty};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Undefined: never assigned, or set to `undef()`.
    Undef,
    /// The result of an error; it causes no further diagnostics.
    Poison,
    /// A truth value.
    Bool(bool),
    /// A 32-bit integer.
    Int(i32),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// A time in microseconds.
    Time(i64),
    /// A size in bytes.
    Size(i64),
    /// Events per second.
    Rate(f64),
    /// Bytes per second.
    Bwidth(f64),
    /// One address.
    Addr(Arc<Addr>),
    /// A dynamic name: its mask (with a leading dot) and the probability of a new host name.
    DynName(Arc<Addr>, f64),
    /// A range of addresses.
    AddrRange(Arc<AddrRange>),
    /// A range of strings.
    StrRange(Arc<TextRange>),
    /// The result of `uniqId()`.
    UniqId(u64),
    /// A regular expression, or several combined.
    Re(Arc<Re>),
    /// A popularity distribution.
    PopDistr(PopDistr),
    /// A distribution of numbers.
    Distr(Arc<Distr>),
    /// `lmt`, `now` or `nmt` alone.
    Qualifier(Qualifier),
    /// An array or a clone.
    Array(Arc<Array>),
    /// A record.
    Record(Arc<Record>),
    /// The code of a phase script, by its number in the program.
    Code(u32),
    /// Statistics of a running test.
    Stats(Stats),
    /// An undefined statistic of this type, such as the mean of no values, and results computed from it. Every
    /// comparison with it is false.
    Unknown(Base),
}

impl Value {
    /// A string.
    pub fn str(text: &str) -> Self {
        Value::Str(text.into())
    }

    /// The type of this value.
    pub fn ty(&self) -> Ty {
        let base = match self {
            Value::Undef => Base::Undef,
            Value::Poison => Base::Unknown,
            Value::Bool(_) => Base::Bool,
            Value::Int(_) => Base::Int,
            Value::Float(_) => Base::Float,
            Value::Str(_) => Base::Str,
            Value::Time(_) => Base::Time,
            Value::Size(_) => Base::Size,
            Value::Rate(_) => Base::Rate,
            Value::Bwidth(_) => Base::Bwidth,
            Value::Addr(_) => Base::Addr,
            Value::DynName(..) => Base::DynName,
            Value::AddrRange(_) => Base::AddrRange,
            Value::StrRange(_) => Base::StrRange,
            Value::UniqId(_) => Base::UniqId,
            Value::Re(_) => Base::Re,
            Value::PopDistr(_) => Base::PopDistr,
            Value::Distr(distr) => Base::Distr(distr.domain),
            Value::Qualifier(_) => Base::Qualifier,
            Value::Array(_) => return Ty::array_of(Base::Unknown),
            Value::Record(record) => Base::Record(record.rec),
            Value::Code(_) => Base::Code,
            Value::Stats(_) => Base::Record(crate::types::Rec::StatSample),
            Value::Unknown(base) => *base,
        };
        Ty::one(base)
    }

    /// Number of items of an array or range, nested ones included; 1 for a single value.
    pub fn len(&self) -> u64 {
        match self {
            Value::Array(array) => array.len(),
            Value::AddrRange(range) => range.len(),
            Value::StrRange(range) => range.len(),
            _ => 1,
        }
    }

    /// True for an array without items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True for values with items: arrays, clones and ranges.
    pub fn is_container(&self) -> bool {
        matches!(self, Value::Array(_) | Value::AddrRange(_) | Value::StrRange(_))
    }

    /// The nesting depth of arrays and records in this value.
    pub fn depth(&self) -> u32 {
        match self {
            Value::Array(array) => array.depth(),
            Value::Record(record) => record.depth(),
            _ => 0,
        }
    }

    /// The number of parts of this value; shared parts are counted each time.
    pub fn weight(&self) -> u64 {
        match self {
            Value::Array(array) => array.weight(),
            Value::Record(record) => record.weight(),
            _ => 1,
        }
    }

    /// The number in an int or float.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(f64::from(*value)),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }
}
