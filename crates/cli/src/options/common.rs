//! Options that both sides share.

use std::sync::OnceLock;

use clap::{ArgAction, Args};
use polygraph_engine::Engine;
use polygraph_multiplex::Http2Settings;
use polygraph_plan::{Goal, values};
use polygraph_runner::RunSettings;
use polygraph_stats::HttpVersion;
use polygraph_traffic::Distr;

use super::dump::DumpOptions;
use super::values::{Optional, counts, cycle, engine, h2_window, http_version, patience, whole, yes_no};

/// Options that both sides share.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Run")]
pub struct CommonOptions {
    /// When to stop: a time, a number of transactions, or transactions:time:errors, for example 1hr, 5000 or -1:1hr:0.30
    #[arg(long, value_name = "GOAL", allow_hyphen_values = true, value_parser = values::goal, conflicts_with = "config")]
    pub goal: Option<Goal>,
    /// Requests per connection: a number, or a distribution like zipf:64
    #[arg(long, value_name = "DISTR", default_value = "1", value_parser = counts, conflicts_with = "config")]
    pub pconn_use_lmt: Distr,
    /// HTTP version of robots. Without TLS, 2 needs a peer that expects HTTP/2 (prior knowledge). Servers accept 2, and reply to HTTP/1 in this version or 1.1. With 3, --tls is yes by default, and servers with TLS accept HTTP/3, too
    #[arg(long, value_name = "1.0|1.1|2|3", default_value = "1.1", value_parser = http_version, conflicts_with = "config", help_heading = "Protocols")]
    pub http_version: HttpVersion,
    /// Robots and servers use TLS, with certificates that servers generate and robots do not check, and HTTP/2 by ALPN. Robots reach
    /// servers through a proxy by CONNECT. --device_tls is about the robots' side of a surrogate, and about proxies. Default: no, or
    /// yes with --http_version 3
    #[arg(long, value_name = "yes|no", value_parser = yes_no, action = ArgAction::Set, conflicts_with = "config", help_heading = "Protocols")]
    pub tls: Option<bool>,
    /// Maximum number of concurrent HTTP/2 or HTTP/3 streams on a connection
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole(1..=u32::MAX), conflicts_with = "config", help_heading = "Protocols")]
    pub h2_streams: u32,
    /// HTTP/2 or HTTP/3 flow-control window of each stream and connection
    #[arg(long, value_name = "SIZE", default_value = "1MB", value_parser = h2_window, conflicts_with = "config", help_heading = "Protocols")]
    pub h2_window: u32,
    /// Stop after this time without traffic; `none` or `inf`: never
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = patience)]
    pub idle_tout: Optional<f64>,
    /// Console detail: 1 shows phases, 2 also shows intervals
    #[arg(long, value_name = "LEVEL", default_value = "0", value_parser = whole(0..=u8::MAX))]
    pub verb_lvl: u8,
    #[command(flatten)]
    pub dump: DumpOptions,
    /// A name for the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub label: String,
    /// Length of statistics intervals
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = cycle)]
    pub stats_cycle: f64,
    /// Number of event loops. Default: one per processor
    #[arg(long, value_name = "N", value_parser = whole(1..=1024_u32))]
    pub loops: Option<u32>,
    /// Number of worker processes of each side. 0: none if the limit of file descriptors allows all connections in one
    /// process, otherwise as many as the limit requires
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole(0..=1024_u32))]
    pub workers: u32,
    /// Random seed for everything that both sides must agree on; must be the same in all processes of a test
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    pub global_rng_seed: u64,
    /// Give objects and transactions ids that no other run has. `no`: ids are the same in every run with equal seeds, for
    /// devices whose cache is empty at the start; processes of a test then need different --local_rng_seed
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_no, action = ArgAction::Set)]
    pub unique_world: bool,
    /// Random seed for the choices of one process
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    pub local_rng_seed: u64,
    /// Timer resolution: timers closer together than this share a wake-up. Smaller values are more exact; larger values need less
    /// processor time
    #[arg(long, value_name = "TIME", default_value = "100usec", value_parser = values::time)]
    pub timer_quantum: f64,
    /// How event loops wait for the kernel (docs/engines.md): `epoll`, or `uring` (io_uring, Linux 6.1 or later). `auto` is uring where the host allows it
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto", value_parser = engine)]
    pub engine: Engine,
}

impl CommonOptions {
    /// Whether robots and servers use TLS.
    pub fn uses_tls(&self) -> bool {
        self.tls.unwrap_or(self.http_version == HttpVersion::Http3)
    }

    /// What both sides announce on HTTP/2 and HTTP/3 connections.
    pub fn http2(&self) -> Http2Settings {
        Http2Settings { streams: self.h2_streams, window: self.h2_window }
    }

    /// The settings of the run.
    pub fn run_settings(&self) -> RunSettings {
        RunSettings {
            command: command_line(),
            label: self.label.clone(),
            interval_s: self.stats_cycle,
            timer_quantum_s: self.timer_quantum,
            idle_timeout_s: self.idle_tout.0,
            loops: self.loops.map(|loops| loops as usize),
            workers: self.workers as usize,
            engine: Some(self.engine),
            global_seed: self.global_rng_seed,
            local_seed: self.local_rng_seed,
            unique_ids: self.unique_world,
            dump: self.dump.plan(),
        }
    }
}

/// The command line with the settings that apply to it, if there are any.
static WITH_SETTINGS: OnceLock<Vec<String>> = OnceLock::new();

/// Keeps the command line with the settings that apply to it, for results.
pub fn keep_command_line(words: Vec<String>) {
    let _ = WITH_SETTINGS.set(words);
}

/// The command line of this process, word by word, with the settings that apply to it.
pub fn command_line() -> Vec<String> {
    WITH_SETTINGS.get().cloned().unwrap_or_else(given_command_line)
}

/// The command line of this process as the user gave it.
pub fn given_command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
