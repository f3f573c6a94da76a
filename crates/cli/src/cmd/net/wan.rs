//! `polygraph net wan`: delay, loss and limited bandwidth on the way of packets.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use polygraph_impair::{
    ActiveEmulation, Backend, Direction, Emulation, HoldExcess, Means, NamedPipe, Pipe, PipeStatus,
    QueueLimit, StartOptions, Status, StatusAnswer, WanError, planned_steps, start, stop_all, user_space,
};
use polygraph_netsetup::IpPrefix;
use polygraph_plan::values::{self, Unit};
use polygraph_runner::Failure;
use polygraph_traffic::Distr;
use serde_json::{Value, json};

use super::done;
use crate::exit::{Done, SETUP};
use crate::output;

/// Options of `net wan`.
#[derive(Args, Debug)]
#[command(
    rename_all = "snake_case",
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "status|off",
    after_help = EXAMPLES
)]
pub struct WanArgs {
    #[command(subcommand)]
    command: Option<WanCommand>,
    #[command(flatten)]
    emulation: EmulationArgs,
}

const EXAMPLES: &str = "\
Examples:
  # PolyMix-3 and PolyMix-4: on each server host (WebAxe-4: on each client host)
  polygraph net wan --delay 40ms --loss 0.05% --match 10.16.0.0/16
  # A telephone modem for robots, as PolyMix-2 names it
  polygraph net wan --pipe_in 56Kbps-in --pipe_out 56Kbps-out --match 10.16.0.0/17
  # Another path for each direction, with random delays
  polygraph net wan --delay_in norm:40ms,5ms --delay_out 10ms --jitter_out exp:2ms --match 10.16.0.0/16
  polygraph net wan status
  polygraph net wan off";

#[derive(Subcommand, Debug)]
enum WanCommand {
    /// Show what is emulated on this host, with counters and the measured accuracy
    Status(StatusArgs),
    /// Remove everything that `net wan` has set up in this network namespace
    Off,
}

/// Options of `net wan status`.
#[derive(Args, Debug)]
struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
struct EmulationArgs {
    /// Networks on this host's side of the path: packets to them come in, packets from them go out
    #[arg(long = "match", value_name = "NETWORK", value_delimiter = ',', required = true, value_parser = network)]
    networks: Vec<IpPrefix>,
    /// Networks at the other end of the path (default: all)
    #[arg(long = "peer", value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    peers: Vec<IpPrefix>,
    /// Directions that are emulated
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// A pipe that PolyMix-2 names: 56Kbps-in, 56Kbps-out, 100BaseTX, localSrv, domesticSrv or foreignSrv; other options change it
    #[arg(long, value_name = "NAME")]
    pipe: Option<NamedPipe>,
    /// The same for packets that come in
    #[arg(long, value_name = "NAME")]
    pipe_in: Option<NamedPipe>,
    /// The same for packets that go out
    #[arg(long, value_name = "NAME")]
    pipe_out: Option<NamedPipe>,
    /// Time that each packet takes: a time, or a distribution of times
    #[arg(long, value_name = "TIME", value_parser = time_distr)]
    delay: Option<Distr>,
    /// The same for packets that come in
    #[arg(long, value_name = "TIME", value_parser = time_distr)]
    delay_in: Option<Distr>,
    /// The same for packets that go out
    #[arg(long, value_name = "TIME", value_parser = time_distr)]
    delay_out: Option<Distr>,
    /// Random time that is added to the delay of each packet, for example exp:5ms or unif:0ms,10ms
    #[arg(long, value_name = "DISTRIBUTION", value_parser = time_distr)]
    jitter: Option<Distr>,
    /// The same for packets that come in
    #[arg(long, value_name = "DISTRIBUTION", value_parser = time_distr)]
    jitter_in: Option<Distr>,
    /// The same for packets that go out
    #[arg(long, value_name = "DISTRIBUTION", value_parser = time_distr)]
    jitter_out: Option<Distr>,
    /// Share of packets that get lost, for example 0.05%
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    loss: Option<f64>,
    /// The same for packets that come in
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    loss_in: Option<f64>,
    /// The same for packets that go out
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    loss_out: Option<f64>,
    /// Bits that are transmitted in one second, for example 10Mbit/s
    #[arg(long, value_name = "BANDWIDTH", value_parser = bandwidth)]
    bandwidth: Option<f64>,
    /// The same for packets that come in
    #[arg(long, value_name = "BANDWIDTH", value_parser = bandwidth)]
    bandwidth_in: Option<f64>,
    /// The same for packets that go out
    #[arg(long, value_name = "BANDWIDTH", value_parser = bandwidth)]
    bandwidth_out: Option<f64>,
    /// What may wait for transmission if the bandwidth is limited: a number of packets, or a size such as 64KB
    #[arg(long, value_name = "PACKETS|SIZE", value_parser = queue_limit)]
    queue: Option<QueueLimit>,
    /// Let packets overtake others that drew a longer delay; otherwise they wait for them
    #[arg(long)]
    reorder: bool,
    /// What does it: the kernel (netem), or a process that holds packets (nfqueue)
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    backend: BackendName,
    /// Interface, which needs netem (default: all that have an address of the matched networks; nfqueue always uses all)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    interface: Vec<String>,
    /// Seed of random delays and losses, which then repeat (nfqueue only)
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run until Ctrl-C and remove everything then, instead of going to the background
    #[arg(long)]
    foreground: bool,
    /// Print the commands that would change this host, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Directions {
    In,
    Out,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackendName {
    Auto,
    Netem,
    Nfqueue,
}

/// A network; bits behind the prefix do not matter.
fn network(text: &str) -> Result<IpPrefix, String> {
    text.parse().map(IpPrefix::network)
}

fn time_distr(text: &str) -> Result<Distr, String> {
    match values::distr(text, Unit::Time)? {
        Distr::Zipf { .. } | Distr::Seq { .. } => {
            Err(format!("`{text}` is a distribution of counts, not of times"))
        }
        distr => Ok(distr),
    }
}

/// Bits per second. Networks count in steps of 1000.
fn bandwidth(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a bandwidth: write 10Mbit/s, 56Kbit/s, 1Gbit/s or 56Kbps");
    let lower = text.to_ascii_lowercase();
    let amount = lower.strip_suffix("bit/s").or_else(|| lower.strip_suffix("bps")).ok_or_else(wrong)?;
    let units = [('k', 1e3), ('m', 1e6), ('g', 1e9)];
    let scaled = units.into_iter().find_map(|(letter, scale)| Some((amount.strip_suffix(letter)?, scale)));
    let (digits, scale) = scaled.unwrap_or((amount, 1.0));
    let value = digits.trim().parse::<f64>().map_err(|_| wrong())? * scale;
    if value.is_finite() && value >= 1.0 { Ok(value) } else { Err(wrong()) }
}

fn queue_limit(text: &str) -> Result<QueueLimit, String> {
    let wrong = || format!("`{text}` is not a limit: write 50 for packets or 64KB for bytes");
    if let Ok(count) = text.parse() {
        return if count > 0 { Ok(QueueLimit::Packets(count)) } else { Err(wrong()) };
    }
    values::size(text).map(QueueLimit::Bytes).map_err(|_| wrong())
}

/// Carries out the command.
pub fn run(args: &WanArgs) -> Done {
    match &args.command {
        None => set_up(&args.emulation),
        Some(WanCommand::Status(status)) => show(status),
        Some(WanCommand::Off) => off(),
    }
}

/// The life of the process in the background.
pub fn serve() -> Done {
    let wait = || {
        // Without handlers a signal ends the process, and the kernel drops what it holds.
        while polygraph_engine::signals::wait(None).is_err() {
            std::thread::park();
        }
    };
    user_space::serve(wait).map_err(failure)?;
    done()
}

fn failure(error: WanError) -> Failure {
    Failure::setup(error)
}

fn set_up(args: &EmulationArgs) -> Done {
    let emulation = emulation(args)?;
    let own = std::env::current_exe().map_err(Failure::setup)?;
    let options = StartOptions {
        backend: match args.backend {
            BackendName::Auto => Backend::Auto,
            BackendName::Netem => Backend::Netem,
            BackendName::Nfqueue => Backend::Nfqueue,
        },
        interfaces: args.interface.clone(),
        process: [&own.to_string_lossy(), "net", "wan_process"].map(str::to_owned).to_vec(),
        foreground: args.foreground,
    };
    if args.dry_run {
        let (steps, fallback) = planned_steps(&emulation, &options).map_err(failure)?;
        note_fallback(fallback.as_deref());
        let lines = steps.iter().map(|step| shell_line(&step.command) + "\n");
        output::print(&lines.collect::<String>());
        return done();
    }
    let started = start(&emulation, &options).map_err(failure)?;
    note_fallback(started.fallback.as_deref());
    output::print(&headline(&started.active));
    if !args.foreground {
        started.keep().map_err(failure)?;
        return done();
    }
    polygraph_engine::signals::wait(None).map_err(Failure::setup)?;
    output::print(&describe(&started.active.status()));
    let undone = started.stop();
    for (change, error) in &undone.failed {
        output::warn(&format!("not undone: {change}: {error}"));
    }
    Ok(if undone.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SETUP) })
}

fn note_fallback(reason: Option<&str>) {
    if let Some(reason) = reason {
        output::note(&format!("packets are held in user space: {reason}"));
    }
}

/// A command line that a shell understands.
fn shell_line(words: &[String]) -> String {
    let plain = |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=%".contains(c));
    let quoted = words.iter().map(|word| if plain(word) { word.clone() } else { format!("'{word}'") });
    quoted.collect::<Vec<_>>().join(" ")
}

/// An option for a direction that is not emulated.
fn option_without_effect(args: &EmulationArgs) -> Option<&'static str> {
    let inbound = [
        ("--pipe_in", args.pipe_in.is_some()),
        ("--delay_in", args.delay_in.is_some()),
        ("--jitter_in", args.jitter_in.is_some()),
        ("--loss_in", args.loss_in.is_some()),
        ("--bandwidth_in", args.bandwidth_in.is_some()),
    ];
    let outbound = [
        ("--pipe_out", args.pipe_out.is_some()),
        ("--delay_out", args.delay_out.is_some()),
        ("--jitter_out", args.jitter_out.is_some()),
        ("--loss_out", args.loss_out.is_some()),
        ("--bandwidth_out", args.bandwidth_out.is_some()),
    ];
    let unused = match args.direction {
        Directions::Both => return None,
        Directions::In => outbound,
        Directions::Out => inbound,
    };
    unused.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

fn emulation(args: &EmulationArgs) -> Result<Emulation, Failure> {
    if let Some(name) = option_without_effect(args) {
        return Err(Failure::usage(format!(
            "{name} has no effect, because --direction leaves its direction out"
        )));
    }
    let pipe = |direction: Direction,
                named: Option<NamedPipe>,
                delay,
                jitter,
                loss: Option<f64>,
                bandwidth: Option<f64>| {
        let wanted = match args.direction {
            Directions::Both => true,
            Directions::In => direction == Direction::In,
            Directions::Out => direction == Direction::Out,
        };
        let base = named.or(args.pipe).map(NamedPipe::pipe).unwrap_or_default();
        let choose = |own: &Option<Distr>, common: &Option<Distr>| own.clone().or_else(|| common.clone());
        wanted.then(|| Pipe {
            delay: choose(delay, &args.delay).unwrap_or(base.delay),
            jitter: choose(jitter, &args.jitter).or(base.jitter),
            loss: loss.or(args.loss).unwrap_or(base.loss),
            bandwidth: bandwidth.or(args.bandwidth).or(base.bandwidth),
            queue: args.queue.unwrap_or(base.queue),
            reorder: args.reorder,
        })
    };
    let emulation = Emulation {
        networks: args.networks.clone(),
        peers: args.peers.clone(),
        inbound: pipe(
            Direction::In,
            args.pipe_in,
            &args.delay_in,
            &args.jitter_in,
            args.loss_in,
            args.bandwidth_in,
        ),
        outbound: pipe(
            Direction::Out,
            args.pipe_out,
            &args.delay_out,
            &args.jitter_out,
            args.loss_out,
            args.bandwidth_out,
        ),
        seed: args.seed,
    };
    if emulation.pipes().next().is_none() {
        return Err(Failure::usage(
            "there is nothing to emulate: add --delay, --jitter, --loss, --bandwidth or --pipe",
        ));
    }
    if args.queue.is_some() && emulation.pipes().all(|(_, pipe)| pipe.bandwidth.is_none()) {
        return Err(Failure::usage("--queue has no effect without a limited bandwidth: add --bandwidth"));
    }
    let directions = [Direction::In, Direction::Out];
    if directions.into_iter().all(|direction| emulation.pairs(direction).is_empty()) {
        return Err(Failure::usage("the networks of --match and --peer are of different IP versions"));
    }
    Ok(emulation)
}

/// What is set up, in one line for each pipe.
fn headline(active: &ActiveEmulation) -> String {
    let means = match &active.means {
        Means::Netem(setup) => {
            let names: Vec<&str> = setup.interfaces.iter().map(|interface| interface.name.as_str()).collect();
            format!("by netem on {}", names.join(", "))
        }
        Means::Nfqueue { pid, firewall, .. } => {
            format!("in user space by process {pid}, with rules of {}", firewall.program())
        }
    };
    let mut text = format!("{}: {means}\n", active.emulation);
    for (direction, pipe) in active.emulation.pipes() {
        let _ = writeln!(text, "  {direction:<3}  {pipe}");
    }
    text
}

fn show(args: &StatusArgs) -> Done {
    let all = ActiveEmulation::all_here().map_err(failure)?;
    let answers: Vec<StatusAnswer> = all.iter().map(ActiveEmulation::status).collect();
    if args.json {
        let list: Value = all.iter().zip(&answers).map(|(active, answer)| json_of(active, answer)).collect();
        output::print_json(&json!({ "emulations": list }));
    } else if all.is_empty() {
        output::print("nothing is emulated\n");
    } else {
        for (active, answer) in all.iter().zip(&answers) {
            output::print(&(headline(active) + &describe(answer)));
        }
    }
    let broken = answers.iter().any(|answer| matches!(answer, StatusAnswer::Broken(_)));
    Ok(if broken { ExitCode::from(SETUP) } else { ExitCode::SUCCESS })
}

/// The figures of an emulation, one block for each direction.
fn describe(answer: &StatusAnswer) -> String {
    let status = match answer {
        StatusAnswer::Working(status) => status,
        StatusAnswer::Broken(reason) => return format!("  not working: {reason}\n"),
    };
    let mut text: String = status.pipes.iter().map(counters).collect();
    if status.seconds > 0.0 {
        text += &format!(
            "  processor time {:.2} s in {:.1} s ({:.1} %)\n",
            status.cpu_seconds,
            status.seconds,
            status.cpu_seconds / status.seconds * 100.0
        );
    }
    if status.errors > 0 {
        text += &format!("  {} packets or messages that the kernel did not take\n", status.errors);
    }
    text
}

fn counters(pipe: &PipeStatus) -> String {
    let share = |count: u64| if pipe.packets > 0 { count as f64 * 100.0 / pipe.packets as f64 } else { 0.0 };
    let mut text = format!(
        "  {:<3}  {} packets: {} delivered, {} lost ({:.4} %)",
        pipe.direction.to_string(),
        pipe.packets,
        pipe.delivered,
        pipe.lost,
        share(pipe.lost)
    );
    if let Some(overflowed) = pipe.overflowed {
        let _ = write!(text, ", {overflowed} found the queue full");
    }
    let _ = write!(text, ", {} on their way", pipe.held);
    if pipe.missed > 0 {
        let _ = write!(text, "; {} more were dropped because the process was too slow", pipe.missed);
    }
    text.push('\n');
    match &pipe.excess {
        Some(late) => text += &format!("       held longer than intended: {}\n", excess(late)),
        None if pipe.overflowed.is_none() => text += "       the kernel does not tell the accuracy\n",
        None => {}
    }
    text
}

fn excess(late: &HoldExcess) -> String {
    format!(
        "mean {:.0} us, half of them up to {:.0}, 99 % up to {:.0}, 99.9 % up to {:.0}, at most {:.0} us",
        late.mean_us, late.p50_us, late.p99_us, late.p999_us, late.max_us
    )
}

fn json_of(active: &ActiveEmulation, answer: &StatusAnswer) -> Value {
    let (status, problem): (Option<&Status>, Option<&str>) = match answer {
        StatusAnswer::Working(status) => (Some(status), None),
        StatusAnswer::Broken(reason) => (None, Some(reason)),
    };
    json!({ "emulation": active.emulation, "means": active.means, "status": status, "problem": problem })
}

fn off() -> Done {
    let (undone, in_use) = stop_all().map_err(failure)?;
    for change in &undone.done {
        output::print(&format!("removed: {change}\n"));
    }
    for (change, error) in &undone.failed {
        output::warn(&format!("not removed: {change}: {error}"));
    }
    if in_use > 0 {
        output::warn(&format!(
            "{in_use} run in the foreground of another terminal: stop them there with Ctrl-C"
        ));
    }
    if undone.done.is_empty() && undone.failed.is_empty() && in_use == 0 {
        output::print("nothing is emulated\n");
    }
    Ok(if undone.failed.is_empty() && in_use == 0 { ExitCode::SUCCESS } else { ExitCode::from(SETUP) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_and_queues() {
        assert_eq!(bandwidth("10Mbit/s"), Ok(1e7));
        assert_eq!(bandwidth("56Kbps"), Ok(56e3));
        assert_eq!(bandwidth("1.5 gbit/s"), Ok(1.5e9));
        assert_eq!(bandwidth("100bit/s"), Ok(100.0));
        for wrong in ["10", "Mbit/s", "-1Mbit/s", "0bps", "10MB/s", "infMbit/s"] {
            assert!(bandwidth(wrong).is_err(), "{wrong}");
        }
        assert_eq!(queue_limit("50"), Ok(QueueLimit::Packets(50)));
        assert_eq!(queue_limit("64KB"), Ok(QueueLimit::Bytes(65536)));
        assert!(queue_limit("0").is_err() && queue_limit("x").is_err());
        assert!(time_distr("zipf:4").is_err() && time_distr("exp:4ms").is_ok());
    }

    #[test]
    fn figures_for_people() {
        let excess =
            HoldExcess { mean_us: 60.4, p50_us: 55.0, p99_us: 150.0, p999_us: 400.0, max_us: 1234.5 };
        let pipe = PipeStatus {
            direction: Direction::In,
            packets: 10_000,
            delivered: 9_990,
            lost: 5,
            overflowed: Some(2),
            held: 3,
            missed: 0,
            excess: Some(excess),
        };
        let status = Status { seconds: 10.0, cpu_seconds: 0.5, errors: 0, pipes: vec![pipe] };
        assert_eq!(
            describe(&StatusAnswer::Working(status)),
            "  in   10000 packets: 9990 delivered, 5 lost (0.0500 %), 2 found the queue full, 3 on their way\n       \
             held longer than intended: mean 60 us, half of them up to 55, 99 % up to 150, 99.9 % up to 400, at most 1234 us\n  \
             processor time 0.50 s in 10.0 s (5.0 %)\n"
        );
    }

    #[test]
    fn commands_for_a_shell() {
        let words = ["nft", "table inet x {\n}\n"].map(str::to_owned);
        assert_eq!(shell_line(&words), "nft 'table inet x {\n}\n'");
    }
}
