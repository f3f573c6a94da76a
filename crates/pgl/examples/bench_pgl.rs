//! How long the front end takes: PolyMix-4, and a generated program of some megabytes in two sizes.
//!
//! `cargo run --release --example bench_pgl`; the table goes to standard output.
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::fmt::Write;
use std::time::Instant;

use polygraph_pgl::{Compilation, DiskLoader, Loader, MemoryLoader, Options, compile};

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
    measure("PolyMix-4 at 1000/sec", "polymix-4.pg", &DiskLoader, &options);
    for megabytes in [1, 2, 5] {
        let text = generated(megabytes << 20);
        let loader = MemoryLoader::default().with("big.pg", text);
        measure(&format!("generated, {megabytes} MB"), "big.pg", &loader, &Options::default());
    }
}

fn measure(what: &str, name: &str, loader: &dyn Loader, options: &Options) {
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let compilation: Compilation = compile(name, loader, options);
        best = best.min(start.elapsed().as_secs_f64());
        assert!(!compilation.has_errors(), "{}", compilation.render(polygraph_pgl::render::Style::Plain));
    }
    println!("{what:<24} {:>9.2} ms", best * 1e3);
}

/// A program with many contents, servers, robots, arrays and expressions.
fn generated(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 1000);
    let mut index = 0;
    while text.len() < bytes {
        let (a, b) = (index / 250, index % 250 + 1);
        let _ = write!(
            text,
            "// Group {index}\nint n{index} = {index} % 7 + 2 * 3;\nrate r{index} = n{index}/sec + 5/min * 2;\n\
             Content C{index} = {{\n    kind = \"kind{index}\";\n    size = exp({index}KB + 1KB);\n    cachable = 80%;\n\
             \u{20}   obj_life_cycle = {{ length = const(7day); with_lmt = 100%; expires = [nmt + 0]; }};\n}};\n\
             Server S{index} = {{\n    contents = [C{index}: 70%, C{index}: 30%];\n    addresses = ['10.{}.{}.{b}:80'];\n}};\n\
             Robot R{index} = {{\n    origins = S{index}.addresses;\n    req_rate = r{index} / 10;\n    recurrence = 55% / 80%;\n\
             \u{20}   pop_model = {{ pop_distr = popUnif(); }};\n    addresses = ['10.{}.{}.{b}' ** 2];\n}};\nuse(S{index}, R{index});\n",
            100 + a / 250,
            a % 250,
            a / 250,
            a % 250,
        );
        index += 1;
    }
    text.push_str("Phase P = { name = \"p\"; goal.duration = 1min; };\nschedule(P);\n");
    text
}
