//! The table of every JSON document the tool writes, and its JSON Schema.

use schemars::{Schema, generate::SchemaSettings};

use crate::schema::{Document, SchemaName};
use crate::{
    AnalyticReport, BundleIndex, Calibration, Capacity, Comparison, DeepPlan, DeviceCalibration, Diagnosis,
    Environment, Fleet, HardwareListing, InputSet, KernelReport, Metrics, RegionReport, RunDetail, RunList,
    RunManifest, SchemaList, Sweep, ValidationReport, WhatIf,
};

/// One document: its name, what it is and how its schema is made.
pub struct DocumentKind {
    /// Name and version.
    pub name: SchemaName,
    /// What it holds, in one line.
    pub about: &'static str,
    schema: fn() -> Schema,
}

impl DocumentKind {
    const fn of<D: Document>(about: &'static str) -> Self {
        Self { name: D::SCHEMA, about, schema: schema_of::<D> }
    }

    /// Its JSON Schema, draft 2020-12.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }
}

/// Every document, in the order a reader meets them.
pub const ALL: &[DocumentKind] = &[
    DocumentKind::of::<RunManifest>("manifest.json: what a run is, its status and the files it left"),
    DocumentKind::of::<Metrics>("metrics.json: samples, stages, operators, kernels and findings of a run"),
    DocumentKind::of::<KernelReport>("kernels.json: kernels with hardware counters and the modelled cost beside them"),
    DocumentKind::of::<DeepPlan>("plan.json: the passes of a deep run, as they were planned"),
    DocumentKind::of::<AnalyticReport>(
        "report.json: what a model costs on a workload, modelled from its configuration",
    ),
    DocumentKind::of::<Sweep>("sweep.json: what a model costs at every point of a grid of workloads and devices"),
    DocumentKind::of::<Capacity>("capacity.json: what a server is likely to make of a load, simulated"),
    DocumentKind::of::<RegionReport>("ncu/regions/report.json: hardware counters rolled up per NVTX region"),
    DocumentKind::of::<InputSet>("inputs.yaml: the images or prompts a run was given and which it used"),
    DocumentKind::of::<Environment>("env.json: the machine and the software a run used"),
    DocumentKind::of::<BundleIndex>("bundle.json: the index of a packed run, and output of `pack --json`"),
    DocumentKind::of::<Comparison>("output of `compare --json`: what changed between runs, and how sure that is"),
    DocumentKind::of::<Fleet>("fleet.json: many ranks of a job, many runs over time"),
    DocumentKind::of::<WhatIf>("output of `whatif --json`: the time of a run under changes, by replay"),
    DocumentKind::of::<Diagnosis>("output of `doctor --json`: what can be profiled here"),
    DocumentKind::of::<HardwareListing>("output of `hardware --json`: devices with their peaks and sources"),
    DocumentKind::of::<Calibration>("measured rates of this machine's processor"),
    DocumentKind::of::<DeviceCalibration>(
        "measured times of single operations on a device, and the curve fitted to them",
    ),
    DocumentKind::of::<RunList>("output of `runs --json`: the runs beneath a folder"),
    DocumentKind::of::<RunDetail>("output of `runs ID --json`: one run with its files"),
    DocumentKind::of::<SchemaList>("output of `schema --json`: every document the tool writes"),
    DocumentKind::of::<ValidationReport>("output of `validate --json`: every violation, file by file"),
];

/// The document of that name: `metrics`, or `llm-perf/metrics/1`.
pub fn find(name: &str) -> Option<&'static DocumentKind> {
    ALL.iter().find(|kind| kind.name.name() == name || kind.name.to_string() == name)
}

fn schema_of<D: Document>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<D>();
    schema.insert("$id".to_owned(), D::SCHEMA.to_string().into());
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_short_and_whole() {
        for kind in ALL {
            assert_eq!(find(kind.name.name()).unwrap().name, kind.name);
            assert_eq!(find(&kind.name.to_string()).unwrap().name, kind.name);
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn every_schema_requires_its_own_name() {
        for kind in ALL {
            let schema = serde_json::to_value(kind.schema()).unwrap();
            assert_eq!(schema["properties"]["schema"]["const"], kind.name.to_string());
            let required = schema["required"].as_array().unwrap();
            assert!(required.contains(&"schema".into()), "{} must require its schema field", kind.name);
        }
    }
}
