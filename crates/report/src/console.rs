//! The statistics lines of the console: `i-<phase>` for an interval, `p-<phase>` for a whole phase.

use crate::figures::value;
use crate::scope::Scope;
use crate::text::decimals;

/// The two historic forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleForm {
    /// Of 1.x: Unix time, name, transactions so far, replies per second, hit ratio in percent, errors, open
    /// connections.
    V1,
    /// Of 2.x to 4.x: minutes since the start, name, transactions so far, replies per second, mean response
    /// time in milliseconds, hit ratio in percent, errors, open connections. The original shows hundredths of minutes and whole
    /// milliseconds, which are too coarse for a fast device.
    V4,
}

/// What a line covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleSpan {
    /// One interval, `i-`.
    Interval,
    /// A whole phase, `p-`; without open connections.
    Phase,
}

/// Everything a line shows.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleLine<'a> {
    /// What it covers.
    pub span: ConsoleSpan,
    /// Name of the phase.
    pub phase: &'a str,
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Time of day at the start of the run, in nanoseconds since 1970.
    pub start_unix_ns: u64,
    /// Good transactions since the start of the process.
    pub ok_so_far: u64,
    /// What was counted in the interval or phase.
    pub scope: &'a Scope,
}

/// The time stamp of a console message: run time in minutes, filled with zeros. Its last digit stands for 6 ms.
pub fn stamp(at_s: f64) -> String {
    format!("{:08.4}| ", at_s / 60.0)
}

impl ConsoleLine<'_> {
    /// The line, without line end. Missing values are -1.
    pub fn text(&self, form: ConsoleForm) -> String {
        let figure = |name| value(name, self.scope).unwrap_or(-1.0);
        let name = match self.span {
            ConsoleSpan::Interval => format!("i-{}", self.phase),
            ConsoleSpan::Phase => format!("p-{}", self.phase),
        };
        let (rate, hits, errors) = (figure("ok_xact.rate"), figure("rep_dhr"), figure("err_cnt"));
        let mut line = match form {
            ConsoleForm::V1 => {
                let unix = self.start_unix_ns as f64 * 1e-9 + self.at_s;
                format!("{unix:.6} {name:<8} {:>9} {rate:>8.2} {hits:>6.2} {errors:>5}", self.ok_so_far)
            }
            ConsoleForm::V4 => {
                let rptm = value("resp_tm_mean", self.scope)
                    .map_or_else(|| "-1".to_owned(), |ms| format!("{ms:.*}", decimals(ms)));
                format!(
                    "{}{name:<8} {:>9} {rate:>8.2} {rptm:>6} {hits:>6.2} {errors:>5}",
                    stamp(self.at_s),
                    self.ok_so_far
                )
            }
        };
        if self.span == ConsoleSpan::Interval {
            line.push_str(&format!(" {:>6}", self.scope.block.conns.last));
        }
        line
    }

    /// Names of the columns, aligned with them.
    pub fn header(form: ConsoleForm) -> String {
        match form {
            ConsoleForm::V1 => format!(
                "{:>17} {:<8} {:>9} {:>8} {:>6} {:>5} {:>6}",
                "unix_time", "phase", "replies", "rep/s", "hit%", "errs", "conns"
            ),
            ConsoleForm::V4 => format!(
                "minute    {:<8} {:>9} {:>8} {:>6} {:>6} {:>5} {:>6}",
                "phase", "replies", "rep/s", "ms", "hit%", "errs", "conns"
            ),
        }
    }
}
