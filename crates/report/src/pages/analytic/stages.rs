//! Stages in the order a reader expects, with what they are part of.

use types::{AnalyticReport, Stage, StageCost};

use crate::render::Table;
use crate::render::text::prose;
use crate::words::number::{milliseconds, percent, share};

/// A stage and the stages around it.
#[derive(Clone, Debug)]
pub(crate) struct StageRow<'a> {
    pub(crate) name: &'a str,
    /// What it is part of, outermost first.
    pub(crate) around: Vec<&'static str>,
    pub(crate) cost: &'a StageCost,
}

/// One row per stage; `named` is its first cell.
pub(super) fn table(report: &AnalyticReport, named: impl Fn(&StageRow<'_>) -> String) -> Table {
    let mut table = Table::new("stage | >matrix | >vector | >bytes | >time | >of total time | bound");
    for stage in ordered(report) {
        let cost = stage.cost;
        table.row([
            named(&stage),
            cost.flops_matrix.to_string(),
            cost.flops_vector.to_string(),
            cost.bytes.total().to_string(),
            milliseconds(cost.time_ms),
            percent(share(cost.time_ms, report.predicted_total_time_ms)),
            prose(&cost.bound),
        ]);
    }
    table
}

/// The prefill without vision; not a stage of its own anywhere else.
const PREFILL_TEXT: &str = "prefill_text";

/// Stages that do something, parts behind the stage they are part of; unknown names come last. Where nothing is
/// seen, the prefill without vision is the prefill and not shown again.
pub(crate) fn ordered(report: &AnalyticReport) -> Vec<StageRow<'_>> {
    let stages = &report.stages;
    let sees = stages.get(Stage::Vision.name()).is_some_and(|vision| vision.operations > 0);
    let mut rows: Vec<_> = stages
        .iter()
        .filter(|(name, cost)| cost.operations > 0 && (sees || *name != PREFILL_TEXT))
        .map(|(name, cost)| (place(name), StageRow { name, around: around(name), cost }))
        .collect();
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn place(name: &str) -> usize {
    // Prefill, vision and its parts, then the rest of prefill, then decode.
    let order = Stage::ALL.map(Stage::name);
    let decode = order.iter().position(|known| *known == Stage::Decode.name()).unwrap_or(order.len());
    match order.iter().position(|known| *known == name) {
        _ if name == PREFILL_TEXT => 2 * decode - 1,
        Some(position) => 2 * position,
        None => 2 * order.len(),
    }
}

fn around(name: &str) -> Vec<&'static str> {
    if name == PREFILL_TEXT {
        return vec![Stage::Prefill.name()];
    }
    let mut stage = Stage::ALL.into_iter().find(|stage| stage.name() == name).and_then(Stage::parent);
    let mut names = Vec::new();
    while let Some(outer) = stage {
        names.insert(0, outer.name());
        stage = outer.parent();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn parts_follow_what_they_are_part_of_and_idle_stages_are_left_out() {
        let mut report = sample::report();
        let mut idle = report.stages["clip"].clone();
        idle.operations = 0;
        report.stages.insert("clip".to_owned(), idle);
        report.stages.insert("another".to_owned(), report.stages["sam"].clone());
        let rows = ordered(&report);
        let names: Vec<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["prefill", "vision", "sam", "projector", "prefill_text", "decode", "another"]);
        assert_eq!(rows[2].around, ["prefill", "vision"]);
    }

    #[test]
    fn without_vision_prefill_is_shown_once() {
        let mut report = sample::report();
        report.stages.retain(|name, _| ["prefill", "prefill_text", "decode"].contains(&name.as_str()));
        let names: Vec<_> = ordered(&report).iter().map(|row| row.name).collect();
        assert_eq!(names, ["prefill", "decode"]);
    }
}
