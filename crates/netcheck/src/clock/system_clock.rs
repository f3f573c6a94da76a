//! What the kernel says about the clock of this host (adjtimex(2)).

use std::mem::MaybeUninit;

/// The state of the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemClock {
    /// A program keeps the clock synchronised.
    pub synchronised: bool,
    /// How wrong the clock may be by the estimate of that program, in seconds. Without a program it grows without end.
    pub max_error_s: f64,
    /// How the rate of the clock is corrected, in parts per million.
    pub rate_ppm: f64,
}

/// The state of the clock, if the system allows to read it.
pub fn system_clock() -> Option<SystemClock> {
    let mut state = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: no mode is set, so the call only writes the structure, in which any bits are valid.
    let (result, state) = unsafe { (libc::adjtimex(state.as_mut_ptr()), state.assume_init()) };
    (result >= 0).then(|| SystemClock {
        synchronised: result != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        max_error_s: state.maxerror as f64 / 1e6,
        rate_ppm: state.freq as f64 / 65_536.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_can_be_read() {
        let clock = system_clock().unwrap();
        assert!(clock.max_error_s >= 0.0 && clock.rate_ppm.abs() <= 500.0, "{clock:?}");
    }
}
