//! The document of a forecast.

use std::collections::BTreeSet;

use forecast::serving::{LoadForecast, Outcome, RequestOutcome, Server, Spread};
use meter::model_spec;
use types::{
    Capacity, CapacityAssumption, EnergyForecast, ForecastRange, HighestLoad, LatencyForecast, LoadFigures, LoadMoment,
    Origin, PriceForecast, RequestForecast, SchemaTag, SimulatedLoad, SimulatedServer, Workload,
};

use super::room::Room;
use super::{CapacityRequest, Device};
use crate::pipeline::model::LoadedModel;

/// Below this share of calibrated time a forecast is called assumed.
const CALIBRATED: f64 = 0.8;

/// What a forecast is of.
pub(super) struct Subject<'a> {
    pub(super) model: &'a LoadedModel,
    pub(super) workload: &'a Workload,
    pub(super) device: &'a Device,
    pub(super) request: &'a CapacityRequest,
    pub(super) room: Room,
    /// Share of the device time that is calibrated.
    pub(super) calibrated: f64,
    pub(super) host_is_measured: bool,
}

impl Subject<'_> {
    /// The document of what was simulated.
    pub(super) fn document(&self, found: &LoadForecast, highest: Option<HighestLoad>) -> Capacity {
        let LoadedModel { id, config_path, config, network, revision, notes, .. } = self.model;
        let mut model = model_spec(id, config_path, config, network);
        model.hf_revision.clone_from(revision);
        model.notes.clone_from(notes);
        let outcome = &found.outcome;
        let is_modelled = self.calibrated >= CALIBRATED && self.host_is_measured;
        Capacity {
            schema: SchemaTag::new(),
            tool_version: self.request.tool_version.clone(),
            origin: if is_modelled { Origin::Modelled } else { Origin::Assumed },
            basis: self.device.basis.clone(),
            calibrated_share: self.calibrated,
            simulations: found.simulations,
            model,
            server: self.server(),
            load: self.load(found),
            figures: figures(outcome, self.request.objective.is_some()),
            highest,
            energy: self.request.watts.map(|watts| self.energy(watts, outcome)),
            price: self.request.price.map(|price| self.price(price, outcome)),
            over_time: moments(found),
            requests: self.requests(found),
            assumptions: self.assumptions().into_iter().collect(),
        }
    }

    fn devices(&self) -> u64 {
        self.workload.parallel.devices()
    }

    fn server(&self) -> SimulatedServer {
        let Room { rules, weights, kv, kv_origin } = self.room;
        SimulatedServer {
            hardware: self.device.hardware.id.clone(),
            devices: self.devices(),
            tensor_parallel: self.workload.parallel.tensor,
            replicas: 1,
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
        let asked = self.request.load.asked.iter();
        let rows = asked.zip(&found.requests).zip(&found.likely.answers);
        let first = found.likely.answers.iter().flatten().map(|answer| answer.sent).fold(f64::INFINITY, f64::min);
        let row =
            |((asked, outcome), answer): ((&forecast::serving::Asked, &Option<RequestOutcome<_>>), &Option<_>)| {
                let answer: &Option<forecast::serving::Answer> = answer;
                RequestForecast {
                    sent_ms: answer.map(|answer| (answer.sent - first) / 1e3),
                    input_tokens: asked.input,
                    output_tokens: asked.output,
                    ttft_ms: outcome.map(|one| one.ttft),
                    tpot_ms: outcome.filter(|_| asked.output > 1).map(|one| one.tpot),
                    e2el_ms: outcome.map(|one| one.e2el),
                }
            };
        rows.map(row).collect()
    }

    fn assumptions(&self) -> BTreeSet<CapacityAssumption> {
        let request = self.request;
        let load = &request.load;
        let is_warm = load.started == forecast::serving::Started::Long;
        [
            (self.calibrated < CALIBRATED, CapacityAssumption::NotCalibrated),
            (!self.host_is_measured, CapacityAssumption::Host),
            (request.engine.engine.name == "sglang", CapacityAssumption::EngineHost),
            (true, CapacityAssumption::PagedAttention),
            (self.room.kv_origin == Origin::Modelled, CapacityAssumption::Reserve),
            (self.devices() > 1, CapacityAssumption::Links),
            (is_warm, CapacityAssumption::WarmServer),
            (!is_warm, CapacityAssumption::UnknownStart),
            (true, CapacityAssumption::Lengths),
            (request.watts.is_some(), CapacityAssumption::Power),
        ]
        .into_iter()
        .filter_map(|(holds, assumption)| holds.then_some(assumption))
        .collect()
    }
}

/// Share of the device time of typical steps that is calibrated, and whether the host's speed was measured.
pub(super) fn certainty(server: &mut Server<'_>) -> Result<(f64, bool), types::UserError> {
    let [_, calibrated] = server.prices.certainty()?;
    Ok((calibrated.clamp(0.0, 1.0), server.prices.host_is_measured()))
}

fn times(range: ForecastRange, factor: f64) -> ForecastRange {
    ForecastRange { value: range.value * factor, low: range.low * factor, high: range.high * factor }
}

fn latency(spread: Spread<ForecastRange>) -> LatencyForecast {
    LatencyForecast { mean: spread.mean, p50: spread.p50, p99: spread.p99 }
}

fn figures(outcome: &Outcome<ForecastRange>, has_objective: bool) -> LoadFigures {
    LoadFigures {
        ttft_ms: latency(outcome.ttft),
        tpot_ms: latency(outcome.tpot),
        itl_ms: latency(outcome.itl),
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
    moments.map(moment).collect()
}
