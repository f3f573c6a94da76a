//! The calls that only phase scripts can make.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::Builtin;
use crate::check::hir::{Expr, Stmt};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::eval::random::LoadTimeRandom;
use crate::eval::{Evaluation, Evaluator};
use crate::script::{
    FactorChange, Interpreter, NoFiles, ScriptError, ScriptRun, ScriptTarget, Scripts, StatsWindow, Watchdog,
};
use crate::source::Span;
use crate::types::{Converter, Goal};
use crate::value::{Stats, Value, show};

/// Message level of print().
const PRINT_LEVEL: u8 = 5;

/// A running test around the machine.
pub(super) struct Live<'a> {
    env: &'a mut dyn ScriptTarget,
    watchdogs: Vec<Watchdog>,
}

/// Runs code of a script.
pub fn run_in(
    interpreter: &mut Interpreter,
    scripts: &Scripts,
    body: &[Stmt],
    env: &mut dyn ScriptTarget,
) -> ScriptRun {
    // Variables of a script live for one run of it.
    for (state, var) in interpreter.vars.iter_mut().zip(&scripts.program.vars) {
        state.declared &= var.global;
    }
    let mut out = Diagnostics::new(scripts.options.limits.findings);
    let mut machine = Evaluator {
        program: &scripts.program,
        sources: &scripts.sources,
        loader: &NoFiles,
        options: &scripts.options,
        out: &mut out,
        vars: std::mem::take(&mut interpreter.vars),
        settings: FxHashMap::default(),
        applied: Vec::new(),
        // Settings gave values to the program; what scripts assign stays.
        applying: true,
        outcome: Evaluation::default(),
        budget: scripts.options.limits.work,
        exhausted: false,
        target: None,
        wanted: None,
        told_undefined: FxHashSet::default(),
        told_accounts: true,
        random: std::mem::replace(&mut interpreter.random, LoadTimeRandom::new(0)),
        unique: interpreter.unique,
        live: Some(Live { env, watchdogs: Vec::new() }),
    };
    machine.statements(body);
    let watchdogs = machine.live.take().map(|live| live.watchdogs).unwrap_or_default();
    let Evaluator { vars, random, unique, .. } = machine;
    (interpreter.vars, interpreter.random, interpreter.unique) = (vars, random, unique);
    let error = out.finish().into_iter().find(|finding| finding.severity == Severity::Error);
    let error = error.map(|finding| ScriptError {
        place: finding.span.map(|span| scripts.sources.place(span)),
        message: finding.message,
    });
    ScriptRun { watchdogs, error }
}

impl Evaluator<'_> {
    /// True if a script went wrong: the rest of it is left out.
    pub(super) fn broke_off(&self) -> bool {
        self.live.is_some() && self.out.has_errors()
    }

    /// Starts a watchdog.
    pub(super) fn every(&mut self, goal: &Expr, body: &Arc<Vec<Stmt>>, span: Span) {
        let value = self.defined(goal);
        let place = self.sources.place(span);
        let Some(goal) = self.goal(&value, goal.span) else { return };
        if let Some(live) = &mut self.live {
            live.watchdogs.push(Watchdog { goal, place, body: Arc::clone(body) });
        }
    }

    /// A sampling goal; `None` after a finding.
    fn goal(&mut self, value: &Value, span: Span) -> Option<Goal> {
        let Value::Record(record) = value else { return None };
        let goal = Goal::from_record(record, &mut Converter::new(0));
        let Goal { duration, xactions, fill_size, errors } = &goal;
        let text = if duration.is_some_and(|time| time.0 <= 0)
            || xactions.is_some_and(|count| count <= 0)
            || fill_size.is_some_and(|size| size.0 <= 0)
            || errors.is_some_and(|errors| errors < 0.0)
        {
            "a part of this sampling goal is not positive"
        } else if duration.is_none() && xactions.is_none() && fill_size.is_none() && errors.is_none() {
            "this sampling goal is empty and would never be reached"
        } else {
            return Some(goal);
        };
        self.report(Diagnostic::new(Code::BadPhase, span, text));
        None
    }

    /// A line that was printed.
    pub(super) fn put_line(&mut self, line: String) {
        match &mut self.live {
            Some(live) => live.env.print(PRINT_LEVEL, line),
            None => self.outcome.output.push(line),
        }
    }

    /// A function that only scripts can call.
    pub(super) fn live_function(&mut self, call: Builtin) -> Value {
        let Some(live) = &mut self.live else { return Value::Poison };
        match call {
            Builtin::CurrentSample => Value::Stats(Stats(live.env.statistics(StatsWindow::Sample))),
            Builtin::CurrentPhase => Value::Stats(Stats(live.env.statistics(StatsWindow::Phase))),
            Builtin::CurrentLoadFactor => Value::Float(live.env.load_factor()),
            Builtin::CurrentPopulusFactor => Value::Float(live.env.populus_factor()),
            _ => Value::Poison,
        }
    }

    /// A procedure that only scripts can call.
    pub(super) fn live_procedure(&mut self, call: Builtin, values: &[Value], args: &[Expr]) {
        if call == Builtin::SetSamplingGoalTo {
            let goal = self.goal(&values[0], args[0].span);
            if let (Some(goal), Some(live)) = (goal, &mut self.live) {
                live.env.set_sampling_goal(goal);
            }
            return;
        }
        let Some(live) = &mut self.live else { return };
        let change: fn(f64) -> FactorChange = match call {
            Builtin::ChangeLoadFactorBy => FactorChange::LoadBy,
            Builtin::ChangePopulusFactorBy => FactorChange::PopulusBy,
            Builtin::SetLoadFactorTo => FactorChange::LoadTo,
            Builtin::SetPopulusFactorTo => FactorChange::PopulusTo,
            Builtin::PrintV => {
                let level =
                    if let Value::Int(level) = values[0] { level.clamp(0, 255) as u8 } else { PRINT_LEVEL };
                live.env.print(level, values[1..].iter().map(show).collect());
                return;
            }
            Builtin::ReachedPositiveGoal => {
                live.env.reached_positive_goal(values.first().map(show));
                return;
            }
            _ => return,
        };
        match values[0].number() {
            Some(number) => live.env.change(change(number)),
            // Nothing is known to change it by.
            None => live.env.print(
                PRINT_LEVEL + 1,
                format!("{}(): no change, for the amount is unknown", call.def().name),
            ),
        }
    }
}
