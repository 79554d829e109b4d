//! Rows of a document with what follows from all of them: the mean time of a call, and a row's share of the whole.

use serde::{Serialize, Serializer};

use crate::{JsonSchema, KernelSummary, Nanos, OperatorSummary};

/// A row as it is written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ranked<T> {
    #[serde(flatten)]
    row: T,
    /// Mean time of a call; absent without calls.
    mean_ns: Option<Nanos>,
    /// Its part of the time of all rows: of kernels, their time; of operators, host time without callees.
    share: Option<f64>,
}

/// A row with calls and a time.
pub(crate) trait Timed {
    /// How many calls, and the time of all of them.
    fn calls(&self) -> (u64, Nanos);
    /// The time that no other row has.
    fn own(&self) -> Nanos;
}

impl Timed for KernelSummary {
    fn calls(&self) -> (u64, Nanos) {
        (self.calls, self.total_ns)
    }

    fn own(&self) -> Nanos {
        self.total_ns
    }
}

impl Timed for OperatorSummary {
    fn calls(&self) -> (u64, Nanos) {
        (self.calls, self.total_ns)
    }

    fn own(&self) -> Nanos {
        self.self_ns
    }
}

/// Writes every row with its mean and its share.
pub(crate) fn serialize<T: Timed + Serialize, S: Serializer>(rows: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let whole: f64 = rows.iter().map(|row| row.own().get() as f64).sum();
    serializer.collect_seq(rows.iter().map(|row| {
        let (calls, total) = row.calls();
        let mean = |calls: i64| Nanos::new((total.get() as f64 / calls as f64).round() as i64);
        let mean_ns = i64::try_from(calls).ok().filter(|calls| *calls > 0).map(mean);
        let share = (whole > 0.0).then(|| (row.own().get() as f64 / whole).clamp(0.0, 1.0));
        Ranked { row, mean_ns, share }
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Breakdown, Bytes, DeviceId, KernelSummary, Nanos, OperatorSummary};

    #[test]
    fn rows_are_written_with_their_mean_and_share_and_read_back_without() {
        let operator = |name: &str, calls, total, own| OperatorSummary {
            name: name.to_owned(),
            stage: None,
            calls,
            total_ns: Nanos::new(total),
            self_ns: Nanos::new(own),
            device_ns: None,
            bytes_allocated: Some(Bytes::new(1)),
            python: Vec::new(),
        };
        let kernel = KernelSummary {
            name: "k".to_owned(),
            short_name: "k".to_owned(),
            family: "other".to_owned(),
            stage: None,
            device: DeviceId::cuda(0),
            calls: 3,
            total_ns: Nanos::new(10),
            min_ns: Nanos::new(3),
            max_ns: Nanos::new(4),
            estimate: None,
        };
        let operators = vec![operator("linear", 2, 40, 10), operator("mm", 2, 30, 30), operator("none", 0, 0, 0)];
        let breakdown = Breakdown { operators, kernels: vec![kernel], ..Breakdown::default() };
        let written = serde_json::to_value(&breakdown).unwrap();
        let row = |list: &str, place: usize| {
            [&written[list][place]["mean_ns"], &written[list][place]["share"]].map(Value::clone)
        };
        assert_eq!(row("operators", 0), [json!(20), json!(0.25)]);
        assert_eq!(row("operators", 2), [Value::Null, json!(0.0)]);
        assert_eq!(row("kernels", 0), [json!(3), json!(1.0)]);
        assert_eq!(serde_json::from_value::<Breakdown>(written).unwrap(), breakdown);
    }
}
