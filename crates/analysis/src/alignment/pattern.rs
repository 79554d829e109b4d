//! A forward pass of the model, to lay over recorded ones.

use std::ops::Range;

use super::anchor::Anchor;
use super::modelled_run::ModelledOperator;
use super::path::common;
use super::recorded_anchor::Stand;
use super::sequence;

/// A forward pass as a sequence of anchors.
pub(super) struct Pattern<'a> {
    pub(super) operators: &'a [ModelledOperator],
    anchors: Vec<Anchor>,
    /// The operation of each anchor.
    rows: Vec<usize>,
    /// Experts: parts that may be walked several times.
    again: Vec<Range<usize>>,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(operators: &'a [ModelledOperator]) -> Self {
        let mut pattern = Self { operators, anchors: Vec::new(), rows: Vec::new(), again: Vec::new() };
        for (row, operator) in operators.iter().enumerate() {
            let Some(anchor) = operator.weight.as_deref().and_then(|weight| Anchor::of_model(operator.op, weight))
            else {
                continue;
            };
            let place = pattern.anchors.len();
            if operator.spread {
                match pattern.again.last_mut().filter(|part| part.end == place) {
                    Some(part) => part.end += 1,
                    None => pattern.again.push(place..place + 1),
                }
            }
            pattern.anchors.push(anchor);
            pattern.rows.push(row);
        }
        pattern
    }

    /// The operation that each recorded anchor is.
    pub(super) fn partners(&self, recorded: &[Anchor]) -> Vec<Option<usize>> {
        let found = sequence::align(&self.anchors, &self.again, recorded);
        found.unwrap_or_else(|| vec![None; recorded.len()])
    }

    /// The module of an operator; `first` is the number of the window's first anchor.
    pub(super) fn module(&self, partners: &[Option<usize>], first: usize, stand: Stand, name: &str) -> Option<&'a str> {
        let path = |partner: usize| self.operators[self.rows[partner]].module.as_str();
        let behind = match stand {
            Stand::In(anchor) => match partners.get(anchor.checked_sub(first)?).copied().flatten() {
                Some(partner) => return Some(path(partner)),
                None => anchor - first,
            },
            Stand::Behind(anchors) => anchors.checked_sub(first)?,
        };
        let before = partners[..behind.min(partners.len())].iter().rev().flatten().next();
        let after = partners.get(behind..).and_then(|rest| rest.iter().flatten().next());
        match (before, after) {
            // A norm written out starts long before its weight is applied.
            (_, Some(after)) if matches!(self.anchors[*after], Anchor::Norm(_)) && NORM_STEPS.contains(&name) => {
                Some(path(*after))
            }
            (Some(before), Some(after)) => Some(common(path(*before), path(*after))).filter(|path| !path.is_empty()),
            _ => None,
        }
    }
}

/// Operators a norm consists of and nothing else between two weights does.
const NORM_STEPS: [&str; 3] = ["aten::pow", "aten::mean", "aten::rsqrt"];
