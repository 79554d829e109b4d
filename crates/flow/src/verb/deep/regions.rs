//! The region report of replayed ranges, where `deep` reads counters of whole ranges.

use collect::run::{RunFolder, sha256};
use report::words::Spoken;
use types::{Hardware, RegionCapture, RegionReport, SchemaTag, UserError};

use super::counters::RangePages;
use super::request::DeepRequest;
use super::tools::Tools;
use crate::pipeline::folder::regions;
use crate::pipeline::trace::regions::{CounterPage, RegionChoice, device_name};

/// Rolls the ranges up and writes them as `regions` does; nothing where none were counted.
pub(super) fn write(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    hardware: Option<&Hardware>,
    choice: &RegionChoice,
    ranges: &[RangePages],
) -> Result<(), UserError> {
    if ranges.is_empty() {
        return Ok(());
    }
    let rolled = choice.rolled(ranges.iter().map(page), hardware);
    let regions: Vec<_> = rolled.regions.iter().map(|region| region.region.clone()).collect();
    let version = tools.ncu.as_ref().ok().and_then(|tool| tool.version.as_deref());
    let configuration = std::fs::read(folder.path().join("config.yaml")).unwrap_or_default();
    let capture = |ranges: &RangePages| RegionCapture {
        purpose: "capture".to_owned(),
        include: Vec::new(),
        command: ranges.command.clone(),
        results: ranges.table.work.len() as u64,
        messages: Vec::new(),
    };
    let report = RegionReport {
        schema: SchemaTag::new(),
        run: folder.id().to_owned(),
        tool: version.map_or("Nsight Compute".to_owned(), |version| format!("Nsight Compute {version}")),
        replay_mode: request.ncu.ncu_cli.replay_mode,
        target: collect::command_line(request.target.argv()),
        device: ranges.iter().find_map(|ranges| device_name(&ranges.table)),
        generated_at: collect::run::now(),
        config_fingerprint: sha256(&configuration),
        scope: RegionReport::scope_of(&regions, choice.is_aggregated()),
        selection: choice.selection(&rolled),
        captures: ranges.iter().map(capture).collect(),
        metrics: rolled.metrics.clone(),
        totals: rolled.totals.clone(),
        regions,
        outside: rolled.outside,
        notes: Vec::new(),
        quality: rolled.quality.clone(),
    }
    .spoken();
    regions::write(folder, &report, &rolled, ranges.iter().map(|ranges| &ranges.table))
}

fn page(ranges: &RangePages) -> CounterPage<'_> {
    CounterPage { table: &ranges.table, details: &ranges.details, include: &[] }
}
