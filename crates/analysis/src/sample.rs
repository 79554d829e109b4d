//! Subjects and evidence for tests: small, and with nothing in them that a test did not ask for.

use std::collections::BTreeMap;

use types::{
    Bytes, BytesPerSecond, Clock, ClockId, ClockKind, Cost, DType, Device, DeviceId, Flops, FlopsPerSecond, InputFacts,
    Metrics, Nanos, OperatorRecord, PeakUsed, ProfileSettings, RunHeader, Sample, Stage, Work,
};

use crate::evidence::{Evidence, OperatorPass, PlainRuns, PricedOperator};
use crate::subject::{InputWork, Subject};

/// What a run on our own engine may show.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) run: RunHeader,
    pub(crate) settings: ProfileSettings,
    pub(crate) samples: Vec<Sample>,
    pub(crate) profiled: Vec<Sample>,
    pub(crate) inputs: Vec<InputFacts>,
    pub(crate) work: Vec<InputWork>,
    pub(crate) operators: Vec<PricedOperator>,
    pub(crate) classes: BTreeMap<String, String>,
    pub(crate) peak: Option<PeakUsed>,
    pub(crate) logits_all_positions: bool,
}

/// A run without a single sample.
pub(crate) fn case() -> Case {
    Case {
        run: RunHeader {
            id: "run".to_owned(),
            engine: "native".to_owned(),
            model: Some("deepseek-ocr-tiny".to_owned()),
            device: Some(DeviceId::cpu()),
            weights: Some("synthetic".to_owned()),
        },
        settings: ProfileSettings { repeats: 3, epochs: 1, warmup_rounds: 1, batch: 1, ..ProfileSettings::default() },
        samples: Vec::new(),
        profiled: Vec::new(),
        inputs: Vec::new(),
        work: Vec::new(),
        operators: Vec::new(),
        classes: BTreeMap::new(),
        peak: None,
        logits_all_positions: true,
    }
}

impl Case {
    pub(crate) fn subject(&self) -> Subject {
        let name = "a processor".to_owned();
        Subject {
            run: self.run.clone(),
            devices: vec![Device {
                id: DeviceId::cpu(),
                name,
                uuid: None,
                hardware: None,
                memory_bytes: None,
                multiprocessors: None,
            }],
            settings: Some(self.settings.clone()),
            inputs: self.inputs.clone(),
            logits_all_positions: self.logits_all_positions,
            work: self.work.clone(),
            classes: self.classes.clone(),
            peak: self.peak.clone(),
            ..Subject::default()
        }
    }

    pub(crate) fn evidence(&self) -> Evidence<'static> {
        let (id, kind) = (ClockId(0), ClockKind::HostMonotonic);
        Evidence {
            clocks: vec![Clock { id, kind, unix_ns_at_zero: None, uncertainty_ns: None }],
            plain: Some(PlainRuns {
                samples: self.samples.clone(),
                profiled: self.profiled.clone(),
                load_ns: Some(Nanos::new(7)),
            }),
            operators: OperatorPass { calls: self.operators.clone(), routing: Vec::new() },
            ..Evidence::default()
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        crate::metrics(&self.subject(), &self.evidence())
    }
}

/// One measured instance.
pub(crate) fn timed(stage: Stage, input: &str, repeat: u32, nanoseconds: i64) -> Sample {
    let wall_ns = Nanos::new(nanoseconds);
    Sample { stage, input: Some(input.to_owned()), epoch: 0, repeat, rank: None, warmup: false, wall_ns }
}

/// One input with a picture of one view.
pub(crate) fn page(name: &str, prompt_tokens: u64, generated_tokens: u64) -> InputFacts {
    InputFacts {
        name: name.to_owned(),
        width: Some(100),
        height: Some(100),
        crop_grid: Some([1, 1]),
        batch: 1,
        prompt_tokens,
        image_tokens: prompt_tokens / 2,
        generated_tokens,
    }
}

/// Modelled work.
pub(crate) fn work(input: &str, stage: Stage, flops: u64, bytes: u64) -> InputWork {
    let work = Work { flops_matrix: Flops::new(flops.into()), bytes: Bytes::new(bytes) };
    InputWork { input: input.to_owned(), stage, work }
}

/// One call.
pub(crate) fn operator(name: &str, module: &str, stage: Stage, nanoseconds: i64) -> PricedOperator {
    PricedOperator {
        record: OperatorRecord {
            name: name.to_owned(),
            module: Some(module.to_owned()),
            stage: Some(stage),
            shapes: Vec::new(),
            dtype: Some(DType::Fp32),
            clock: ClockId(0),
            start_ns: Nanos::ZERO,
            duration_ns: Nanos::new(nanoseconds),
            bytes_allocated: Some(Bytes::new(8)),
        },
        class: "Class".to_owned(),
        cost: Cost::ZERO,
        roofline_ns: None,
    }
}

/// Rates.
pub(crate) fn peak(flops: f64, bytes_per_second: f64) -> PeakUsed {
    PeakUsed {
        flops: FlopsPerSecond::new(flops),
        bytes_per_second: BytesPerSecond::new(bytes_per_second),
        dtype: DType::Fp32,
        source: "calibrated here".to_owned(),
    }
}

/// A device that is busy for all of its span with nothing in particular.
pub(crate) fn device_time(span: i64) -> types::DeviceTime {
    types::DeviceTime {
        device: types::DeviceId::cuda(0),
        rank: None,
        span_ns: Nanos::new(span),
        busy_ns: Nanos::new(span),
        idle_ns: Nanos::ZERO,
        late_start_ns: Nanos::ZERO,
        compute_ns: Nanos::new(span),
        communication_ns: Nanos::ZERO,
        communication_exposed_ns: Nanos::ZERO,
        communication_awaited_ns: Nanos::ZERO,
        copies_exposed_ns: Nanos::ZERO,
        copies: Vec::new(),
        idle: Vec::new(),
    }
}
