//! Command line options that several commands share, and how their values are read.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};
use polygraph_pgl::Compat;
use polygraph_plan::Goal;
use polygraph_plan::values::{self, Unit};
use polygraph_robot::Tolerance;
use polygraph_traffic::{Distr, Popularity};

use crate::dump::DumpOptions;

/// Values are read by the grammar of `plan::values`; these adapters name what clap needs.
pub fn think(text: &str) -> Result<Optional<Distr>, String> {
    values::optional_distr(text, Unit::Time).map(Optional)
}

/// A distribution of sizes.
pub fn sizes(text: &str) -> Result<Distr, String> {
    values::distr(text, Unit::Size)
}

/// A distribution of counts.
pub fn counts(text: &str) -> Result<Distr, String> {
    values::distr(text, Unit::Count)
}

/// A whole number in a range.
pub fn whole<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    RangeInclusive<T>: Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("write a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A time or `none`.
pub fn optional_time(text: &str) -> Result<Optional<f64>, String> {
    values::optional_time(text).map(Optional)
}

/// A time, or `none` or `inf` for never.
pub fn patience(text: &str) -> Result<Optional<f64>, String> {
    if text.eq_ignore_ascii_case("inf") { Ok(Optional(None)) } else { optional_time(text) }
}

/// A rate or `none`.
pub fn optional_rate(text: &str) -> Result<Optional<f64>, String> {
    if values::is_none(text) {
        Ok(Optional(None))
    } else {
        values::rate(text).map(|rate| Optional(Some(rate)))
    }
}

/// A port range or `none`.
pub fn ports(text: &str) -> Result<Optional<(u16, u16)>, String> {
    if values::is_none(text) { Ok(Optional(None)) } else { values::ports(text).map(|p| Optional(Some(p))) }
}

/// A statistics interval: long enough to be worth a record.
pub fn cycle(text: &str) -> Result<f64, String> {
    match values::time(text)? {
        seconds if seconds >= 0.01 => Ok(seconds),
        _ => Err(format!("`{text}` is too short for a statistics interval: at least 10ms")),
    }
}

/// The one temporal locality model there is.
pub fn tmp_loc(text: &str) -> Result<(), String> {
    match values::is_none(text) {
        true => Ok(()),
        false => Err(format!("temporal locality model `{text}` does not exist: write none or leave it out")),
    }
}

/// `yes` or `no`.
pub fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "on" => Ok(true),
        "0" | "n" | "no" | "off" => Ok(false),
        _ => Err(format!("`{text}` is neither yes nor no")),
    }
}

/// A positive factor: a number, or two with a slash between them.
pub fn scale(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let factor = match text.split_once('/') {
        Some((above, below)) => number(above).zip(number(below)).map(|(above, below)| above / below),
        None => number(text),
    };
    let good = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
    good.ok_or_else(|| format!("`{text}` is not a factor: write 0.02 or 1/60"))
}

/// The minor version of `1.0` or `1.1`.
pub fn http_version(text: &str) -> Result<u8, String> {
    match text {
        "1.0" => Ok(0),
        "1.1" => Ok(1),
        _ => Err(format!("`{text}` is not a version: write 1.0 or 1.1")),
    }
}

/// `host:port`, as it is for URLs. `http://host:port/`, as browsers and environments write proxies, says the same.
pub fn host_port(text: &str) -> Result<String, String> {
    let plain = match text.split_once("://") {
        None => text,
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest.strip_suffix('/').unwrap_or(rest),
        Some((scheme, _)) => {
            return Err(format!(
                "`{text}` asks for {scheme}, and connections are plain HTTP: write host:port, for example 127.0.0.1:3128"
            ));
        }
    };
    let Some((host, port)) = plain.rsplit_once(':') else {
        return Err(format!("`{text}` has no port: write host:port, for example {plain}:3128"));
    };
    if host.is_empty() || !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(format!("`{text}` is not an address: write host:port, for example 127.0.0.1:3128"));
    }
    Ok(plain.to_owned())
}

/// A list of local addresses in the range syntax.
pub fn addresses(text: &str) -> Result<AddressList, String> {
    crate::jobs::local_addresses(text).map(AddressList)
}

/// A value that may be `none`, given or not. A type of its own because clap takes `Option` for "not given".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optional<T>(pub Option<T>);

/// Local addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressList(pub Vec<std::net::IpAddr>);

/// The socket address behind `host:port`.
pub fn resolve(text: &str) -> Result<SocketAddr, crate::Failure> {
    let mut found = text
        .to_socket_addrs()
        .map_err(|e| crate::Failure::setup(anyhow::anyhow!("cannot resolve {text}: {e}")))?;
    found.next().ok_or_else(|| crate::Failure::setup(anyhow::anyhow!("{text} has no address")))
}

/// What robots do: the options that `client` and `run` share.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Load")]
pub struct RobotOptions {
    /// Number of robots
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=10_000_000_u32))]
    pub robots: u32,
    /// Mean rate of all requests, a Poisson stream; without it every robot sends as fast as replies come
    #[arg(long, value_name = "RATE", value_parser = optional_rate)]
    pub req_rate: Option<Optional<f64>>,
    /// Share of cachable replies
    #[arg(long, alias = "rep_cacheable", value_name = "SHARE", default_value = "80p", value_parser = values::share)]
    pub rep_cachable: f64,
    /// Offered document hit ratio
    #[arg(long, value_name = "SHARE", default_value = "0p", value_parser = values::share)]
    pub dhr: f64,
    /// Which known objects are asked for again: unif, zipf or zipf:SKEW
    #[arg(long, value_name = "MODEL", default_value = "zipf", value_parser = values::popularity)]
    pub pop_model: Popularity,
    /// Temporal locality model; only `none` exists
    #[arg(long, value_name = "none", value_parser = tmp_loc)]
    pub tmp_loc: Option<()>,
    /// Age at which a new object may be asked for again, because an object that is still on its way cannot be a
    /// hit. Default: what the servers' think time needs, 10 s if that is not known here
    #[arg(long = "settle_time", value_name = "TIME", value_parser = values::time)]
    pub repeat_delay: Option<f64>,
    /// The load rises linearly over this time
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    pub launch_win: Optional<f64>,
    /// Local ports; by default the system chooses
    #[arg(long, value_name = "LOW:HIGH", default_value = "none", value_parser = ports)]
    pub ports: Optional<(u16, u16)>,
    /// Local addresses of the robots, in turn: ranges like 127.1.0-39.1-250, separated by commas
    #[arg(long, value_name = "RANGES", value_parser = addresses)]
    pub local_addrs: Option<AddressList>,
    /// Open connections at most; a request that would need one more fails. Default: what file descriptors allow
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub open_conn_lmt: Option<u32>,
    /// A transaction that takes longer fails
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = optional_time)]
    pub xact_lifetime: Optional<f64>,
    /// The run ends, and has failed, when nothing has succeeded for so long and 10 transactions failed meanwhile; `none`:
    /// it goes on, as tests of failures need it
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = patience)]
    pub fail_tout: Optional<f64>,
}

/// The default of `--fail_tout` in seconds, for tests that are described otherwise.
pub const FAIL_TIMEOUT: Option<f64> = Some(15.0);

/// What both sides need to agree on or may be told alike.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Run")]
pub struct CommonOptions {
    /// When to stop: 1hr, 5000 (transactions), or transactions:time:errors like -1:1hr:0.30
    #[arg(long, value_name = "GOAL", allow_hyphen_values = true, value_parser = values::goal)]
    pub goal: Option<Goal>,
    /// Requests per connection: a number or a distribution like zipf:64
    #[arg(long, value_name = "DISTR", default_value = "1", value_parser = counts)]
    pub pconn_use_lmt: Distr,
    /// Version of requests and replies
    #[arg(long, value_name = "1.0|1.1", default_value = "1.1", value_parser = http_version)]
    pub http_version: u8,
    /// Stop after so long without traffic; `none` or `inf`: never
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = patience)]
    pub idle_tout: Optional<f64>,
    /// Console detail: 1 shows phases, 2 intervals too
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
    /// Worker processes of each side; 0: as many as the limit of file descriptors asks for, none if one process
    /// can carry all
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole(0..=1024_u32))]
    pub workers: u32,
    /// Seed of everything both sides must agree on; equal in all processes of a test
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    pub global_rng_seed: u64,
    /// Objects and transactions get ids that no other run has; `no`: the same in every run with equal seeds, for
    /// devices that know nothing of an earlier one. Processes of a test then need different --local_rng_seed
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_no, action = ArgAction::Set)]
    pub unique_world: bool,
    /// Seed of a process's own choices
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    pub local_rng_seed: u64,
    /// Timers closer together than this share a wake-up: less is more exact, more is cheaper
    #[arg(long, value_name = "TIME", default_value = "100usec", value_parser = values::time)]
    pub timer_quantum: f64,
}

/// A workload file instead of the options that describe one.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Workload file")]
pub struct ConfigOptions {
    /// Workload in PGL; the options of load and content have no place then
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long, value_name = "DIRS", value_delimiter = ':', requires = "config")]
    pub cfg_dirs: Vec<String>,
    /// Give a top-level name or field of the workload a value, in PGL notation
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = crate::pgl_cmds::setting, requires = "config")]
    pub settings: Vec<(String, String)>,
    /// Let the workload run commands: back quotes and system()
    #[arg(long, requires = "config")]
    pub allow_exec: bool,
    /// Make all phases so many times as long, in time, transactions and bytes, and the working set with them: 1/60
    /// makes minutes of hours
    #[arg(long, value_name = "FACTOR", value_parser = scale, requires = "config")]
    pub scale: Option<f64>,
    /// Choose what to ask for by the rules of another version, over what the workload says: 4.9 for comparison with
    /// results of the original, none for our own, which judge devices (docs/compat.md). Alike on all sides
    #[arg(long, value_name = "4.9|none", requires = "config")]
    pub compat: Option<Compat>,
    /// Tell the other processes of the test, through the servers, which objects may be asked for again. Default: yes,
    /// but for `run`, whose robots are all in one place, unless servers redirect (`302 Found`): to objects that they
    /// learn of this way
    #[arg(long, value_name = "yes|no", value_parser = yes_no, requires = "config")]
    pub share_worlds: Option<bool>,
}

/// Tests of several processes.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Other processes")]
pub struct SyncOptions {
    /// Phases of a workload end together in all processes of a test. A process that others wait for and that gives no
    /// sign for so long is given up: the test ends, and says which one was missing. `none`: wait for ever
    #[arg(long, value_name = "TIME", default_value = "30sec", value_parser = patience, requires = "config")]
    pub sync_tout: Optional<f64>,
}

/// Tests that go on with the objects of others.
#[derive(Args, Clone, Debug, Default)]
#[command(rename_all = "snake_case", next_help_heading = "Working set")]
pub struct WorkingSetOptions {
    /// At the end, write down all objects that may be asked for again, and the seeds
    #[arg(long, value_name = "FILE")]
    pub store_working_set: Option<PathBuf>,
    /// Go on with the objects that an earlier test has stored, and with its seeds
    #[arg(long, value_name = "FILE")]
    pub load_working_set: Option<PathBuf>,
}

/// What servers put up with.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Odd requests")]
pub struct ToleranceOptions {
    /// Answer URLs that are not ours with a random object, for devices that ask for more than robots do
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set)]
    pub ign_urls: bool,
    /// The same, and messages without any marks of ours are no error
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set)]
    pub accept_foreign_msgs: bool,
}

/// What robots put up with.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Odd replies")]
pub struct RobotToleranceOptions {
    /// Hits on objects that this test has not asked for are no error. Only with --unique_world no or
    /// --load_working_set may there be any: otherwise nobody else can have asked for its objects
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_no, action = ArgAction::Set)]
    pub ign_false_hits: bool,
    /// Markup that cannot be read is no error
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set)]
    pub ign_bad_cont_tags: bool,
}

impl RobotToleranceOptions {
    /// As robots are told; `foreign_replies`: messages without any marks of ours are no error.
    pub fn tolerance(self, foreign_replies: bool) -> Tolerance {
        Tolerance { foreign_replies, false_hits: self.ign_false_hits, bad_tags: self.ign_bad_cont_tags }
    }
}

/// The classic content: one type.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Content")]
pub struct ReplyOptions {
    /// Reply sizes
    #[arg(long, value_name = "DISTR", default_value = "exp:13KB", value_parser = sizes)]
    pub rep_sz: Distr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_scheme() {
        for text in ["h:3128", "http://h:3128", "HTTP://h:3128/"] {
            assert_eq!(host_port(text).as_deref(), Ok("h:3128"), "{text}");
        }
        assert_eq!(host_port("[::1]:80").as_deref(), Ok("[::1]:80"));
        for (text, why) in [
            ("https://h:443", "plain HTTP"),
            ("socks5://h:1080", "socks5"),
            ("h", "has no port"),
            ("http://h/", "has no port"),
            ("h:0", "not an address"),
            (":80", "not an address"),
            ("h:99999", "not an address"),
        ] {
            let error = host_port(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn factors() {
        assert_eq!(scale("0.02"), Ok(0.02));
        assert_eq!(scale("1/60"), Ok(1.0 / 60.0));
        assert_eq!(scale(" 2 / 4 "), Ok(0.5));
        for text in ["", "0", "-1", "1/0", "1/", "/2", "1/2/3", "fast", "inf", "nan"] {
            assert!(scale(text).is_err(), "{text}");
        }
    }
}
