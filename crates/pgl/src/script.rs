//! Phase scripts at run time: the same evaluator, with a running test around it.
//!
//! A [`Scripts`] comes with a workload. Whoever runs the test makes one [`Interpreter`] of it, runs the script of each
//! phase when that begins, and the block of each [`Watchdog`] whenever its sampling goal is reached. What scripts see of
//! the test and do to it goes through the [`ScriptTarget`].

mod target;

use std::sync::Arc;

use crate::Options;
use crate::check::hir::{Program, Stmt};
use crate::eval::{LoadTimeRandom, ScriptState, VarState, run_in};
pub use crate::script::target::{FactorChange, ScriptError, ScriptRun, ScriptTarget, StatsWindow, Watchdog};
use crate::source::SourceMap;
use crate::types::ScriptId;

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

/// Runs the scripts of one test. Global variables keep what scripts assign to them.
#[derive(Debug)]
pub struct Interpreter {
    scripts: Arc<Scripts>,
    state: ScriptState,
}

impl Interpreter {
    /// An interpreter at the start of a test.
    pub fn new(scripts: &Arc<Scripts>) -> Interpreter {
        let random = LoadTimeRandom::new(scripts.options.global_seed ^ SCRIPTS);
        // uniqId() goes on where no program comes.
        let state = ScriptState { vars: scripts.vars.clone(), random, unique: 1 << 32 };
        Interpreter { scripts: Arc::clone(scripts), state }
    }

    /// Runs the script of a phase.
    pub fn begin(&mut self, script: ScriptId, target: &mut dyn ScriptTarget) -> ScriptRun {
        let scripts = Arc::clone(&self.scripts);
        match scripts.program.scripts.get(script.0 as usize) {
            Some(script) => self.run(&script.body, target),
            None => ScriptRun::default(),
        }
    }

    /// Runs the block of a watchdog whose sampling goal was reached.
    pub fn fire(&mut self, watchdog: &Watchdog, target: &mut dyn ScriptTarget) -> ScriptRun {
        self.run(&watchdog.body, target)
    }

    fn run(&mut self, body: &[Stmt], target: &mut dyn ScriptTarget) -> ScriptRun {
        let Scripts { program, sources, options, .. } = &*self.scripts;
        run_in(&mut self.state, (program, sources, options), body, target)
    }
}

/// Choices of scripts are others than those of the program.
const SCRIPTS: u64 = 0x0073_6372_6970_7473;
