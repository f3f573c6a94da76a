//! DNS: the resolver of robots, and a name server for the names of a workload.
//!
//! A message passes through the modules in this order: [`query`] builds a question, [`reply`] answers it from the
//! tables of [`zone`], and [`query`] reads the answer. These modules do no I/O and accept any bytes. [`resolver`]
//! queries servers over the [`Link`](polygraph_link::Link) of an event loop, with an [`address_cache`] that robots
//! share, and [`name_server`] runs a name server on its own thread, over UDP and TCP:
//!
//! ```
//! use polygraph_dns::{NameServer, NameServerConfig, Zone};
//!
//! let mut zone = Zone::default();
//! zone.add_zone("bench.tst")?;
//! zone.add("w1.bench.tst", &["10.16.129.1".parse()?])?;
//! zone.add("*.dyn.bench.tst", &["10.16.129.2".parse()?, "10.16.129.3".parse()?])?;
//! let mut server = NameServer::start(NameServerConfig::local(zone))?;
//! println!("names are served at {}", server.local_addrs()[0]);
//! assert_eq!(server.snapshot().queries(), 0);
//! server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not supported: recursion, DNSSEC, zone transfers, DNS over TLS or HTTPS. The resolver uses UDP only.

pub mod address_cache;
pub mod error;
pub mod name;
pub mod name_server;
pub mod query;
pub mod reply;
pub mod resolver;
pub mod resolver_stats;
pub mod zone;

mod counters;

pub use address_cache::{AddressCache, AddressCaches, Addresses};
pub use counters::NameServerCounts;
pub use error::{Attempt, AttemptFailure, DnsError, LookupError};
pub use name::{BadName, DomainName};
pub use name_server::{NameServer, NameServerConfig};
pub use query::{Query, QueryType};
pub use resolver::{AnswerSource, Resolved, Resolver, ResolverConfig};
pub use resolver_stats::ResolverStats;
pub use zone::{MapError, Zone};

/// The default port of name servers (RFC 1035, section 4.2).
pub const PORT: u16 = 53;
