//! What both sides of a test must agree on: identities, seeded draws, object properties, working sets.
//!
//! Nothing here reads a clock or does I/O. Time and randomness are arguments, so the same code serves real
//! sockets, the simulation and the tests.
//!
//! * [`rng`]: seeded streams, one per purpose, and one-shot draws per object.
//! * [`distr`], [`logn`], [`table`], [`selector`]: the distributions and choices that a workload may name.
//! * [`id`]: unique ids of worlds and transactions and their *mutants*, which show that a reply is not a stored
//!   one.
//! * [`hex`]: numbers as hex digits.
//! * [`object`]: object ids, which URLs name.
//! * [`content`]: content types, and the properties of objects that follow from ids (size, cachability, times,
//!   embedded objects); [`life`], [`body`], [`coding`], [`inject`], [`files`], [`headers`] and [`abort`] have
//!   the details.
//! * [`fingerprint`]: whether both sides have the same contents.
//! * [`world`], [`popularity`]: which objects exist, and which of them a repeated request may ask for.
//! * [`request`], [`ranges`]: kinds of requests and the preferences of robots.
//! * [`groups`]: agreement of processes about phases.
//! * [`store`]: the working set that a later test continues with.
//!
//! # Decisions
//!
//! * **Both sides can make every body** ([`body`]): the server to send it, the robot to compare it byte by byte. Bodies are stretches of one random text, sent
//!   without copying.
//! * **A new object can be requested again only after the time that its first reply needs** ([`world`]). The rule looks at due times, never at replies.
//! * **Generation 1.x** ([`content`]): only the client knows the share of cachable replies and only the server knows sizes, so the client marks
//!   cachability in the object id (content types 3 and 4).
//! * **Working sets in files** ([`store`]): each loop stores its galaxies, and a later test deals them to its loops, whatever their number, so that each galaxy has
//!   one owner.

pub mod abort;
pub mod arrivals;
pub mod body;
pub mod coding;
pub mod content;
pub mod distr;
pub mod files;
pub mod fingerprint;
pub mod groups;
pub mod headers;
pub mod hex;
pub mod id;
pub mod inject;
pub mod life;
pub mod logn;
pub mod object;
pub mod popularity;
pub mod ranges;
pub mod request;
pub mod rng;
pub mod selector;
pub mod store;
pub mod table;
pub mod world;

pub use abort::AbortCoords;
pub use arrivals::{Arrivals, LoadCurve};
pub use body::Body;
pub use content::{Catalog, Content};
pub use distr::Distr;
pub use fingerprint::Fingerprint;
pub use id::{IdSource, UniqId};
pub use logn::Logn;
pub use object::{ContentKind, Oid};
pub use popularity::{PopModel, Popularity};
pub use request::{Behavior, Method, RequestKind};
pub use rng::{Draw, Random, Seed, Stream};
pub use selector::Selector;
pub use table::DistributionTable;
pub use world::{Galaxy, World, WorldFacts};
