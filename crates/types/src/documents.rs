//! The table of every JSON document the tool writes, and its JSON Schema.

use std::io::Write;

use serde_json::Value;

use crate::schema::{Document, SchemaName};
use crate::{
    AnalyticReport, BundleIndex, Calibration, Capacity, CapacitySweep, Comparison, DeepPlan, DeviceCalibration,
    Diagnosis, Environment, Fleet, HardwareListing, InputSet, KernelReport, Metrics, RegionReport, RunDetail, RunList,
    RunManifest, SchemaList, Sweep, ValidationReport, WhatIf,
};

/// One document: its name, what it is and how its schema is made.
pub struct DocumentKind {
    /// Name and version.
    pub name: SchemaName,
    /// What it holds, in one line.
    pub about: &'static str,
    schema: &'static str,
    #[cfg(test)]
    generated: fn() -> schemars::Schema,
}

impl DocumentKind {
    /// Its JSON Schema, draft 2020-12. A test makes it from the type.
    pub fn schema(&self) -> Value {
        serde_json::from_str(self.schema).expect("a test compares every file with its type")
    }
}

/// The table of documents, in the order a reader meets them: type, name, version and what it holds. The schema is the file of the
/// document's name. What reads and writes a document is compiled here, once for all who do.
macro_rules! documents {
    ($($Document:ident, $name:literal, $version:literal, $about:literal;)+) => {
        $(impl Document for $Document {
            const SCHEMA: SchemaName = SchemaName::new($name, $version);

            fn from_json(json: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(json)
            }

            fn write_json(&self, out: &mut dyn Write) -> serde_json::Result<()> {
                serde_json::to_writer_pretty(out, self)
            }
        })+

        /// Every document, in the order a reader meets them.
        pub const ALL: &[DocumentKind] = &[$(DocumentKind {
            name: $Document::SCHEMA,
            about: $about,
            schema: include_str!(concat!("../schemas/", $name, ".json")),
            #[cfg(test)]
            generated: tests::schema_of::<$Document>,
        }),+];
    };
}

documents! {
    RunManifest, "manifest", 1, "manifest.json: what a run is, its status and the files it left";
    Metrics, "metrics", 1, "metrics.json: samples, stages, operators, kernels and findings of a run";
    KernelReport, "kernels", 1, "kernels.json: kernels with hardware counters and the modelled cost beside them";
    DeepPlan, "deep-plan", 1, "plan.json: the passes of a deep run, as they were planned";
    AnalyticReport, "analytic", 1, "report.json: what a model costs on a workload, modelled from its configuration";
    Sweep, "sweep", 1, "sweep.json: what a model costs at every point of a grid of workloads and devices";
    Capacity, "capacity", 1, "capacity.json: what a server is likely to make of a load, simulated";
    CapacitySweep, "capacity-sweep", 1, "capacity-sweep.json: layouts of a server under a load, and the best of them";
    RegionReport, "regions", 1, "ncu/regions/report.json: hardware counters rolled up per NVTX region";
    InputSet, "inputs", 1, "inputs.yaml: the images or prompts a run was given and which it used";
    Environment, "environment", 1, "env.json: the machine and the software a run used";
    BundleIndex, "bundle", 1, "bundle.json: the index of a packed run, and output of `pack --json`";
    Comparison, "comparison", 1, "output of `compare --json`: what changed between runs, and how sure that is";
    Fleet, "fleet", 1, "fleet.json: many ranks of a job, many runs over time";
    WhatIf, "whatif", 1, "output of `whatif --json`: the time of a run under changes, by replay";
    Diagnosis, "doctor", 1, "output of `doctor --json`: what can be profiled here";
    HardwareListing, "hardware", 1, "output of `hardware --json`: devices with their peaks and sources";
    Calibration, "calibration", 1, "measured rates of this machine's processor";
    DeviceCalibration, "device-calibration", 1,
        "measured times of single operations on a device, and the curve fitted to them";
    RunList, "runs", 1, "output of `runs --json`: the runs beneath a folder";
    RunDetail, "run", 1, "output of `runs ID --json`: one run with its files";
    SchemaList, "schemas", 1, "output of `schema --json`: every document the tool writes";
    ValidationReport, "validation", 1, "output of `validate --json`: every violation, file by file";
}

/// The document of that name: `metrics`, or `llm-perf/metrics/1`.
pub fn find(name: &str) -> Option<&'static DocumentKind> {
    ALL.iter().find(|kind| kind.name.name() == name || kind.name.to_string() == name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use schemars::generate::SchemaSettings;

    use super::*;

    pub(super) fn schema_of<D: Document + schemars::JsonSchema>() -> schemars::Schema {
        let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<D>();
        schema.insert("$id".to_owned(), D::SCHEMA.to_string().into());
        schema
    }

    /// `UPDATE_DOCS=1` writes the files.
    #[test]
    fn every_schema_is_that_of_its_type() {
        for kind in ALL {
            let generated = serde_json::to_string_pretty(&(kind.generated)()).unwrap() + "\n";
            if std::env::var_os("UPDATE_DOCS").is_some() {
                let file = format!("schemas/{}.json", kind.name.name());
                std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), generated).unwrap();
            } else {
                let next = "write it with UPDATE_DOCS=1 cargo test -p llm-perf-types";
                assert!(kind.schema == generated, "the schema {} is not that of its type; {next}", kind.name);
            }
        }
    }

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
            let schema = kind.schema();
            assert_eq!(schema["properties"]["schema"]["const"], kind.name.to_string());
            let required = schema["required"].as_array().unwrap();
            assert!(required.contains(&"schema".into()), "{} must require its schema field", kind.name);
        }
    }
}
