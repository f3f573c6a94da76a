//! Facts that come from system calls, and small files beside them.

use std::fs;
use std::path::{Path, PathBuf};

use polygraph_engine::limits;
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::facts::{ClockFacts, DescriptorFacts, NameFacts, StorageFacts, UringRefusal};
use crate::parse;

use super::host_files::HostFiles;

/// How often the clock is read to see what that costs.
const CLOCK_READS: u32 = 2_000;
/// File systems on which a log behaves differently from one on a disk.
const NOTABLE: [&str; 7] = ["tmpfs", "ramfs", "nfs", "nfs4", "cifs", "smb3", "9p"];

/// Files that processes may have open.
pub(super) fn descriptors(files: &HostFiles) -> DescriptorFacts {
    let limit = getrlimit(Resource::Nofile);
    let is_real = files.are_real();
    let own = |limit: Option<u64>| is_real.then_some(limit.unwrap_or(u64::MAX));
    DescriptorFacts {
        soft: own(Some(limits::descriptor_limit())),
        hard: own(limit.maximum),
        system_used: files.value_at("/proc/sys/fs/file-nr", 0),
        system_limit: files.value("/proc/sys/fs/file-max"),
    }
}

/// Why event loops cannot use io_uring, if this is the running system.
pub(super) fn uring_refusal(files: &HostFiles) -> Option<UringRefusal> {
    let refusal = files.are_real().then(polygraph_engine::uring_refusal).flatten()?;
    Some(UringRefusal { reason: refusal.reason, remedy: refusal.remedy })
}

/// The clock of the host.
pub(super) fn clock(files: &HostFiles) -> ClockFacts {
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let mut facts = ClockFacts {
        source: files.known_text(&format!("{directory}/current_clocksource")),
        ..ClockFacts::default()
    };
    if files.are_real() {
        (facts.synchronised, facts.error_us) = synchronisation();
        facts.read_ns = Some(clock_cost());
    }
    facts
}

/// Whether a time service keeps the clock right, and the estimated error in microseconds (adjtimex(2)).
fn synchronisation() -> (Option<bool>, Option<i64>) {
    // SAFETY: all fields of this structure are integers, for which zero is a value; with modes 0 nothing is set.
    let (state, status) = unsafe {
        let mut state: libc::timex = std::mem::zeroed();
        let status = libc::adjtimex(&raw mut state);
        (state, status)
    };
    if status < 0 {
        return (None, None);
    }
    let is_free = state.status & libc::STA_UNSYNC != 0 || status == libc::TIME_ERROR;
    (Some(!is_free), (!is_free).then_some(state.esterror))
}

/// Nanoseconds that reading the clock takes.
fn clock_cost() -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    // The fastest of several rounds: others are interrupted.
    let round = || {
        let begin = now();
        for _ in 0..CLOCK_READS {
            std::hint::black_box(clock_gettime(ClockId::Monotonic));
        }
        (now() - begin) / f64::from(CLOCK_READS)
    };
    (0..3).map(|_| round()).fold(f64::MAX, f64::min)
}

/// The directory for results.
pub(super) fn storage(files: &HostFiles, results: &Path) -> StorageFacts {
    let absolute = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    let directory: PathBuf =
        absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned();
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    let room = statvfs(&directory).ok();
    let mounts = files.text("/proc/self/mounts");
    let kind = parse::file_system(&mounts, &directory.to_string_lossy());
    StorageFacts {
        // Root may write everywhere except on file systems that are mounted without the right to write.
        writable: Some(directory.is_dir() && access(&directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()),
        free: room.as_ref().map(|room| room.f_bavail.saturating_mul(room.f_frsize)),
        // Some file systems do not count inodes.
        free_inodes: room.as_ref().filter(|room| room.f_files > 0).map(|room| room.f_favail),
        kind: kind.filter(|kind| NOTABLE.contains(&kind.as_str())),
        directory,
    }
}

/// The resolution of names.
pub(super) fn names(files: &HostFiles) -> NameFacts {
    NameFacts {
        servers: parse::name_servers(&files.text("/etc/resolv.conf")),
        localhost: parse::addresses_of(&files.text("/etc/hosts"), "localhost"),
    }
}
