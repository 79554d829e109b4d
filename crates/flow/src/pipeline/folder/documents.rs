//! What a run folder holds beside its metrics that pictures are drawn from.

use std::path::Path;

use report::html::Documents;
use types::{AnalyticReport, KernelReport, RegionReport};

use crate::pipeline::model::analytic;

/// Kernels with their counters.
const KERNELS: &str = "kernels.json";
/// Regions with their counters.
pub(crate) const REGIONS: &str = "ncu/regions/report.json";

/// The documents of a run, each where it has one that can be read.
pub(crate) struct RunDocuments {
    modelled: Option<AnalyticReport>,
    kernels: Option<KernelReport>,
    regions: Option<RegionReport>,
}

impl RunDocuments {
    /// Reads those of a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        Self {
            modelled: analytic::read(folder),
            kernels: document(folder, KERNELS),
            regions: document(folder, REGIONS),
        }
    }

    /// The same, for pictures.
    pub(crate) fn shown(&self) -> Documents<'_> {
        let Self { modelled, kernels, regions } = self;
        Documents { modelled: modelled.as_ref(), kernels: kernels.as_ref(), regions: regions.as_ref() }
    }
}

fn document<T: serde::de::DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    serde_json::from_slice(&std::fs::read(folder.join(name)).ok()?).ok()
}
