//! The OpenMetrics endpoint of a process (docs/monitor.md, "Metrics").

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use hyper::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::http::{self, PageReply, PageRequest};
use crate::hub::Hub;
use crate::statistics::{LiveCounts, LiveState, LiveStatistics};

/// The type of an OpenMetrics page.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the metrics of a process at `/metrics`. Returns the address.
///
/// # Errors
/// If the address cannot be used.
pub fn serve(address: SocketAddr, hub: Arc<Hub>) -> io::Result<SocketAddr> {
    http::serve(TcpListener::bind(address)?, move |request: &PageRequest| match request.path.as_str() {
        "/metrics" => PageReply::page(CONTENT_TYPE, page(&hub.latest())),
        _ => PageReply::refusal(StatusCode::NOT_FOUND, "the metrics are at /metrics\n"),
    })
}

/// The page of a process with these sides.
///
/// # Panics
/// Never: writing to a string does not fail.
pub fn page(sides: &[LiveStatistics]) -> String {
    let mut registry = Registry::with_prefix("polygraph");
    registry.register_collector(Box::new(ProcessMetrics(sides.to_vec())));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

/// Labels of a sample, as names and values.
type Labels = Vec<(&'static str, String)>;

/// The metrics of all sides of a process.
#[derive(Debug)]
struct ProcessMetrics(Vec<LiveStatistics>);

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in METRICS {
            let samples: Vec<(Labels, f64)> = self.0.iter().flat_map(|side| (metric.samples)(side)).collect();
            if samples.is_empty() {
                continue;
            }
            let kind = if metric.counts { MetricType::Counter } else { MetricType::Gauge };
            let unit = metric.unit.map(unit_of);
            let mut family = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            for (labels, value) in samples {
                let sample = family.encode_family(&labels)?;
                match metric.counts {
                    true => ConstCounter::new(value).encode(sample)?,
                    false => ConstGauge::new(value).encode(sample)?,
                }
            }
        }
        Ok(())
    }
}

fn unit_of(name: &str) -> Unit {
    match name {
        "seconds" => Unit::Seconds,
        "bytes" => Unit::Bytes,
        other => Unit::Other(other.into()),
    }
}

/// A metric. Its name on the page has the prefix `polygraph_`, then the unit, and `_total` if it counts.
struct Metric {
    name: &'static str,
    help: &'static str,
    unit: Option<&'static str>,
    counts: bool,
    samples: fn(&LiveStatistics) -> Vec<(Labels, f64)>,
}

fn of_side(side: &LiveStatistics, more: &[(&'static str, &str)]) -> Labels {
    let own = [("side", side.side.name().to_owned())];
    own.into_iter().chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

/// One sample for each side.
fn plain(side: &LiveStatistics, value: f64) -> Vec<(Labels, f64)> {
    vec![(of_side(side, &[]), value)]
}

/// One sample for each client; servers do not see hits.
fn of_client(side: &LiveStatistics, value: fn(&LiveCounts) -> f64) -> Vec<(Labels, f64)> {
    match side.side {
        polygraph_stats::Side::Client => plain(side, value(&side.total)),
        polygraph_stats::Side::Server => Vec::new(),
    }
}

const fn counter(
    name: &'static str,
    help: &'static str,
    samples: fn(&LiveStatistics) -> Vec<(Labels, f64)>,
) -> Metric {
    Metric { name, help, unit: None, counts: true, samples }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    samples: fn(&LiveStatistics) -> Vec<(Labels, f64)>,
) -> Metric {
    Metric { name, help, unit: None, counts: false, samples }
}

const fn measured(metric: Metric, unit: &'static str) -> Metric {
    Metric { unit: Some(unit), ..metric }
}

/// All metrics.
const METRICS: [Metric; 23] = [
    gauge("run_details", "What the process runs; the value is 1", |side| {
        let pid = side.pid.to_string();
        let details = [
            ("host", side.host.as_str()),
            ("pid", pid.as_str()),
            ("label", side.label.as_str()),
            ("workload", side.workload.as_str()),
            ("version", side.version.as_str()),
        ];
        vec![(of_side(side, &details), 1.0)]
    }),
    gauge("state", "1 for what the process does, 0 for everything else", |side| {
        let states = [LiveState::Waiting, LiveState::Running, LiveState::Ended];
        let value = |state: LiveState| f64::from(u8::from(state == side.state));
        states.map(|state| (of_side(side, &[("state", state.name())]), value(state))).into()
    }),
    gauge("phase", "The phase of the test; the value is its number, from 0 on", |side| {
        let phase = side.phase.iter();
        let primary = |yes: bool| if yes { "yes" } else { "no" };
        phase
            .map(|phase| {
                let labels = [("phase", phase.name.as_str()), ("primary", primary(phase.primary))];
                (of_side(side, &labels), f64::from(phase.index))
            })
            .collect()
    }),
    measured(
        gauge("phase_elapsed", "Time since the phase began", |side| {
            side.phase.iter().flat_map(|phase| plain(side, phase.elapsed_s)).collect()
        }),
        "seconds",
    ),
    measured(
        gauge("phase_planned", "Planned length of the phase, if it has one", |side| {
            let planned = side.phase.as_ref().and_then(|phase| phase.duration_s);
            planned.iter().flat_map(|planned| plain(side, *planned)).collect()
        }),
        "seconds",
    ),
    measured(
        gauge("start_time", "When the run started, since 1970; absent before the start", |side| {
            let started = Some(side.start_unix_us).filter(|start| *start > 0);
            started.iter().flat_map(|start| plain(side, *start as f64 * 1e-6)).collect()
        }),
        "seconds",
    ),
    measured(
        gauge("elapsed", "Time since the start of the run", |side| plain(side, side.elapsed_s)),
        "seconds",
    ),
    gauge("planned_request_rate", "Planned requests per second, if the workload has a rate", |side| {
        side.planned_rate.iter().flat_map(|rate| plain(side, *rate)).collect()
    }),
    counter("transactions_started", "Transactions started", |side| plain(side, side.total.started)),
    counter("transactions", "Transactions that ended, by result", |side| {
        [("ok", side.total.ok), ("failed", side.total.failed)]
            .map(|(result, count)| (of_side(side, &[("result", result)]), count))
            .into()
    }),
    measured(
        counter("response_time", "Sum of the response times of successful transactions", |side| {
            plain(side, side.total.rptm_us * 1e-6)
        }),
        "seconds",
    ),
    measured(
        gauge("response_time_p95", "95th percentile of response times in the last interval", |side| {
            side.rptm_p95_us.iter().flat_map(|us| plain(side, *us as f64 * 1e-6)).collect()
        }),
        "seconds",
    ),
    counter("basic_transactions", "Basic transactions: those that count in hit ratios", |side| {
        of_client(side, |total| total.basic)
    }),
    counter("hits", "Hits", |side| of_client(side, |total| total.hits)),
    counter("offered_hits", "Hits that a perfect cache would have had", |side| {
        of_client(side, |total| total.offered_hits)
    }),
    measured(
        counter("reply", "Bytes of the replies of successful transactions", |side| {
            plain(side, side.total.reply_bytes)
        }),
        "bytes",
    ),
    counter("errors", "The most frequent errors by class; effect: fails or noted", |side| {
        let effect = |fails: bool| if fails { "fails" } else { "noted" };
        let errors = side.errors.iter();
        errors
            .map(|error| {
                let labels = [
                    ("class", error.number.as_str()),
                    ("text", error.text.as_str()),
                    ("effect", effect(error.fails)),
                ];
                (of_side(side, &labels), error.count as f64)
            })
            .collect()
    }),
    gauge("open_connections", "Open connections", |side| plain(side, side.open_connections as f64)),
    gauge("concurrent_transactions", "Concurrent transactions", |side| plain(side, side.transactions as f64)),
    gauge("agents", "Live robots or servers", |side| plain(side, side.agents as f64)),
    measured(gauge("resident_memory", "Resident memory", |side| plain(side, side.rss_bytes as f64)), "bytes"),
    measured(
        counter("cpu", "Processor time of event loops", |side| plain(side, side.total.cpu_s)),
        "seconds",
    ),
    gauge("verdict_so_far", "The verdict that the run would get if it ended now; the value is 1", |side| {
        let verdict = side.verdict.iter();
        verdict.map(|verdict| (of_side(side, &[("verdict", verdict.word.as_str())]), 1.0)).collect()
    }),
];
