//! What the analytic model says of the modules that regions are named after.

use analysis::alignment::{ModelledOperator, ModelledRun};
use analysis::region::RolledRegions;
use types::{Bytes, Flops, ModelledRegion, Nanos};

/// Puts the model's numbers beside regions that are modules: a region is one where its name is the path of a module.
pub(super) fn attach(rolled: &mut RolledRegions, run: &ModelledRun) {
    for region in &mut rolled.regions {
        let Some(name) = region.region.segments.last() else { continue };
        region.region.modelled = module(run, name);
    }
}

fn module(run: &ModelledRun, path: &str) -> Option<ModelledRegion> {
    let class = run.classes.iter().find(|(known, _)| known.as_str() == path).map(|(_, class)| class.clone())?;
    let inside = |operator: &&ModelledOperator| {
        operator.module == path || operator.module.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    };
    let mut found = ModelledRegion {
        module: path.to_owned(),
        class,
        flops_matrix: Flops::ZERO,
        flops_vector: Flops::ZERO,
        bytes: Bytes::ZERO,
        least_ns: Some(Nanos::ZERO),
    };
    // One forward pass over the whole input; steps of decoding would be another.
    for operator in run.prefill.iter().filter(inside) {
        found.flops_matrix += operator.cost.flops_matrix;
        found.flops_vector += operator.cost.flops_vector;
        found.bytes += operator.cost.bytes.total();
        found.least_ns = found.least_ns.zip(operator.roofline).map(|(sum, least)| sum + least);
    }
    Some(found)
}
