//! The layers of a model that follow each other.

use std::collections::BTreeMap;
use std::ops::Range;

use types::{Op, Stage};

use super::modelled_run::{ModelledOperator, ModelledRun};

/// What one layer does: the module inside of it, the operation and the shape of the weight, in order.
type Contents<'a> = Vec<(&'a str, Op, Option<&'a [u64]>)>;

/// Layers of the decoder, such as `model.layers.0` to `model.layers.11`.
#[derive(Clone, Debug)]
pub(super) struct Layers<'a> {
    /// Path of each, by its number.
    pub(super) paths: Vec<&'a str>,
    /// The longest run of layers that do the same; absent where none repeats, or two runs are as long.
    pub(super) alike: Option<Range<usize>>,
}

impl<'a> Layers<'a> {
    /// The layers that every forward pass goes through; absent where the model has none that count up.
    pub(super) fn of(model: &'a ModelledRun) -> Option<Self> {
        // Vision runs in prefill alone, and has layers of its own.
        let in_prefill = model.prefill.iter().filter(|operator| operator.stage == Stage::Prefill);
        let operators: Vec<&ModelledOperator> =
            if model.decode.is_empty() { in_prefill.collect() } else { model.decode.iter().collect() };
        let mut stacks: BTreeMap<&str, BTreeMap<usize, (&str, Contents<'_>)>> = BTreeMap::new();
        for operator in operators {
            let Some((stack, number, length)) = first_number(&operator.module) else { continue };
            let (path, inside) = operator.module.split_at(length);
            let layers = stacks.entry(stack).or_default();
            let (_, contents) = layers.entry(number).or_insert((path, Vec::new()));
            contents.push((inside, operator.op, operator.weight.as_deref()));
        }
        let layers = stacks.into_values().max_by_key(BTreeMap::len)?;
        if layers.len() < 2 || !layers.keys().copied().eq(0..layers.len()) {
            return None;
        }
        let (paths, contents): (Vec<_>, Vec<_>) = layers.into_values().unzip();
        Some(Self { paths, alike: alike(&contents) })
    }

    /// The layer that a range is named after, as in `layer_3`.
    pub(super) fn named(&self, range: &str) -> Option<&'a str> {
        let lower = range.to_ascii_lowercase();
        let rest = lower.strip_prefix("layer")?;
        let number = rest.strip_prefix('s').unwrap_or(rest).trim_start_matches(['_', '.', ' ', '#', ':', '-']);
        self.paths.get(number.parse::<usize>().ok()?).copied()
    }
}

/// The path before its first number, that number, and the length of the path up to its end.
fn first_number(path: &str) -> Option<(&str, usize, usize)> {
    let mut start = 0;
    for part in path.split('.') {
        let end = start + part.len();
        if let Ok(number) = part.parse() {
            return Some((&path[..start], number, end));
        }
        start = end + 1;
    }
    None
}

fn alike(layers: &[Contents<'_>]) -> Option<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, layer) in layers.iter().enumerate() {
        match runs.last_mut().filter(|run| layers[run.start] == *layer) {
            Some(run) => run.end += 1,
            None => runs.push(place..place + 1),
        }
    }
    let longest = runs.iter().map(ExactSizeIterator::len).max().filter(|longest| *longest > 1)?;
    let mut longest = runs.into_iter().filter(|run| run.len() == longest);
    longest.next().filter(|_| longest.next().is_none())
}

#[cfg(test)]
pub(super) mod tests {
    use types::Cost;

    use super::*;

    /// A decode step over layers whose GEMMs have these widths, between an embedding and a head.
    pub(in crate::alignment) fn model(layers: &[u64]) -> ModelledRun {
        let operator = |module: String, op: Op, weight: Vec<u64>| ModelledOperator {
            module,
            class: String::new(),
            stage: Stage::Decode,
            op,
            weight: Some(weight),
            spread: false,
            cost: Cost::ZERO,
            roofline: None,
        };
        let mut decode = vec![operator("model.embed_tokens".to_owned(), Op::Embedding, vec![99, 8])];
        for (number, width) in layers.iter().enumerate() {
            let path = |inside: &str| format!("model.layers.{number}.{inside}");
            decode.push(operator(path("self_attn.q_proj"), Op::Linear, vec![8, 8]));
            decode.push(operator(path("mlp.experts.0.up_proj"), Op::Linear, vec![*width, 8]));
        }
        decode.push(operator("lm_head".to_owned(), Op::Linear, vec![99, 8]));
        ModelledRun { decode, ..ModelledRun::default() }
    }

    #[test]
    fn layers_are_what_counts_up_first_in_a_path() {
        let model = model(&[4, 4, 4]);
        let layers = Layers::of(&model).unwrap();
        assert_eq!(layers.paths, ["model.layers.0", "model.layers.1", "model.layers.2"]);
        assert_eq!(layers.alike, Some(0..3));
    }

    #[test]
    fn the_longest_run_of_layers_that_do_the_same_is_found() {
        let alike = |layers: &[u64]| Layers::of(&model(layers)).unwrap().alike;
        assert_eq!(alike(&[9, 4, 4, 4]), Some(1..4), "a dense layer, then experts");
        assert_eq!(alike(&[9, 9, 4, 4]), None, "two runs of two");
        assert_eq!(alike(&[9, 4, 9, 4]), None, "layers take turns");
    }

    #[test]
    fn one_layer_is_no_repetition() {
        assert!(Layers::of(&model(&[4])).is_none());
        assert!(Layers::of(&ModelledRun::default()).is_none());
    }

    #[test]
    fn ranges_are_named_after_layers_in_several_ways() {
        let model = model(&[4, 4, 4]);
        let layers = Layers::of(&model).unwrap();
        for name in ["layer_2", "layers.2", "Layer 2", "layer2", "layer:2"] {
            assert_eq!(layers.named(name), Some("model.layers.2"), "{name}");
        }
        for name in ["layer_3", "layer", "layer_norm", "layer_2b", "player_2", "2"] {
            assert_eq!(layers.named(name), None, "{name}");
        }
    }
}
