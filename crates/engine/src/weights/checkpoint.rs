//! Parameters from safetensors files, memory-mapped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use memmap2::Mmap;
use network::{Blueprint, ParamEntry};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use types::DType;

use crate::kernel::filled;
use crate::tensor::Data;
use crate::{EngineError, Tensor, file};

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
    let data = numbers(view, dtype == DType::Bf16).ok_or_else(|| EngineError::WrongType {
        path: file.to_owned(),
        name: entry.path.clone(),
        found: format!("{:?}", view.dtype()),
    })?;
    Tensor::new(data, wanted).map_err(|source| EngineError::Compute { op: "load weights", source })
}

/// The numbers of a tensor in single precision, or in bf16; none where they are stored as something else.
fn numbers(view: &TensorView<'_>, narrow: bool) -> Option<Data> {
    let bytes = view.data();
    Some(match (view.dtype(), narrow) {
        (Dtype::F64, false) => converted(bytes, |bytes| f64::from_le_bytes(bytes) as f32).into(),
        (Dtype::F64, true) => converted(bytes, |bytes| bf16::from_f64(f64::from_le_bytes(bytes))).into(),
        (Dtype::F32, false) => converted(bytes, f32::from_le_bytes).into(),
        (Dtype::F32, true) => converted(bytes, |bytes| bf16::from_f32(f32::from_le_bytes(bytes))).into(),
        (Dtype::F16, false) => converted(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()).into(),
        (Dtype::F16, true) => converted(bytes, |bytes| bf16::from_f32(f16::from_le_bytes(bytes).to_f32())).into(),
        (Dtype::BF16, false) => converted(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()).into(),
        (Dtype::BF16, true) => converted(bytes, bf16::from_le_bytes).into(),
        _ => return None,
    })
}

/// What `convert` makes of every `N` bytes.
fn converted<const N: usize, T: Copy + Default + Send>(bytes: &[u8], convert: impl Fn([u8; N]) -> T + Sync) -> Vec<T> {
    let (elements, _) = bytes.as_chunks::<N>();
    filled(elements.len(), 1, |start, piece| {
        for (number, element) in piece.iter_mut().zip(&elements[start..]) {
            *number = convert(*element);
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_number_is_read_and_others_are_refused() {
        let wanted = [1.5f32, -0.25, 3.0];
        let bytes = |of: fn(f32) -> Vec<u8>| wanted.into_iter().flat_map(of).collect::<Vec<u8>>();
        for (dtype, bytes) in [
            (Dtype::F64, bytes(|value| f64::from(value).to_le_bytes().to_vec())),
            (Dtype::F32, bytes(|value| value.to_le_bytes().to_vec())),
            (Dtype::F16, bytes(|value| f16::from_f32(value).to_le_bytes().to_vec())),
            (Dtype::BF16, bytes(|value| bf16::from_f32(value).to_le_bytes().to_vec())),
        ] {
            let view = TensorView::new(dtype, vec![3], &bytes).unwrap();
            for narrow in [false, true] {
                let read = Tensor::new(numbers(&view, narrow).unwrap(), [3]).unwrap();
                assert_eq!(*read.in_order().unwrap(), wanted, "{dtype:?}");
            }
        }
        assert!(numbers(&TensorView::new(Dtype::I8, vec![1], &[0]).unwrap(), false).is_none());
    }
}
