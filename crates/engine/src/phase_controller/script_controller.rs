//! Phase scripts and their watchdogs (docs/reference/models.md, "Phase scripts").

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_pgl::script::{FactorChange, Interpreter, ScriptRun, ScriptTarget, StatsWindow, Watchdog};
use polygraph_pgl::types::Goal as PglGoal;
use polygraph_pgl::value::Statistics;
use polygraph_plan::{Goal, Script};
use polygraph_stats::{ErrorKind, Window};

use crate::phase_controller::{Adjustment, ControlHandle, LoadController, Sampler};

/// The most watchdogs of a phase. Without a limit, a watchdog that starts another whenever it runs would never end.
const MAX_WATCHDOGS: usize = 1000;

/// The script of a phase and the watchdogs that it has started.
#[derive(Debug)]
pub struct ScriptController {
    script: Script,
    /// The scripts of all phases share the interpreter, so assignments to global variables persist.
    interpreter: Rc<RefCell<Interpreter>>,
    watchdogs: Vec<(Watchdog, Sampler)>,
}

impl ScriptController {
    /// The script of a phase that has not started.
    pub fn new(script: Script, interpreter: Rc<RefCell<Interpreter>>) -> ScriptController {
        ScriptController { script, interpreter, watchdogs: Vec::new() }
    }

    /// Adds the watchdogs that a script has started, and reports its error.
    fn apply_result(&mut self, ran: ScriptRun, handle: &mut ControlHandle<'_>) {
        if let Some(error) = ran.error {
            handle.error(ErrorKind::Script, error.to_string());
        }
        for watchdog in ran.watchdogs {
            if self.watchdogs.len() >= MAX_WATCHDOGS {
                let text = format!("script, {}: more than {MAX_WATCHDOGS} watchdogs", watchdog.place);
                return handle.error(ErrorKind::Script, text);
            }
            let goal = Goal::from(&watchdog.goal);
            handle.say(6, format!("fyi: watchdog at {}: every {goal}", watchdog.place));
            self.watchdogs.push((watchdog, Sampler::new(goal, handle.now)));
        }
    }
}

impl LoadController for ScriptController {
    fn begin(&mut self, handle: &mut ControlHandle<'_>) {
        let mut stand = ScriptHost { handle, sample: None, goal: None };
        let ran = self.interpreter.borrow_mut().begin(self.script.id(), &mut stand);
        self.apply_result(ran, handle);
    }

    fn look(&mut self, handle: &mut ControlHandle<'_>) {
        // A watchdog that is started in this loop starts its sample now.
        for at in 0..self.watchdogs.len() {
            let (watchdog, sampler) = &mut self.watchdogs[at];
            let Some(sample) = sampler.look(handle.now, handle.delta) else { continue };
            let mut stand =
                ScriptHost { handle, sample: Some(Arc::new(WindowStatistics(sample))), goal: None };
            let ran = self.interpreter.borrow_mut().fire(watchdog, &mut stand);
            if let Some(goal) = stand.goal.filter(|goal| *goal != sampler.goal) {
                handle.say(6, format!("fyi: watchdog at {}: every {goal} from now on", watchdog.place));
                sampler.goal = goal;
            }
            self.apply_result(ran, handle);
        }
    }
}

/// A window of statistics as scripts read it.
#[derive(Debug)]
struct WindowStatistics(Window);

impl Statistics for WindowStatistics {
    fn member(&self, path: &str) -> Option<f64> {
        // The checker rejects all other names.
        self.0.member(path).ok().flatten()
    }
}

/// The environment of a running script.
struct ScriptHost<'a, 'b> {
    handle: &'a mut ControlHandle<'b>,
    /// The sample of the running watchdog.
    sample: Option<Arc<WindowStatistics>>,
    /// The new sampling goal of the running watchdog.
    goal: Option<Goal>,
}

impl ScriptTarget for ScriptHost<'_, '_> {
    fn statistics(&mut self, asked: StatsWindow) -> Arc<dyn Statistics> {
        match (&self.sample, asked) {
            (Some(sample), StatsWindow::Sample) => Arc::clone(sample) as Arc<dyn Statistics>,
            _ => Arc::new(WindowStatistics(self.handle.phase.clone())),
        }
    }

    fn load_factor(&self) -> f64 {
        self.handle.load()
    }

    fn populus_factor(&self) -> f64 {
        self.handle.populus()
    }

    fn change(&mut self, change: FactorChange) {
        self.handle.adjust(match change {
            FactorChange::LoadBy(share) => Adjustment::LoadBy(share),
            FactorChange::LoadTo(value) => Adjustment::LoadTo(value),
            FactorChange::PopulusBy(share) => Adjustment::PopulusBy(share),
            FactorChange::PopulusTo(value) => Adjustment::PopulusTo(value),
        });
    }

    fn set_sampling_goal(&mut self, goal: PglGoal) {
        self.goal = Some(Goal::from(&goal));
    }

    fn print(&mut self, level: u8, line: String) {
        self.handle.say(level, format!("script output: {line}"));
    }

    fn reached_positive_goal(&mut self, reason: Option<String>) {
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        self.handle.say(1, format!("fyi: the script ends the phase{reason}"));
        self.handle.satisfy();
    }
}

#[cfg(test)]
#[path = "script_controller_tests.rs"]
mod tests;
