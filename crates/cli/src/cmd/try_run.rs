//! `polygraph try`: everything on this machine, the built-in proxy as the device, a report at the end.

use std::path::PathBuf;

use clap::Parser;
use polygraph_device::{Device, Params};
use polygraph_engine::limits;
use polygraph_plan::{Goal, Schedule};
use polygraph_robot::Tolerance;
use polygraph_runner::device::{self, DeviceUnderTest};
use polygraph_runner::{Expectations, Failure, RunResult};

use crate::exit::{self, Done};
use crate::options::{BenchOptions, ExpectOptions, LiveOptions};
use crate::output::{self, RunConsole};

/// Options of `try`. None are needed.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case")]
pub struct Args {
    /// Parent directory of result directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    expectations: ExpectOptions,
    #[command(flatten)]
    live: LiveOptions,
}

/// The workload. Its think time is a tenth of that of PolyMix-1, which leaves time to measure in a short run.
const NAME: &str = "PolyMix-1, think time scaled to a tenth";
/// Request rate: enough for a hit ratio within half a percentage point in twenty seconds, and a small load for a machine.
const RATE: &str = "1000/sec";
/// Options of the run. They need no workload file.
const OPTIONS: [&str; 7] = ["try", "--req_rate", RATE, "--loops", "1", "--xact_think", "norm:0.3s,0.15s"];
/// Length of warm-up and measurement, and of the cool-down, in seconds.
const DURATION: f64 = 19.0;
const COOL_DOWN: f64 = 1.0;
/// Memory of the proxy in bytes: enough for all cachable objects of the run.
const CACHE: u64 = 256 << 20;

/// The options of a run, for their defaults.
#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct RunDefaults {
    #[command(flatten)]
    bench: BenchOptions,
}

/// Runs PolyMix-1 through the built-in proxy.
pub fn run(args: Args) -> Done {
    let RunDefaults { bench: options } = RunDefaults::try_parse_from(OPTIONS).map_err(Failure::usage)?;
    limits::raise_descriptor_limit();
    output::note(&format!(
        "{NAME}: robots at {RATE} -> built-in caching proxy -> origin servers, for {:.0} s",
        DURATION + COOL_DOWN
    ));
    let result = measure(&options, &args)?;
    output::print_either(args.json, || result.json(), || result.summary.clone());
    if args.json {
        return Ok(exit::of_run(&result));
    }
    output::print(&format!(
        "\nOpen {} in a browser.\nNext, test a real proxy with the think time of PolyMix-1, 3 s:\n  \
         polygraph run --proxy 127.0.0.1:3128 --req_rate 50/sec --goal 5min\n  \
         polygraph run --device squid --req_rate 50/sec --goal 5min\n",
        result.report.display()
    ));
    Ok(exit::of_run(&result))
}

fn measure(options: &BenchOptions, args: &Args) -> Result<RunResult, Failure> {
    let proxy = Device::find("builtin").map_err(device::failure)?;
    let params = Params { memory: Some(CACHE), ..Params::default() };
    let settings = options.common.run_settings();
    let goal = Goal { duration: Some(DURATION), errors: Some(0.3), ..Goal::default() };
    let test = options.test(NAME, &settings, || Schedule::classic(goal, Some(COOL_DOWN)))?;
    let mut bench = options.bench(test, &settings, "try")?;
    bench.device = Some(DeviceUnderTest::new(proxy, params, Vec::new()));
    // The built-in proxy must not answer with objects that nobody requested.
    bench.client.tolerance = Tolerance::default();
    bench.runs = &args.runs;
    bench.expectations = Expectations::from(args.expectations.clone());
    let mut live = args.live.start()?;
    let mut console = RunConsole::new(options.common.verb_lvl, &bench.test);
    bench.run(|header, record| {
        live.observe(header, record);
        console.show(header, record);
    })
}
