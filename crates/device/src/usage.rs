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
}

impl Usage {
    /// The usage of a process group; zero if it has no processes.
    pub(crate) fn of_group(group: i32) -> Usage {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok())
            .filter_map(|stat| Stat::parse(&stat))
            .filter(|stat| stat.group == group)
            .fold(Usage::default(), |sum, stat| sum.plus(&stat.usage()))
    }

    pub(crate) fn plus(&self, other: &Usage) -> Usage {
        Usage {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            processes: self.processes + other.processes,
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
        }
    }
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
    fn our_own_group_uses_something() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        let usage = Usage::of_group(group);
        assert!(usage.processes >= 1 && usage.resident_bytes > 1 << 20, "{usage:?}");
    }
}
