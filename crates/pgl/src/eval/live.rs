//! The calls that only phase scripts can make.

use std::io;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Options;
use crate::calls::Builtin;
use crate::check::hir::{Expr, Program, Stmt};
use crate::codes::Code;
use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::eval::VarState;
use crate::eval::random::LoadTimeRandom;
use crate::eval::{Evaluation, Evaluator};
use crate::script::{FactorChange, ScriptError, ScriptRun, ScriptTarget, StatsWindow, Watchdog};
use crate::source::{Loader, SourceMap, Span};
use crate::types::{Base, Converter, Goal, StatMember};
use crate::value::{Statistics, Stats, Value, show};

/// Message level of print().
const PRINT_LEVEL: u8 = 5;

/// The running test of a script.
pub(super) struct Live<'a> {
    env: &'a mut dyn ScriptTarget,
    watchdogs: Vec<Watchdog>,
}

/// What phase scripts keep from one run to the next.
#[derive(Debug)]
pub(crate) struct ScriptState {
    /// The variables.
    pub vars: Vec<VarState>,
    /// Random choices of scripts.
    pub random: LoadTimeRandom,
    /// The next result of `uniqId()`.
    pub unique: u64,
}

/// Runs the code of a script.
pub(crate) fn run_in(
    state: &mut ScriptState,
    (program, sources, options): (&Program, &SourceMap, &Options),
    body: &[Stmt],
    env: &mut dyn ScriptTarget,
) -> ScriptRun {
    // Variables of a script live for one run of it.
    for (kept, var) in state.vars.iter_mut().zip(&program.vars) {
        kept.declared &= var.global;
    }
    let mut out = Diagnostics::new(options.limits.findings);
    let mut machine = Evaluator {
        program,
        sources,
        loader: &NoFiles,
        options,
        out: &mut out,
        vars: std::mem::take(&mut state.vars),
        settings: FxHashMap::default(),
        applied: Vec::new(),
        // Settings gave their values before; scripts may assign other ones.
        applying: true,
        outcome: Evaluation::default(),
        budget: options.limits.work,
        exhausted: false,
        target: None,
        wanted: None,
        told_undefined: FxHashSet::default(),
        told_accounts: true,
        random: std::mem::replace(&mut state.random, LoadTimeRandom::new(0)),
        unique: state.unique,
        live: Some(Live { env, watchdogs: Vec::new() }),
    };
    machine.statements(body);
    let watchdogs = machine.live.take().map(|live| live.watchdogs).unwrap_or_default();
    let Evaluator { vars, random, unique, .. } = machine;
    (state.vars, state.random, state.unique) = (vars, random, unique);
    let error = out.finish().into_iter().find(|finding| finding.severity == Severity::Error);
    let error = error.map(|finding| ScriptError {
        place: finding.span.map(|span| sources.place(span)),
        message: finding.message,
    });
    ScriptRun { watchdogs, error }
}

impl Evaluator<'_> {
    /// True if a script failed: the rest of it is skipped.
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

    /// A sampling goal; `None` after a diagnostic.
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

    /// Outputs a printed line.
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
            // The amount is unknown.
            None => live.env.print(
                PRINT_LEVEL + 1,
                format!("{}(): no change, because the amount is unknown", call.def().name),
            ),
        }
    }
}

/// A loader that refuses: while a test runs, scripts read no files and run no commands, which would delay the
/// decisions of the test.
struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "scripts cannot read files; read the file outside of scripts",
        ))
    }
}

/// The value of a member of some statistics, in the units of the language.
pub(super) fn stat_value(statistics: &dyn Statistics, member: StatMember) -> Value {
    let Some(value) = statistics.member(member.path) else { return Value::Unknown(member.base) };
    match member.base {
        // Counts may be larger than ints.
        Base::Int => Value::Int(value.clamp(-f64::from(i32::MAX), f64::from(i32::MAX)) as i32),
        Base::Time => Value::Time((value * 1e6).round() as i64),
        Base::Size => Value::Size(value.round() as i64),
        _ => Value::Float(value),
    }
}
