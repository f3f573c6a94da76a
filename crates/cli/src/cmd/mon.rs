//! `polygraph mon` (polymon): running tests, watched live.

use std::io::{IsTerminal, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use polygraph_live::dispatcher::DEFAULT_PORT;
use polygraph_live::{LiveSource, LiveStatistics};
use polygraph_monitor::feed::FeedSources;
use polygraph_monitor::terminal::{self, App};
use polygraph_monitor::{Feed, FeedEvent, Grouping, RowFilter, Watched, WebView, table};
use polygraph_runner::Failure;
use polygraph_stats::Side;
use serde_json::json;

use crate::exit::Done;
use crate::options::NatsOptions;
use crate::options::fleet::failure;
use crate::options::live::watched_directories;
use crate::options::values::{duration, host_port, whole};
use crate::output;

/// Port of the page.
const WEB_PORT: u16 = 18257;
/// How long the monitor looks for a dispatcher on this host.
const DISPATCHER_TIMEOUT: Duration = Duration::from_millis(300);

/// Options of `mon`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("creds", |arg| arg.requires("fleet")),
    mut_arg("tls_ca", |arg| arg.requires("fleet")),
    mut_arg("tls_cert", |arg| arg.requires("fleet")),
    mut_arg("tls_key", |arg| arg.requires("fleet")),
    mut_arg("anonymous", |arg| arg.requires("fleet")),
    after_help = "Without an address, the monitor shows all processes of this host that publish live statistics, those in labs included, and what a \
        dispatcher (udp2tcpd) on this host forwards. Keys are explained by `?`.\nExamples:\n  \
        polygraph mon                                 everything on this host\n  \
        polygraph mon --attach 10.0.0.1:18300         also a process elsewhere (--live 10.0.0.1:18300)\n  \
        polygraph mon --fleet nats://10.0.0.9         all processes of a fleet\n  \
        polymon 10.0.0.9                              what the dispatcher on 10.0.0.9 forwards\n  \
        polygraph mon --web                           a web page at http://127.0.0.1:18257/\n  \
        polygraph mon --once --json                   for scripts"
)]
pub struct Args {
    /// Address of a dispatcher of status notifications (udp2tcpd): only what it forwards is shown
    #[arg(value_name = "IP")]
    dispatcher: Option<String>,
    /// Port of the dispatcher
    #[arg(value_name = "PORT", default_value_t = DEFAULT_PORT, value_parser = whole(1..=u16::MAX))]
    port: u16,
    /// Also attach to a process that publishes at this address (`--live`), repeatable
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    attach: Vec<String>,
    /// Show the processes of all agents of this fleet: servers of NATS, separated by commas; or ssh:HOSTS.toml
    #[arg(long, value_name = "URL", conflicts_with = "dispatcher")]
    fleet: Option<String>,
    #[command(flatten)]
    nats: NatsOptions,
    /// Show only this side at first
    #[arg(long, value_name = "client|server", value_parser = side)]
    side: Option<Side>,
    /// Show only processes with these words in host, id, label, workload, phase, state or verdict
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    filter: String,
    /// Serve the view as a page. Elsewhere than on loopback addresses, the page needs the token in the printed address
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:18257", value_parser = web_address)]
    web: Option<SocketAddr>,
    /// Print the table once
    #[arg(long, conflicts_with = "web")]
    once: bool,
    /// How long --once waits for messages
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, requires = "once")]
    wait: Duration,
    /// Print JSON: with --once the table; otherwise every message, a line each
    #[arg(long, conflicts_with = "web")]
    json: bool,
}

fn side(text: &str) -> Result<Side, String> {
    match text {
        "client" => Ok(Side::Client),
        "server" => Ok(Side::Server),
        _ => Err("write client or server".into()),
    }
}

fn web_address(text: &str) -> Result<SocketAddr, String> {
    let plain = |ip: IpAddr| SocketAddr::new(ip, WEB_PORT);
    text.parse().or_else(|_| text.parse().map(plain)).map_err(|_| {
        format!("`{text}` is not an address to listen on: write IP:port, for example 127.0.0.1:{WEB_PORT}")
    })
}

/// Watches until the user leaves, or prints what is wanted.
pub fn run(args: &Args) -> Done {
    let is_view = args.web.is_none() && !args.once && !args.json;
    if is_view && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Err(Failure::usage("the view needs a terminal; use --once, --json or --web elsewhere"));
    }
    let feed = Feed::start(args.sources()).map_err(Failure::setup)?;
    if let Some(url) = &args.fleet {
        follow_fleet(args, url, &feed)?;
    }
    let filter = RowFilter { side: args.side, words: args.filter.clone() };
    if let Some(address) = args.web {
        return serve(address, &feed);
    }
    if args.once {
        return print_once(args, &feed, &filter);
    }
    if args.json {
        return print_messages(&feed, &filter);
    }
    terminal::show(&feed, App::new(filter)).map_err(Failure::setup)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds what the agents of a fleet pass on.
fn follow_fleet(args: &Args, url: &str, feed: &Feed) -> Result<(), Failure> {
    let to_view = feed.sender();
    let take = move |line: &[u8]| {
        let event = match LiveStatistics::read(line) {
            Ok(message) => FeedEvent::Statistics(Box::new(message)),
            Err(error) => FeedEvent::Problem(format!("the fleet: {error}")),
        };
        to_view.send(event).is_ok()
    };
    polygraph_fleet::live::watch(args.nats.bus(url, "polygraph mon"), take).map_err(failure)
}

impl Args {
    fn sources(&self) -> FeedSources {
        let attached = self.attach.iter().cloned().map(LiveSource::Tcp);
        if self.fleet.is_some() {
            // Processes of the fleet on this host would be there twice.
            return FeedSources { sources: attached.collect(), ..FeedSources::default() };
        }
        let dispatcher = |host: &str| LiveSource::Dispatcher(format!("{host}:{}", self.port));
        if let Some(host) = &self.dispatcher {
            let host =
                if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.clone() };
            return FeedSources {
                sources: attached.chain([dispatcher(&host)]).collect(),
                ..FeedSources::default()
            };
        }
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let answers = TcpStream::connect_timeout(&here, DISPATCHER_TIMEOUT).is_ok();
        let forwarded = answers.then(|| dispatcher("127.0.0.1"));
        FeedSources { directories: watched_directories(), sources: attached.chain(forwarded).collect() }
    }
}

/// Prints the table when all sources have had time to say something.
fn print_once(args: &Args, feed: &Feed, filter: &RowFilter) -> Done {
    let deadline = Instant::now() + args.wait;
    let (mut watched, mut problems) = (Watched::default(), Vec::new());
    while let Ok(event) = feed.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        match event {
            FeedEvent::Statistics(message) => watched.take(*message, Instant::now()),
            FeedEvent::Lost(keys) => watched.lose(&keys),
            FeedEvent::Problem(text) => problems.push(text),
            FeedEvent::Attached(_) => {}
        }
    }
    problems.iter().for_each(|problem| output::warn(problem));
    let rows = table::rows(&watched, Grouping::Processes, filter, Instant::now());
    if args.json {
        let rows: Vec<_> = rows.iter().map(table::TableRow::json).collect();
        output::print_json(&json!({ "processes": rows }));
    } else if !rows.is_empty() {
        output::print(&table::text(&rows));
    }
    if rows.is_empty() && !args.json {
        let text = "no process publishes live statistics here: client, server and run do, unless they have --live no";
        return Err(Failure::data(anyhow::anyhow!(text)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints messages as they come, until Ctrl-C.
fn print_messages(feed: &Feed, filter: &RowFilter) -> Done {
    let mut watched = Watched::default();
    for event in &feed.events {
        match event {
            FeedEvent::Statistics(message) => {
                let now = Instant::now();
                watched.take((*message).clone(), now);
                let key = polygraph_monitor::watched::ProcessKey::of(&message);
                let shown =
                    watched.processes().any(|(known, process)| *known == key && filter.shows(process, now));
                if shown && !output::try_print(&message.line()) {
                    break;
                }
            }
            FeedEvent::Problem(text) => output::warn(&text),
            FeedEvent::Lost(_) | FeedEvent::Attached(_) => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves the page until Ctrl-C.
fn serve(address: SocketAddr, feed: &Feed) -> Done {
    let token = if address.ip().is_loopback() { None } else { Some(new_token()?) };
    let query = token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
    let view = WebView::new(token);
    let address = view
        .serve(address)
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot listen at {address}: {e}")))?;
    output::print(&format!("the monitor is at http://{address}/{query} until Ctrl-C\n"));
    view.follow(feed);
    Ok(ExitCode::SUCCESS)
}

/// 128 random bits.
fn new_token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Failure::setup)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
