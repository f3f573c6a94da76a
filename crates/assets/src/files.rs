//! All built-in files.

/// A built-in file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its path in the source tree.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! assets {
    ($($path:literal)+) => {
        &[$(Asset { path: $path, text: include_str!(concat!("../../../", $path)) }),+]
    };
}

/// The files, in the order in which commands list them.
const ALL: &[Asset] = assets![
    "workloads/simple.pg"
    "workloads/correctness.pg"
    "workloads/polymix-1.pg"
    "workloads/datacomm-1.pg"
    "workloads/polymix-2.pg"
    "workloads/polyfill-2.pg"
    "workloads/polymix-3.pg"
    "workloads/polymix-4.pg"
    "workloads/polymix-4-tls.pg"
    "workloads/rptmstat.pg"
    "workloads/rptmstat-1.pg"
    "workloads/webaxe-1.pg"
    "workloads/webaxe-3.pg"
    "workloads/webaxe-4.pg"
    "workloads/webaxe-4-tls.pg"
    "workloads/polymix-2026.pg"
    "workloads/srvlb-l4-4.pg"
    "workloads/nolb-l4-4.pg"
    "workloads/srvlb-l7-4.pg"
    "workloads/pxylb-4.pg"
    "workloads/downtime-2.pg"
    "workloads/include/benches.pg"
    "workloads/include/contents.pg"
    "workloads/include/phases-4.pg"
    "workloads/include/phases.pg"
    "workloads/include/polymix-3-guts.pg"
    "workloads/include/polymix-4-agents.pg"
    "workloads/include/polymix-4-guts.pg"
    "workloads/include/polymix-4-tls-guts.pg"
    "workloads/include/tls.pg"
    "workloads/include/pxylb-4-guts.pg"
    "workloads/include/srvlb-4-guts.pg"
    "workloads/include/webaxe-3-guts.pg"
    "workloads/include/webaxe-4-agents.pg"
    "workloads/include/webaxe-4-guts.pg"
    "workloads/include/webaxe-4-tls-guts.pg"
    "workloads/include/polymix-2026-guts.pg"
    "devices/squid/device.toml"
    "devices/squid/squid.conf"
    "devices/squid-bump/device.toml"
    "devices/squid-bump/squid.conf"
    "devices/squid-bump/certgen.sh"
    "devices/trafficserver/device.toml"
    "devices/trafficserver/runroot.yaml"
    "devices/trafficserver/etc/records.config"
    "devices/trafficserver/etc/storage.config"
    "devices/trafficserver/etc/logging.yaml"
    "devices/trafficserver/etc/ip_allow.yaml"
    "devices/trafficserver-surrogate/device.toml"
    "devices/trafficserver-surrogate/runroot.yaml"
    "devices/trafficserver-surrogate/etc/records.config"
    "devices/trafficserver-surrogate/etc/storage.config"
    "devices/trafficserver-surrogate/etc/logging.yaml"
    "devices/trafficserver-surrogate/etc/ip_allow.yaml"
    "devices/trafficserver-surrogate/etc/remap.config"
    "devices/trafficserver-surrogate/etc/ssl_multicert.config"
    "devices/varnish/device.toml"
    "devices/varnish/main.vcl"
    "devices/nginx/device.toml"
    "devices/nginx/nginx.conf"
    "devices/nginx-forward/device.toml"
    "devices/nginx-forward/nginx.conf"
    "devices/haproxy/device.toml"
    "devices/haproxy/haproxy.cfg"
    "devices/caddy/device.toml"
    "devices/caddy/caddy.json"
    "devices/haproxy-proxies/device.toml"
    "devices/haproxy-proxies/haproxy.cfg"
    "bakeoffs/five-caches.toml"
    "bakeoffs/five-caches/builtin.txt"
    "bakeoffs/five-caches/nginx.txt"
    "bakeoffs/five-caches/squid-disk.txt"
    "bakeoffs/five-caches/squid-memory-referee.txt"
    "bakeoffs/five-caches/squid-memory.txt"
    "bakeoffs/five-caches/trafficserver.txt"
    "labs/two-hosts.toml"
    "labs/polymix-3.toml"
    "labs/fleet.toml"
    "labs/webaxe-4.toml"
    "data/bakeoff-1.csv"
    "data/bakeoff-1-equipment.csv"
    "data/bakeoff-1-products.csv"
];

/// All built-in files.
pub fn all() -> &'static [Asset] {
    ALL
}

/// The files below a directory of the source tree, in order.
pub fn below(directory: &str) -> impl Iterator<Item = &'static Asset> {
    let start = format!("{}/", directory.trim_end_matches('/'));
    ALL.iter().filter(move |asset| asset.path.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn collect(directory: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_file_for_users_is_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = BTreeSet::new();
        for directory in ["workloads", "devices", "bakeoffs", "labs", "data"] {
            collect(&root.join(directory), &root, &mut found);
        }
        // Pages for readers, and the script that installs packages for tests.
        found.retain(|path| !path.ends_with(".md") && path != "devices/install.sh");
        let built_in: BTreeSet<String> = ALL.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(built_in, found);
        assert_eq!(built_in.len(), ALL.len(), "a file is listed twice");
    }
}
