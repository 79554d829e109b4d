//! The document of a forecast.

use std::collections::BTreeSet;

use forecast::serving::{Asked, Fleet, LoadForecast, Outcome, RequestOutcome, Residual, Residuals, Server, Spread};
use meter::model_spec;
use types::{
    Capacity, CapacityAssumption, EnergyForecast, ForecastRange, HighestLoad, LatencyForecast, LoadFigures, LoadMoment,
    Origin, PriceForecast, RequestForecast, SchemaTag, SimulatedLoad, SimulatedServer, StepKind, StepResidual,
    Workload,
};

use super::measured::beside;
use super::room::Room;
use super::{CapacityRequest, Device};
use crate::pipeline::model::LoadedModel;

/// Below this share of calibrated time a forecast is called assumed.
const CALIBRATED: f64 = 0.8;

/// Where any of these is assumed, the forecast rests on more than measurements of this device, host and engine.
const UNMEASURED: [CapacityAssumption; 7] = [
    CapacityAssumption::NotCalibrated,
    CapacityAssumption::PartlyCalibrated,
    CapacityAssumption::Host,
    CapacityAssumption::EngineHost,
    CapacityAssumption::FusedDequantisation,
    CapacityAssumption::Router,
    CapacityAssumption::KvTransfer,
];

/// What a forecast is of.
pub(super) struct Subject<'a> {
    pub(super) model: &'a LoadedModel,
    pub(super) workload: &'a Workload,
    pub(super) device: &'a Device,
    pub(super) request: &'a CapacityRequest,
    pub(super) room: Room,
    pub(super) certainty: Certainty,
    pub(super) residuals: Residuals,
    pub(super) fleet: Fleet,
}

impl Subject<'_> {
    /// The document of what was simulated.
    pub(super) fn document(&self, found: &LoadForecast, highest: Option<HighestLoad>) -> Capacity {
        let LoadedModel { id, config_path, config, network, revision, notes, .. } = self.model;
        let mut model = model_spec(id, config_path, config, network);
        model.hf_revision.clone_from(revision);
        model.notes.clone_from(notes);
        let outcome = &found.outcome;
        let load = &self.request.load;
        let answered = load.asked.iter().zip(&found.requests).filter(|(_, request)| request.is_some());
        let has_gaps = answered.clone().any(|(asked, _)| asked.output > 1);
        let figures = figures(outcome, self.request.objective.is_some(), has_gaps);
        let assumptions = self.assumptions();
        Capacity {
            schema: SchemaTag::new(),
            tool_version: self.request.tool_version.clone(),
            origin: if assumptions.is_disjoint(&UNMEASURED.into()) { Origin::Modelled } else { Origin::Assumed },
            basis: self.device.basis.clone(),
            calibrated_share: self.certainty.calibrated,
            simulations: found.simulations,
            model,
            server: self.server(),
            load: self.load(found),
            measured: beside(load, &figures),
            figures,
            highest,
            energy: self.watts().map(|watts| self.energy(watts, outcome)),
            price: self.request.price.map(|price| self.price(price, outcome)),
            over_time: moments(found),
            requests: self.requests(found),
            assumptions: assumptions.into_iter().collect(),
            ignored_options: self.request.ignored_options.clone(),
            step_residuals: self.step_residuals(),
            is_corrected: self.request.steps_apply && self.residuals != Residuals::default(),
        }
    }

    /// Power of one device: as given, else its limit.
    fn watts(&self) -> Option<f64> {
        self.request.watts.or(self.device.hardware.power_watts)
    }

    fn devices(&self) -> u64 {
        self.workload.parallel.devices() * self.fleet.servers() as u64
    }

    fn step_residuals(&self) -> Vec<StepResidual> {
        let Residuals { decode, prompts } = self.residuals;
        let of = |(kind, Residual { steps, factor, deviation })| StepResidual { kind, steps, factor, deviation };
        let kinds = [(StepKind::Decode, decode), (StepKind::Prompts, prompts)];
        kinds.into_iter().filter(|(_, residual)| residual.steps > 0).map(of).collect()
    }

    fn server(&self) -> SimulatedServer {
        let Room { rules, weights, kv, kv_origin, .. } = self.room;
        let Fleet { servers, router, .. } = self.fleet;
        SimulatedServer {
            hardware: self.device.hardware.id.clone(),
            devices: self.devices(),
            tensor_parallel: self.workload.parallel.tensor,
            servers: servers as u64,
            router: (self.fleet.servers() > 1).then(|| router.name().to_owned()),
            decoding: self.request.fleet.decoding(&self.room),
            engine: self.request.engine.engine.name.to_owned(),
            max_num_seqs: rules.max_num_seqs,
            max_num_batched_tokens: rules.max_num_batched_tokens,
            kv_blocks: rules.kv_blocks,
            kv_origin,
            block_size: rules.block_size,
            weights_bytes: weights,
            kv_bytes: kv,
        }
    }

    fn load(&self, found: &LoadForecast) -> SimulatedLoad {
        let load = &self.request.load;
        SimulatedLoad {
            arrivals: load.about,
            requests: load.asked.len() as u64,
            failed: load.failed,
            refused: found.likely.answers.iter().filter(|answer| answer.is_none()).count() as u64,
            input_tokens: load.asked.iter().map(|asked| asked.input).sum(),
            output_tokens: load.asked.iter().map(|asked| asked.output).sum(),
            objective: self.request.objective,
        }
    }

    fn energy(&self, watts: f64, outcome: &Outcome<ForecastRange>) -> EnergyForecast {
        let [input, output] = outcome.seconds_per_million.map(|seconds| times(seconds, watts * self.devices() as f64));
        EnergyForecast {
            watts,
            origin: Origin::Assumed,
            joules_per_million_input_tokens: input,
            joules_per_million_output_tokens: output,
        }
    }

    fn price(&self, per_device_hour: f64, outcome: &Outcome<ForecastRange>) -> PriceForecast {
        let per_second = per_device_hour / 3600.0 * self.devices() as f64;
        let [input, output] = outcome.seconds_per_million.map(|seconds| times(seconds, per_second));
        PriceForecast { per_device_hour, per_million_input_tokens: input, per_million_output_tokens: output }
    }

    fn requests(&self, found: &LoadForecast) -> Vec<RequestForecast> {
        let load = &self.request.load;
        let first = found.likely.answers.iter().flatten().map(|answer| answer.sent).fold(f64::INFINITY, f64::min);
        let row = |(place, (asked, outcome)): (usize, (&Asked, &Option<RequestOutcome<ForecastRange>>))| {
            let answer = found.likely.answers.get(place).copied().flatten();
            RequestForecast {
                sent_ms: answer.map(|answer| (answer.sent - first) / 1e3),
                input_tokens: asked.input,
                output_tokens: asked.output,
                ttft_ms: outcome.map(|one| one.ttft),
                tpot_ms: outcome.filter(|_| asked.output > 1).map(|one| one.tpot),
                e2el_ms: outcome.map(|one| one.e2el),
                measured: load.measured.get(place).copied(),
            }
        };
        load.asked.iter().zip(&found.requests).enumerate().map(row).collect()
    }

    fn assumptions(&self) -> BTreeSet<CapacityAssumption> {
        let request = self.request;
        let load = &request.load;
        let is_calibrated = self.device.calibration.is_some();
        let is_warm = load.started == forecast::serving::Started::Long;
        [
            (!is_calibrated, CapacityAssumption::NotCalibrated),
            (is_calibrated && self.certainty.calibrated < CALIBRATED, CapacityAssumption::PartlyCalibrated),
            (self.certainty.unpacks, CapacityAssumption::FusedDequantisation),
            (!self.certainty.host_is_measured, CapacityAssumption::Host),
            (request.engine.engine.name == "sglang", CapacityAssumption::EngineHost),
            (true, CapacityAssumption::PagedAttention),
            (self.room.kv_origin == Origin::Modelled, CapacityAssumption::Reserve),
            (self.workload.parallel.devices() > 1, CapacityAssumption::Links),
            (self.fleet.servers() > 1, CapacityAssumption::Router),
            (self.fleet.apart.is_some(), CapacityAssumption::KvTransfer),
            (is_warm, CapacityAssumption::WarmServer),
            (!is_warm, CapacityAssumption::UnknownStart),
            (true, CapacityAssumption::Lengths),
            (request.watts.is_some(), CapacityAssumption::Power),
            (request.watts.is_none() && self.watts().is_some(), CapacityAssumption::PowerLimit),
        ]
        .into_iter()
        .filter_map(|(holds, assumption)| holds.then_some(assumption))
        .collect()
    }
}

/// What the times of a server rest on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certainty {
    /// Share of the device time of typical steps that is calibrated.
    calibrated: f64,
    host_is_measured: bool,
    /// Whether weights are stored in fewer bits than the arithmetic has.
    unpacks: bool,
}

impl Certainty {
    pub(super) fn of(server: &mut Server<'_>) -> Result<Self, types::UserError> {
        let [_, calibrated] = server.prices.certainty()?;
        let (host_is_measured, unpacks) = (server.prices.host_is_measured(), server.prices.unpacks());
        Ok(Self { calibrated: calibrated.clamp(0.0, 1.0), host_is_measured, unpacks })
    }
}

fn times(range: ForecastRange, factor: f64) -> ForecastRange {
    ForecastRange { value: range.value * factor, low: range.low * factor, high: range.high * factor }
}

fn latency(spread: Spread<ForecastRange>) -> LatencyForecast {
    LatencyForecast { mean: spread.mean, p50: spread.p50, p99: spread.p99 }
}

fn figures(outcome: &Outcome<ForecastRange>, has_objective: bool, has_gaps: bool) -> LoadFigures {
    LoadFigures {
        ttft_ms: latency(outcome.ttft),
        tpot_ms: has_gaps.then(|| latency(outcome.tpot)),
        itl_ms: has_gaps.then(|| latency(outcome.itl)),
        e2el_ms: latency(outcome.e2el),
        queue_ms: latency(outcome.queue),
        output_throughput: outcome.output_throughput,
        input_throughput: outcome.input_throughput,
        request_throughput: outcome.request_throughput,
        goodput_share: has_objective.then_some(outcome.good),
        kv_peak: outcome.kv_peak,
        preemptions: outcome.preemptions,
        batch: outcome.batch,
        busy: outcome.busy,
    }
}

fn moments(found: &LoadForecast) -> Vec<LoadMoment> {
    let moments = found.likely.moments.kept().iter();
    let moment = |moment: &forecast::serving::Moment| LoadMoment {
        at_ms: moment.at / 1e3,
        batch: moment.batch as u64,
        waiting: moment.waiting as u64,
        kv: moment.kv,
    };
    let mut moments: Vec<LoadMoment> = moments.map(moment).collect();
    // Servers run ahead of each other by up to a step.
    moments.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    moments
}
