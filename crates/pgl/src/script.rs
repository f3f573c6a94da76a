//! Phase scripts at run time: the same evaluator, with a running test around it.
//!
//! A workload contains its [`Scripts`]. The phase controller makes one [`Interpreter`] of them, runs the script
//! of each phase when the phase starts, and the block of each [`Watchdog`] whenever its sampling goal is
//! reached. Scripts read and change the test through a [`ScriptTarget`].

mod target;

use std::sync::Arc;

use crate::Options;
use crate::check::hir::{Program, Stmt};
use crate::eval::{LoadTimeRandom, ScriptState, VarState, run_in};
pub use crate::script::target::{FactorChange, ScriptError, ScriptRun, ScriptTarget, StatsWindow, Watchdog};
use crate::source::SourceMap;
use crate::types::ScriptId;

/// The scripts of a workload, with everything that they can access.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    pub(crate) program: Program,
    /// The variables at the end of the program.
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
    /// An interpreter in its initial state.
    pub fn new(scripts: &Arc<Scripts>) -> Interpreter {
        let random = LoadTimeRandom::new(scripts.options.global_seed ^ SCRIPTS);
        // Programs never make this many ids, so those of scripts differ.
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

/// Separates the random choices of scripts from those of the program.
const SCRIPTS: u64 = 0x0073_6372_6970_7473;
