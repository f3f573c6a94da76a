//! `polygraph net msl_test`: how long a device stays in TIME_WAIT.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use polygraph_netcheck::time_wait::{TimeWait, TimeWaitStep, TimeWaitTest, measure};
use polygraph_runner::Failure;
use serde_json::{Value, json};

use super::check_failure;
use crate::exit::{Done, FAILED};
use crate::options::values::duration;
use crate::output;

/// While the device waits, a line is printed this often.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Options of `net msl_test`.
#[derive(clap::Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  \
        polygraph net msl_test -d 10.16.0.1 -p 8080\n  \
        polygraph net msl_test -i eth0 -s 10.16.1.1 -d 10.16.0.1 -p 8080   as in the PolyMix-3 how-to\n  \
        polygraph net msl_test -d fd00::5 -p 80 --most 2min --json\n\n\
        The test opens a connection from raw sockets, lets the device close first, and then repeats the first SYN until the \
        device takes it for a new connection. It needs root, changes nothing on this host, and disturbs no other traffic."
)]
pub struct Args {
    /// Network interface that packets take. Default: the one to which routes lead
    #[arg(short = 'i', long, value_name = "IFACE")]
    interface: Option<String>,
    /// Address of this host that asks the device. Default: the one from which routes lead to the device
    #[arg(short = 's', long, value_name = "IP")]
    source: Option<IpAddr>,
    /// Address of the device, IPv4 or IPv6
    #[arg(short = 'd', long, value_name = "IP")]
    destination: IpAddr,
    /// Port on which the device accepts requests
    #[arg(short = 'p', long)]
    port: u16,
    /// What is requested, with HTTP/1.0
    #[arg(long, value_name = "URL", default_value = "/")]
    url: String,
    /// Shortest TIME_WAIT that the rule allows
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    rule: Duration,
    /// Time between two repetitions of the SYN; near the rule, they are 100 ms apart
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    every: Duration,
    /// When the test gives up, because the device waits longer; not before the rule
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = duration)]
    most: Duration,
    /// How long the device may take to answer the request and to close the connection
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    patience: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures and prints the verdict.
pub fn run(args: &Args) -> Done {
    if args.url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage(format!("`{}` is not a URL: it contains a blank", args.url)));
    }
    if args.port == 0 {
        return Err(Failure::usage("0 is not a port: write the port on which the device accepts requests"));
    }
    let test = TimeWaitTest {
        source: args.source,
        interface: args.interface.clone(),
        request: format!("GET {} HTTP/1.0\r\n\r\n", args.url).into_bytes(),
        patience: args.patience,
        every: args.every,
        rule: args.rule,
        most: args.most,
        ..TimeWaitTest::of(SocketAddr::new(args.destination, args.port))
    };
    let mut reported = Duration::ZERO;
    let found = measure(&test, |step| match step {
        TimeWaitStep::Connected(source) => output::note(&format!("connected from {source}")),
        TimeWaitStep::Closed { reset: false } => {
            output::note("the device has closed the connection; the first SYN is now repeated");
        }
        TimeWaitStep::Closed { reset: true } => {
            output::note("the device has reset the connection; the first SYN is now repeated");
        }
        TimeWaitStep::Probed(time) if time >= reported + REPORT_EVERY => {
            reported = time;
            output::note(&format!("in TIME_WAIT for {:.0} s", time.as_secs_f64()));
        }
        TimeWaitStep::Probed(_) => {}
    })
    .map_err(check_failure)?;
    output::print_either(args.json, || json_of(&test, &found), || text_of(&test, &found));
    Ok(if found.meets_rule() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn verdict(found: &TimeWait) -> &'static str {
    if found.meets_rule() { "meets" } else { "violates" }
}

fn text_of(test: &TimeWaitTest, found: &TimeWait) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let mut text = match found.at_most {
        Some(most) => format!(
            "TIME_WAIT of {}: {} (between {} and {}), which is an MSL of {}\n",
            test.device,
            seconds(most),
            seconds(found.at_least),
            seconds(most),
            seconds(most / 2)
        ),
        None => format!("TIME_WAIT of {}: longer than {}\n", test.device, seconds(found.at_least)),
    };
    if found.reset {
        text.push_str("the device does not close connections, it resets them; a reset leaves no TIME_WAIT\n");
    }
    let answers = found.answers;
    let until = if found.at_most.is_some() { " before the device opened a new connection" } else { "" };
    let _ = writeln!(
        text,
        "repetitions of the SYN: {}, answered by {} acknowledgements and {} resets{until}",
        answers.probes, answers.acknowledgements, answers.resets
    );
    let _ = writeln!(text, "{} the {} s rule", verdict(found), found.rule.as_secs_f64());
    text
}

fn json_of(test: &TimeWaitTest, found: &TimeWait) -> Value {
    json!({
        "device": test.device.to_string(),
        "source": found.source.to_string(),
        "time_wait_s": found.at_most.map(|time| time.as_secs_f64()),
        "at_least_s": found.at_least.as_secs_f64(),
        "msl_s": found.at_most.map(|time| time.as_secs_f64() / 2.0),
        "reset": found.reset,
        "probes": found.answers.probes,
        "acknowledgements": found.answers.acknowledgements,
        "resets": found.answers.resets,
        "rule_s": found.rule.as_secs_f64(),
        "verdict": verdict(found),
    })
}
