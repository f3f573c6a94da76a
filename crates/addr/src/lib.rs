//! Addresses: ranges, address schemes and the arithmetic of shares per host.
//!
//! Everything here is a pure function of its arguments. Text becomes an [`AddrRange`] ([`AddrRange::parse`]), a range
//! yields its [`Addr`] members lazily ([`AddrRange::iter`]), and a list of addresses becomes the shortest list of ranges
//! with the same members in the same order ([`compact`]). A [`BenchSpec`] and a [`AddrScheme`] give an [`Allocation`]:
//! the address of each agent, and the host that runs it.

mod address;
mod arith;
mod bench;
mod error;
mod ips;
mod map;
mod merge;
mod names;
mod number;
mod parse;
mod placement;
mod range;
mod scheme;
mod text;
mod zone;

pub use address::{Addr, Host};
pub use arith::{ddiv, sdiv, xceil};
pub use bench::{Allocation, BenchRole, BenchSpec, MAX_AGENTS, SchemeError, SchemeWarning, SideSpec};
pub use error::{ParseError, ParseProblem};
pub use ips::{IdError, IpTable, WebAxeLoads};
pub use map::{PairError, pair};
pub use merge::{compact, merge_all};
pub use names::{NameError, NameTemplate};
pub use number::NumberRange;
pub use placement::{AgentGroup, Placement, PlacementError, PlacementScope, SidePlan};
pub use range::{AddrRange, HostRange, Iter, TooMany, count, expand, join};
pub use scheme::AddrScheme;
pub use text::{TextPart, TextRange};
pub use zone::{ZoneError, ZoneFiles, zone_files};
