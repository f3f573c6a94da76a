//! `polygraph net clock`: the offsets between clocks.

use std::net::{Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use polygraph_netcheck::clock::{
    ClockOffset, ClockPlan, ClockServer, PORT, SystemClock, measure, system_clock,
};
use polygraph_runner::Failure;
use polygraph_text::counted;
use serde_json::json;

use super::{done, listen_address, listening, with_port};
use crate::exit::{Done, FAILED, SETUP};
use crate::options::values::{duration, resolve, whole};
use crate::output;

/// Options of `net clock`.
#[derive(clap::Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  \
        polygraph net clock --listen                    on one host\n  \
        polygraph net clock --to 10.16.129.1,10.16.130.1  on another one\n  \
        polygraph net clock --to pool.ntp.example:123   a time server\n  \
        polygraph net clock                             only what the kernel says about this clock\n\n\
        The offset is known up to half of the shortest round-trip time. The exit code is 1 if an offset is surely larger than \
        --max_offset."
)]
pub struct Args {
    /// Tell other hosts the time of this one, until Ctrl-C
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, value_parser = listen_address::<PORT>, conflicts_with = "to")]
    listen: Option<Option<SocketAddr>>,
    /// Hosts whose clocks are compared with this one; separated by commas. The default port is 5001; that of time servers is 123
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    to: Vec<String>,
    /// Exchanges with each host
    #[arg(long, value_name = "N", default_value = "8", value_parser = whole(1..=10_000_u32))]
    count: u32,
    /// Time between two exchanges
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    interval: Duration,
    /// How long a reply may take
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    timeout: Duration,
    /// Largest offset
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    max_offset: Duration,
    /// Stop listening after this time. Default: on Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "listen")]
    duration: Option<Duration>,
    /// Print JSON
    #[arg(long, conflicts_with = "listen")]
    json: bool,
}

/// Serves or compares.
pub fn run(args: &Args) -> Done {
    if let Some(listen) = args.listen {
        let address = listen.unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, PORT).into());
        let server = ClockServer::start(address).map_err(|error| listening(address, error))?;
        output::note(&format!("the time of this clock is at {}; Ctrl-C stops the server", server.address()));
        polygraph_engine::signals::wait(args.duration).map_err(Failure::setup)?;
        output::print(&format!("{} answered\n", counted(server.answered(), "request")));
        return done();
    }
    let own = system_clock();
    let mut results = Vec::new();
    for host in &args.to {
        let server = resolve(&with_port(host, PORT))?;
        let plan = ClockPlan { server, count: args.count, interval: args.interval, timeout: args.timeout };
        results.push((host, server, measure(&plan)));
    }
    let is_good = |result: &Result<ClockOffset, _>| match result {
        Ok(found) => found.offset_s.abs() - found.error_s <= args.max_offset.as_secs_f64(),
        Err(_) => false,
    };
    let all_good = results.iter().all(|(_, _, result)| is_good(result));
    if args.json {
        let hosts: Vec<_> = results
            .iter()
            .map(|(host, server, result)| match result {
                Ok(found) => json!({
                    "host": host, "address": server.to_string(), "offset_s": found.offset_s, "error_s": found.error_s,
                    "exchanges": found.exchanges.0, "answered": found.exchanges.1,
                    "synchronised": found.synchronised, "good": is_good(result),
                }),
                Err(error) => json!({ "host": host, "address": server.to_string(), "good": false, "fault": error.to_string() }),
            })
            .collect();
        let own = own.map(|clock| {
            json!({ "synchronised": clock.synchronised, "max_error_s": clock.max_error_s, "rate_ppm": clock.rate_ppm })
        });
        output::print_json(&json!({ "this_host": own, "hosts": hosts }));
    } else {
        output::print(&own.map(|clock| own_text(&clock)).unwrap_or_default());
        for (host, _, result) in &results {
            let line = match result {
                Ok(found) => {
                    let bad = if is_good(result) { "" } else { "; too far off" };
                    format!("{host}: {}{bad}\n", offset_text(found))
                }
                Err(error) => format!("{host}: {error}\n"),
            };
            output::print(&line);
        }
    }
    let cannot_measure =
        results.iter().any(|(_, _, result)| matches!(result, Err(error) if !is_silence(error)));
    Ok(match (all_good, cannot_measure) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(SETUP),
        (false, false) => ExitCode::from(FAILED),
    })
}

/// Whether the other host is to blame, rather than this one.
fn is_silence(error: &polygraph_netcheck::Error) -> bool {
    matches!(error, polygraph_netcheck::Error::Peer(_))
}

fn own_text(clock: &SystemClock) -> String {
    match clock.synchronised {
        true => format!("this host: synchronised, at most {:.1} ms wrong\n", clock.max_error_s * 1e3),
        false => "this host: no program keeps the clock synchronised (chrony, ntpd, systemd-timesyncd)\n"
            .to_owned(),
    }
}

fn offset_text(found: &ClockOffset) -> String {
    let way = if found.offset_s < 0.0 { "behind" } else { "ahead of" };
    format!(
        "{:.3} ms {way} this clock, +- {:.3} ms ({} of {} exchanges{})",
        found.offset_s.abs() * 1e3,
        found.error_s * 1e3,
        found.exchanges.1,
        found.exchanges.0,
        if found.synchronised { "" } else { "; says that it is not synchronised" }
    )
}
