//! The names of the record types.

macro_rules! rec {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $(with $base_field:ident: $base:ident)? { $($fields:tt)* }
    )*) => {
        /// The record types.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rec { $( $(#[doc = $doc])* $name, )* }

        impl Rec {
            /// All record types, also those that exist only as fields.
            pub(crate) const EVERY: &'static [Rec] = &[$(Rec::$name),*];

            /// The name of the type.
            pub fn name(self) -> &'static str {
                match self { $(Rec::$name => stringify!($name),)* }
            }
        }
    };
}

record_table! { rec }

impl Rec {
    /// The declarable record types, in the order of the table.
    pub fn declarable() -> impl Iterator<Item = Rec> {
        Rec::EVERY.iter().copied().filter(|rec| rec.is_declarable())
    }

    /// True if variables of this type can be declared.
    pub fn is_declarable(self) -> bool {
        self != Rec::Agent
    }
}
