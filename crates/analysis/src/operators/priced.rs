//! Operators of the profiled pass: by name, by module class, by shape.
//!
//! The engine calls one operator at a time and none from within another, so an operator's own time is all of its time.

use std::collections::BTreeMap;

use types::{Bytes, ClassGroup, Flops, FlopsPerSecond, Nanos, OperatorGroups, OperatorSummary, ShapeGroup, Stage};

use crate::evidence::PricedOperator;

/// What calls add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) time: Nanos,
    /// Known only where every call says it.
    pub(crate) allocated: Option<Bytes>,
    pub(crate) flops_matrix: Flops,
    /// Bytes that must move.
    pub(crate) moved: Bytes,
    /// Roofline time; known only where it is for every call.
    pub(crate) least: Option<Nanos>,
}

impl Sum {
    /// All of `operators`.
    pub(crate) fn of<'a>(operators: impl IntoIterator<Item = &'a PricedOperator>) -> Self {
        let mut sum = Self::nothing();
        for operator in operators {
            sum.add(operator);
        }
        sum
    }

    /// Nothing, of which all is known.
    fn nothing() -> Self {
        Self { allocated: Some(Bytes::ZERO), least: Some(Nanos::ZERO), ..Self::default() }
    }

    fn add(&mut self, operator: &PricedOperator) {
        self.calls += 1;
        self.time += operator.record.duration_ns;
        self.allocated = self.allocated.zip(operator.record.bytes_allocated).map(|(sum, one)| sum + one);
        self.flops_matrix += operator.cost.flops_matrix;
        self.moved += operator.cost.bytes.total();
        self.least = self.least.zip(operator.roofline_ns).map(|(sum, one)| sum + one);
    }

    /// Matrix work over time; absent where there is none of either.
    pub(crate) fn rate(&self) -> Option<FlopsPerSecond> {
        let some = self.time > Nanos::ZERO && self.flops_matrix > Flops::ZERO;
        some.then(|| self.flops_matrix / self.time.as_seconds())
    }
}

/// Sums by key, longest first; keys of the same time in their own order.
pub(crate) fn sums<'a, K: Ord>(
    operators: impl IntoIterator<Item = &'a PricedOperator>,
    key: impl Fn(&'a PricedOperator) -> K,
) -> Vec<(K, Sum)> {
    let mut groups: BTreeMap<K, Sum> = BTreeMap::new();
    for operator in operators {
        groups.entry(key(operator)).or_insert_with(Sum::nothing).add(operator);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.time));
    groups
}

/// One row per name and stage.
pub(crate) fn summaries(operators: &[PricedOperator]) -> Vec<OperatorSummary> {
    let summary = |((name, stage), sum): ((&str, Option<Stage>), Sum)| OperatorSummary {
        name: name.to_owned(),
        stage,
        calls: sum.calls,
        total_ns: sum.time,
        self_ns: sum.time,
        device_ns: None,
        bytes_allocated: sum.allocated,
        python: Vec::new(),
    };
    sums(operators, |operator| (operator.record.name.as_str(), operator.record.stage))
        .into_iter()
        .map(summary)
        .collect()
}

/// The same calls, by class and by shape.
pub(crate) fn groups(operators: &[PricedOperator]) -> OperatorGroups {
    let by_class = |(class, sum): (&str, Sum)| ClassGroup {
        class: class.to_owned(),
        calls: sum.calls,
        total_ns: sum.time,
        bytes_allocated: sum.allocated,
        flops_matrix: sum.flops_matrix,
        flops_per_second: sum.rate(),
    };
    let by_shape = |((name, shapes), sum): ((&str, &[Vec<u64>]), Sum)| ShapeGroup {
        name: name.to_owned(),
        shapes: shapes.to_vec(),
        calls: sum.calls,
        total_ns: sum.time,
        bytes_allocated: sum.allocated,
        flops_matrix: sum.flops_matrix,
        flops_per_second: sum.rate(),
        device_ns: None,
        dtype: None,
        bytes: None,
        bytes_per_second: None,
        roofline_ns: None,
        bound: None,
        roofline_share: None,
    };
    OperatorGroups {
        by_class: sums(operators, |operator| operator.class.as_str()).into_iter().map(by_class).collect(),
        by_shape: sums(operators, name_and_shapes).into_iter().map(by_shape).collect(),
    }
}

fn name_and_shapes(operator: &PricedOperator) -> (&str, &[Vec<u64>]) {
    (&operator.record.name, &operator.record.shapes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::operator;
    use proptest::prelude::*;

    #[test]
    fn names_come_longest_first_with_all_their_calls() {
        let operators = [
            operator("softmax", "model.layers.0.self_attn", Stage::Prefill, 30),
            operator("linear", "lm_head", Stage::Prefill, 50),
            operator("linear", "lm_head", Stage::Prefill, 20),
            operator("linear", "lm_head", Stage::Decode, 20),
        ];
        let rows = summaries(&operators);
        assert_eq!(
            rows.iter().map(|row| (row.name.as_str(), row.calls)).collect::<Vec<_>>(),
            [("linear", 2), ("softmax", 1), ("linear", 1)]
        );
        assert_eq!((rows[0].stage, rows[2].stage), (Some(Stage::Prefill), Some(Stage::Decode)));
        assert_eq!((rows[0].total_ns, rows[0].self_ns, rows[0].device_ns), (Nanos::new(70), Nanos::new(70), None));
    }

    #[test]
    fn one_call_that_does_not_say_its_memory_makes_the_sum_unknown() {
        let mut operators =
            vec![operator("linear", "a", Stage::Prefill, 1), operator("linear", "a", Stage::Prefill, 1)];
        operators[1].record.bytes_allocated = None;
        assert_eq!(summaries(&operators)[0].bytes_allocated, None);
        assert!(summaries(&operators[..1])[0].bytes_allocated.is_some());
    }

    #[test]
    fn shapes_tell_calls_of_one_name_apart_and_rates_need_work_and_time() {
        let mut operators =
            vec![operator("linear", "a", Stage::Prefill, 1_000), operator("linear", "a", Stage::Prefill, 10)];
        operators[0].cost.flops_matrix = Flops::new(4_000);
        operators[0].record.shapes = vec![vec![1, 8]];
        let groups = groups(&operators);
        assert_eq!(groups.by_shape.len(), 2);
        // 4000 FLOP in 1 us.
        assert_eq!(groups.by_shape[0].flops_per_second, Some(FlopsPerSecond::new(4e9)));
        assert_eq!(groups.by_shape[1].flops_per_second, None);
    }

    proptest! {
        #[test]
        fn every_grouping_holds_every_call_once(calls in proptest::collection::vec((0usize..3, 0usize..3, 0i64..1_000), 0..40)) {
            let names = ["linear", "softmax", "add"];
            let paths = ["lm_head", "model.layers.1.mlp", "model.sam_model"];
            let operators: Vec<_> =
                calls.iter().map(|(name, path, time)| operator(names[*name], paths[*path], Stage::Prefill, *time)).collect();
            let time: i64 = calls.iter().map(|call| call.2).sum();
            let (rows, groups) = (summaries(&operators), groups(&operators));
            prop_assert_eq!(rows.iter().map(|row| row.total_ns.get()).sum::<i64>(), time);
            prop_assert_eq!(groups.by_class.iter().map(|row| row.total_ns.get()).sum::<i64>(), time);
            prop_assert_eq!(groups.by_shape.iter().map(|row| row.calls).sum::<u64>(), calls.len() as u64);
            prop_assert!(rows.windows(2).all(|pair| pair[0].total_ns >= pair[1].total_ns));
        }
    }
}
