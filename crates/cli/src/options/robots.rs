//! Options of the client side.

use std::time::Duration;

use clap::{ArgAction, Args};
use polygraph_addr::Addr;
use polygraph_engine::StartRule;
use polygraph_plan::{Test, values};
use polygraph_robot::Tolerance;
use polygraph_runner::jobs::ClientSettings;
use polygraph_runner::{AddressMode, Failure, addresses};
use polygraph_stats::Side;
use polygraph_traffic::Popularity;

use super::DeviceTlsOptions;
use super::values::{
    LocalAddressList, Optional, TimeOfDay, address_mode, local_addresses, optional_rate, optional_time,
    patience, ports, preflight_timeout, time_of_day, tmp_loc, whole, yes_no,
};
use crate::output::notify;

/// What robots do.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Load")]
pub struct RobotOptions {
    /// Number of robots
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=10_000_000_u32), conflicts_with = "config")]
    pub robots: u32,
    /// Mean request rate of all robots together, as a Poisson stream. Without a rate, each robot sends its next request when
    /// the previous transaction ends
    #[arg(long, value_name = "RATE", value_parser = optional_rate, conflicts_with = "config")]
    pub req_rate: Option<Optional<f64>>,
    /// Share of cachable replies
    #[arg(long, alias = "rep_cacheable", value_name = "SHARE", default_value = "80p", value_parser = values::share, conflicts_with = "config")]
    pub rep_cachable: f64,
    /// Offered document hit ratio: the share of requests for objects that a cache can already have
    #[arg(long, value_name = "SHARE", default_value = "0p", value_parser = values::share, conflicts_with = "config")]
    pub dhr: f64,
    /// Popularity model, which chooses the objects that are requested again: unif, zipf or zipf:SKEW
    #[arg(long, value_name = "MODEL", default_value = "zipf", value_parser = values::popularity, conflicts_with = "config")]
    pub pop_model: Popularity,
    /// Temporal locality model; `none` is the only one
    #[arg(long, value_name = "none", value_parser = tmp_loc, conflicts_with = "config")]
    pub tmp_loc: Option<()>,
    /// Minimum age at which robots may request a new object again: an object whose first reply has not arrived yet cannot be a
    /// hit. Default: what the servers' think time requires, or 10 s if the think time is unknown
    #[arg(long, value_name = "TIME", value_parser = values::time, conflicts_with = "config")]
    pub settle_time: Option<f64>,
    /// Time over which the load rises linearly to its full rate
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time, conflicts_with = "config")]
    pub launch_win: Optional<f64>,
    /// Local ports. Default: the system chooses
    #[arg(long, value_name = "LOW:HIGH", default_value = "none", value_parser = ports)]
    pub ports: Optional<(u16, u16)>,
    /// Local addresses that robots use in turn: ranges like 127.1.0-39.1-250, separated by commas. Addresses with an interface,
    /// like lo::10.60.0-3.1-250/22, are added to it (--addresses)
    #[arg(long, value_name = "RANGES", value_parser = local_addresses, conflicts_with = "config")]
    pub local_addrs: Option<LocalAddressList>,
    /// User name and password with which robots answer challenges of proxies and servers
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = values::credentials, conflicts_with = "config")]
    pub credentials: Option<String>,
    /// Maximum number of open connections; a request that needs one more fails. Default: as many as the limit of file
    /// descriptors allows
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub open_conn_lmt: Option<u32>,
    /// Maximum length of a transaction; a longer one fails
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = optional_time, conflicts_with = "config")]
    pub xact_lifetime: Optional<f64>,
    /// End the run as failed when no transaction has succeeded for this time and at least 10 have failed. `none`: continue,
    /// for tests of failures
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = patience)]
    pub fail_tout: Optional<f64>,
    // The last one, because options after it would stand below its heading.
    #[command(flatten)]
    pub device_tls: DeviceTlsOptions,
}

impl RobotOptions {
    /// The settings of the client side.
    pub fn client_settings(&self, tolerance: Tolerance) -> ClientSettings {
        ClientSettings { ports: self.ports.0, open_connections: self.open_conn_lmt, tolerance }
    }
}

/// What robots do not count as errors.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Unexpected replies")]
pub struct RobotToleranceOptions {
    /// Do not count hits on objects that this test has not requested as errors. Such hits are possible only with
    /// --unique_world no or --load_working_set: otherwise no other test has requested the same objects
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_no, action = ArgAction::Set)]
    pub ign_false_hits: bool,
    /// Do not count unreadable markup as an error
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set)]
    pub ign_bad_cont_tags: bool,
}

impl RobotToleranceOptions {
    /// What robots tolerate; `foreign_replies`: replies without the marks of this program, too.
    pub fn tolerance(self, foreign_replies: bool) -> Tolerance {
        Tolerance { foreign_replies, false_hits: self.ign_false_hits, bad_tags: self.ign_bad_cont_tags }
    }
}

/// Tests of several processes.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Other processes")]
pub struct SyncOptions {
    /// How long to wait for another process at a phase boundary: all processes of a test change phases together. When a
    /// process stays silent for longer, the test ends and names that process. `none`: wait forever
    #[arg(long, value_name = "TIME", default_value = "30sec", value_parser = patience, requires = "config")]
    pub sync_tout: Optional<f64>,
}

/// The addresses of robots and servers on this host.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Run")]
pub struct AddressOptions {
    /// How missing addresses of robots and servers are added for the time of the run (docs/net.md). `auto`: as the workload says,
    /// AnyIP if it places addresses on the loopback interface (lo::10.1.0.1-250), aliases if it names another interface, nothing
    /// if it names none. `anyip`: one route for whole networks. `alias`: each address is added to its interface
    #[arg(long, value_name = "auto|alias|anyip|none", default_value = "auto", value_parser = address_mode)]
    pub addresses: AddressMode,
}

/// The share of a test that this process has, and when it starts.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Other processes")]
pub struct ShareOptions {
    /// Run only the robots or servers of the workload that have these addresses, for example 10.1.0.1-100. Without a port, an
    /// address stands for all servers there. Several processes of one host can share a workload file in this way
    #[arg(long, value_name = "RANGE...", value_parser = local_addresses, requires = "config")]
    pub only_addrs: Option<LocalAddressList>,
    /// Start the first phase at this time of day, for example 2026-11-23T12:00:00Z, or @ and seconds since 1970. Processes on
    /// hosts with synchronized clocks then start together. The test fails if the process is ready too late
    #[arg(long, value_name = "TIME", value_parser = time_of_day, requires = "config")]
    pub start_at: Option<TimeOfDay>,
}

impl ShareOptions {
    /// The addresses of the agents that this process runs; `None`: all that belong to this host.
    pub fn only(&self) -> Option<&[Addr]> {
        self.only_addrs.as_ref().map(|list| list.0.as_slice())
    }

    /// Leaves the agents of other processes and hosts out of a test.
    ///
    /// # Errors
    /// If the chosen agents do not exist.
    pub fn keep(&self, test: &mut Test, side: Side) -> Result<(), Failure> {
        match self.only() {
            Some(only) => addresses::keep_only(test, side, only, notify),
            None => {
                addresses::keep_local(test, side, notify);
                Ok(())
            }
        }
    }

    /// When the first phase starts; without --start_at as `otherwise` says.
    pub fn start(&self, otherwise: StartRule) -> StartRule {
        self.start_at.map_or(otherwise, |time| StartRule::At(time.unix_ns))
    }
}

/// The check before a test.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Run")]
pub struct PreflightOptions {
    /// Send one request through the device to a server and back before the test, and wait this long for the reply, or
    /// until a balancer has found the servers alive. The test does not start if there is none (docs/exit-codes.md). Statistics do
    /// not include this request. `no`: skip the check
    #[arg(long, value_name = "TIME|no", default_value = "5s", value_parser = preflight_timeout)]
    pub preflight: Optional<Duration>,
}
