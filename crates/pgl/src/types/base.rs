//! The types of the language, and their names.

use std::fmt;

use crate::types::rec::Rec;
use crate::value::Domain;

/// A type without its array brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// An unknown type, because a diagnostic was reported.
    Unknown,
    /// The type of `undef()`.
    Undef,
    /// The type `bool`.
    Bool,
    /// The type `int`.
    Int,
    /// The type `float`.
    Float,
    /// The type `string`.
    Str,
    /// The type `time`.
    Time,
    /// The type `size`.
    Size,
    /// The type `rate`.
    Rate,
    /// The type `bwidth`.
    Bwidth,
    /// The type `addr`.
    Addr,
    /// The type `DynamicName`.
    DynName,
    /// The type `uniq_id`.
    UniqId,
    /// The type `re`.
    Re,
    /// The type `PopDistr`.
    PopDistr,
    /// `int_distr` and the like
    Distr(Domain),
    /// A record type.
    Record(Rec),
    /// SingleRange or MultiRange.
    AnyRange,
    /// The code of a phase script.
    Code,
    /// `lmt`, `now`, `nmt`
    Qualifier,
    /// A quoted range of addresses.
    AddrRange,
    /// A string with number positions.
    StrRange,
}

/// A type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ty {
    /// The type, or the type of the elements.
    pub base: Base,
    /// True for arrays. An array of [`Base::Unknown`] has elements of any type.
    pub array: bool,
}

impl Ty {
    /// The unknown type.
    pub const UNKNOWN: Ty = Ty::one(Base::Unknown);

    /// A single value.
    pub const fn one(base: Base) -> Self {
        Ty { base, array: false }
    }

    /// An array.
    pub const fn array_of(base: Base) -> Self {
        Ty { base, array: true }
    }

    /// True if the type is unknown because a diagnostic was reported.
    pub fn is_unknown(self) -> bool {
        self == Self::UNKNOWN
    }
}

/// The declarable basic types with a sentence each.
pub const BASIC: &[(&str, Base, &str)] = &[
    ("bool", Base::Bool, "A truth value: yes, true, on; no, false, off."),
    ("int", Base::Int, "A 32-bit integer."),
    ("float", Base::Float, "A number; percents are floats: 55% is 0.55."),
    ("time", Base::Time, "A duration or a point in time, exact to a microsecond: 1.5sec, '2001/01/01'."),
    ("size", Base::Size, "A number of bytes: 13KB, 1GB. Kb, Mb, Gb count bits."),
    ("rate", Base::Rate, "Events per time: 10/sec."),
    ("bwidth", Base::Bwidth, "Bytes per time: 55Kb/sec."),
    (
        "addr",
        Base::Addr,
        "An address `[ifname::]host[:port][/subnet]` with the fields if_name, host, port and subnet.",
    ),
    ("string", Base::Str, "Text. An unescaped `[n-m]` makes it a range of strings."),
    ("uniq_id", Base::UniqId, "A unique identifier, made by uniqId()."),
    ("re", Base::Re, "A regular expression: `url_host =~/foo.*bar/i`; !, && and || combine them."),
    ("PopDistr", Base::PopDistr, "A popularity distribution, made by popUnif() or popZipf()."),
    (
        "DynamicName",
        Base::DynName,
        "A name that stands for ever more host names, made by dynamicName() or dynamize().",
    ),
];

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Base::Unknown => "?",
            Base::Undef => "undef()",
            Base::Distr(domain) => return write!(f, "{}_distr", domain.name()),
            Base::Record(rec) => rec.name(),
            Base::AnyRange => "Range",
            Base::Code => "code",
            Base::Qualifier => "qualifier",
            Base::AddrRange => "address range",
            Base::StrRange => "string range",
            base => BASIC.iter().find(|(_, known, _)| known == base).map_or("?", |(name, ..)| name),
        };
        f.write_str(name)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.base, self.array) {
            (Base::Unknown, true) => f.write_str("array"),
            (base, true) => write!(f, "{base}[]"),
            (base, false) => write!(f, "{base}"),
        }
    }
}

/// The declarable type with this name (without brackets).
pub fn declarable(name: &str) -> Option<Base> {
    if let Some((_, base, _)) = BASIC.iter().find(|(known, ..)| *known == name) {
        return Some(*base);
    }
    if let Some(of) = name.strip_suffix("_distr") {
        return match of {
            "int" => Some(Base::Distr(Domain::Int)),
            "float" => Some(Base::Distr(Domain::Float)),
            "time" => Some(Base::Distr(Domain::Time)),
            "size" => Some(Base::Distr(Domain::Size)),
            _ => None,
        };
    }
    let rec = Rec::declarable().find(|rec| rec.name() == name)?;
    Some(Base::Record(rec))
}

/// The names of all declarable types.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    let distrs = ["int_distr", "float_distr", "time_distr", "size_distr"];
    BASIC.iter().map(|(name, ..)| *name).chain(distrs).chain(Rec::declarable().map(Rec::name))
}
