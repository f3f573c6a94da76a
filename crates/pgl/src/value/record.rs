//! Records: one slot for each field of the type.

use crate::source::Span;
use crate::types::Rec;
use crate::value::Value;

/// A field of a record: its value, and the position of its assignment.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The value, possibly undefined.
    pub value: Value,
    /// The position of the assignment; `None` for a default.
    pub at: Option<Span>,
}

/// A record. Equality compares values only, not the positions of assignments.
#[derive(Debug, Clone)]
pub struct Record {
    /// The type.
    pub rec: Rec,
    /// The fields in the order of the type's table.
    pub slots: Vec<Slot>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.slots.iter().zip(&other.slots);
        self.rec == other.rec && pairs.all(|(a, b)| a.value == b.value)
    }
}

/// The position of a field's assignment, or else that of the first of its parts.
fn assigned(slot: &Slot) -> Option<Span> {
    match &slot.value {
        Value::Record(part) => slot.at.or_else(|| part.slots.iter().find_map(assigned)),
        _ => slot.at,
    }
}

impl Record {
    /// The nesting depth of arrays and records.
    pub fn depth(&self) -> u32 {
        1 + self.slots.iter().map(|slot| slot.value.depth()).max().unwrap_or(0)
    }

    /// The number of parts.
    pub fn weight(&self) -> u64 {
        self.slots.iter().fold(1, |n: u64, slot| n.saturating_add(slot.value.weight()))
    }

    /// The position of a field's assignment, or else that of the record around it, or of the first of its
    /// parts. `path` has a dot before each nested field.
    pub fn at(&self, path: &str) -> Option<Span> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let slot = self.slot(first)?;
        match &slot.value {
            Value::Record(part) => part.at(rest).or_else(|| assigned(slot)),
            _ => slot.at,
        }
    }

    /// True if a diagnostic was reported about the value of a field, or of a field above or below it, so that
    /// no more can be concluded from it. `path` has a dot before each nested field.
    pub fn is_bad(&self, path: &str) -> bool {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        match self.slot(first).map(|slot| &slot.value) {
            Some(Value::Poison) => true,
            Some(Value::Record(nested)) if rest.is_empty() => nested.has_bad(),
            Some(Value::Record(nested)) => nested.is_bad(rest),
            _ => false,
        }
    }

    /// True if a diagnostic was reported about the value of any field.
    pub fn has_bad(&self) -> bool {
        self.slots.iter().any(|slot| match &slot.value {
            Value::Poison => true,
            Value::Record(nested) => nested.has_bad(),
            _ => false,
        })
    }

    /// True if no field of the record, nested ones included, was assigned.
    pub fn is_untouched(&self) -> bool {
        self.slots.iter().all(|slot| match &slot.value {
            Value::Record(nested) => nested.is_untouched(),
            Value::Undef => true,
            _ => slot.at.is_none(),
        })
    }
}
