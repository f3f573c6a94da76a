//! Warnings about legal code that is probably a mistake.

use crate::check::Checker;
use crate::check::hir::{Expr, ExprKind, Place};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::tree::{AssignValue, Block, Stmt, StmtKind};

impl Checker<'_> {
    /// Warns about `acl = acl;` in a block: if the block has a field of this name, the variable outside is
    /// never read.
    pub(super) fn warn_from_itself(&mut self, target: &Place, value: &Expr) {
        if target.fields.is_empty() {
            return;
        }
        let Some(read) = reads(value, target) else { return };
        // A dotted path is unambiguous.
        let name = self.contexts.iter().rev().find_map(|context| {
            context.locals.iter().find(|(name, _)| {
                let length = read.span.end - read.span.start;
                name.len() == length as usize && self.program.name(target).ends_with(&format!(".{name}"))
            })
        });
        let Some((name, var)) = name else { return };
        let declared = self.program.vars[var.0 as usize].span;
        let field = self.program.name(target);
        let text = format!("`{name}` refers to the field `{field}` here, so the field is assigned to itself");
        let finding = Diagnostic::new(Code::Shadows, read.span, text)
            .also(declared, "this variable is hidden by the field of the same name")
            .help(format!(
                "give the variable another name, or assign outside of the block: `{field} = {name};`"
            ));
        self.report(finding);
    }
}

/// The first use of a place in an expression.
fn reads<'e>(expr: &'e Expr, place: &Place) -> Option<&'e Expr> {
    let inside = |expr: &'e Expr| reads(expr, place);
    match &expr.kind {
        ExprKind::Read(found) if found.var == place.var && found.fields == place.fields => Some(expr),
        ExprKind::Read(_) | ExprKind::Value(_) | ExprKind::Poison => None,
        ExprKind::Call(_, args) => args.iter().find_map(inside),
        ExprKind::Unary(_, inner) => inside(inner),
        ExprKind::Chain(first, rest) => {
            inside(first).or_else(|| rest.iter().find_map(|(_, _, operand)| inside(operand)))
        }
        ExprKind::Array(items) => {
            items.iter().find_map(|(item, prob)| inside(item).or_else(|| prob.as_deref().and_then(inside)))
        }
    }
}

/// The position of a declaration of a name, outside the blocks that fill records, after the position of its
/// use.
pub(super) fn declared_below(body: &[Stmt], name: &str, used: Span) -> Option<Span> {
    let below = |block: &Block| declared_below(&block.body, name, used);
    body.iter().find_map(|stmt| match &stmt.kind {
        StmtKind::Declare { name: found, init, .. } => {
            let word = &found.words[0];
            let behind = word.span.file != used.file || word.span.start > used.start;
            if *word.text == *name && behind {
                return Some(word.span);
            }
            // A use inside a block may precede a declaration in it.
            init.as_ref().and_then(|init| around(init, used)).and_then(below)
        }
        StmtKind::Assign(_, right) => around(right, used).and_then(below),
        StmtKind::If(_, then, otherwise) => below(then).or_else(|| otherwise.as_ref().and_then(below)),
        StmtKind::Block(block) | StmtKind::Every(_, block) => below(block),
        StmtKind::Group(..) | StmtKind::Call(_) | StmtKind::Error => None,
    })
}

/// The block on the right of an assignment that contains this position.
fn around(right: &AssignValue, used: Span) -> Option<&Block> {
    let AssignValue::Block(block) = right else { return None };
    let here = block.span.file == used.file && block.span.start <= used.start && used.end <= block.span.end;
    here.then_some(block)
}
