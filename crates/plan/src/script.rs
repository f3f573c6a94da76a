//! The script of a phase.

use std::sync::Arc;

use polygraph_pgl::script::{Interpreter, Scripts};
use polygraph_pgl::types::{Goal as PglGoal, ScriptId};

use crate::goal::Goal;

/// A script of a workload. Two values are equal if they mean the same script.
#[derive(Clone, Debug)]
pub struct Script {
    scripts: Arc<Scripts>,
    id: ScriptId,
}

impl Script {
    /// The script with this number.
    pub fn new(scripts: &Arc<Scripts>, id: ScriptId) -> Script {
        Script { scripts: Arc::clone(scripts), id }
    }

    /// The number of the script.
    pub fn id(&self) -> ScriptId {
        self.id
    }

    /// An interpreter for all scripts of a test, in its initial state.
    pub fn interpreter(&self) -> Interpreter {
        Interpreter::new(&self.scripts)
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Script) -> bool {
        Arc::ptr_eq(&self.scripts, &other.scripts) && self.id == other.id
    }
}

impl From<&PglGoal> for Goal {
    fn from(goal: &PglGoal) -> Goal {
        let positive = |count: i64| u64::try_from(count).ok().filter(|&count| count > 0);
        Goal {
            duration: goal.duration.map(|time| time.secs()),
            xactions: goal.xactions.and_then(|count| positive(count.into())),
            fill_size: goal.fill_size.and_then(|size| positive(size.0)),
            errors: goal.errors,
        }
    }
}
