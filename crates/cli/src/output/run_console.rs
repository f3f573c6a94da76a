//! The console of a run with both sides on this machine.

use polygraph_plan::Test;
use polygraph_stats::{Header, Record, Side};

use super::{ClassicConsole, Progress};

/// A progress line, or the lines of the client side from verbosity level 1 on. Level 2 shows intervals, which need no
/// progress line.
#[derive(Debug)]
pub struct RunConsole {
    verbosity: u8,
    progress: Progress,
    classic: ClassicConsole,
}

impl RunConsole {
    /// The console of a test at a verbosity level.
    pub fn new(verbosity: u8, test: &Test) -> RunConsole {
        RunConsole {
            verbosity,
            progress: Progress::new(test.schedule.duration()),
            classic: ClassicConsole::new(verbosity).of_options(test.classic),
        }
    }

    /// Shows a record.
    pub fn show(&mut self, header: &Header, record: &Record) {
        let verbose = self.verbosity > 0;
        if self.verbosity < 2 && !(verbose && matches!(record, Record::Comment { .. })) {
            self.progress.show(header, record);
        }
        if verbose && header.side == Side::Client {
            self.progress.clear_for(record);
            self.classic.show(header, record);
        }
    }
}
