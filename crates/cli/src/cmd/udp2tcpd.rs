//! `udp2tcpd`: forwards status notifications to monitors.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use polygraph_live::Dispatcher;
use polygraph_live::dispatcher::DEFAULT_PORT;
use polygraph_runner::Failure;
use rustix::process::setsid;

use crate::exit::Done;
use crate::options::values::whole;
use crate::output;

/// Options of `udp2tcpd`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example, on the host of the monitor:\n  \
        udp2tcpd\n  \
        polysrv --notify 10.0.0.9:18256 ...     on the hosts of the test\n  \
        polymon 10.0.0.9                        anywhere"
)]
pub struct Args {
    /// Port of UDP for notifications, and of TCP for monitors
    #[arg(value_name = "PORT", default_value_t = DEFAULT_PORT, value_parser = whole(1..=u16::MAX))]
    port: u16,
    /// Listen only on this address of the host. Default: all
    #[arg(long, value_name = "IP", default_value_t = Ipv4Addr::UNSPECIFIED, hide_default_value = true)]
    listen: Ipv4Addr,
    /// Stay in the foreground. Without it, the program continues in the background after it has started
    #[arg(long)]
    foreground: bool,
    /// This is the part that continues in the background
    #[arg(long, hide = true)]
    background: bool,
}

/// Forwards, in the background unless the user wants it otherwise.
pub fn run(args: &Args) -> Done {
    if !args.foreground && !args.background {
        return start_in_background(args);
    }
    let dispatcher = Dispatcher::bind(args.listen, args.port).map_err(|error| {
        Failure::setup(anyhow::anyhow!("cannot listen on port {} of {}: {error}", args.port, args.listen))
    })?;
    if args.background {
        // Signals of the terminal are meant for others from now on.
        setsid().map_err(|error| Failure::setup(std::io::Error::from(error)))?;
    }
    let text = format!(
        "udp2tcpd: forwarding notifications from UDP to TCP, both on port {} of {}",
        args.port, args.listen
    );
    output::print(&format!("{text}\n"));
    dispatcher.run().map_err(Failure::setup)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts this program again, and waits until it listens or fails.
fn start_in_background(args: &Args) -> Done {
    let program = std::env::current_exe().map_err(Failure::setup)?;
    let mut child = Command::new(program)
        .args(["udp2tcpd", "--background", &args.port.to_string(), "--listen", &args.listen.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::setup)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(Failure::setup)?;
    }
    if line.is_empty() {
        let ended = child.wait_with_output().map_err(Failure::setup)?;
        let text = String::from_utf8_lossy(&ended.stderr);
        return Err(Failure::setup(anyhow::anyhow!("{}", text.trim().trim_start_matches("error: "))));
    }
    output::print(&format!("{}, process {}\n", line.trim_end(), child.id()));
    Ok(ExitCode::SUCCESS)
}
