//! Whether a model can be the one in a trace: its vocabulary, width, layers and split over devices against the weights that
//! recorded operators were called with.
//!
//! Engines fuse projections (`q`, `k` and `v` into one weight), so a recorded weight need not be one of the model's; but its
//! width has to be, and so has the table of tokens.

use std::collections::BTreeMap;

use types::timeline::{OperatorKind, Timeline};
use types::{Facts, Remark};

/// Tables with fewer rows hold positions, not tokens.
const FEWEST_TOKENS: u64 = 4096;

/// Rows that engines add to the table of tokens so that it divides well, on each device.
const PADDING: u64 = 1024;

/// Share of recorded GEMMs whose width has to be one of the model's.
const KNOWN_WIDTHS: f64 = 0.5;

/// How far the number of calls may be from passes times layers: a capture may cut a pass.
const WHOLE_PASSES: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The weights of a model that a trace shows.
#[derive(Clone, Debug, Default)]
pub struct ModelWeights {
    /// Weights of linear layers, `[outputs, inputs]`, and how many there are of each; experts left out.
    pub matrices: BTreeMap<[u64; 2], u64>,
    /// The table of tokens, `[entries, features]`.
    pub table: Option<[u64; 2]>,
}

/// How a model fits a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fit {
    /// Devices that share each matrix, where recorded weights show it.
    pub tensor: Option<u64>,
    /// Why it cannot be the model in the trace; empty where it can be.
    pub misfits: Vec<Remark>,
}

/// What a trace shows of weights.
struct Recorded {
    /// `[outputs, inputs]` and calls.
    matrices: BTreeMap<[u64; 2], u64>,
    /// Tables of tokens and lookups.
    tables: BTreeMap<[u64; 2], u64>,
    /// Whether gradients were computed, which multiplies by the same weights again.
    trains: bool,
}

/// How the model fits. A trace without shapes contradicts nothing.
pub fn fit(timeline: &Timeline, weights: &ModelWeights) -> Fit {
    let recorded = recorded(timeline);
    let job = timeline.job.clone().unwrap_or_default();
    let world = u64::from(job.world_size.unwrap_or(1));
    let said = job.tensor_parallel().map(u64::from);
    let mut candidates: Vec<u64> = (1..=world).filter(|devices| world % devices == 0).collect();
    candidates.sort_by_key(|devices| Some(*devices) != said);
    let exact = |devices: &u64| -> u64 {
        recorded.matrices.iter().filter(|(shape, _)| is_part(weights, **shape, *devices)).map(|(_, calls)| calls).sum()
    };
    // Of those that explain as much, the one the trace names, then the smallest.
    let best = candidates
        .iter()
        .map(|devices| (exact(devices), *devices))
        .reduce(|one, two| if two.0 > one.0 { two } else { one });
    let tensor = best.filter(|(calls, _)| *calls > 0).map(|(_, devices)| devices);
    let mut misfits = Vec::new();
    let devices = tensor.or(said).unwrap_or(1);
    misfits.extend(other_table(&recorded, weights, devices));
    misfits.extend(other_widths(&recorded, weights, devices));
    misfits.extend(other_layers(&recorded, weights, devices));
    if misfits.is_empty() && tensor.is_none() && said.is_none() && world > 1 {
        misfits.push(Remark::new("fit.world-size", Facts::new().with("world", world)));
    }
    Fit { tensor, misfits }
}

/// Whether a recorded weight is one of the model's, cut over that many devices by rows or columns.
fn is_part(weights: &ModelWeights, [outputs, inputs]: [u64; 2], devices: u64) -> bool {
    let whole = [[outputs.saturating_mul(devices), inputs], [outputs, inputs.saturating_mul(devices)]];
    whole.iter().any(|shape| weights.matrices.contains_key(shape))
}

/// The token table has another size.
fn other_table(recorded: &Recorded, weights: &ModelWeights, devices: u64) -> Option<Remark> {
    let [entries, width] = weights.table?;
    let fits = |[rows, features]: &[u64; 2]| {
        let all = rows.saturating_mul(devices);
        let whole = all >= entries && all < entries.saturating_add(PADDING * devices);
        let replicated = *rows >= entries && *rows < entries.saturating_add(PADDING);
        *features == width && (whole || replicated)
    };
    if recorded.tables.is_empty() || recorded.tables.keys().any(fits) {
        return None;
    }
    let shown = recorded.tables.keys().map(|[rows, width]| Facts::new().with("table", format!("{rows} x {width}")));
    let facts = Facts::new().with("entries", entries).with("width", width).with("shown", shown.collect::<Vec<_>>());
    Some(Remark::new("fit.table", facts))
}

/// Most GEMMs have a width that the model does not have.
fn other_widths(recorded: &Recorded, weights: &ModelWeights, devices: u64) -> Option<Remark> {
    let known = |width: u64| {
        weights.matrices.keys().any(|[_, inputs]| *inputs == width || *inputs == width.saturating_mul(devices))
    };
    let all: u64 = recorded.matrices.values().sum();
    let (fitting, others): (Vec<_>, Vec<_>) = recorded.matrices.iter().partition(|([_, inputs], _)| known(*inputs));
    let fitting: u64 = fitting.into_iter().map(|(_, calls)| calls).sum();
    let ([outputs, inputs], calls) = others.into_iter().max_by_key(|(_, calls)| **calls)?;
    let few = !weights.matrices.is_empty() && (fitting as f64) < KNOWN_WIDTHS * all as f64;
    let facts = Facts::new().with("misfitting", all - fitting).with("all", all).with("calls", *calls);
    few.then(|| Remark::new("fit.width", facts.with("outputs", *outputs).with("inputs", *inputs)))
}

/// More or fewer layers than the model has.
fn other_layers(recorded: &Recorded, weights: &ModelWeights, devices: u64) -> Option<Remark> {
    if recorded.trains {
        return None;
    }
    let passes = *recorded.tables.values().max()?;
    let in_model = |shape: &[u64; 2]| {
        let [outputs, inputs] = *shape;
        let whole = [[outputs.saturating_mul(devices), inputs], [outputs, inputs.saturating_mul(devices)]];
        whole.iter().find_map(|shape| weights.matrices.get(shape)).copied()
    };
    let counted = recorded.matrices.iter().filter_map(|(shape, calls)| Some((in_model(shape)?, *calls, shape)));
    let (layers, calls, [outputs, inputs]) = counted.max()?;
    let each = calls as f64 / passes as f64;
    // Of several weights of one shape in a layer, engines fuse some with others and keep the rest.
    let once = weights.matrices.values().copied().filter(|count| *count > 1).min()?;
    let fits = |weights: u64| WHOLE_PASSES.contains(&(each / weights.saturating_mul(once).min(layers) as f64));
    let facts = Facts::new().with("layers", layers).with("outputs", *outputs).with("inputs", *inputs);
    let facts = facts.with("each", each).with("calls", calls).with("passes", passes);
    (layers > 1 && !(1..=layers.div_ceil(once)).any(fits)).then(|| Remark::new("fit.layers", facts))
}

fn recorded(timeline: &Timeline) -> Recorded {
    let mut by_operator: BTreeMap<&str, BTreeMap<[u64; 2], u64>> = BTreeMap::new();
    let mut recorded = Recorded { matrices: BTreeMap::new(), tables: BTreeMap::new(), trains: false };
    for operator in timeline.operators.iter().filter(|operator| operator.kind == OperatorKind::Framework) {
        let name = timeline.name(operator.name);
        recorded.trains |= name.contains("Backward");
        let place = match name {
            "aten::linear" | "aten::mm" => 1,
            "aten::addmm" => 2,
            "aten::embedding" => 0,
            _ => continue,
        };
        let shape = operator.signature.and_then(|id| timeline.signatures.get(id).shapes.get(place));
        let Some(&[one, two]) = shape.map(Vec::as_slice) else { continue };
        if name == "aten::embedding" {
            if one >= FEWEST_TOKENS {
                *recorded.tables.entry([one, two]).or_default() += 1;
            }
            continue;
        }
        // `linear` takes the weight as stored, the others transposed.
        let weight = if name == "aten::linear" { [one, two] } else { [two, one] };
        *by_operator.entry(if name == "aten::linear" { name } else { "" }).or_default().entry(weight).or_default() += 1;
    }
    // What `linear` calls has the same weights once more.
    recorded.matrices = by_operator.remove("aten::linear").or_else(|| by_operator.remove("")).unwrap_or_default();
    recorded
}

#[cfg(test)]
mod tests {
    use types::timeline::{HostOperator, HostThread, Job, OperatorSignature, ThreadId, TraceFormat};
    use types::{Clock, ClockId, ClockKind, Nanos};

    use super::*;

    /// A model of two layers, eight wide.
    fn model() -> ModelWeights {
        let matrices = [([8, 8], 4), ([32, 8], 4), ([8, 32], 2), ([5000, 8], 1)].into_iter().collect();
        ModelWeights { matrices, table: Some([5000, 8]) }
    }

    fn trace(world: u32, calls: &[(&str, [u64; 2], u64)]) -> Timeline {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        timeline.threads.push(HostThread { process: None, rank: None, thread: None });
        timeline.job = Some(Job { world_size: Some(world), ..Job::default() });
        for (name, weight, count) in calls {
            let place = if *name == "aten::embedding" { 0 } else { 1 };
            let mut shapes = vec![vec![4, weight[1]]; place];
            shapes.push(weight.to_vec());
            let signature = timeline.signatures.place_owned(OperatorSignature { shapes, ..Default::default() });
            let name = timeline.names.place(*name);
            for _ in 0..*count {
                timeline.operators.push(HostOperator {
                    kind: OperatorKind::Framework,
                    name,
                    thread: ThreadId(0),
                    signature: Some(signature),
                    start: Nanos::ZERO,
                    duration: Nanos::ZERO,
                    call: None,
                });
            }
        }
        timeline
    }

    const LOOKUP: (&str, [u64; 2], u64) = ("aten::embedding", [5000, 8], 1);

    #[test]
    fn the_model_in_the_trace_fits_with_fused_weights_and_padding_too() {
        let fused = trace(1, &[LOOKUP, ("aten::linear", [24, 8], 2), ("aten::linear", [8, 32], 2)]);
        assert_eq!(fit(&fused, &model()), Fit { tensor: Some(1), misfits: vec![] });
        let padded = trace(1, &[("aten::embedding", [5056, 8], 1), ("aten::linear", [8, 32], 2)]);
        assert_eq!(fit(&padded, &model()).misfits, []);
        // Queries fused with keys and values; of both weights of this shape in a layer, the output's remains.
        let square = trace(1, &[LOOKUP, ("aten::linear", [24, 8], 2), ("aten::linear", [8, 8], 2)]);
        assert_eq!(fit(&square, &model()).misfits, []);
        assert_eq!(fit(&trace(1, &[]), &model()), Fit::default(), "no shapes, no contradiction");
    }

    #[test]
    fn another_vocabulary_width_or_depth_is_told() {
        let other = trace(1, &[("aten::embedding", [151_936, 1024], 1), ("aten::linear", [1024, 1024], 24)]);
        let misfits = fit(&other, &model()).misfits;
        let shown = vec![Facts::new().with("table", "151936 x 1024")];
        let table = Facts::new().with("entries", 5000_u64).with("width", 8_u64).with("shown", shown);
        assert_eq!(misfits[0], Remark::new("fit.table", table));
        let width = &misfits[1].facts;
        assert_eq!(
            (misfits[1].id.as_str(), width.count("misfitting"), width.count("all")),
            ("fit.width", Some(24), Some(24))
        );
        let deeper = trace(1, &[LOOKUP, ("aten::linear", [8, 32], 4), ("aten::linear", [8, 8], 8)]);
        let Remark { id, facts, .. } = &fit(&deeper, &model()).misfits[0];
        let counts = ["layers", "outputs", "inputs"].map(|name| facts.count(name));
        assert_eq!((id.as_str(), counts), ("fit.layers", [Some(4), Some(8), Some(8)]));
    }

    #[test]
    fn the_split_over_devices_is_read_from_the_weights() {
        let cut = trace(4, &[("aten::linear", [4, 8], 2), ("aten::linear", [8, 4], 2), ("aten::linear", [8, 16], 2)]);
        assert_eq!(fit(&cut, &model()).tensor, Some(2));
        let whole = trace(4, &[LOOKUP, ("aten::linear", [8, 32], 2), ("aten::linear", [32, 8], 4)]);
        assert_eq!(fit(&whole, &model()), Fit { tensor: Some(1), misfits: vec![] });
        let world = Remark::new("fit.world-size", Facts::new().with("world", 4_u64));
        assert_eq!(fit(&trace(4, &[]), &model()).misfits, [world]);
    }
}
