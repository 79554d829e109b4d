//! Values of counters.

use std::sync::Arc;

/// What a profiler says about one counter. A counter without a value is `None` where this stands.
#[derive(Clone, Debug, PartialEq)]
pub enum CounterValue {
    /// A number in the base unit; always finite.
    Number(f64),
    /// A text, such as the name of the device.
    Text(Arc<str>),
    /// A number for the whole chip and one for each of its parts or source lines.
    Instances(Arc<CounterInstances>),
}

/// A number for the whole and one for each instance.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterInstances {
    /// For the whole; absent when only the instances have one.
    pub aggregate: Option<f64>,
    /// For each instance, in the tool's order.
    pub instances: Vec<CounterInstance>,
}

/// One instance of a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterInstance {
    /// What it belongs to, such as an address; absent where the tool lists bare values.
    pub correlation: Option<Arc<str>>,
    /// Its number; absent where the tool has none.
    pub value: Option<f64>,
}

impl CounterValue {
    /// The number, for the whole where there are instances.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Instances(instances) => instances.aggregate,
            Self::Text(_) => None,
        }
    }

    /// The text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::Instances(_) => None,
        }
    }
}
