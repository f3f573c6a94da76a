//! What an origin server is told.

use polygraph_link::Nanos;
use polygraph_traffic::{Distr, Properties, Seed, UniqId};
use serde::{Deserialize, Serialize};

/// An origin server, as all its loops see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Number of this loop, so that loops draw different think times.
    pub index: u64,
    /// Object properties, equal to those that the robots compute.
    pub properties: Properties,
    /// Delay in seconds before the first byte of a reply, drawn for each request.
    pub think: Option<Distr>,
    /// Version of replies: 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub http_minor: u8,
    /// Requests per connection; draws of the distribution are truncated, to at least 1.
    pub requests_per_connection: Distr,
    /// A connection on which nothing arrives or leaves for so many nanoseconds is closed.
    pub idle_timeout: Option<Nanos>,
    /// Seed of the server's own choices.
    pub seed: Seed,
    /// Own address as `host:port`, in every reply.
    pub address: String,
    /// Id of the process, in every reply.
    pub group: UniqId,
}
