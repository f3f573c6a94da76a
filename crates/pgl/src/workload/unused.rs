//! Warns of agents, contents and phases that the program defines and then leaves out.

use rustc_hash::FxHashSet;

use super::Checks;
use crate::check::hir::{Expr, ExprKind, Init, Program, Stmt, VarId};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::hints::an;
use crate::source::FileId;
use crate::types::{Base, Rec, Ty};

/// The file that a program starts with.
const MAIN: FileId = FileId(0);

/// Included files offer more than each program needs, so only variables of the main file count. A variable is used if it is read as
/// a whole anywhere; reading a field of it does not put it into the test. `phases`: also warn of phases.
pub(super) fn check(phases: bool, checks: &mut Checks<'_>) {
    let used = used(checks.program);
    let vars = checks
        .program
        .vars
        .iter()
        .zip(0..)
        .filter(|(var, id)| var.global && var.span.file == MAIN && !used.contains(&VarId(*id)));
    let findings: Vec<Diagnostic> = vars
        .filter_map(|(var, _)| {
            let Ty { base: Base::Record(rec), array: false } = var.ty else { return None };
            let name = &*var.name;
            let (missing, help) = match rec {
                Rec::Robot | Rec::Server | Rec::Proxy => ("no use() names it", format!("add `use({name});`")),
                Rec::Phase if phases => ("no schedule() names it", format!("add `schedule({name});`")),
                Rec::Content => (
                    "no server and no other content has it",
                    format!("add it to the `contents` of a server, `contents = [ {name} ];`"),
                ),
                _ => return None,
            };
            let text = format!("`{name}` is defined but never used: {missing}");
            let finding = Diagnostic::new(Code::NeverUsed, var.span, text)
                .label(format!("{} that is not part of the test", an(rec.name())))
                .help(format!("{help}, or delete it"));
            Some(finding)
        })
        .collect();
    findings.into_iter().for_each(|finding| checks.push(finding));
}

/// All variables that are read as a whole.
fn used(program: &Program) -> FxHashSet<VarId> {
    let mut used = FxHashSet::default();
    program.settings.iter().for_each(|(_, value)| in_expr(value, &mut used));
    in_body(&program.body, &mut used);
    program.scripts.iter().for_each(|script| in_body(&script.body, &mut used));
    used
}

fn in_body(body: &[Stmt], used: &mut FxHashSet<VarId>) {
    for stmt in body {
        match stmt {
            Stmt::Declare(_, Some(Init::Value(value)), _) | Stmt::Assign(_, value) => in_expr(value, used),
            Stmt::Declare(_, Some(Init::Fill(body)), _) | Stmt::Fill(_, body) => in_body(body, used),
            Stmt::Group(targets, value, _) => {
                targets.iter().filter_map(|(_, share)| share.as_ref()).for_each(|share| in_expr(share, used));
                in_expr(value, used);
            }
            Stmt::Call(_, args, _) => args.iter().for_each(|arg| in_expr(arg, used)),
            Stmt::If(condition, then, otherwise) => {
                in_expr(condition, used);
                in_body(then, used);
                in_body(otherwise, used);
            }
            Stmt::Every(goal, body, _) => {
                in_expr(goal, used);
                in_body(body, used);
            }
            Stmt::Declare(_, None, _) | Stmt::Store(..) | Stmt::Doubt(_) | Stmt::Poison(_) => {}
        }
    }
}

fn in_expr(expr: &Expr, used: &mut FxHashSet<VarId>) {
    match &expr.kind {
        ExprKind::Read(place) if place.fields.is_empty() => {
            used.insert(place.var);
        }
        ExprKind::Read(_) | ExprKind::Value(_) | ExprKind::Poison => {}
        ExprKind::Call(_, args) => args.iter().for_each(|arg| in_expr(arg, used)),
        ExprKind::Unary(_, inner) => in_expr(inner, used),
        ExprKind::Chain(first, rest) => {
            in_expr(first, used);
            rest.iter().for_each(|(_, _, operand)| in_expr(operand, used));
        }
        ExprKind::Array(items) => {
            for (item, share) in items {
                in_expr(item, used);
                share.iter().for_each(|share| in_expr(share, used));
            }
        }
    }
}
