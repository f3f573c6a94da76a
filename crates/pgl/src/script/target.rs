//! The interface of phase scripts to a running test: statistics, and changes of the load.

use std::fmt;
use std::sync::Arc;

use crate::check::hir::Stmt;
use crate::types::Goal;
use crate::value::Statistics;

/// The statistics that a script reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsWindow {
    /// The sample of the watchdog that runs.
    Sample,
    /// The current phase so far.
    Phase,
}

/// A change of a factor of the phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FactorChange {
    /// The load factor changes by this share of itself.
    LoadBy(f64),
    /// The load factor is set to this value.
    LoadTo(f64),
    /// The populus factor changes by this share of itself.
    PopulusBy(f64),
    /// The populus factor is set to this value.
    PopulusTo(f64),
}

/// A running test, as scripts see it.
pub trait ScriptTarget {
    /// The current statistics.
    fn statistics(&mut self, asked: StatsWindow) -> Arc<dyn Statistics>;

    /// The load factor (0 to 1).
    fn load_factor(&self) -> f64;

    /// The populus factor (0 to 1).
    fn populus_factor(&self) -> f64;

    /// Changes a factor.
    fn change(&mut self, change: FactorChange);

    /// Sets a new sampling goal for the running watchdog.
    fn set_sampling_goal(&mut self, goal: Goal);

    /// Prints a line to the console, at a level of verbosity.
    fn print(&mut self, level: u8, line: String);

    /// Ends the phase as successful, with a reason if one is given.
    fn reached_positive_goal(&mut self, reason: Option<String>);
}

/// Code that runs whenever a goal is reached.
#[derive(Debug, Clone)]
pub struct Watchdog {
    /// The sampling goal.
    pub goal: Goal,
    /// The position of the block, `file:line:column`.
    pub place: String,
    pub(crate) body: Arc<Vec<Stmt>>,
}

/// Why a script failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// `file:line:column`, if known.
    pub place: Option<String>,
    /// The reason.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "script, {place}: {}", self.message),
            None => write!(f, "script: {}", self.message),
        }
    }
}

impl std::error::Error for ScriptError {}

/// The result of running a piece of code.
#[derive(Debug, Default)]
pub struct ScriptRun {
    /// Watchdogs that the code started.
    pub watchdogs: Vec<Watchdog>,
    /// The error that ended the code; its earlier effects remain.
    pub error: Option<ScriptError>,
}
