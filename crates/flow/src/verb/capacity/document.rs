//! The document of a forecast.

use std::collections::BTreeSet;

use forecast::serving::{Asked, Fleet, LoadForecast, RequestOutcome, Residuals, Server};
use meter::model_spec;
use types::{
    Capacity, CapacityAssumption, EnergyForecast, ForecastRange, HighestLoad, LoadFigures, ModelSpec, Origin,
    PriceForecast, RequestForecast, SchemaTag, SimulatedLoad, SimulatedServer, Workload,
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
        let load = &self.request.load;
        let answered = load.asked.iter().zip(&found.requests).filter(|(_, request)| request.is_some());
        let has_gaps = answered.clone().any(|(asked, _)| asked.output > 1);
        let figures = figures(found, self.request.objective.is_some(), has_gaps);
        let assumptions = self.assumptions();
        Capacity {
            schema: SchemaTag::new(),
            tool_version: self.request.tool_version.clone(),
            origin: if assumptions.is_disjoint(&UNMEASURED.into()) { Origin::Modelled } else { Origin::Assumed },
            basis: self.device.basis.clone(),
            calibrated_share: self.certainty.calibrated,
            simulations: found.outcomes.len() as u64,
            model: spec(self.model),
            server: self.server(),
            load: self.load(found),
            measured: beside(load, &figures),
            figures,
            highest,
            energy: self.watts().map(|watts| self.energy(watts, found)),
            price: self.request.price.map(|price| self.price(price, found)),
            over_time: found.likely.moments.sorted(),
            requests: self.requests(found),
            assumptions: assumptions.into_iter().collect(),
            ignored_options: self.request.ignored_options.clone(),
            step_residuals: self.residuals.known(),
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

    fn energy(&self, watts: f64, found: &LoadForecast) -> EnergyForecast {
        let [input, output] = self.per_million(watts, found);
        EnergyForecast {
            watts,
            origin: Origin::Assumed,
            joules_per_million_input_tokens: input,
            joules_per_million_output_tokens: output,
        }
    }

    fn price(&self, per_device_hour: f64, found: &LoadForecast) -> PriceForecast {
        let [input, output] = self.per_million(per_device_hour / 3600.0, found);
        PriceForecast { per_device_hour, per_million_input_tokens: input, per_million_output_tokens: output }
    }

    /// What a million tokens in, and out, take of something of which each device takes so much a second.
    fn per_million(&self, per_second: f64, found: &LoadForecast) -> [ForecastRange; 2] {
        let all = per_second * self.devices() as f64;
        [0, 1].map(|side| found.range(|outcome| outcome.seconds_per_million[side] * all))
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
            (self.certainty.takes_library_attention, CapacityAssumption::PagedAttention),
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

/// What documents say of a model.
pub(super) fn spec(model: &LoadedModel) -> ModelSpec {
    let LoadedModel { id, config_path, config, network, revision, notes, .. } = model;
    ModelSpec { hf_revision: revision.clone(), notes: notes.clone(), ..model_spec(id, config_path, config, network) }
}

/// What the times of a server rest on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certainty {
    /// Share of the device time of typical steps that is calibrated.
    calibrated: f64,
    host_is_measured: bool,
    /// Whether an engine's attention is taken to be a multiple of a library's.
    takes_library_attention: bool,
    /// Whether weights are stored in fewer bits than the arithmetic has.
    unpacks: bool,
}

impl Certainty {
    pub(super) fn of(server: &mut Server<'_>) -> Result<Self, types::UserError> {
        let [_, calibrated] = server.prices.certainty()?;
        let prices = &server.prices;
        Ok(Self {
            calibrated: calibrated.clamp(0.0, 1.0),
            host_is_measured: prices.host_is_measured,
            takes_library_attention: prices.takes_library_attention(),
            unpacks: prices.unpacks,
        })
    }
}

fn figures(found: &LoadForecast, has_objective: bool, has_gaps: bool) -> LoadFigures {
    LoadFigures {
        ttft_ms: found.latency(|one| one.ttft),
        tpot_ms: has_gaps.then(|| found.latency(|one| one.tpot)),
        itl_ms: has_gaps.then(|| found.latency(|one| one.itl)),
        e2el_ms: found.latency(|one| one.e2el),
        queue_ms: found.latency(|one| one.queue),
        output_throughput: found.range(|one| one.output_throughput),
        input_throughput: found.range(|one| one.input_throughput),
        request_throughput: found.range(|one| one.request_throughput),
        goodput_share: has_objective.then(|| found.range(|one| one.good)),
        kv_peak: found.range(|one| one.kv_peak),
        preemptions: found.range(|one| one.preemptions),
        batch: found.range(|one| one.batch),
        busy: found.range(|one| one.busy),
    }
}
