//! From the records of a profiled run to its metrics.

use std::collections::BTreeMap;

use types::{Aggregates, Metrics, QualityCounter, SchemaTag, Severity, Stage, Totals};

use crate::device::DeviceRecords;
use crate::finding::{self, Run};
use crate::loss;
use crate::modules::{cost_centres, modules};
use crate::operators::{self, Sum};
use crate::overhead::overhead;
use crate::stages::{summaries, throughput};
use crate::statistics::share;
use crate::timings::Timings;
use crate::utilisation::{self, Utilisation};
use crate::{PricedOperator, ProfileRecords};

/// Everything a profiled run tells.
pub fn profile(records: &ProfileRecords) -> Metrics {
    with_device(records, None)
}

/// The same for a run whose device work was traced.
pub(crate) fn with_device(records: &ProfileRecords, device: Option<&DeviceRecords>) -> Metrics {
    let timings = Timings::new(&records.samples, &records.inputs);
    let profiled = Timings::new(&records.profiled, &records.inputs);
    let peak = records.peak.as_ref();
    let used = utilisation::per_stage(&timings, &records.work, peak);
    let whole = utilisation::whole(&timings, &records.work, peak);
    let modules = modules(records);
    let lost = match device {
        Some(device) => loss::device_books(device),
        None => loss::profile_books(records, &timings, &profiled),
    };
    let run = Run { records, device, timings: &timings, profiled: &profiled, used: &used, lost: &lost };
    let (findings, lost) = finding::all(&run);

    let mut quality = records.quality.clone();
    quality.extend(without_peak(records, &timings));
    quality.extend(unpriced(records, &timings));
    quality.extend(unplaced(&records.operators));
    quality.extend((modules.faster_than_modelled > 0).then(|| {
        QualityCounter {
            counter: "modules_faster_than_modelled".to_owned(),
            value: modules.faster_than_modelled,
            share: share(modules.faster_than_modelled as f64, modules.rows.len() as f64),
            severity: Severity::Info,
            remedy:
                "what they lose is unknown: their data stayed in caches, which are faster than the memory the least \
                 time assumes, or the device's rates were measured too low"
                    .to_owned(),
        }
    }));

    Metrics {
        schema: SchemaTag::default(),
        run: records.run.clone(),
        devices: records.devices.clone(),
        clocks: records.clocks.clone(),
        totals: Totals { wall_ns: timings.wall(), ..Totals::default() },
        stages: summaries(&timings, &records.inputs, &used, &lost),
        operators: operators::summaries(&records.operators),
        kernels: Vec::new(),
        regions: Vec::new(),
        modules: device.map_or(modules.rows, |device| device.modules.clone()),
        module_kinds: device.map(|device| device.module_kinds.clone()).unwrap_or_default(),
        findings,
        lost_time: lost.rows(run.wall()),
        samples: records.samples.clone(),
        aggregates: Aggregates { stage_ms: per_stage(&timings, |stage| timings.milliseconds(stage)) },
        overhead: overhead(&timings, &profiled),
        quality,
        mfu_model_level: whole.as_ref().and_then(Utilisation::mfu),
        mfu_per_stage: timings.stages().map(|stage| (stage, used.get(&stage).and_then(Utilisation::mfu))).collect(),
        peak: records.peak.clone(),
        work_per_stage: utilisation::work_per_stage(&records.work),
        mbu_model_level: whole.as_ref().and_then(Utilisation::mbu),
        settings: Some(records.settings.clone()),
        inputs: records.inputs.clone(),
        load_ns: Some(records.load_ns),
        throughput: throughput(&timings, &records.inputs),
        variance: timings.variance(),
        operator_groups: operators::groups(&records.operators),
        cost_centres: cost_centres(&records.operators),
        routing: records.routing.clone(),
        trace: None,
        memory: None,
        flop_checks: Vec::new(),
        ranks: Vec::new(),
        rank_skew: Vec::new(),
        command: None,
    }
}

fn per_stage<T>(timings: &Timings<'_>, value: impl Fn(Stage) -> Option<T>) -> BTreeMap<Stage, T> {
    timings.stages().filter_map(|stage| Some((stage, value(stage)?))).collect()
}

/// Stages whose utilisation is unknown because the device's rates are.
fn without_peak(records: &ProfileRecords, timings: &Timings<'_>) -> Option<QualityCounter> {
    let stages = timings.stages().count() as u64;
    (records.peak.is_none() && stages > 0).then(|| QualityCounter {
        counter: "stages_without_peak".to_owned(),
        value: stages,
        share: Some(1.0),
        severity: Severity::Warning,
        remedy:
            "the device's rates are not known, so MFU and MBU are not either: `llm-perf doctor --calibrate` measures \
                 those of this processor, `llm-perf hardware` lists known devices"
                .to_owned(),
    })
}

/// Timed inputs whose work is not modelled; they are left out of MFU and MBU.
fn unpriced(records: &ProfileRecords, timings: &Timings<'_>) -> Option<QualityCounter> {
    let top = |stage: &Stage| stage.parent().is_none();
    let timed: Vec<_> = timings
        .stages()
        .filter(top)
        .flat_map(|stage| timings.inputs(stage).map(move |(input, _)| (stage, input)))
        .collect();
    let known =
        |(stage, input): &(Stage, &str)| records.work.iter().any(|work| work.stage == *stage && work.input == *input);
    let missing = timed.iter().filter(|one| !known(one)).count();
    (missing > 0).then(|| QualityCounter {
        counter: "stage_inputs_without_modelled_work".to_owned(),
        value: missing as u64,
        share: share(missing as f64, timed.len() as f64),
        severity: Severity::Warning,
        remedy: "MFU and MBU are over the other inputs; `llm-perf models` lists the models whose work is known"
            .to_owned(),
    })
}

/// Operators outside of every stage or module: they are in the operator tables and in no module.
fn unplaced(operators: &[PricedOperator]) -> Option<QualityCounter> {
    let unplaced = |operator: &&PricedOperator| operator.record.stage.is_none() || operator.record.module.is_none();
    let found = Sum::of(operators.iter().filter(unplaced));
    (found.calls > 0).then(|| QualityCounter {
        counter: "operators_unattributed".to_owned(),
        value: found.calls,
        share: share(found.time.get() as f64, Sum::of(operators).time.get() as f64),
        severity: Severity::Info,
        remedy: "they ran outside of a stage or a module; `operators` has them, `modules` does not".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{Nanos, Sample};

    use super::*;
    use crate::sample::{operator, page, peak, records, timed, work};

    #[test]
    fn an_empty_run_is_a_document_with_nothing_in_it() {
        let metrics = profile(&records());
        assert_eq!((metrics.totals.wall_ns, metrics.mfu_model_level), (None, None));
        assert!(metrics.stages.is_empty() && metrics.findings.is_empty() && metrics.quality.is_empty());
    }

    #[test]
    fn the_document_survives_json() {
        let samples = vec![timed(Stage::Prefill, "a", 0, 4_000), timed(Stage::Decode, "a", 0, 3_000)];
        let operators = vec![operator("linear", "lm_head", Stage::Prefill, 3_000)];
        let work = vec![work("a", Stage::Prefill, 4_000, 1_000)];
        let inputs = vec![page("a", 10, 4)];
        let peak = Some(peak(1e10, 1e10));
        let metrics = profile(&ProfileRecords { samples, operators, work, inputs, peak, ..records() });
        let text = serde_json::to_string(&metrics).unwrap();
        assert!(!text.contains("NaN"));
        assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), metrics);
    }

    #[test]
    fn an_unknown_device_leaves_utilisation_open_and_says_so() {
        let samples = vec![timed(Stage::Prefill, "a", 0, 4_000)];
        let work = vec![work("a", Stage::Prefill, 4_000, 1_000)];
        let metrics = profile(&ProfileRecords { samples, work, ..records() });
        assert_eq!((metrics.mfu_model_level, metrics.mfu_per_stage[&Stage::Prefill]), (None, None));
        assert_eq!(metrics.quality[0].counter, "stages_without_peak");
        assert_eq!(metrics.work_per_stage[&Stage::Prefill].flops_matrix.get(), 4_000);
    }

    #[test]
    fn what_could_not_be_placed_is_counted() {
        let mut operators =
            vec![operator("linear", "lm_head", Stage::Prefill, 30), operator("copy", "x", Stage::Prefill, 10)];
        operators[1].record.stage = None;
        let samples = vec![timed(Stage::Prefill, "a", 0, 40)];
        let metrics = profile(&ProfileRecords { samples, operators, peak: Some(peak(1.0, 1.0)), ..records() });
        let counters: Vec<_> = metrics.quality.iter().map(|one| (one.counter.as_str(), one.value, one.share)).collect();
        let expected =
            [("stage_inputs_without_modelled_work", 1, Some(1.0)), ("operators_unattributed", 1, Some(0.25))];
        assert_eq!(counters, expected);
        assert_eq!(metrics.operators.len(), 2);
    }

    fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
        let one = (0usize..6, 0usize..3, 0u32..3, 0i64..1_000_000_000, any::<bool>());
        proptest::collection::vec(one, 0..40).prop_map(|all| {
            let make = |(stage, input, repeat, time, warmup): (usize, usize, u32, i64, bool)| {
                let sample = timed(Stage::ALL[stage], ["a", "b", "c"][input], repeat, time);
                Sample { warmup, ..sample }
            };
            all.into_iter().map(make).collect()
        })
    }

    proptest! {
        #[test]
        fn the_top_stages_are_the_wall_whatever_is_nested(samples in any_samples()) {
            let inputs = vec![page("a", 10, 3), page("b", 20, 1)];
            let work = vec![work("a", Stage::Prefill, 1_000, 10), work("b", Stage::Decode, 5, 1_000)];
            let metrics = profile(&ProfileRecords { samples: samples.clone(), inputs, work, peak: Some(peak(1e3, 1e3)), ..records() });
            let top: Nanos = metrics.stages.iter().filter(|stage| stage.parent.is_none()).filter_map(|stage| stage.wall_ns).sum();
            prop_assert_eq!(metrics.totals.wall_ns.unwrap_or_default(), top);
            let measured = samples.iter().filter(|sample| !sample.warmup).count() as u64;
            prop_assert_eq!(metrics.stages.iter().map(|stage| stage.instances).sum::<u64>(), measured);
            prop_assert_eq!(metrics.samples.len(), samples.len());
            for share in metrics.stages.iter().flat_map(|stage| [stage.mfu, stage.mbu]).flatten() {
                prop_assert!((0.0..=1.0).contains(&share));
            }
            let json = serde_json::to_string(&metrics).unwrap();
            prop_assert!(serde_json::from_str::<Metrics>(&json).is_ok(), "{json}");
        }
    }
}
