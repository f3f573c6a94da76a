//! What the table of record types becomes: the structs of the workload, and the descriptions of fields for the
//! checks of the language, the hover texts of the language server and the reference page.

pub(crate) mod field;

use std::sync::{Arc, LazyLock, OnceLock};

use polygraph_addr::Addr;

use crate::types::records::field::{
    AgentAddrs, Bandwidth, ContentId, Converter, CoreLists, Distribution, FieldType, Flat, HeaderRule, Rate,
    ScriptId, Selector, Size, SslWrapId, Time, Tree, VisibleName,
};
use crate::types::{Base, Rec, Ty};
use crate::value::{Array, Distr, Domain, Record, Shape, Slot, Value};

/// A field of a record type.
#[derive(Debug, Clone, Copy)]
pub struct FieldDef {
    /// Name of the field.
    pub name: &'static str,
    /// Type of the field.
    pub ty: Ty,
    /// Its value in a freshly declared record.
    pub default: Default,
    /// The meaning of the field, with units.
    pub doc: &'static str,
}

/// A record type.
#[derive(Debug)]
pub struct RecordDef {
    /// Name of the type.
    pub name: &'static str,
    /// What the type describes.
    pub doc: &'static str,
    /// The fields in order.
    pub fields: Vec<FieldDef>,
}

impl RecordDef {
    /// The index of a field in the table.
    pub fn index(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|def| def.name == field)
    }
}

/// The value of a field in a freshly declared record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// The default of the type: an empty record for records, else undefined.
    ByType,
    /// Undefined, even for a record.
    Undef,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i32),
    /// A float.
    Float(f64),
    /// A string.
    Str(&'static str),
    /// An array of strings.
    Strs(&'static [&'static str]),
    /// An array of sizes in bytes.
    Sizes(&'static [i64]),
    /// A constant distribution of floats.
    ConstFloat(f64),
    /// A constant distribution of integers.
    ConstInt(i32),
}

macro_rules! records {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $(with $base_field:ident: $base:ident)? {
            $( $(#[doc = $field_doc:literal])* $field:ident: $ty:ty $(= $default:expr)?, )*
        }
    )*) => {
        static TABLE: LazyLock<Vec<RecordDef>> = LazyLock::new(|| {
            let mut table: Vec<RecordDef> = Vec::new();
            $({
                let own: &[FieldDef] = &[$( FieldDef {
                    name: stringify!($field).trim_end_matches("_"),
                    ty: <$ty as FieldType>::TY,
                    default: records!(@default $($default)?),
                    doc: concat!($($field_doc),*),
                } ),*];
                let parts: &[&[FieldDef]] = &[$( &table[Rec::$base as usize].fields, )? own];
                let fields = parts.concat();
                table.push(RecordDef { name: stringify!($name), doc: concat!($($doc),*), fields });
            })*
            table
        });

        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, PartialEq)]
            pub struct $name {
                $(
                    /// The common fields of agents.
                    pub $base_field: $base,
                )?
                $( $(#[doc = $field_doc])* pub $field: $ty, )*
            }

            impl $name {
                /// Reads the fields in the order of the table.
                #[allow(unused_variables, reason = "some types have no fields")]
                pub(crate) fn read<'a>(slots: &mut impl Iterator<Item = &'a Slot>, cx: &mut Converter) -> Self {
                    Self {
                        $( $base_field: $base::read(slots, cx), )?
                        $( $field: pick::<$ty>(slots.next(), records!(@default $($default)?), cx), )*
                    }
                }

                /// Reads a record of this type.
                pub(crate) fn from_record(record: &Record, cx: &mut Converter) -> Self {
                    Self::read(&mut record.slots.iter(), cx)
                }
            }

            impl std::default::Default for $name {
                /// The value of a record that was declared and not changed.
                fn default() -> Self {
                    Self::from_record(&fresh(Rec::$name), &mut Converter::new(u64::MAX))
                }
            }

            impl FieldType for Option<Box<$name>> {
                const TY: Ty = Ty::one(Base::Record(Rec::$name));
                const OPTIONAL: bool = true;
                fn from_value(value: &Value, cx: &mut Converter) -> Self {
                    match value {
                        Value::Record(record) if !record.is_untouched() => {
                            Some(Box::new($name::from_record(record, cx)))
                        }
                        _ => None,
                    }
                }
            }
        )*
    };
    (@default) => { Default::ByType };
    (@default $default:expr) => { $default };
}

/// Reads a field. A required value that was set to `undef()` gets the default of the table.
fn pick<T: FieldType>(slot: Option<&Slot>, default: Default, cx: &mut Converter) -> T {
    match slot {
        Some(slot) if T::OPTIONAL || slot.value != Value::Undef => T::from_value(&slot.value, cx),
        _ => T::from_value(&default.value(T::TY), cx),
    }
}

impl Default {
    /// The initial value of a field of type `ty`.
    pub fn value(self, ty: Ty) -> Value {
        let constant = |domain, value| {
            Value::Distr(Arc::new(Distr { domain, shape: Shape::Const(value), qualifier: None }))
        };
        let array = |values: Vec<Value>| {
            Array::of(values).map_or(Value::Undef, |array| Value::Array(Arc::new(array)))
        };
        match self {
            Default::ByType => match ty.base {
                Base::Record(rec) if !ty.array => Value::Record(fresh(rec)),
                _ => Value::Undef,
            },
            Default::Undef => Value::Undef,
            Default::Bool(value) => Value::Bool(value),
            Default::Int(value) => Value::Int(value),
            Default::Float(value) => Value::Float(value),
            Default::Str(value) => Value::str(value),
            Default::Strs(values) => array(values.iter().map(|text| Value::str(text)).collect()),
            Default::Sizes(values) => array(values.iter().map(|bytes| Value::Size(*bytes)).collect()),
            Default::ConstFloat(value) => constant(Domain::Float, value),
            Default::ConstInt(value) => constant(Domain::Int, f64::from(value)),
        }
    }
}

/// A record as just declared. All fresh records of a type share their memory.
pub fn fresh(rec: Rec) -> Arc<Record> {
    static FRESH: LazyLock<Vec<OnceLock<Arc<Record>>>> =
        LazyLock::new(|| Rec::EVERY.iter().map(|_| OnceLock::new()).collect());
    let make = || {
        let slot = |def: &FieldDef| Slot { value: def.default.value(def.ty), at: None };
        Arc::new(Record { rec, slots: rec.def().fields.iter().map(slot).collect() })
    };
    FRESH[rec as usize].get_or_init(make).clone()
}

impl Rec {
    /// The description of the type.
    pub fn def(self) -> &'static RecordDef {
        &TABLE[self as usize]
    }
}

impl Record {
    /// The slot of a field.
    pub fn slot(&self, field: &str) -> Option<&Slot> {
        self.slots.get(self.rec.def().index(field)?)
    }
}

record_table! { records }

/// The ranges of a robot's range request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestRange {
    /// One range.
    Single(SingleRange),
    /// Several ranges.
    Multi(MultiRange),
}
