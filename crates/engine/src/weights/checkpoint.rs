//! Parameters from safetensors files, memory-mapped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType as CandleType, Device, Tensor};
use memmap2::Mmap;
use network::{Blueprint, ParamEntry};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use types::DType;

use crate::op::candle_type;
use crate::{EngineError, file};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Most bytes of an index; that of DeepSeek-V3, with 163 files, has a thirtieth of it.
const LARGEST_INDEX: u64 = 256 << 20;

/// Every parameter of the blueprint, and the names the network has no use for.
pub(super) fn tensors(
    blueprint: &Blueprint,
    path: &Path,
    dtype: DType,
) -> Result<(Vec<Tensor>, Vec<String>), EngineError> {
    let files = files(path)?;
    let maps = files.iter().map(|file| map(file)).collect::<Result<Vec<_>, _>>()?;
    let mut shards = Vec::with_capacity(maps.len());
    for (file, map) in files.iter().zip(&maps) {
        let shard = SafeTensors::deserialize(map)
            .map_err(|error| EngineError::NotACheckpoint { path: file.clone(), reason: error.to_string() })?;
        shards.push((file, shard));
    }
    let mut unused: BTreeSet<String> =
        shards.iter().flat_map(|(_, shard)| shard.names().into_iter().map(str::to_owned)).collect();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, (_, shard)) in shards.iter().enumerate() {
        places.extend(shard.names().into_iter().map(|name| (name.to_owned(), index)));
    }
    let mut tensors = Vec::with_capacity(blueprint.params().len());
    for (_, entry) in blueprint.params() {
        let missing = || EngineError::MissingTensor {
            path: path.to_owned(),
            name: entry.path.clone(),
            shape: Box::new(entry.shape),
        };
        let (file, shard) = places.get(&entry.path).map(|index| &shards[*index]).ok_or_else(missing)?;
        let view = shard.tensor(&entry.path).map_err(|_| missing())?;
        tensors.push(tensor(file, entry, &view, dtype)?);
        unused.remove(&entry.path);
    }
    Ok((tensors, unused.into_iter().collect()))
}

fn tensor(file: &Path, entry: &ParamEntry, view: &TensorView<'_>, dtype: DType) -> Result<Tensor, EngineError> {
    let wanted: Vec<usize> = entry.shape.dims().iter().map(|size| *size as usize).collect();
    if view.shape() != wanted {
        return Err(EngineError::WrongShape {
            path: file.to_owned(),
            name: entry.path.clone(),
            found: view.shape().to_vec(),
            wanted: Box::new(entry.shape),
        });
    }
    let wrong_type = |found: String| EngineError::WrongType { path: file.to_owned(), name: entry.path.clone(), found };
    let stored = match view.dtype() {
        Dtype::F64 => CandleType::F64,
        Dtype::F32 => CandleType::F32,
        Dtype::F16 => CandleType::F16,
        Dtype::BF16 => CandleType::BF16,
        other => return Err(wrong_type(format!("{other:?}"))),
    };
    let computed = candle_type(dtype).ok_or_else(|| wrong_type(dtype.to_string()))?;
    Tensor::from_raw_buffer(view.data(), stored, &wanted, &Device::Cpu)
        .and_then(|tensor| tensor.to_dtype(computed))
        .map_err(|source| EngineError::Compute { op: "load weights", source })
}

/// The files of a checkpoint: itself, the shards of an index, or what a folder holds.
fn files(path: &Path) -> Result<Vec<PathBuf>, EngineError> {
    if path.is_dir() {
        let (single, index) = (path.join(SINGLE), path.join(INDEX));
        if single.is_file() {
            return Ok(vec![single]);
        }
        if index.is_file() {
            return shards(&index);
        }
        let reason = format!("the folder contains neither {SINGLE} nor {INDEX}");
        return Err(EngineError::NotACheckpoint { path: path.to_owned(), reason });
    }
    if path.extension().is_some_and(|ending| ending == "json") { shards(path) } else { Ok(vec![path.to_owned()]) }
}

/// The files an index names, each once, beside the index.
fn shards(index: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let unreadable = |reason| EngineError::Unreadable { path: index.to_owned(), reason };
    let text = file::read(index, LARGEST_INDEX).map_err(unreadable)?;
    let wrong = |reason: String| EngineError::NotACheckpoint { path: index.to_owned(), reason };
    let document: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| wrong(format!("not valid JSON: {error}")))?;
    let map = document
        .get("weight_map")
        .and_then(|map| serde_json::from_value::<BTreeMap<String, String>>(map.clone()).ok())
        .ok_or_else(|| wrong("field `weight_map` must map tensors to files".to_owned()))?;
    let names: BTreeSet<String> = map.into_values().collect();
    let folder = index.parent().unwrap_or(Path::new(""));
    let plain = |name: &str| Path::new(name).components().count() == 1 && !name.starts_with('.');
    if let Some(name) = names.iter().find(|name| !plain(name)) {
        return Err(wrong(format!("`{name}` is not a file next to the index")));
    }
    let files: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    let absent: Vec<&PathBuf> = files.iter().filter(|file| !file.exists()).collect();
    match absent.first() {
        Some(first) => Err(EngineError::MissingShards {
            path: index.to_owned(),
            absent: absent.len(),
            of: files.len(),
            first: (*first).clone(),
        }),
        None => Ok(files),
    }
}

fn map(path: &Path) -> Result<Mmap, EngineError> {
    let unreadable = |reason| EngineError::Unreadable { path: path.to_owned(), reason };
    let file = file::open(path).map_err(unreadable)?;
    // SAFETY: the map is read while weights are copied out of it and dropped before this module returns. Another process
    // that truncates the file meanwhile can end this one with a bus error, which no reader of mapped files can prevent.
    unsafe { Mmap::map(&file) }.map_err(unreadable)
}
