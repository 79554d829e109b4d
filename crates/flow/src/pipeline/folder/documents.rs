//! What a run folder holds beside its metrics that pictures are drawn from.

use std::path::Path;

use report::html::Documents;
use types::{AnalyticReport, Document, KernelReport, RegionReport};

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
            modelled: document(folder, analytic::REPORT),
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

/// A document of a run folder, where it has one that can be read.
pub(crate) fn document<D: Document>(folder: &Path, name: &str) -> Option<D> {
    D::from_json(&std::fs::read(folder.join(name)).ok()?).ok()
}
