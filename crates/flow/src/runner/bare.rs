//! What `llm-perf workload` answers: a model that was run and nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{Sample, Workload};

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BareRun {
    /// The times of its stages.
    pub samples: Vec<Sample>,
    /// What each input was to the model, by its name; inputs the analytic model does not know are left out.
    #[serde(default)]
    pub workloads: Vec<Workload>,
    /// Why inputs are left out.
    pub not_modelled: Option<String>,
}

/// A program that runs the model by itself, without this one around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables that go with it.
    pub environment: BTreeMap<String, String>,
}

impl PreparedProgram {
    /// It as one would type it.
    pub fn line(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value} "));
        variables.collect::<String>() + &collect::command_line(&self.argv)
    }
}
