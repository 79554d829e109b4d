//! `llm-perf capacity --sweep`: every combination of some settings.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use config::{Config, OverrideSource, Overrides};
use flow::StopRequest;
use flow::capacity::{self, CapacityRequest, Engine, Layout, PlannedLoad, ServedRun, Watch};
use flow::model::LoadedModel;
use serde_json::{Map, Value};
use types::{Exit, SweepAxis, UserError};

use super::{Arguments, LARGEST_BLOCK, MOST_BLOCKS, MOST_SEQUENCES, MOST_TOKENS, load, refuse_lengths};
use crate::context::Context;
use crate::load::{FileArrivals, positive, whole};
use crate::resolution;

/// Most layouts: each is simulated 19 times.
const MOST: usize = 20_000;

/// What every layout starts from.
pub(super) struct Base<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) config: &'a Config,
    pub(super) served: Option<&'a ServedRun>,
    pub(super) request: &'a CapacityRequest,
}

pub(super) fn run(
    base: &Base<'_>,
    given: &Overrides,
    context: &Context,
    model: &LoadedModel,
) -> Result<Exit, UserError> {
    let Base { arguments, config, .. } = *base;
    let axes: Vec<SweepAxis> = arguments.sweep.iter().map(|text| axis(text)).collect::<Result<_, _>>()?;
    let layouts = layouts(base, &axes)?;
    let run = resolution::run_request("capacity", config, given, arguments.out.as_deref())?;
    let (interrupt, done) = (StopRequest::catch(), AtomicU64::new(0));
    let swept = context.progress(|display| {
        let advance = |points| {
            let done = done.fetch_add(points, Ordering::Relaxed) + points;
            display.count(done, layouts.len() as u64, "layout", "simulating");
        };
        capacity::layouts(model, &axes, &layouts, &Watch { done: &advance, stop: &|| interrupt.is_set() })
    })?;
    context.messages.print_answer(arguments.json, &swept, || capacity::layouts_terminal(&swept))?;
    let missing = capacity::missing(&swept);
    if arguments.json && arguments.out.is_none() {
        return Ok(context.messages.finish(&missing, &[]));
    }
    let page = capacity::keep_layouts(&swept, &config.to_yaml(), run)?;
    Ok(context.messages.finish(&missing, &[("report", page)]))
}

/// `max-num-seqs=64,256` as an axis.
fn axis(text: &str) -> Result<SweepAxis, UserError> {
    let (key, values) = text.split_once('=').ok_or_else(|| {
        UserError::usage(format!("--sweep {text} has no values"))
            .hint("write the key and its values, such as --sweep max-num-seqs=64,256")
    })?;
    let values: Vec<Value> = values.split(',').map(|value| scalar(value.trim())).collect();
    if values.iter().any(|value| value.as_str() == Some("")) {
        return Err(UserError::usage(format!("--sweep {text} has an empty value")));
    }
    Ok(SweepAxis { key: key.to_owned(), values })
}

fn scalar(text: &str) -> Value {
    text.parse::<u64>()
        .map(Value::from)
        .or_else(|_| text.parse::<f64>().map(Value::from))
        .unwrap_or_else(|_| text.into())
}

/// Every combination, the last axis changing fastest.
fn layouts(base: &Base<'_>, axes: &[SweepAxis]) -> Result<Vec<Layout>, UserError> {
    let all = axes.iter().try_fold(1usize, |all, axis| all.checked_mul(axis.values.len()));
    let all = all.filter(|all| *all <= MOST);
    let all = all.ok_or_else(|| UserError::usage(format!("the sweep has more than {MOST} layouts")))?;
    let loads = loads(base, axes)?;
    (0..all).map(|number| layout(base, axes, &loads, number)).collect()
}

/// The load of every value of an axis that changes it, by key and value: made once, and shared by all layouts that are under it.
type Loads = HashMap<(String, String), Arc<PlannedLoad>>;

fn loads(base: &Base<'_>, axes: &[SweepAxis]) -> Result<Loads, UserError> {
    let mut loads = Loads::new();
    let mut varying = axes.iter().filter(|axis| matches!(axis.key.as_str(), "rate" | "concurrency"));
    let Some(axis) = varying.next() else { return Ok(loads) };
    if let Some(other) = varying.next() {
        return Err(UserError::usage(format!("--sweep {} and --sweep {} are two loads", axis.key, other.key)));
    }
    for value in &axis.values {
        let text = text(value);
        let wrong = |expected: &str| UserError::usage(format!("--sweep {}={text}: {expected}", axis.key));
        let arriving = match axis.key.as_str() {
            "rate" => FileArrivals::At(positive(&text).map_err(|expected| wrong(&expected))?),
            _ => FileArrivals::Together(whole(&text).map_err(|expected| wrong(&expected))?),
        };
        let load = load(base.arguments, base.served, Some(arriving))?;
        loads.insert((axis.key.clone(), text), Arc::new(load));
    }
    Ok(loads)
}

/// A value as it was written.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn layout(base: &Base<'_>, axes: &[SweepAxis], loads: &Loads, mut number: usize) -> Result<Layout, UserError> {
    let (mut settings, mut change, mut request) = (Map::new(), Overrides::default(), base.request.clone());
    for axis in axes.iter().rev() {
        let value = &axis.values[number % axis.values.len()];
        number /= axis.values.len();
        if settings.insert(axis.key.clone(), value.clone()).is_some() {
            return Err(UserError::usage(format!("--sweep {} is given twice", axis.key)));
        }
        let text = text(value);
        match loads.get(&(axis.key.clone(), text.clone())) {
            Some(load) => request.load = Arc::clone(load),
            None if axis.key.starts_with("workload.") => {
                change.set_yaml(&axis.key, &text, OverrideSource::Flag("--sweep"))?;
            }
            None => set(&mut request, &axis.key, &text)?,
        }
    }
    refuse_lengths(&change)?;
    if ["hardware", "engine"].iter().any(|key| settings.contains_key(*key)) || change.iter().next().is_some() {
        request.steps = Vec::new().into();
    }
    request.steps_apply = !request.steps.is_empty();
    request.workload = resolution::workload::settings(&base.config.clone().with(&change)?)?;
    Ok(Layout { settings, request })
}

/// Sets what the flag of that name sets.
fn set(request: &mut CapacityRequest, key: &str, text: &str) -> Result<(), UserError> {
    let wrong = |expected: &str| UserError::usage(format!("--sweep {key}={text}: {expected}"));
    let number = |most: u64| {
        let number = text.parse::<u64>().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| wrong(&format!("expected a number from 1 to {most}")))
    };
    let engine = &mut request.engine;
    match key {
        "hardware" => request.hardware = Some(text.to_owned()),
        "engine" => engine.engine = Engine::find(text).ok_or_else(|| wrong("expected vllm or sglang"))?,
        "max-num-seqs" => engine.max_num_seqs = Some(number(MOST_SEQUENCES)?),
        "max-num-batched-tokens" => engine.max_num_batched_tokens = Some(number(MOST_TOKENS)?),
        "kv-blocks" => engine.kv_blocks = Some(number(MOST_BLOCKS)?),
        "block-size" => engine.block_size = Some(number(LARGEST_BLOCK)?),
        "data-parallel" => {
            request.fleet.data_parallel = Some(capacity::servers(text).map_err(|expected| wrong(&expected))?);
        }
        "router" => request.fleet.router = text.parse().map_err(|expected: String| wrong(&expected))?,
        // One server that does both is a layout among them.
        "disaggregate" if text == "none" => request.fleet.disaggregate = None,
        "disaggregate" => request.fleet.disaggregate = Some(text.parse().map_err(|expected: String| wrong(&expected))?),
        "price" => request.price = Some(positive(text).map_err(|expected| wrong(&expected))?),
        _ => {
            return Err(UserError::usage(format!("--sweep {key}: no such setting")).hint(
                "sweep hardware, engine, max-num-seqs, max-num-batched-tokens, kv-blocks, block-size, data-parallel, disaggregate, router, \
                 price, rate, concurrency, or workload.parallel.tensor and other keys of the workload",
            ));
        }
    }
    Ok(())
}
