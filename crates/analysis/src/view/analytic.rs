//! The analytic model as its pages show it.

use std::collections::BTreeMap;

use types::view::{AnalyticView, CategoryView, WorkShares};
use types::{AnalyticReport, Bytes, Flops, StageCost};

use super::module_roles::{by_time, class_name};
use super::{share, stage_order};

/// Modules on a page.
const MODULES: usize = 12;
/// Modules on a screen.
const MODULES_BRIEF: usize = 5;

/// The view of an analytic model.
pub fn analytic(report: &AnalyticReport) -> AnalyticView<'_> {
    let mut classes: BTreeMap<&str, &str> = BTreeMap::new();
    for module in &report.modules {
        classes.entry(class_name(&module.qualified_class_name)).or_insert(&module.module_id);
    }
    AnalyticView {
        report,
        prediction: report.devices.iter().find(|prediction| prediction.device.id == report.device.id),
        stages: stage_order::ordered(report),
        work: work(report),
        modules: by_time(report, MODULES),
        modules_brief: by_time(report, MODULES_BRIEF),
        categories: categories(report),
        sequence_tokens: report.workload.seq_len + report.workload.decode_steps,
        classes: classes.into_iter().collect(),
    }
}

fn work(report: &AnalyticReport) -> Option<WorkShares> {
    let flops = |stage: &StageCost| stage.flops_matrix + stage.flops_vector;
    let prefill = report.stages.get("prefill")?;
    let (prefill_flops, prefill_bytes) = (flops(prefill), prefill.bytes.total());
    let Some(decode) = report.stages.get("decode").filter(|decode| decode.operations > 0) else {
        return Some(WorkShares { flops: prefill_flops, bytes: prefill_bytes, prefill: None });
    };
    let (flops, bytes) = (prefill_flops + flops(decode), prefill_bytes + decode.bytes.total());
    let of_flops = share(prefill_flops.as_f64(), flops.as_f64());
    let of_bytes = share(prefill_bytes.as_f64(), bytes.as_f64());
    Some(WorkShares { flops, bytes, prefill: Some((of_flops, of_bytes)) })
}

fn categories(report: &AnalyticReport) -> Vec<CategoryView<'_>> {
    let mut used: Vec<_> = report.categories.iter().filter(|category| category.calls > 0).collect();
    used.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms).then_with(|| a.category_id.cmp(&b.category_id)));
    used.into_iter()
        .map(|category| {
            let named = report.operator_categories.iter().find(|named| named.category_id == category.category_id);
            CategoryView {
                name: named.map_or(&category.category_id, |named| &named.display_name),
                category,
                flops: Flops::new((category.flops_tflops * 1e12).round() as u128),
                bytes: Bytes::new((category.io_tb * 1e12).round() as u64),
                time_share: share(category.time_ms, report.predicted_total_time_ms),
            }
        })
        .collect()
}
