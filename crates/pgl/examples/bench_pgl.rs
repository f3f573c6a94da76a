//! What the front end costs: a check of PolyMix-4, and of a generated program in three sizes.
//!
//! `cargo run --release -p polygraph-pgl --example bench_pgl` prints a table. With `--json` there is one line for each
//! program instead: its name, its bytes, and the processor time of each repeat in milliseconds. `make bench` reads those.
#![expect(clippy::print_stdout, reason = "a program for people")]

use polygraph_pgl::{Compilation, DiskLoader, Loader, MemoryLoader, Options, compile};

use generated::generated;

#[path = "../tests/it/generated.rs"]
mod generated;

fn main() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let settings = [
        ("TheBench.peak_req_rate", "1000/sec"),
        ("FillRate", "500/sec"),
        ("ProxyCacheSize", "54GB"),
        ("DnsServers", "['172.16.101.100:53']"),
    ];
    let options = Options {
        search_path: vec![root.to_owned(), format!("{root}/include")],
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..Options::default()
    };
    let json = std::env::args().any(|arg| arg == "--json");
    measure("PolyMix-4 at 1000/sec", "polymix-4.pg", &DiskLoader, &options, json);
    for megabytes in [1, 2, 5] {
        let text = generated(megabytes << 20);
        let loader = MemoryLoader::default().with("big.pg", text);
        measure(&format!("generated, {megabytes} MB"), "big.pg", &loader, &Options::default(), json);
    }
}

/// Samples of each program, and the least processor time of one in milliseconds.
const REPEATS: usize = 5;
const SAMPLE_MS: f64 = 400.0;

fn measure(what: &str, name: &str, loader: &dyn Loader, options: &Options, json: bool) {
    let mut times = Vec::with_capacity(REPEATS);
    let mut bytes = 0;
    for _ in 0..REPEATS {
        let start = cpu_ms();
        let mut count = 0.0;
        // The account of a running process is kept only every few milliseconds, so that a sample takes many of them.
        while count == 0.0 || cpu_ms() - start < SAMPLE_MS {
            let compilation: Compilation = compile(name, loader, options);
            assert!(!compilation.has_errors(), "{}", compilation.render(polygraph_pgl::render::Style::Plain));
            bytes = compilation.sources.files().iter().map(|file| file.text.len()).sum();
            count += 1.0;
        }
        times.push((cpu_ms() - start) / count);
    }
    if json {
        println!("{}", serde_json::json!({ "program": what, "bytes": bytes, "cpu_ms": times }));
        return;
    }
    times.sort_by(f64::total_cmp);
    println!("{what:<24} {:>9.2} ms of processor time", times[REPEATS / 2]);
}

/// Processor time of this process so far, which other programs on the machine change less than the time of day.
fn cpu_ms() -> f64 {
    // The scheduler's account has nanoseconds; the process has one thread.
    let account = std::fs::read_to_string("/proc/self/schedstat").expect("Linux with scheduler statistics");
    let spent = account.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    spent.expect("a number of nanoseconds") / 1e6
}
