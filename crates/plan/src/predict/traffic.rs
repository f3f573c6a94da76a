//! Rates, sizes and hit ratios.

use polygraph_pgl::Workload;
use polygraph_pgl::types::{ContentId, Robot};
use serde::Serialize;

/// What is requested: each content type's share of all requests, embedded ones included.
#[derive(Debug, Clone, Serialize)]
pub struct ContentMix {
    /// The types that are requested at all.
    pub types: Vec<TypeShare>,
    /// Mean size of a reply body in bytes, as far as sizes are known.
    pub mean_bytes: Option<f64>,
    /// Share of cachable replies.
    pub cachable: f64,
    /// Share of bytes in cachable replies.
    pub cachable_bytes: f64,
}

/// A content type in the mix.
#[derive(Debug, Clone, Serialize)]
pub struct TypeShare {
    /// Its label.
    pub kind: String,
    /// Its share of requests (0..1).
    pub share: f64,
    /// Its mean size in bytes.
    pub mean_bytes: Option<f64>,
    /// Its cachable share (0..1).
    pub cachable: f64,
}

/// What is offered at the peak of the load.
#[derive(Debug, Clone, Serialize)]
pub struct OfferedLoad {
    /// Requests per second of all robots; `None` if some robots go as fast as replies let them.
    pub req_rate: Option<f64>,
    /// Bits per second of reply bodies.
    pub reply_bits_per_sec: Option<f64>,
    /// Upper bound of the document hit ratio (0..1): that of an ideal cache once there are objects to request
    /// again.
    pub hit_ratio: f64,
    /// Upper bound of the byte hit ratio (0..1), without a preference for small objects.
    pub byte_hit_ratio: f64,
    /// Upper bound of the mean number of requests per client connection; `None` if unknown. Connections that
    /// are idle for too long, or that are open at the end, have fewer.
    pub requests_per_conn: Option<f64>,
    /// Lower bound of the connections that clients open per second.
    pub new_conns_per_sec: f64,
    /// The largest number of connections that robots may have open; `None` without a limit.
    pub max_conns: Option<f64>,
    /// Concurrent transactions at the peak, from think times alone; `None` if servers do not think.
    pub busy: Option<f64>,
}

/// The number of levels to which embedding is followed.
const EMBEDDING_DEPTH: usize = 4;

/// Shares of content types in all requests.
pub fn mix(workload: &Workload) -> ContentMix {
    let mut weights = vec![0.0; workload.contents.len()];
    let agents: f64 = workload.servers.iter().map(|server| server.agent.addresses.0.len() as f64).sum();
    let embed_recur = mean_over(workload, |robot| robot.embed_recur);
    for server in &workload.servers {
        let part = server.agent.addresses.0.len() as f64 / agents.max(1.0);
        for (content, share) in direct(server) {
            add(workload, &mut weights, content, part * share, embed_recur, EMBEDDING_DEPTH);
        }
    }
    let total: f64 = weights.iter().sum();
    let mut types = Vec::new();
    for (content, weight) in workload.contents.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0) {
        types.push(TypeShare {
            kind: content.kind.clone().unwrap_or_default(),
            share: weight / total,
            mean_bytes: content.size.as_ref().and_then(|size| size.mean()),
            cachable: content.cachable,
        });
    }
    let sized = types.iter().all(|share| share.mean_bytes.is_some());
    // The sum of no floats is a negative zero.
    let sum = |of: &dyn Fn(&TypeShare) -> f64| types.iter().fold(0.0, |sum, t| sum + t.share * of(t));
    let bytes = sum(&|t| t.mean_bytes.unwrap_or(0.0));
    let cachable = sum(&|t| t.cachable);
    let cachable_bytes =
        if bytes > 0.0 { sum(&|t| t.cachable * t.mean_bytes.unwrap_or(0.0)) / bytes } else { 0.0 };
    ContentMix { mean_bytes: (sized && !types.is_empty()).then_some(bytes), cachable, cachable_bytes, types }
}

/// Shares of the types that a server offers as top-level objects: those of direct_access, in the proportions of
/// contents unless they have their own.
pub fn direct(server: &polygraph_pgl::types::Server) -> Vec<(ContentId, f64)> {
    let (direct, contents) = (&server.direct_access, &server.contents);
    if direct.is_empty() {
        return contents.items.clone();
    }
    if direct.weighted {
        return direct.items.clone();
    }
    let planned = |content: &ContentId| {
        contents.items.iter().find(|(known, _)| known == content).map_or(0.0, |(_, share)| *share)
    };
    let total: f64 = direct.values().map(planned).sum();
    direct.values().map(|content| (*content, planned(content) / total.max(f64::MIN_POSITIVE))).collect()
}

fn add(
    workload: &Workload,
    weights: &mut [f64],
    content: ContentId,
    weight: f64,
    embed_recur: f64,
    depth: usize,
) {
    let Some(slot) = weights.get_mut(content.0 as usize) else { return };
    *slot += weight;
    let definition = &workload.contents[content.0 as usize];
    let count = definition.embedded_obj_cnt.as_ref().and_then(|distr| distr.mean()).unwrap_or(0.0);
    if depth == 0 || count <= 0.0 || embed_recur <= 0.0 {
        return;
    }
    for (embedded, share) in &definition.may_contain.items {
        add(workload, weights, *embedded, weight * count * embed_recur * share, embed_recur, depth - 1);
    }
}

/// The mean of a setting over all robots.
pub(super) fn mean_over(workload: &Workload, of: impl Fn(&Robot) -> f64) -> f64 {
    let count = workload.robot_count() as f64;
    let sum: f64 = workload.robots.iter().map(|robot| of(robot) * robot.agent.addresses.0.len() as f64).sum();
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The rate of one robot; `None` for best effort.
fn robot_rate(robot: &Robot) -> Option<f64> {
    match (&robot.req_rate, &robot.req_inter_arrival) {
        (Some(rate), _) => Some(rate.0),
        (None, Some(gap)) => gap.mean().filter(|gap| *gap > 0.0).map(|gap| 1.0 / gap),
        (None, None) => None,
    }
}

/// What is offered at the peak.
pub fn load(workload: &Workload, mix: &ContentMix) -> OfferedLoad {
    let count = |robot: &Robot| robot.agent.addresses.0.len() as f64;
    let rates: Option<Vec<f64>> =
        workload.robots.iter().map(|robot| robot_rate(robot).map(|rate| rate * count(robot))).collect();
    let req_rate = rates.map(|rates| rates.iter().sum::<f64>()).filter(|_| !workload.robots.is_empty());
    let recurrence = mean_over(workload, |robot| robot.recurrence);
    let uses: Vec<Option<f64>> = workload
        .robots
        .iter()
        .map(|robot| match &robot.agent.pconn_use_lmt {
            None => Some(1.0),
            Some(distr) => distr.mean().map(|mean| mean.max(1.0)),
        })
        .collect();
    let requests_per_conn = (!uses.is_empty())
        .then(|| uses.iter().copied().sum::<Option<f64>>().map(|sum| sum / uses.len() as f64))
        .flatten();
    let limits: Option<Vec<f64>> = workload
        .robots
        .iter()
        .map(|robot| robot.open_conn_lmt.map(|limit| f64::from(limit) * count(robot)))
        .collect();
    let think =
        workload.servers.iter().filter_map(|server| server.agent.xact_think.as_ref()?.mean()).sum::<f64>()
            / workload.servers.len().max(1) as f64;
    let hit_ratio = recurrence * mix.cachable;
    OfferedLoad {
        req_rate,
        reply_bits_per_sec: req_rate.zip(mix.mean_bytes).map(|(rate, bytes)| rate * bytes * 8.0),
        hit_ratio,
        byte_hit_ratio: recurrence * mix.cachable_bytes,
        requests_per_conn,
        new_conns_per_sec: req_rate.unwrap_or(0.0) / requests_per_conn.unwrap_or(1.0),
        max_conns: limits.map(|limits| limits.iter().fold(0.0, |sum, limit| sum + limit)),
        // Hits do not wait for the server.
        busy: req_rate.filter(|_| think > 0.0).map(|rate| rate * think * (1.0 - hit_ratio)),
    }
}
