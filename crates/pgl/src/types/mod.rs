//! Types of values, and the table of record types with their fields.

#[macro_use]
mod table;
mod base;
mod rec;
mod records;
mod stat;

pub use base::{BASIC, Base, Ty, declarable, type_names};
pub use rec::Rec;
pub use records::field::{
    AgentAddrs, Bandwidth, ContentId, Converter, CoreLists, Distribution, DrawnType, FieldType, Flat,
    HeaderChoice, HeaderRule, Rate, ScriptId, Selector, Size, SslWrapId, Time, Tree, VisibleName, Weighting,
};
pub(crate) use records::field::{MAX_WORDS, ranges};
pub use records::*;
pub use stat::{StatMember, stat_completions, stat_member};

/// The default port of URLs.
pub const HTTP_PORT: u16 = 80;

/// Fields of addresses.
pub const ADDR_FIELDS: &[(&str, Base, &str)] = &[
    ("if_name", Base::Str, "The network interface, for the creation of aliases."),
    ("host", Base::Str, "IP address or domain name."),
    ("port", Base::Int, "Port number."),
    ("subnet", Base::Int, "Prefix length of the subnet."),
    ("new_prob", Base::Float, "For a DynamicName: the share of new objects that get a new host name."),
];

/// The field of a type with this name: its index in the table and its type.
pub(crate) fn field_of(ty: Ty, name: &str) -> Option<(u16, Ty)> {
    if ty.array {
        return None;
    }
    match ty.base {
        Base::Record(rec) => {
            let index = rec.def().index(name)?;
            Some((index as u16, rec.def().fields[index].ty))
        }
        Base::Addr | Base::DynName => {
            let fields = ADDR_FIELDS;
            let count = if ty.base == Base::Addr { 4 } else { fields.len() };
            let index = fields[..count].iter().position(|(known, ..)| *known == name)?;
            Some((index as u16, Ty::one(fields[index].1)))
        }
        _ => None,
    }
}
