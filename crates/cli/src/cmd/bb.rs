//! `bb`: the classic sequence of a bake-off with one device, as a plan that `bakeoff` carries out.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Parser;
use polygraph_bakeoff::plan::BakeoffPlan;
use polygraph_plan::values;
use polygraph_runner::{Failure, make_directory, write_file};

use super::bakeoff::{BAKEOFFS, carry_out, check_devices};
use crate::exit::Done;
use crate::options::values::{host_port, key_value};
use crate::output;

/// Options of `bb`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Checks the network, runs without the proxy, fills the cache, then runs PolyMix-1 at each rate with pauses in between: \
        12 hours with the default options. Run the same command again to resume.\n\
        Examples:\n  bb --proxy 10.0.0.1:3128 --size 20GB --rates 250,25,225,50,200,80,100,180,130,160\n  \
        bb --proxy 10.0.0.1:3128 --size 20GB --hosts bench.toml \\\n    \
        --robots 10.1.0.1-4 --servers 10.1.0.11-14:80\n  \
        bb --device squid --device_opt mem=64MB --rates 20,80,50 --goal 2min \\\n    \
        --idle 10s --launch_win 10s --check 30s",
    group = clap::ArgGroup::new("target").args(["proxy", "device"]).required(true),
    group = clap::ArgGroup::new("elsewhere").args(["hosts", "fleet"])
)]
pub struct Args {
    /// Address of the proxy under test
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, requires = "size")]
    proxy: Option<String>,
    /// Device to start: a name from `polygraph devices`, or a directory with a device description
    #[arg(long, value_name = "NAME|DIR")]
    device: Option<String>,
    /// Parameter of the device; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, requires = "device")]
    device_opt: Vec<(String, String)>,
    /// Size of the cache
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// Request rates per second, in the order of the runs
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "250,25,225,50,200,80,100,180,130,160"
    )]
    rates: Vec<f64>,
    /// Highest rate that the vendor claims. Default: the highest rate of the list
    #[arg(long, value_name = "RATE")]
    claimed: Option<f64>,
    /// Length of a run
    #[arg(long, value_name = "TIME", default_value = "1hr", value_parser = time)]
    goal: String,
    /// Time over which the load rises linearly to its full rate
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = time)]
    launch_win: String,
    /// Length of the cool-down after a run
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = time)]
    cool: String,
    /// Pause between runs
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = time)]
    idle: String,
    /// Length of the run without a proxy
    #[arg(long, value_name = "TIME", default_value = "1hr", value_parser = time)]
    check: String,
    /// Run robots and servers on the hosts of a list, by ssh (docs/fleet.md#without-nats). Default: on this machine
    #[arg(long, value_name = "HOSTS.toml", requires_all = ["proxy", "robots", "servers"], conflicts_with = "fleet")]
    hosts: Option<PathBuf>,
    /// Run robots and servers on the agents of this NATS
    #[arg(long, value_name = "URL", requires_all = ["proxy", "robots", "servers"])]
    fleet: Option<String>,
    /// Addresses of the robots on these hosts, for example 10.1.0.1-4; repeatable
    #[arg(long, value_name = "RANGE", requires = "elsewhere")]
    robots: Vec<String>,
    /// Addresses with ports of the origin servers on these hosts, for example 10.1.0.11-14:80; repeatable
    #[arg(long, value_name = "RANGE", requires = "elsewhere")]
    servers: Vec<String>,
    /// Name of the series
    #[arg(long, value_name = "WORD", default_value = "bb")]
    label: String,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Directory of results
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

fn time(text: &str) -> Result<String, String> {
    values::time(text).map(|_| text.to_owned())
}

/// Writes the plan and carries it out.
pub fn run(args: Args) -> Done {
    let text = plan(&args);
    let directory = args.runs.join(BAKEOFFS);
    let path = directory.join(format!("{}.toml", args.label));
    // The plan is checked before it is written, so that messages name options and not lines of the file.
    check_devices(&BakeoffPlan::parse(&text, "bb", &directory).map_err(Failure::usage)?)?;
    make_directory(&directory)?;
    write_file(&path, text)?;
    output::note(&format!("plan: {}", path.display()));
    carry_out(&path, &args.runs, &[], false, args.json)
}

fn plan(args: &Args) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "title = {}\nrates = {:?}\n\n[workload]\nduration = {}\ncool = {}\n\n[rules]\nlaunch_window = {}\nidle_gap = {}\n\n",
        quoted(&format!("Classic sequence: {}", args.label)),
        args.rates,
        quoted(&args.goal),
        quoted(&args.cool),
        quoted(&args.launch_win),
        quoted(&args.idle),
    );
    let hosts = args.hosts.as_ref().map(|path| format!("ssh:{}", path.display()));
    let fleet = hosts.as_ref().or(args.fleet.as_ref());
    if let Some(url) = fleet {
        let list =
            |ranges: &[String]| ranges.iter().map(|range| quoted(range)).collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "[fleet]\nurl = {}\nrobots = [{}]\nservers = [{}]\noptions = {{ start_in = \"20s\" }}\n\n",
            quoted(url),
            list(&args.robots),
            list(&args.servers)
        );
    }
    // Between hosts, `polygraph net throughput` measures it.
    let network = if fleet.is_some() { "none" } else { "10s" };
    let _ =
        write!(text, "[checks]\nno_proxy = {}\nnetwork = \"{network}\"\n\n[[device]]\n", quoted(&args.check));
    let name = args.device.as_deref().map_or("proxy", |device| device.rsplit('/').next().unwrap_or(device));
    let _ = writeln!(text, "name = {}", quoted(name));
    let mut field = |name: &str, value: Option<&String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{name} = {}", quoted(value));
        }
    };
    field("device", args.device.as_ref());
    field("proxy", args.proxy.as_ref());
    field("size", args.size.as_ref());
    if let Some(claimed) = args.claimed {
        let _ = writeln!(text, "claimed = {claimed:?}");
    }
    let option = |(key, value): &(String, String)| format!("{} = {}", quoted(key), quoted(value));
    let options: Vec<String> = args.device_opt.iter().map(option).collect();
    if !options.is_empty() {
        let _ = writeln!(text, "options = {{ {} }}", options.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_a_plan() {
        let words = "bb --device devices/squid --device_opt mem=64MB --device_opt store_type=aufs --rates 20,80.5 --goal 2min \
            --idle 10s --launch_win 10s --check 30s --claimed 90 --label my";
        let args = Args::try_parse_from(words.split_whitespace()).unwrap();
        let plan = BakeoffPlan::parse(&plan(&args), "bb", "".as_ref()).unwrap();
        assert_eq!(plan.devices[0].rates, [20.0, 80.5]);
        assert_eq!((plan.devices[0].name.as_str(), plan.devices[0].claimed), ("squid", 90.0));
        assert_eq!((plan.rules.idle_gap_s, plan.checks.no_proxy_s), (10.0, Some(30.0)));
        let classic = Args::try_parse_from(["bb", "--proxy", "h:1", "--size", "20GB"]).unwrap();
        let plan = BakeoffPlan::parse(&super::plan(&classic), "bb", "".as_ref()).unwrap();
        assert_eq!((plan.run_s(), plan.rules.idle_gap_s, plan.devices[0].rates.len()), (3660.0, 600.0, 10));
        let spread =
            "bb --proxy h:1 --size 1GB --hosts /x/bench.toml --robots 10.1.0.1-4 --servers 10.1.0.11-14:80";
        let spread = Args::try_parse_from(spread.split_whitespace()).unwrap();
        let plan = BakeoffPlan::parse(&super::plan(&spread), "bb", "".as_ref()).unwrap();
        let fleet = plan.workload.fleet.unwrap();
        assert_eq!((fleet.url.as_str(), plan.checks.network_s), ("ssh:/x/bench.toml", None));
        assert_eq!(
            (fleet.robots, fleet.servers),
            (vec!["10.1.0.1-4".to_owned()], vec!["10.1.0.11-14:80".to_owned()])
        );
        for wrong in [
            "bb",
            "bb --proxy h:1 --size 1GB --hosts bench.toml",
            "bb --proxy h:1 --size 1GB --robots 10.1.0.1",
            "bb --device a --hosts bench.toml --robots 10.1.0.1 --servers 10.1.0.2:80",
            "bb --proxy h:1",
            "bb --device a --goal long",
            "bb --device a --device_opt mem",
            "bb --proxy h:1 --size 1GB --device a",
        ] {
            assert!(Args::try_parse_from(wrong.split_whitespace()).is_err(), "{wrong}");
        }
    }
}
