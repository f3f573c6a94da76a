//! Group assignment: `[a: 30%, b] = array;`

use std::sync::Arc;

use polygraph_addr::xceil;

use crate::check::hir::{Expr, Place};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::Evaluator;
use crate::source::Span;
use crate::value::{Array, ArrayElement, CloneOrder, Value, flat};

impl Evaluator<'_> {
    pub(super) fn group(&mut self, targets: &[(Place, Option<Expr>)], value: &Expr, span: Span) {
        let expr = value;
        let value = self.expr(value);
        let array = match &value {
            Value::Array(array) => array.clone(),
            // A single value goes to every target.
            other => {
                for (place, _) in targets {
                    if !self.is_set(place) {
                        let name = self.name(place);
                        let value = self.converted(other.clone(), place.ty, &name, expr);
                        self.assign(place, value, expr.span);
                    }
                }
                return;
            }
        };
        if !self.charge(array.len(), expr.span) {
            return;
        }
        let mut items: Vec<Value> =
            flat(&value, CloneOrder::Position).into_iter().map(|(value, _)| value).collect();
        let Some(counts) = self.shares(targets, items.len(), expr.span, span) else { return };
        if targets.iter().any(|(_, prob)| prob.is_some()) {
            self.random.group.shuffle(&mut items);
        }
        let mut items = items.into_iter();
        for ((place, _), count) in targets.iter().zip(counts) {
            let share = Array::of(items.by_ref().take(count)).map(|array| Value::Array(Arc::new(array)));
            let share = share.unwrap_or_else(|limit| self.limit(limit, expr.span));
            if self.is_set(place) {
                continue;
            }
            let name = self.name(place);
            let value = self.converted(share, place.ty, &name, expr);
            self.assign(place, value, expr.span);
        }
    }

    /// The number of items for each target.
    fn shares(
        &mut self,
        targets: &[(Place, Option<Expr>)],
        count: usize,
        at: Span,
        span: Span,
    ) -> Option<Vec<usize>> {
        if targets.iter().all(|(_, prob)| prob.is_none()) {
            if !count.is_multiple_of(targets.len()) {
                let text =
                    format!("{count} items cannot be distributed evenly among {} targets", targets.len());
                let finding = Diagnostic::new(Code::NotDivisible, at, text)
                    .help("with probabilities, `[a: 30%, b] = ...`, the numbers need not match");
                self.report(finding);
                return None;
            }
            return Some(vec![count / targets.len(); targets.len()]);
        }
        let mut items = Vec::new();
        for (_, prob) in targets {
            let prob = match prob {
                Some(prob) => Some(self.probability(prob)?),
                None => None,
            };
            items.push(ArrayElement { value: Value::Bool(true), prob });
        }
        let array = Array::new(items).ok()?;
        let (probs, odd) = array.level();
        if let Some(sum) = odd {
            self.odd_probabilities(sum, span, None);
        }
        let mut left = count;
        let last = probs.len() - 1;
        let shares = probs.iter().enumerate().map(|(index, prob)| {
            let wanted = if index == last { left } else { xceil(prob * count as f64, 1.0) as usize };
            let share = wanted.min(left);
            left -= share;
            share
        });
        Some(shares.collect())
    }
}
