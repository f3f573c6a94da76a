//! Resource usage of processes, from `/proc`.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};

/// The resource usage of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time so far, user and system, in seconds; includes ended processes that were waited for.
    pub cpu_seconds: f64,
    /// Resident memory in bytes, summed over processes: shared memory counts for each process.
    pub resident_bytes: u64,
    /// Number of processes.
    pub processes: usize,
    /// How long its threads were ready to run and had no processor, in seconds, summed over threads. It drops when one ends. 0 for the
    /// built-in proxy, which shares the process of the bench, and if the kernel does not count it.
    pub waiting_seconds: f64,
}

impl Usage {
    /// The usage of a process group; zero if it has no processes.
    pub(crate) fn of_group(group: i32) -> Usage {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| Some((pid, fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)))
            .filter_map(|(pid, stat)| Some((pid, Stat::parse(&stat)?)))
            .filter(|(_, stat)| stat.group == group)
            .fold(Usage::default(), |sum, (pid, stat)| {
                sum.plus(&Usage { waiting_seconds: waiting_seconds(pid), ..stat.usage() })
            })
    }

    pub(crate) fn plus(&self, other: &Usage) -> Usage {
        Usage {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            processes: self.processes + other.processes,
            waiting_seconds: self.waiting_seconds + other.waiting_seconds,
        }
    }
}

/// The fields of `/proc/PID/stat` that are used, see proc_pid_stat(5).
#[derive(Debug, PartialEq)]
struct Stat {
    group: i32,
    /// Processor time of the process and of children that it waited for, in clock ticks.
    ticks: u64,
    /// Resident set in pages.
    pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // Field 2, the name of the program, may contain blanks and parentheses.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3);
        let tick = |number| field(number)?.parse::<u64>().ok();
        Some(Stat {
            group: field(5)?.parse().ok()?,
            ticks: tick(14)? + tick(15)? + tick(16)? + tick(17)?,
            pages: field(24)?.parse().ok()?,
        })
    }

    fn usage(&self) -> Usage {
        Usage {
            cpu_seconds: self.ticks as f64 / clock_ticks_per_second() as f64,
            resident_bytes: self.pages * page_size() as u64,
            processes: 1,
            waiting_seconds: 0.0,
        }
    }
}

/// How long the threads of a process waited for a processor, in seconds.
fn waiting_seconds(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    // The file of the process itself is only about its first thread.
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| waited_ns(&text))
        .sum::<f64>()
        * 1e-9
}

/// The second field of `schedstat`: the time on a run queue in nanoseconds, see Documentation/scheduler/sched-stats.rst of Linux.
fn waited_ns(schedstat: &str) -> Option<f64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// How long at least one thread of this host waited for a disk, in seconds since it started: its pressure of io. `None` if the kernel does
/// not count it.
pub(crate) fn io_pressure_seconds() -> Option<f64> {
    some_total_us(&fs::read_to_string("/proc/pressure/io").ok()?).map(|us| us * 1e-6)
}

/// The total of the line `some` of a file about pressure, see Documentation/accounting/psi.rst of Linux.
fn some_total_us(pressure: &str) -> Option<f64> {
    let line = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_by_example() {
        let text =
            "17 (a (b) c) S 1 42 42 0 -1 4194560 1 2 3 4 100 50 7 3 20 0 1 0 12345 1000000 250 18446 1 1";
        assert_eq!(Stat::parse(text), Some(Stat { group: 42, ticks: 160, pages: 250 }));
        assert_eq!(Stat::parse("17 (a) S 1 42"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn waiting_by_example() {
        assert_eq!(waited_ns("1303386 163423 3\n"), Some(163_423.0));
        assert_eq!((waited_ns(""), waited_ns("17")), (None, None));
        let io = "some avg10=1.00 avg60=0.07 avg300=0.00 total=42500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!((some_total_us(io), some_total_us("full total=7\n")), (Some(42_500.0), None));
    }

    #[test]
    fn our_own_group_uses_something() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        let usage = Usage::of_group(group);
        assert!(usage.processes >= 1 && usage.resident_bytes > 1 << 20, "{usage:?}");
    }
}
