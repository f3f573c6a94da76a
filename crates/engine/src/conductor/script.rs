//! Phase scripts and their watchdogs (reference: models.md, section 18.2).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_pgl::script::{Asked, Change, Environment, Interpreter, Ran, Watchdog};
use polygraph_pgl::types::Goal as PglGoal;
use polygraph_pgl::value::Statistics;
use polygraph_plan::{Goal, Script};
use polygraph_stats::{ErrorKind, Window};

use crate::conductor::{Adjustment, Governor, Helm, Sampler};

/// A phase has no more watchdogs than these: one that starts another whenever it runs would never end.
const MAX_WATCHDOGS: usize = 1000;

/// The script of a phase, and the watchdogs that it started.
#[derive(Debug)]
pub struct ScriptGovernor {
    script: Script,
    /// Shared by the scripts of all phases: what they assign to global variables stays.
    interpreter: Rc<RefCell<Interpreter>>,
    watchdogs: Vec<(Watchdog, Sampler)>,
}

impl ScriptGovernor {
    /// The script of a phase that has not begun.
    pub fn new(script: Script, interpreter: Rc<RefCell<Interpreter>>) -> ScriptGovernor {
        ScriptGovernor { script, interpreter, watchdogs: Vec::new() }
    }

    /// Takes over what code has started, and tells what it did wrong.
    fn settle(&mut self, ran: Ran, helm: &mut Helm<'_>) {
        if let Some(error) = ran.error {
            helm.error(ErrorKind::Script, error.to_string());
        }
        for watchdog in ran.watchdogs {
            if self.watchdogs.len() >= MAX_WATCHDOGS {
                let text = format!("script, {}: more than {MAX_WATCHDOGS} watchdogs", watchdog.place);
                return helm.error(ErrorKind::Script, text);
            }
            let goal = Goal::from(&watchdog.goal);
            helm.say(6, format!("fyi: watchdog at {}: every {goal}", watchdog.place));
            self.watchdogs.push((watchdog, Sampler::new(goal, helm.now)));
        }
    }
}

impl Governor for ScriptGovernor {
    fn begin(&mut self, helm: &mut Helm<'_>) {
        let mut stand = Stand { helm, sample: None, goal: None };
        let ran = self.interpreter.borrow_mut().begin(self.script.id(), &mut stand);
        self.settle(ran, helm);
    }

    fn look(&mut self, helm: &mut Helm<'_>) {
        // Those that are started now begin their samples now.
        for at in 0..self.watchdogs.len() {
            let (watchdog, sampler) = &mut self.watchdogs[at];
            let Some(sample) = sampler.look(helm.now, helm.news) else { continue };
            let mut stand = Stand { helm, sample: Some(Arc::new(Members(sample))), goal: None };
            let ran = self.interpreter.borrow_mut().fire(watchdog, &mut stand);
            if let Some(goal) = stand.goal.filter(|goal| *goal != sampler.goal) {
                helm.say(6, format!("fyi: watchdog at {}: every {goal} from now on", watchdog.place));
                sampler.goal = goal;
            }
            self.settle(ran, helm);
        }
    }
}

/// A window as scripts read it.
#[derive(Debug)]
struct Members(Window);

impl Statistics for Members {
    fn member(&self, path: &str) -> Option<f64> {
        // The checker lets no other names through.
        self.0.member(path).ok().flatten()
    }
}

/// What a running script stands on.
struct Stand<'a, 'b> {
    helm: &'a mut Helm<'b>,
    /// The sample of the watchdog that runs.
    sample: Option<Arc<Members>>,
    /// Its new sampling goal.
    goal: Option<Goal>,
}

impl Environment for Stand<'_, '_> {
    fn statistics(&mut self, asked: Asked) -> Arc<dyn Statistics> {
        match (&self.sample, asked) {
            (Some(sample), Asked::Sample) => Arc::clone(sample) as Arc<dyn Statistics>,
            _ => Arc::new(Members(self.helm.phase.clone())),
        }
    }

    fn load_factor(&self) -> f64 {
        self.helm.load()
    }

    fn populus_factor(&self) -> f64 {
        self.helm.populus()
    }

    fn change(&mut self, change: Change) {
        self.helm.adjust(match change {
            Change::LoadBy(share) => Adjustment::LoadBy(share),
            Change::LoadTo(value) => Adjustment::LoadTo(value),
            Change::PopulusBy(share) => Adjustment::PopulusBy(share),
            Change::PopulusTo(value) => Adjustment::PopulusTo(value),
        });
    }

    fn set_sampling_goal(&mut self, goal: PglGoal) {
        self.goal = Some(Goal::from(&goal));
    }

    fn print(&mut self, level: u8, line: String) {
        self.helm.say(level, format!("script output: {line}"));
    }

    fn reached_positive_goal(&mut self, reason: Option<String>) {
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        self.helm.say(1, format!("fyi: the script ends the phase{reason}"));
        self.helm.satisfy();
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
