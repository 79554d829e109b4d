//! Documents and the parts of them that say something.

use types::{
    Change, Comparison, Fleet, FleetFinding, KernelReport, QualityCounter, RegionReport, Remark, TraceFacts, WhatIf,
};

use super::number::ranges;
use super::{Spoken, counter, fleet, remark};

impl Spoken for QualityCounter {
    fn say(&mut self) {
        counter::say(self);
    }
}

impl Spoken for Remark {
    fn say(&mut self) {
        remark::say(self);
    }
}

impl Spoken for TraceFacts {
    fn say(&mut self) {
        self.kind.iter_mut().for_each(|kind| kind.evidence.say());
        self.stages.iter_mut().for_each(|stages| stages.basis.say());
        if let Some(workload) = &mut self.workload {
            workload.evidence.iter_mut().chain(&mut workload.missing).for_each(remark::say);
        }
    }
}

impl Spoken for Comparison {
    fn say(&mut self) {
        let runs = self.base.iter_mut().chain(&mut self.with);
        runs.filter_map(|run| run.disturbed.as_mut()).for_each(remark::say);
        self.differences.iter_mut().for_each(|difference| difference.meaning.say());
        let tables: [&mut Vec<Change>; 10] = [
            &mut self.requests,
            &mut self.request_parts,
            &mut self.stages,
            &mut self.commands,
            &mut self.memory,
            &mut self.steps,
            &mut self.device_time,
            &mut self.operators,
            &mut self.kernels,
            &mut self.modules,
        ];
        let rows = tables.into_iter().flatten();
        rows.filter_map(|row| row.untested.as_mut()).for_each(remark::say);
        self.gate.iter_mut().flat_map(|gate| &mut gate.reasons).for_each(remark::say);
        self.notes.iter_mut().for_each(remark::say);
    }
}

impl Spoken for WhatIf {
    fn say(&mut self) {
        self.changes.iter_mut().for_each(|change| remark::say(&mut change.assumes));
        let parts = self.before.critical_path.iter_mut().chain(&mut self.after.critical_path);
        parts.for_each(|part| remark::say(&mut part.cause));
        self.replay.refused.iter_mut().chain(&mut self.notes).for_each(remark::say);
    }
}

impl Spoken for Fleet {
    fn say(&mut self) {
        for job in &mut self.jobs {
            job.quality.iter_mut().for_each(counter::say);
            job.findings.iter_mut().for_each(fleet_finding);
        }
    }
}

impl Spoken for RegionReport {
    fn say(&mut self) {
        self.quality.iter_mut().for_each(counter::say);
        self.notes.iter_mut().for_each(remark::say);
    }
}

impl Spoken for KernelReport {
    fn say(&mut self) {
        self.quality.iter_mut().for_each(counter::say);
        let modelled = self.sampled.iter_mut().filter_map(|row| row.modelled.as_mut());
        modelled.for_each(|modelled| modelled.basis.say());
    }
}

/// Says a finding about ranks, unless it is said already.
fn fleet_finding(finding: &mut FleetFinding) {
    if let Some(words) = fleet::words(&finding.rule).filter(|_| finding.evidence.is_empty()) {
        let facts =
            finding.quantities.clone().with("ranks", ranges(&finding.ranks)).with_known("cost", finding.costs_ns);
        finding.evidence = words.evidence(&facts);
        finding.advice = words.advice(&facts, true);
    }
}
