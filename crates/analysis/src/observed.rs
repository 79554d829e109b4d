//! The workload as the recorded shapes of operators show it. What they do not show stays open, with the reason.

use types::timeline::{HostOperator, OperatorSignature, Timeline};
use types::{Count, DType, Facts, LogitsKind, Remark, Stage};

use crate::attribution::{Attribution, Inference};

/// Names of the operators that tell. A lookup of token ids begins every pass; a convolution over three channels begins
/// every look at a picture; a product with the token table's rows makes logits.
const LOOKUP: &str = "aten::embedding";
const CONVOLUTIONS: [&str; 2] = ["aten::conv2d", "aten::convolution"];
const PRODUCTS: [&str; 3] = ["aten::linear", "aten::mm", "aten::addmm"];

/// What shapes show. All counts are of one prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Prompts processed together.
    pub batch: Option<u64>,
    /// Tokens of one prompt.
    pub prompt_tokens: Option<u64>,
    /// Forward passes over one new token.
    pub decode_steps: Option<u64>,
    /// Views of a picture, by side: how many at once, and pixels of a side. In the order they were looked at.
    pub views: Vec<(u64, u64)>,
    /// Element type of the weights.
    pub dtype: Option<DType>,
    /// Positions whose logits prefill computed.
    pub logits: Option<LogitsKind>,
    /// What each of these rests on.
    pub evidence: Vec<Remark>,
    /// What could not be told, and why.
    pub missing: Vec<Remark>,
}

/// One lookup of token ids.
struct Lookup<'a> {
    operator: &'a HostOperator,
    table: [u64; 2],
    batch: u64,
    tokens: u64,
    dtype: Option<DType>,
}

/// What the shapes and steps of a timeline show.
pub fn observe(timeline: &Timeline, attribution: &Attribution) -> Observed {
    let mut observed = Observed::default();
    decode_steps(&mut observed, attribution);
    let lookups = lookups(timeline);
    // Position tables are looked up too; the token table is the one with the most rows.
    let Some(table) = lookups.iter().map(|lookup| lookup.table).max() else {
        let why = if timeline.signatures.is_empty() {
            Remark::new("workload.no-shapes", Facts::new())
        } else {
            Remark::new("workload.no-lookup", Facts::new())
        };
        observed.missing.push(why);
        return observed;
    };
    let tokens: Vec<_> = lookups.iter().filter(|lookup| lookup.table == table).collect();
    let prompts: Vec<_> = tokens.iter().filter(|lookup| lookup.tokens > 1).collect();
    let same = prompts.windows(2).all(|pair| (pair[0].batch, pair[0].tokens) == (pair[1].batch, pair[1].tokens));
    match prompts.first() {
        Some(first) if same => {
            observed.batch = Some(first.batch);
            observed.prompt_tokens = Some(first.tokens);
            let facts = Facts::new().with("tokens", first.tokens).with("batch", first.batch).with("operator", LOOKUP);
            observed.evidence.push(Remark::new("workload.prompt", facts));
        }
        Some(first) => {
            let differs = |one: &&&&Lookup<'_>| (one.batch, one.tokens) != (first.batch, first.tokens);
            let other = prompts.iter().find(differs).unwrap_or(first);
            let facts = Facts::new().with("batch", first.batch).with("tokens", first.tokens);
            let facts = facts.with("other_batch", other.batch).with("other_tokens", other.tokens);
            observed.missing.push(Remark::new("workload.prompts-differ", facts));
        }
        None => observed.missing.push(Remark::new("workload.no-prefill", Facts::new())),
    }
    observed.dtype = tokens.iter().find_map(|lookup| lookup.dtype);
    if let Some(dtype) = observed.dtype {
        observed.evidence.push(Remark::new("workload.dtype", Facts::new().with("dtype", dtype.to_string())));
    }
    if observed.decode_steps.is_none() {
        single_lookups(&mut observed, &tokens, prompts.len() as u64);
    }
    pictures(&mut observed, timeline);
    logits(&mut observed, timeline, table);
    observed
}

/// Steps that the trace marks or that were inferred, if each run of decode has as many.
fn decode_steps(observed: &mut Observed, attribution: &Attribution) {
    let runs = attribution.stages.iter().filter(|instance| instance.stage == Stage::Decode).count() as u64;
    let all = attribution.steps.len() as u64;
    if all > 0 && all.checked_rem(runs) == Some(0) {
        observed.decode_steps = Some(all / runs);
        let facts = Facts::new().with("steps", all / runs);
        let facts = facts.with_if("marked", attribution.inference == Inference::NotNeeded);
        observed.evidence.push(Remark::new("workload.decode-steps", facts));
    }
}

/// The same from lookups of one token, which every step begins with.
fn single_lookups(observed: &mut Observed, tokens: &[&Lookup<'_>], prompts: u64) {
    let single = tokens.iter().filter(|lookup| lookup.tokens == 1).count() as u64;
    match single.checked_rem(prompts) {
        Some(0) => {
            observed.decode_steps = Some(single / prompts);
            let facts = Facts::new().with("steps", single / prompts).with("lookups", single).with("operator", LOOKUP);
            observed.evidence.push(Remark::new("workload.decode-lookups", facts));
        }
        Some(_) => {
            let facts = Facts::new().with("steps", single).with("prompts", prompts);
            observed.missing.push(Remark::new("workload.decode-steps-uneven", facts));
        }
        None => {}
    }
}

fn pictures(observed: &mut Observed, timeline: &Timeline) {
    let mut seen: Vec<(&HostOperator, u64, u64)> = Vec::new();
    for (operator, signature) in named(timeline, &CONVOLUTIONS) {
        if let Some(&[count, 3, height, width]) = signature.shapes.first().map(Vec::as_slice)
            && height == width
        {
            seen.push((operator, count, height));
        }
    }
    seen.sort_by_key(|(operator, ..)| operator.start);
    for (_, count, side) in seen {
        // The dispatcher's own call inside the first one has the same shape, and so have later prompts and towers.
        if !observed.views.contains(&(count, side)) {
            observed.views.push((count, side));
            observed
                .evidence
                .push(Remark::new("workload.images", Facts::new().with("images", count).with("side", side)));
        }
    }
}

fn logits(observed: &mut Observed, timeline: &Timeline, table: [u64; 2]) {
    let Some(prompt) = observed.prompt_tokens.zip(observed.batch) else { return };
    let rows = |signature: &OperatorSignature| {
        // `linear` takes the weight as stored, `mm` and `addmm` transposed.
        let weight = signature.shapes.iter().position(|shape| *shape == table || *shape == [table[1], table[0]])?;
        let input = signature.shapes[..weight].iter().rev().find(|shape| shape.last() == Some(&table[1]))?;
        Some(input[..input.len() - 1].iter().product::<Count>())
    };
    let mut products: Vec<_> = named(timeline, &PRODUCTS).collect();
    products.sort_by_key(|(operator, _)| operator.start);
    // The first such product is prefill's.
    let Some(found) = products.into_iter().find_map(|(_, signature)| rows(signature)) else { return };
    observed.logits = match (found, prompt) {
        (found, (tokens, batch)) if found == Count::from(tokens) * batch => Some(LogitsKind::All),
        (found, (_, batch)) if found == Count::from(batch) => Some(LogitsKind::Last),
        _ => None,
    };
    if let Some(kind) = observed.logits {
        let facts = Facts::new().with("rows", found.get()).with_if("all", kind == LogitsKind::All);
        observed.evidence.push(Remark::new("workload.logits", facts));
    }
}

fn lookups(timeline: &Timeline) -> Vec<Lookup<'_>> {
    let lookup = |(operator, signature): (_, &OperatorSignature)| {
        let [table, ids, ..] = &signature.shapes[..] else { return None };
        let table = <[u64; 2]>::try_from(&table[..]).ok()?;
        let [batch, tokens] = <[u64; 2]>::try_from(&ids[..]).ok()?;
        let dtype = signature.types.first().and_then(|kind| element_type(kind));
        Some(Lookup { operator, table, batch, tokens, dtype })
    };
    let mut lookups: Vec<_> = named(timeline, &[LOOKUP]).filter_map(lookup).collect();
    lookups.sort_by_key(|lookup| lookup.operator.start);
    lookups
}

/// Operators of these names that have a signature.
fn named<'a>(
    timeline: &'a Timeline,
    names: &[&str],
) -> impl Iterator<Item = (&'a HostOperator, &'a OperatorSignature)> {
    let wanted: Vec<_> = names.iter().filter_map(|name| timeline.names.find(name)).collect();
    let found = timeline.operators.iter().filter(move |operator| wanted.contains(&operator.name));
    found.filter_map(|operator| Some((operator, timeline.signatures.get(operator.signature?))))
}

/// Element types as PyTorch spells them.
fn element_type(kind: &str) -> Option<DType> {
    match kind {
        "c10::BFloat16" => Some(DType::Bf16),
        "c10::Half" => Some(DType::Fp16),
        "float" => Some(DType::Fp32),
        "double" => Some(DType::Fp64),
        _ => None,
    }
}
