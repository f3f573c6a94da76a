//! Phase scripts at run time: the same evaluator, with a running test around it.
//!
//! A [`Scripts`] comes with a workload. Whoever runs the test makes one [`Interpreter`] of it, runs the script of each
//! phase when that begins, and the block of each [`Watchdog`] whenever its sampling goal is reached. What scripts see of
//! the test and do to it goes through the [`ScriptTarget`].

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::Options;
use crate::check::hir::{Program, Stmt};
use crate::eval::{LoadTimeRandom, VarState, run_in};
use crate::source::{Loader, SourceMap};
use crate::types::{Goal, ScriptId};
use crate::value::{Statistics, Value};

/// The scripts of a workload, with all that they can see of it.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    pub(crate) program: Program,
    /// The variables as the program left them.
    pub(crate) vars: Vec<VarState>,
    pub(crate) sources: SourceMap,
    pub(crate) options: Options,
}

impl Scripts {
    /// Number of scripts.
    pub fn count(&self) -> usize {
        self.program.scripts.len()
    }
}

/// Which statistics a script asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsWindow {
    /// The sample of the watchdog that runs.
    Sample,
    /// The phase so far.
    Phase,
}

/// A change of a factor of the phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FactorChange {
    /// The load factor changes by this share of itself.
    LoadBy(f64),
    /// The load factor becomes this.
    LoadTo(f64),
    /// The populus factor changes by this share of itself.
    PopulusBy(f64),
    /// The populus factor becomes this.
    PopulusTo(f64),
}

/// A running test, as scripts see it.
pub trait ScriptTarget {
    /// Statistics as they are now.
    fn statistics(&mut self, asked: StatsWindow) -> Arc<dyn Statistics>;

    /// The load factor (0 to 1).
    fn load_factor(&self) -> f64;

    /// The populus factor (0 to 1).
    fn populus_factor(&self) -> f64;

    /// Changes a factor.
    fn change(&mut self, change: FactorChange);

    /// The running watchdog gets a new sampling goal.
    fn set_sampling_goal(&mut self, goal: Goal);

    /// A line for the console, at a level of verbosity.
    fn print(&mut self, level: u8, line: String);

    /// The phase has reached its goal, for this reason if one is given.
    fn reached_positive_goal(&mut self, reason: Option<String>);
}

/// Code that runs whenever a goal is reached.
#[derive(Debug, Clone)]
pub struct Watchdog {
    /// The sampling goal.
    pub goal: Goal,
    /// Where it is written.
    pub place: String,
    pub(crate) body: Arc<Vec<Stmt>>,
}

/// Why a script broke off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// `file:line:column`, if known.
    pub place: Option<String>,
    /// What is wrong.
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

/// What came of running a piece of code.
#[derive(Debug, Default)]
pub struct ScriptRun {
    /// Watchdogs that it has started.
    pub watchdogs: Vec<Watchdog>,
    /// The error that it broke off with; what it did before stays.
    pub error: Option<ScriptError>,
}

/// Runs the scripts of one test. Global variables keep what scripts assign to them.
#[derive(Debug)]
pub struct Interpreter {
    scripts: Arc<Scripts>,
    pub(crate) vars: Vec<VarState>,
    pub(crate) random: LoadTimeRandom,
    pub(crate) unique: u64,
}

impl Interpreter {
    /// An interpreter at the start of a test.
    pub fn new(scripts: &Arc<Scripts>) -> Interpreter {
        let random = LoadTimeRandom::new(scripts.options.global_seed ^ SCRIPTS);
        // uniqId() goes on where no program comes.
        Interpreter { scripts: Arc::clone(scripts), vars: scripts.vars.clone(), random, unique: 1 << 32 }
    }

    /// Runs the script of a phase.
    pub fn begin(&mut self, script: ScriptId, env: &mut dyn ScriptTarget) -> ScriptRun {
        let scripts = Arc::clone(&self.scripts);
        match scripts.program.scripts.get(script.0 as usize) {
            Some(script) => run_in(self, &scripts, &script.body, env),
            None => ScriptRun::default(),
        }
    }

    /// Runs the block of a watchdog whose sampling goal was reached.
    pub fn fire(&mut self, watchdog: &Watchdog, env: &mut dyn ScriptTarget) -> ScriptRun {
        let scripts = Arc::clone(&self.scripts);
        run_in(self, &scripts, &watchdog.body, env)
    }
}

/// Choices of scripts are others than those of the program.
const SCRIPTS: u64 = 0x0073_6372_6970_7473;

/// While a test runs no files are read and no commands run: they would hold up the decisions of the test.
pub(crate) struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "scripts read no files; read it outside of scripts"))
    }
}

/// The value of a member of some statistics, in the units of the language.
pub(crate) fn stat_value(statistics: &dyn Statistics, member: crate::types::StatMember) -> Value {
    use crate::types::Base;
    let Some(value) = statistics.member(member.path) else { return Value::Unknown(member.base) };
    match member.base {
        // Counts may be larger than ints.
        Base::Int => Value::Int(value.clamp(-f64::from(i32::MAX), f64::from(i32::MAX)) as i32),
        Base::Time => Value::Time((value * 1e6).round() as i64),
        Base::Size => Value::Size(value.round() as i64),
        _ => Value::Float(value),
    }
}
