//! Every combination of the values of some settings.

use meter::WorkloadSettings;
use serde_json::{Map, Value};
use types::{SweepAxis, UserError};

/// Most points of a sweep: what is computed in a few minutes and still opens in a spreadsheet.
const MOST_POINTS: u64 = 1_000_000;

/// Where the settings of a workload stand in a configuration.
const WORKLOAD: &str = "workload.";

/// Quantities that go together: setting one leaves the other to be derived.
const PAIRS: [[&str; 2]; 2] = [["seq_len", "text_tokens"], ["decode_steps", "max_new_tokens"]];

/// A workload, and the settings of it that vary. The last axis changes fastest.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    base: Map<String, Value>,
    axes: Vec<Axis>,
    workloads: u64,
}

#[derive(Clone, Debug)]
struct Axis {
    key: String,
    /// The key's parts below the workload.
    path: Vec<String>,
    values: Vec<Value>,
}

/// A key that cannot vary.
pub fn no_workload_key(key: &str) -> UserError {
    UserError::usage(format!("--sweep {key}: only workload settings can be swept"))
        .hint("sweep devices with --hardware NAME,NAME; use one run per model")
}

impl Grid {
    /// The grid of `axes` over `base`, for so many devices.
    pub(super) fn new(base: &Map<String, Value>, axes: &[SweepAxis], devices: u64) -> Result<Self, UserError> {
        let mut grid = Self { base: base.clone(), axes: Vec::new(), workloads: 1 };
        let mut points = u128::from(devices);
        for axis in axes {
            let key = axis.key.clone();
            let Some(path) = key.strip_prefix(WORKLOAD).filter(|path| !path.is_empty()) else {
                return Err(no_workload_key(&key));
            };
            if grid.axes.iter().any(|other| other.key == key) {
                return Err(UserError::usage(format!("--sweep {key} is given twice")));
            }
            if axis.values.is_empty() {
                return Err(UserError::usage(format!("--sweep {key} has no values")));
            }
            points = points.saturating_mul(axis.values.len() as u128);
            let path = path.split('.').map(str::to_owned).collect();
            grid.axes.push(Axis { key, path, values: axis.values.clone() });
        }
        if points > u128::from(MOST_POINTS) {
            return Err(UserError::usage(format!("the sweep has {points} points; the limit is {MOST_POINTS}")));
        }
        grid.workloads = grid.axes.iter().map(|axis| axis.values.len() as u64).product();
        for [one, other] in PAIRS {
            let swept = |name: &str| grid.axes.iter().any(|axis| axis.path == [name]);
            for (set, derived) in [(one, other), (other, one)] {
                if swept(set) && !swept(derived) {
                    grid.base.insert(derived.to_owned(), Value::Null);
                }
            }
        }
        Ok(grid)
    }

    /// Combinations.
    pub(super) fn workloads(&self) -> u64 {
        self.workloads
    }

    /// The value of every axis in combination `number`, by key.
    pub(super) fn settings(&self, number: u64) -> Map<String, Value> {
        self.chosen(number).map(|(axis, value)| (axis.key.clone(), value.clone())).collect()
    }

    /// The workload of combination `number`, or what is wrong with it.
    pub(super) fn workload(&self, number: u64) -> Result<WorkloadSettings, String> {
        let mut workload = Value::Object(self.base.clone());
        for (axis, value) in self.chosen(number) {
            let place = axis.path.iter().try_fold(&mut workload, |node, part| match node {
                Value::Object(map) => Some(map.entry(part.as_str()).or_insert(Value::Null)),
                _ => None,
            });
            match place {
                Some(place) => *place = value.clone(),
                None => return Err(format!("{} is not a workload setting", axis.key)),
            }
        }
        serde_json::from_value(workload).map_err(|error| format!("workload: {error}"))
    }

    fn chosen(&self, number: u64) -> impl Iterator<Item = (&Axis, &Value)> {
        let mut below = self.workloads;
        self.axes.iter().map(move |axis| {
            let count = axis.values.len() as u64;
            below /= count;
            let index = (number / below) % count;
            (axis, &axis.values[index as usize])
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Map<String, Value> {
        let text = include_str!("../../../../../conf/workload/llm-standard-v1.yaml");
        serde_saphyr::from_str(text).unwrap()
    }

    fn axis(key: &str, values: Value) -> SweepAxis {
        SweepAxis { key: key.to_owned(), values: values.as_array().unwrap().clone() }
    }

    fn refusal(axes: &[SweepAxis], devices: u64) -> String {
        Grid::new(&base(), axes, devices).unwrap_err().to_string()
    }

    #[test]
    fn the_last_axis_changes_fastest() {
        let axes = [axis("workload.batch", json!([1, 8])), axis("workload.parallel.tensor", json!([1, 2, 4]))];
        let grid = Grid::new(&base(), &axes, 1).unwrap();
        assert_eq!(grid.workloads(), 6);
        let points: Vec<_> = (0..6)
            .map(|number| {
                let workload = grid.workload(number).unwrap();
                (workload.batch, workload.parallel.tensor)
            })
            .collect();
        assert_eq!(points, [(1, 1), (1, 2), (1, 4), (8, 1), (8, 2), (8, 4)]);
        assert_eq!(Value::Object(grid.settings(5)), json!({"workload.batch": 8, "workload.parallel.tensor": 4}));
    }

    #[test]
    fn no_axis_is_one_point() {
        let grid = Grid::new(&base(), &[], 3).unwrap();
        assert_eq!((grid.workloads(), grid.settings(0).len()), (1, 0));
        assert_eq!(grid.workload(0).unwrap().batch, 1);
    }

    #[test]
    fn sweeping_the_whole_prompt_leaves_its_text_to_be_derived() {
        let axes = [axis("workload.seq_len", json!([100, 200])), axis("workload.decode_steps", json!([5]))];
        let workload = Grid::new(&base(), &axes, 1).unwrap().workload(1).unwrap();
        assert_eq!((workload.seq_len, workload.text_tokens), (Some(200), None));
        assert_eq!((workload.decode_steps, workload.max_new_tokens), (Some(5), None));
    }

    #[test]
    fn what_cannot_be_swept_is_refused() {
        assert_eq!(
            refusal(&[axis("model.name", json!(["a"]))], 1),
            "--sweep model.name: only workload settings can be swept"
        );
        let batch = axis("workload.batch", json!([1, 2]));
        assert_eq!(refusal(&[batch.clone(), batch], 1), "--sweep workload.batch is given twice");
        assert_eq!(refusal(&[axis("workload.batch", json!([]))], 1), "--sweep workload.batch has no values");
        let many: Vec<_> = (0..2_000).collect();
        let axes = [axis("workload.batch", json!(many)), axis("workload.seq_len", json!(many))];
        assert_eq!(refusal(&axes, 2), "the sweep has 8000000 points; the limit is 1000000");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named() {
        let axes = [axis("workload.batch", json!([1, "many"]))];
        let grid = Grid::new(&base(), &axes, 1).unwrap();
        assert!(grid.workload(1).unwrap_err().contains("many"));
    }
}
