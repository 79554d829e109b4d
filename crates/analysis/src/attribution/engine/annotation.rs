//! What serving engines write into the annotation of a step.
//!
//! vLLM writes `execute_context_N(T)_generation_M(T)`: N prompts, M decoding sequences and the tokens of each group; with
//! details `execute_T_context_N(sqA skB sqsqC sqskD)_generation_M(...)`, where each group has the sums over its sequences of
//! query lengths, key lengths and their products; before that, `execute_new_N_cached_M`. SGLang writes `step[MODE bs=N]`, with
//! `toks=T` for prompts and the same sums as `c_sq=A` and `g_sq=A`. TensorRT-LLM writes `[Executor] _forward_step I: N ctx
//! reqs, T ctx tokens, M gen reqs`, at times without the number or the tokens.

use types::{Stage, StepBatch, StepGroup, StepLabel};

/// What an annotation says of its step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Annotation {
    /// What the step does; absent where the engine's word for it is not known.
    pub(crate) label: Option<StepLabel>,
    /// Prefill or decode. Drafts belong to the stage that they draft for.
    pub(crate) stage: Option<Stage>,
    /// Absent where nothing says which of the sequences decode.
    pub(crate) batch: Option<StepBatch>,
}

impl Annotation {
    /// A step is what its batch says: prompts alone are prefill, decoding sequences alone decode; both are neither.
    fn of(batch: StepBatch) -> Self {
        let label = batch.label();
        let stage = match label {
            Some(StepLabel::Prefill) => Some(Stage::Prefill),
            Some(StepLabel::Decode) => Some(Stage::Decode),
            _ => None,
        };
        Self { label, stage, batch: Some(batch) }
    }
}

/// What an annotation says of its step; `None` for any other range.
pub(crate) fn annotation(name: &str) -> Option<Annotation> {
    executed(name).or_else(|| renewed(name)).or_else(|| forwarded(name)).or_else(|| stepped(name))
}

/// `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(...)`, or without the first number.
fn executed(name: &str) -> Option<Annotation> {
    let rest = name.strip_prefix("execute_")?;
    let (tokens, rest) = match rest.split_once("context_")? {
        ("", rest) => (None, rest),
        (tokens, rest) => (Some(tokens.strip_suffix('_')?.parse().ok()?), rest),
    };
    let (context, generation) = rest.split_once("_generation_")?;
    let (context, generation) = (group(context)?, group(generation)?);
    let summed = context.query_tokens.zip(generation.query_tokens).and_then(|(one, two)| one.checked_add(two));
    // A sequence that decodes more than one token at a time has some of them rejected, or computed again.
    let tokens = tokens.or(summed).filter(|_| !generation.is_wide());
    Some(Annotation::of(StepBatch { tokens, context, generation }))
}

/// `9(sq8155sk8430sqsq7475785sqsk7671310)` or `9(8155)`.
fn group(text: &str) -> Option<StepGroup> {
    let (sequences, sums) = match text.split_once('(') {
        Some((sequences, sums)) => (sequences, sums.strip_suffix(')')?),
        None => (text, ""),
    };
    let sequences = sequences.parse().ok()?;
    let sums: String = sums.chars().filter(|sign| !sign.is_whitespace()).collect();
    if let Ok(query_tokens) = sums.parse() {
        return Some(StepGroup { sequences, query_tokens: Some(query_tokens), ..StepGroup::default() });
    }
    // `888_788544`: tokens, and the sum of their squares.
    if let Some((tokens, squares)) = sums.split_once('_')
        && let (Ok(tokens), Ok(squares)) = (tokens.parse(), squares.parse())
    {
        return Some(StepGroup {
            sequences,
            query_tokens: Some(tokens),
            query_squared: Some(squares),
            ..StepGroup::default()
        });
    }
    let after = |mark: &str, until: &str| {
        let (_, rest) = sums.split_once(mark)?;
        let (number, _) = if until.is_empty() { (rest, "") } else { rest.split_once(until)? };
        number.parse::<u64>().ok()
    };
    Some(StepGroup {
        sequences,
        query_tokens: sums.strip_prefix("sq").and_then(|rest| rest.split_once("sk")?.0.parse().ok()),
        key_tokens: after("sk", "sqsq"),
        query_squared: after("sqsq", "sqsk"),
        query_key: after("sqsk", ""),
    })
}

/// `execute_new_2_cached_30`: requests seen for the first time, and others, which decode or go on with a long prompt.
fn renewed(name: &str) -> Option<Annotation> {
    let (new, cached) = name.strip_prefix("execute_new_")?.split_once("_cached_")?;
    let (new, cached) = (new.parse().ok()?, cached.parse::<u64>().ok()?);
    let context = StepGroup { sequences: new, ..StepGroup::default() };
    Some(match cached {
        0 => Annotation::of(StepBatch { context, ..StepBatch::default() }),
        _ => Annotation::default(),
    })
}

/// `[Executor] _forward_step 7: 2 ctx reqs, 512 ctx tokens, 30 gen reqs`. Requests may decode several tokens at once.
fn forwarded(name: &str) -> Option<Annotation> {
    let (_, counts) = name.strip_prefix("[Executor] _forward_step")?.split_once(':')?;
    let of = |unit: &str| counts.split(',').find_map(|part| part.trim().strip_suffix(unit)?.trim().parse::<u64>().ok());
    let (prompts, sequences, tokens) = (of("ctx reqs")?, of("gen reqs")?, of("ctx tokens"));
    Some(Annotation::of(StepBatch {
        tokens: tokens.filter(|_| sequences == 0),
        context: StepGroup { sequences: prompts, query_tokens: tokens, ..StepGroup::default() },
        generation: StepGroup { sequences, ..StepGroup::default() },
    }))
}

/// `step[EXTEND bs=15 toks=15360]`.
fn stepped(name: &str) -> Option<Annotation> {
    let (mode, rest) = name.strip_prefix("step[")?.strip_suffix(']')?.split_once(' ')?;
    let of =
        |key: &str| rest.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('=')?.parse::<u64>().ok());
    // A replayed graph is padded to a larger batch.
    let sequences = of("raw_bs").or(of("bs"))?;
    let group = |sequences: u64, [query, key, squared, product]: [&str; 4]| StepGroup {
        sequences,
        query_tokens: of(query),
        key_tokens: of(key),
        query_squared: of(squared),
        query_key: of(product),
    };
    let context = |sequences| group(sequences, ["c_sq", "c_sk", "c_sqsq", "c_sqsk"]);
    let generation = |sequences| group(sequences, ["g_sq", "g_sk", "g_sqsq", "g_sqsk"]);
    let decoding = |tokens| StepBatch { tokens, context: StepGroup::default(), generation: generation(sequences) };
    let (label, stage, batch) = match mode {
        "EXTEND" | "SPLIT_PREFILL" => {
            let tokens = of("toks").or(of("c_sq"));
            let context = StepGroup { query_tokens: tokens, ..context(sequences) };
            let batch = StepBatch { tokens, context, generation: StepGroup::default() };
            (StepLabel::Prefill, Some(Stage::Prefill), Some(batch))
        }
        "DECODE" => {
            // Each sequence takes one token.
            let tokens = of("g_sq").or(of("toks")).unwrap_or(sequences);
            let decoding = decoding((tokens == sequences).then_some(tokens));
            let generation = StepGroup { query_tokens: Some(tokens), ..decoding.generation };
            (StepLabel::Decode, Some(Stage::Decode), Some(StepBatch { generation, ..decoding }))
        }
        "MIXED" => {
            let batch = of("c").zip(of("g")).map(|(prompts, sequences)| {
                let (context, generation) = (context(prompts), generation(sequences));
                let tokens =
                    context.query_tokens.zip(generation.query_tokens).and_then(|(one, two)| one.checked_add(two));
                StepBatch { tokens, context, generation }
            });
            (StepLabel::Mixed, None, batch)
        }
        "TARGET_VERIFY" => (StepLabel::Verify, Some(Stage::Decode), Some(decoding(None))),
        _ if mode.starts_with("DRAFT") => (StepLabel::Draft, Some(Stage::Decode), Some(decoding(None))),
        _ => return Some(Annotation::default()),
    };
    Some(Annotation { label: Some(label), stage, batch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_of_a_mixed_step_is_read_in_full() {
        let found = annotation(
            "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)",
        );
        let found = found.unwrap();
        assert_eq!((found.label, found.stage), (Some(StepLabel::Mixed), None));
        let batch = found.batch.unwrap();
        assert_eq!(batch.tokens, Some(8_192));
        let StepGroup { sequences, query_tokens, key_tokens, query_squared, query_key } = batch.context;
        assert_eq!((sequences, query_tokens, key_tokens), (9, Some(8_155), Some(8_430)));
        assert_eq!((query_squared, query_key), (Some(7_475_785), Some(7_671_310)));
        assert_eq!((batch.generation.sequences, batch.generation.key_tokens), (37, Some(34_489)));
        // vLLM on a B200: tokens, and the sum of their squares.
        let short = annotation("execute_context_1(888_788544)_generation_0(0_0)").unwrap().batch.unwrap();
        assert_eq!((short.context.query_tokens, short.context.query_squared), (Some(888), Some(788_544)));
    }

    /// Label, prompts, decoding sequences and tokens.
    type Said = (Option<&'static str>, Option<(u64, u64)>, Option<u64>);

    fn said(name: &str) -> Option<Said> {
        let found = annotation(name)?;
        let sequences = found.batch.map(|batch| (batch.context.sequences, batch.generation.sequences));
        Some((found.label.map(StepLabel::name), sequences, found.batch.and_then(|batch| batch.tokens)))
    }

    #[test]
    fn prompts_alone_are_prefill_and_sequences_alone_decode() {
        let detailed = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)";
        assert_eq!(said(detailed), Some((Some("decode"), Some((0, 32)), Some(32))));
        let short = "execute_context_2(512)_generation_0(0)";
        assert_eq!(said(short), Some((Some("prefill"), Some((2, 0)), Some(512))));
        assert_eq!(said("execute_context_0(0)_generation_4(16)"), Some((Some("decode"), Some((0, 4)), None)));
        assert_eq!(said("execute_new_2_cached_0"), Some((Some("prefill"), Some((2, 0)), None)));
        assert_eq!(said("execute_new_0_cached_3"), Some((None, None, None)), "may go on with a prompt");
        assert_eq!(said("step[EXTEND bs=15 toks=15360]"), Some((Some("prefill"), Some((15, 0)), Some(15_360))));
        assert_eq!(said("step[DECODE bs=32]"), Some((Some("decode"), Some((0, 32)), Some(32))));
        let forward = "[Executor] _forward_step 7: 2 ctx reqs, 512 ctx tokens, 0 gen reqs";
        assert_eq!(said(forward), Some((Some("prefill"), Some((2, 0)), Some(512))));
        let forward = "[Executor] _forward_step: 0 ctx reqs, 8 gen reqs";
        assert_eq!(said(forward), Some((Some("decode"), Some((0, 8)), None)), "may decode several tokens at once");
        assert_eq!(
            (annotation("execute_graph"), annotation("ProfilerStep#3"), annotation("step[3]")),
            (None, None, None)
        );
    }

    #[test]
    fn verifying_drafting_and_mixing_have_no_tokens_that_count() {
        assert_eq!(said("step[TARGET_VERIFY bs=16]"), Some((Some("verify"), Some((0, 16)), None)));
        let detailed = "step[TARGET_VERIFY bs=16 g_sq=64 g_sqsq=256 g_sqsk=9000 g_sk=2250]";
        assert_eq!(annotation(detailed).unwrap().batch.unwrap().generation.query_tokens, Some(64));
        assert_eq!(said("step[DRAFT_EXTEND_V2 bs=16]"), Some((Some("draft"), Some((0, 16)), None)));
        assert_eq!(said("step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]"), Some((Some("draft"), Some((0, 3)), None)));
        assert_eq!(said("step[MIXED bs=9]"), Some((Some("mixed"), None, None)));
        let detailed = "step[MIXED bs=9 c=1 g=8 c_sq=512 c_sk=512 c_sqsq=1 c_sqsk=1 g_sq=8 g_sk=99 g_sqsq=8 g_sqsk=99]";
        assert_eq!(said(detailed), Some((Some("mixed"), Some((1, 8)), Some(520))));
        for mode in ["IDLE", "PREBUILT", "DLLM_EXTEND", "NEW_MODE"] {
            assert_eq!(said(&format!("step[{mode} bs=2]")), Some((None, None, None)), "{mode}");
        }
    }
}
