//! What people call each cause of lost time, of the critical path and of a module's loss: noun phrases, for tables and sentences.

use types::{IdleCause, Remark};

use super::idle;
use super::template::first;

/// Every cause but those of idle time, which [`idle`] has. `{kernels}` is what people call a family of kernels.
pub(crate) const CAUSES: &[(&str, &str)] = &[
    ("cause.after-last", "host time after the last kernel"),
    ("cause.other-work", "GPU work outside the stage"),
    ("cause.kernels", "{kernels}"),
    ("cause.operator", "`{operator}` operators"),
    ("cause.between-operators", "time between operators"),
    ("cause.avoidable-work", "avoidable work"),
    ("path.kernels", "{kernels}"),
    ("module.waiting", "waiting for the host ({share})"),
    ("module.kernels", "{kernels} ({time} of kernel time)"),
];

/// A cause in words; absent where the remark is none.
pub(crate) fn said(remark: &Remark) -> Option<String> {
    let row = CAUSES.iter().find(|(id, _)| *id == remark.id);
    let Some((_, template)) = row else {
        let name = remark.id.strip_prefix("cause.idle.")?;
        let cause = IdleCause::ALL.into_iter().find(|cause| cause.name() == name)?;
        return Some(idle::cause(cause).to_owned());
    };
    let kernels = remark.facts.name("family").map(family);
    first(&[template], &remark.facts.clone().with_known("kernels", kernels))
}

/// Families of kernels, and what people call the kernels of each.
pub(crate) const FAMILIES: &[(&str, &str)] = &[
    ("gemm", "GEMM kernels"),
    ("gemv", "GEMV kernels"),
    ("attention", "attention kernels"),
    ("recurrence", "recurrence kernels"),
    ("convolution", "convolution kernels"),
    ("moe", "MoE kernels"),
    ("elementwise", "elementwise kernels"),
    ("reduce", "reduction kernels"),
    ("softmax", "softmax kernels"),
    ("norm", "normalisation kernels"),
    ("copy", "copy kernels"),
    ("embedding", "embedding kernels"),
    ("index", "gather and scatter kernels"),
    ("sort", "sorting kernels"),
    ("random", "sampling and random-number kernels"),
    ("optimizer", "optimizer kernels"),
    ("communication", "communication"),
    ("compiled", "compiled kernels"),
    ("graph", "CUDA graphs"),
    ("memcpy", "memory copies"),
    ("memset", "memsets"),
    ("other", "other kernels"),
];

/// What people call the kernels of a family.
pub(crate) fn family(name: &str) -> &str {
    FAMILIES.iter().find(|(family, _)| *family == name).map_or(name, |(_, words)| words)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;

    use types::{Base, Facts, Nanos};

    use super::*;

    /// The ids with one of these starts that source files of analysis name, sorted.
    pub(in crate::words) fn ids(files: &[&str], starts: &[&str]) -> Vec<String> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../analysis/src"));
        let text: String = files.iter().map(|file| std::fs::read_to_string(folder.join(file)).unwrap()).collect();
        let named = text.split('"').skip(1).step_by(2).filter(|id| starts.iter().any(|start| id.starts_with(start)));
        let mut ids: Vec<_> = named.map(str::to_owned).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    #[test]
    fn every_cause_of_analysis_has_its_row() {
        let files = ["loss/mod.rs", "replay/path.rs", "device/modules.rs"];
        let ids = ids(&files, &["cause.", "path.", "module."]);
        assert!(ids.len() > 8, "{ids:?}");
        // Those of idle time end in its cause.
        for id in ids.iter().filter(|id| !id.contains('{')) {
            assert!(CAUSES.iter().any(|(row, _)| row == id), "{id}");
        }
    }

    #[test]
    fn every_family_has_its_name() {
        for known in analysis::kernel::Family::ALL.map(analysis::kernel::Family::name) {
            assert!(family(known) != known || known == "communication", "{known}");
        }
    }

    #[test]
    fn every_cause_of_idle_time_has_one_name_of_its_own() {
        let mut names: Vec<_> = IdleCause::ALL
            .map(|cause| said(&Remark::new(&format!("cause.idle.{}", cause.name()), Facts::new())).unwrap())
            .to_vec();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), IdleCause::ALL.len());
    }

    #[test]
    fn a_cause_is_a_noun_phrase_with_its_quantities() {
        let said = |id: &str, facts: Facts| said(&Remark::new(id, facts)).unwrap();
        let gemm = Facts::new().with("family", "gemm").with("time", Nanos::new(2_000_000));
        assert_eq!(said("cause.kernels", gemm.clone()), "GEMM kernels");
        assert_eq!(said("module.kernels", gemm), "GEMM kernels (2.00 ms of kernel time)");
        assert_eq!(said("cause.operator", Facts::new().with("operator", "linear")), "`linear` operators");
        assert_eq!(said("cause.idle.launching", Facts::new()), "launch overhead");
        let waiting = Facts::new().with_share("share", 0.875, Base::LostTime);
        assert_eq!(said("module.waiting", waiting), "waiting for the host (87.5% of lost time)");
    }
}
