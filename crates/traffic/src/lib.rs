//! What both sides of a test must agree on: identities, seeded draws, object properties, working sets.
//!
//! Nothing here reads a clock or does I/O. Time and randomness are arguments, so the same code serves
//! real sockets, the simulation and the tests.
//!
//! * [`rng`]: seeded streams, one per purpose, and one-shot draws per object.
//! * [`distr`]: the distributions a workload may name.
//! * [`id`]: unique ids of worlds and transactions and their *mutants*, the proof of a first-hand reply.
//! * [`object`]: object ids and the properties that follow from them (size, cachability, body).
//! * [`world`]: which objects exist, and which of them a repeated request may ask for.
//! * [`arrivals`]: when the next request is due.

pub mod arrivals;
pub mod distr;
pub mod id;
pub mod object;
pub mod rng;
pub mod world;

pub use arrivals::{Arrivals, LoadCurve};
pub use distr::Distr;
pub use id::{IdSource, UniqId};
pub use object::{Kind, Oid, Properties};
pub use rng::{Draw, Random, Seed, Stream};
pub use world::{Choice, Popularity, World};
