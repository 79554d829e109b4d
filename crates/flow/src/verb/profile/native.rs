//! `profile` on our own engine, in one process.

use analysis::{Evidence, OperatorPass, PlainRuns, PricedOperator, Subject};
use collect::run::RunFolder;
use meter::Roofline;
use network::Model;
use report::export::TracedOperator;
use report::pages::run::Setting;
use types::{
    Clock, ClockId, ClockKind, DeviceId, Environment, Hardware, Metrics, PeakUsed, RunHeader, UserError, Workload,
};

use super::files::{ProfileFiles, write, write_predictions};
use crate::RunRequest;
use crate::pipeline::device::machine;
use crate::pipeline::device::processor::{of_processor, processor};
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::model::analytic;
use crate::pipeline::model::partly_modelled;
use crate::pipeline::model::{AboutModel, LoadedModel};
use crate::pipeline::progress::Progress;
use crate::pipeline::recorded::provenance::NATIVE_TRACE;
use crate::runner::inputs::{self, Inputs};
use crate::runner::native::bench::Bench;
use crate::runner::native::passes::{self, Measured};
use crate::runner::native::{COMPUTED, check, check_memory, kept, records, tries};
use crate::runner::request::ProfileRequest;

/// Operators of the first input that are written down one by one; more would be larger than all else in a run.
const MOST_TRACED: usize = 50_000;

/// Runs, measures, analyses and writes everything into a run folder.
///
/// What can fail cheaply fails before the folder is made; after that an error leaves a folder that says so. `stop` is
/// asked between inferences.
pub fn profile(
    mut model: LoadedModel,
    request: &ProfileRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<EndedRun<Metrics>, UserError> {
    check(&model, request)?;
    engine::rehearse(&model.network)?;
    if let Model::EncoderDecoder(_) = model.network {
        let why = "audio inputs can only be modelled".to_owned();
        return Err(engine::EngineError::NotComputed { class: model.config.facts().class, why }.into());
    }
    request.infer.fit(&mut model);
    let mut inputs = inputs::find(&request.dataset, &request.infer)?;
    inputs.usable()?;
    progress(Progress::Doing("inspecting the machine"));
    let environment = machine::capture(request.config_dir.as_deref())?;
    check_memory(&model, &environment)?;
    let (name, device) = (model.id.clone(), DeviceId::cpu().to_string());
    let run_request = RunRequest { model: Some(name), device: Some(device), ..run_request };
    run(run_request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        folder.write_json("env.json", &environment)?;
        folder.end_step("prepare")?;
        let (metrics, mut missing) = fill(folder, model, request, &environment, &mut inputs, progress, stop)?;
        missing.extend(inputs.problems());
        Ok((metrics, missing))
    })
}

fn fill(
    folder: &mut RunFolder,
    model: LoadedModel,
    request: &ProfileRequest,
    environment: &Environment,
    inputs: &mut Inputs,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, Vec<String>), UserError> {
    let (processor, unreliable) = processor(progress)?;
    progress(Progress::Doing("loading weights"));
    let kept = kept(&model);
    let LoadedModel { id, config_path, config, network, published, revision, mut notes, .. } = model;
    let bench = Bench::load(network, config.vocabulary(), request, kept)?;
    let network = bench.session.model();
    progress(Progress::Doing("preparing inputs"));
    let plan = bench.plan(request, inputs)?;
    let measured = passes::measure(&bench.runner(request), request, plan, true, progress, stop)?;

    let run = RunHeader {
        id: folder.id().to_owned(),
        engine: "native".to_owned(),
        model: Some(id.clone()),
        device: Some(DeviceId::cpu()),
        weights: Some(request.weights.weights.clone()),
    };
    folder.end_step("measure")?;
    let tries = match &request.tries {
        Some(settings) if measured.stopped.is_none() => {
            tries::attempt(&bench, &config, request, settings, progress, stop)?
        }
        _ => Vec::new(),
    };
    let tries_stopped = measured.stopped.is_none() && !tries.is_empty() && stop();
    let (mut subject, workload) = subject(run, request, network, &processor, kept, &measured)?;
    subject.caveats.extend(unreliable.into_iter().chain(partly_modelled(&config)));
    let texts = measured.texts.clone();
    let mut missing: Vec<String> =
        measured.stopped.map(|stopped| UserError::from(stopped).to_string()).into_iter().collect();
    missing.extend(tries_stopped.then(|| "stopped by the user while trying remedies".to_owned()));
    let of_first = measured.inputs.first().map_or(0, |one| one.traced.prefill.ops.len() + one.traced.decode.ops.len());
    let evidence = Evidence {
        tries,
        missing: missing.iter().cloned().chain(inputs.problems()).collect(),
        ..evidence(network, &processor, &bench, measured)
    };
    let metrics = crate::pipeline::metrics::metrics(&subject, &evidence);
    folder.write_json("metrics.json", &metrics)?;
    write_trace(folder, &evidence.operators.calls[..of_first.min(MOST_TRACED)])?;
    folder.end_step("analyse")?;

    let fed = inputs.fed();
    let profiling = vec![
        Setting::new("stage times", "passes without a profiler"),
        Setting::new("operators", "one more pass over each input, with every operation timed"),
    ];
    let computed = COMPUTED.to_string();
    let files = ProfileFiles {
        metrics: &metrics,
        environment,
        inputs: &fed,
        request,
        computed,
        profiling,
        operator_rows: None,
    };
    if let Some(workload) = &workload {
        if kept != COMPUTED {
            let apart = if notes.is_empty() { "" } else { "; " };
            notes += &format!("{apart}weights are stored in {kept} in this run, but modelled here in {COMPUTED}");
        }
        let about = AboutModel {
            id: &id,
            config_path: &config_path,
            config: &config,
            dtype: published,
            revision: revision.as_deref(),
            notes: &notes,
            caveats: Vec::new(),
        };
        let devices = std::slice::from_ref(&processor);
        let model = analytic::lay_out(about, network, workload, devices, None, &request.tool_version)?;
        analytic::write(folder, &model.beside(&metrics))?;
    }
    write(folder, &files)?;
    if request.keep_predictions {
        write_predictions(folder, &texts)?;
    }
    folder.end_step("report")?;
    Ok((metrics, missing))
}

/// The operators of the first input as they ran, for other tools; see `export`.
fn write_trace(folder: &mut RunFolder, calls: &[PricedOperator]) -> Result<(), UserError> {
    if calls.is_empty() {
        return Ok(());
    }
    let traced = calls.iter().map(|call| TracedOperator {
        record: &call.record,
        class: &call.class,
        roofline: call.roofline_ns,
    });
    let packed = report::export::native_packed(&traced.collect::<Vec<_>>())?;
    folder.write_file(NATIVE_TRACE, &packed)
}

/// What ran, and the workload of the first input.
fn subject(
    run: RunHeader,
    request: &ProfileRequest,
    network: &Model,
    processor: &Hardware,
    kept: types::DType,
    measured: &Measured,
) -> Result<(Subject, Option<Workload>), UserError> {
    let mut work = Vec::new();
    let mut workload: Option<Workload> = None;
    for input in measured.prepared() {
        let (one_workload, one_work) = records::work(network, input, kept, request.infer.last_logits_only())?;
        workload.get_or_insert(one_workload);
        work.extend(one_work);
    }
    let subject = Subject {
        run,
        devices: vec![of_processor(processor)],
        settings: Some(request.counts(request.infer.batch(), Some(kept))),
        inputs: measured.prepared().map(|input| input.facts.clone()).collect(),
        logits_all_positions: !request.infer.last_logits_only() && network.takes_tokens(),
        work,
        classes: records::classes(network),
        peak: PeakUsed::of(processor, COMPUTED),
        ..Subject::default()
    };
    Ok((subject, workload))
}

fn evidence(network: &Model, processor: &Hardware, bench: &Bench, measured: Measured) -> Evidence<'static> {
    let roofline = Roofline::new(processor, [COMPUTED], None).ok();
    let traced = measured.inputs.iter().map(|one| &one.traced);
    let calls = traced
        .clone()
        .flat_map(|traced| records::operators(network, roofline.as_ref(), &traced.prefill, &traced.decode))
        .collect();
    let clock = Clock { id: ClockId(0), kind: ClockKind::HostMonotonic, unix_ns_at_zero: None, uncertainty_ns: None };
    Evidence {
        clocks: vec![clock],
        operators: OperatorPass { calls, routing: records::routing(traced.flat_map(|traced| &traced.routing)) },
        quality: [
            Some(records::outside_stages(&measured.samples, measured.wall)),
            records::disturbed(&measured.disturbance),
        ]
        .into_iter()
        .flatten()
        .collect(),
        disturbance: measured.disturbance,
        plain: Some(PlainRuns {
            samples: measured.samples,
            profiled: measured.profiled,
            load_ns: Some(bench.session.load_time()),
        }),
        ..Evidence::default()
    }
}
