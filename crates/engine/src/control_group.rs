//! Control groups (cgroups(7)) of this process: where they are, how many processors they may use, and for how long the kernel stopped
//! them because they had used their quota of processor time up
//! ([CFS bandwidth control](https://docs.kernel.org/scheduler/sched-bwc.html)).

use std::fs;

/// The file that tells which control groups a process is in.
pub const GROUPS: &str = "/proc/self/cgroup";
/// Where control groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";

/// The directories of the control group that limits this process and of those above it, the innermost first. `groups` is the text of
/// [`GROUPS`]; the `controller` is `cpu` or `memory`, for example.
pub fn directories(groups: &str, controller: &str) -> Vec<String> {
    let (mount, path) = match path(groups, controller) {
        Some(path) => (format!("{MOUNTED}/{controller}"), path),
        None => (MOUNTED.to_owned(), path(groups, "").unwrap_or_default()),
    };
    let mut found = Vec::new();
    let mut path = path.trim_matches('/');
    while !path.is_empty() {
        found.push(format!("{mount}/{path}"));
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    found.push(mount);
    found
}

/// The path of this process in a hierarchy of control groups: `memory` in version 1, an empty name in version 2.
fn path<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// The quota of processor time of a control group.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorQuota {
    /// The directory of the group.
    pub directory: String,
    /// The number of processors that the group may use on average.
    pub processors: f64,
    /// How often the group was stopped because it had used its quota up; `None` if unknown.
    pub stops: Option<u64>,
}

/// The quotas of the control group of this process and of those above it, the innermost first. `read` is the text of a file of the host;
/// `None` if it cannot be read.
pub fn processor_quotas(read: impl Fn(&str) -> Option<String>) -> Vec<ProcessorQuota> {
    let quota = |directory: String| {
        let number = |name: &str, at: usize| -> Option<f64> {
            let value: f64 =
                read(&format!("{directory}/{name}"))?.split_whitespace().nth(at)?.parse().ok()?;
            Some(value).filter(|&value| value > 0.0)
        };
        // Version 2 has both in one file, and `max` for no quota; version 1 has -1 for no quota.
        let quota = number("cpu.max", 0).or_else(|| number("cpu.cfs_quota_us", 0))?;
        let period = number("cpu.max", 1).or_else(|| number("cpu.cfs_period_us", 0))?;
        let stops = read(&format!("{directory}/cpu.stat")).and_then(|text| counter(&text, "nr_throttled"));
        Some(ProcessorQuota { directory, processors: quota / period, stops })
    };
    directories(&read(GROUPS).unwrap_or_default(), "cpu").into_iter().filter_map(quota).collect()
}

/// A counter of `cpu.stat`.
fn counter(text: &str, name: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(found, _)| *found == name)?.1.trim().parse().ok()
}

/// The time in nanoseconds for which a control group was stopped because it had used its quota up, summed over processors. `stat` is the
/// text of its `cpu.stat`.
fn stopped_ns(stat: &str) -> Option<u64> {
    let version_2 = || Some(counter(stat, "throttled_usec")?.saturating_mul(1000));
    counter(stat, "throttled_time").or_else(version_2)
}

pub(crate) fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Measures for how long the kernel stops this process because a control group has used its quota of processor time up.
#[derive(Debug, Default)]
pub struct Throttling {
    /// What every control group had counted at the last reading, by directory.
    counted: Vec<(String, u64)>,
}

impl Throttling {
    /// Starts now.
    pub fn start() -> Throttling {
        let mut throttling = Throttling::default();
        throttling.take(read);
        throttling
    }

    /// Nanoseconds since the last call, summed over processors. If this process was moved to another control group, the time there counts
    /// from now on.
    pub fn take_ns(&mut self) -> u64 {
        self.take(read)
    }

    fn take(&mut self, read: impl Fn(&str) -> Option<String>) -> u64 {
        let directories = directories(&read(GROUPS).unwrap_or_default(), "cpu");
        let count = |directory: String| {
            let count = stopped_ns(&read(&format!("{directory}/cpu.stat"))?)?;
            Some((directory, count))
        };
        let now: Vec<(String, u64)> = directories.into_iter().filter_map(count).collect();
        let before = std::mem::replace(&mut self.counted, now);
        let grown = self.counted.iter().filter_map(|(directory, count)| {
            let (_, earlier) = before.iter().find(|(known, _)| known == directory)?;
            Some(count.saturating_sub(*earlier))
        });
        // A group that is stopped stops the groups in it, which count that time as well.
        grown.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions() {
        let one = "4:memory:/box\n2:cpuacct,cpu:/a/b\n0::/\n";
        assert_eq!(
            directories(one, "cpu"),
            ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu"]
        );
        assert_eq!(directories(one, "memory"), ["/sys/fs/cgroup/memory/box", "/sys/fs/cgroup/memory"]);
        assert_eq!(directories("0::/a.slice\n", "cpu"), ["/sys/fs/cgroup/a.slice", "/sys/fs/cgroup"]);
        assert_eq!(directories("", "cpu"), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn the_time_for_which_groups_were_stopped() {
        for (stat, want) in [
            ("nr_periods 9\nnr_throttled 4\nthrottled_time 1234567\n", Some(1_234_567)),
            ("usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1234\n", Some(1_234_000)),
            ("usage_usec 1\nuser_usec 1\n", None),
            ("throttled_usec x\n", None),
            ("", None),
        ] {
            assert_eq!(stopped_ns(stat), want, "{stat:?}");
        }
    }

    #[test]
    fn the_longest_time_of_nested_groups_counts_from_the_first_reading() {
        let files = |group: &'static str, inner: u64, outer: u64| {
            move |path: &str| match path {
                GROUPS => Some(format!("0::/{group}\n")),
                "/sys/fs/cgroup/a/b/cpu.stat" => Some(format!("throttled_usec {inner}\n")),
                "/sys/fs/cgroup/a/cpu.stat" => Some(format!("throttled_usec {outer}\n")),
                _ => None,
            }
        };
        let mut throttling = Throttling::default();
        assert_eq!(throttling.take(files("a/b", 500, 700)), 0);
        assert_eq!(throttling.take(files("a/b", 500, 700)), 0);
        assert_eq!(throttling.take(files("a/b", 510, 704)), 10_000);
        // In another group, only what both readings have in common tells anything.
        assert_eq!(throttling.take(files("a", 900, 706)), 2_000);
    }
}
