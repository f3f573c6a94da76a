//! What a run reads from the machine: the time of day, processor time, memory.

use rustix::time::{ClockId, clock_gettime};

use polygraph_link::{Nanos, SECOND};

use crate::control_group::Throttling;
use crate::limits;

/// The machine on which a run takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The machine that this program runs on.
    Real,
    /// A simulated machine that has a clock, but no processor time and no memory.
    Virtual {
        /// The time of day when the clock of its links shows 0, in nanoseconds since 1970.
        epoch_ns: u64,
    },
}

impl Host {
    /// Time of day minus the time of links, in nanoseconds. It changes only when the clock is set.
    pub fn clock_offset(self) -> i128 {
        if let Host::Virtual { epoch_ns } = self {
            return epoch_ns.into();
        }
        let nanos = |clock| {
            let time = clock_gettime(clock);
            i128::from(time.tv_sec) * i128::from(SECOND.as_u64()) + i128::from(time.tv_nsec)
        };
        // The two clocks are read one after the other; the maximum of three differences keeps a preemption in between
        // from looking like a clock step.
        (0..3).map(|_| nanos(ClockId::Realtime) - nanos(ClockId::Monotonic)).max().unwrap_or(0)
    }

    /// Processor time of the calling thread in nanoseconds.
    pub fn thread_cpu(self) -> Nanos {
        if self != Host::Real {
            return Nanos::ZERO;
        }
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as u64 * SECOND + Nanos::new(time.tv_nsec as u64)
    }

    /// Measures from now on for how long quotas of processor time stop this process.
    pub fn throttling(self) -> Throttling {
        if self == Host::Real { Throttling::start() } else { Throttling::default() }
    }

    /// The id of this process; 0 on a virtual machine.
    pub fn process(self) -> u32 {
        if self == Host::Real { std::process::id() } else { 0 }
    }

    /// Resident memory of this process in bytes; 0 if unknown.
    pub fn resident_bytes(self) -> u64 {
        if self == Host::Real { limits::resident_bytes() } else { 0 }
    }
}
