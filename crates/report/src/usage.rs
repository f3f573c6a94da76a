//! The resources that a device used over time, and how it ended, from its result directory.

use std::path::Path;

/// Name of the file that describes a result directory.
pub const MANIFEST: &str = "manifest.json";
/// Name of the file of a result directory that has the resources used by the device over time: a table with a heading.
pub const USAGE: &str = "device/usage.csv";

/// Resources that a device had used at a point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsageSample {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Processor time since then, in seconds.
    pub cpu_s: f64,
    /// Resident memory in bytes.
    pub resident_bytes: f64,
    /// For how many seconds its threads were ready to run and had no processor; `None` if nobody counted it.
    pub waiting_s: Option<f64>,
    /// For how many seconds threads of its host waited for disks, since any time; `None` if nobody counted it.
    pub io_pressure_s: Option<f64>,
}

/// The end of a device that the program started, if nobody asked it to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceEnd {
    /// Its name, for example `squid`.
    pub name: String,
    /// The exit status of its process in words: a signal or a code.
    pub status: String,
}

/// How the device of a result directory ended by itself; `None` if it did not, or there is no device or no manifest.
pub(crate) fn end_in(directory: &Path) -> Option<DeviceEnd> {
    let manifest = std::fs::read(directory.join(MANIFEST)).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
    let device = &manifest["device"];
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    Some(DeviceEnd { name: text(&device["name"])?, status: text(&device["result"]["ended_by_itself"])? })
}

/// The resources used by the device of a result directory over time; empty if it has no such table.
pub(crate) fn usage_in(directory: &Path) -> Vec<UsageSample> {
    std::fs::read_to_string(directory.join(USAGE)).map(|csv| samples(&csv)).unwrap_or_default()
}

/// The samples of a table; invalid lines are ignored.
fn samples(csv: &str) -> Vec<UsageSample> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| head.iter().position(|cell| *cell == name);
    let (Some(at), Some(cpu), Some(resident)) =
        (column("seconds"), column("cpu_seconds"), column("resident_bytes"))
    else {
        return Vec::new();
    };
    let sample = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |index: usize| cells.get(index)?.parse().ok().filter(|value: &f64| value.is_finite());
        Some(UsageSample {
            at_s: cell(at)?,
            cpu_s: cell(cpu)?,
            resident_bytes: cell(resident)?,
            waiting_s: column("waiting_seconds").and_then(cell),
            io_pressure_s: column("io_pressure_seconds").and_then(cell),
        })
    };
    lines.filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_device_ended_is_in_the_manifest() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(end_in(dir.path()), None);
        for (status, end) in [("null", None), ("\"exit status: 1\"", Some("exit status: 1"))] {
            let manifest = format!(
                r#"{{ "device": {{ "name": "squid", "result": {{ "ended_by_itself": {status} }} }} }}"#
            );
            std::fs::write(dir.path().join(MANIFEST), manifest).unwrap();
            let end = end.map(|status| DeviceEnd { name: "squid".into(), status: status.into() });
            assert_eq!(end_in(dir.path()), end);
        }
    }

    #[test]
    fn tables_of_older_versions_lack_columns() {
        let at = |at_s, waiting_s, io_pressure_s| UsageSample {
            at_s,
            cpu_s: 0.5,
            resident_bytes: 1000.0,
            waiting_s,
            io_pressure_s,
        };
        let older = "seconds,cpu_seconds,resident_bytes,processes\n1.0,0.5,1000,2\n";
        assert_eq!(samples(older), [at(1.0, None, None)]);
        let newer = "seconds,cpu_seconds,resident_bytes,processes,waiting_seconds,io_pressure_seconds\n\
                     1.0,0.5,1000,2,0.25,\nbroken\n2.0,0.5,1000,2,0.5,17.5\n";
        assert_eq!(samples(newer), [at(1.0, Some(0.25), None), at(2.0, Some(0.5), Some(17.5))]);
        assert_eq!(samples(""), []);
    }
}
