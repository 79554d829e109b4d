//! Random parameters: the same for the same seed, whatever order they are made in and however many threads make them.

use candle_core::{Device, Tensor};
use network::{Blueprint, ParamEntry};
use types::{DType, Random};

use crate::EngineError;
use crate::kernel::filled;
use crate::kernel::linear::narrow;

/// Values made by one thread at a time; each chunk has a seed of its own.
const CHUNK: usize = 1 << 16;

pub(super) fn tensors(blueprint: &Blueprint, seed: u64, dtype: DType) -> Result<Vec<Tensor>, EngineError> {
    blueprint.params().map(|(_, entry)| tensor(blueprint, entry, seed, dtype)).collect()
}

fn tensor(blueprint: &Blueprint, entry: &ParamEntry, seed: u64, dtype: DType) -> Result<Tensor, EngineError> {
    let failed = |source| EngineError::Compute { op: "synthetic weights", source };
    let dims: Vec<usize> = entry.shape.dims().iter().map(|size| *size as usize).collect();
    let values = values(entry, blueprint.module(entry.module).class, seed);
    let tensor = match dtype {
        DType::Bf16 => Tensor::from_vec(narrow(&values), dims, &Device::Cpu),
        _ => Tensor::from_vec(values, dims, &Device::Cpu),
    };
    tensor.map_err(failed)
}

/// Norms start at one, biases at zero; everything else is uniform with the variance of one over its inputs, so that
/// activations neither vanish nor overflow on the way through.
fn values(entry: &ParamEntry, class: &str, seed: u64) -> Vec<f32> {
    let count = entry.shape.elements() as usize;
    let name = entry.path.rsplit('.').next().unwrap_or(&entry.path);
    let norm = class.contains("Norm");
    match name {
        "weight" | "running_var" if norm => return vec![1.0; count],
        "bias" | "running_mean" => return vec![0.0; count],
        _ => {}
    }
    let inputs: u64 = entry.shape.dims().iter().skip(1).product();
    // A table is looked up, not multiplied: its rows are as large as what the layers around it make.
    let reach = if class == "Embedding" || entry.shape.rank() < 2 { 0.02 } else { (3.0 / inputs.max(1) as f32).sqrt() };
    let seed = seed ^ hash(&entry.path);
    filled(count, CHUNK, |start, values| {
        for (chunk, values) in values.chunks_mut(CHUNK).enumerate() {
            let mut random = Random::scattered(seed.wrapping_add((start / CHUNK + chunk) as u64));
            values.iter_mut().for_each(|value| *value = random.around_zero() * reach);
        }
    })
}

/// FNV-1a, which any reader can redo.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use network::{Model, Preset};

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_weights_and_another_seed_others() {
        let model = Model::new(&Preset::find("dummy-shallow-resnet").unwrap().config().unwrap());
        let first = |seed: u64| {
            let tensors = tensors(model.blueprint(), seed, DType::Fp32).unwrap();
            tensors[0].flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
        let values = first(7);
        let mean: f32 = values.iter().sum::<f32>() / values.len() as f32;
        let variance: f32 = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        // 27 inputs: variance 1/27.
        assert!(mean.abs() < 0.02 && (variance * 27.0 - 1.0).abs() < 0.15, "mean {mean}, variance {variance}");
    }
}
