//! The numbers of a tensor, as the kernels want them.

use std::borrow::Cow;

use candle_core::{CpuStorage, Layout, Result, Storage, StorageRef, Tensor};

use crate::kernel::linear::{WeightSlice, widen};
use crate::kernel::runs::{View, copy};

/// A tensor held for reading.
pub(super) struct TensorData<'a> {
    storage: StorageRef<'a>,
    layout: &'a Layout,
}

/// Single-precision numbers and where they lie.
pub(super) struct Floats<'a> {
    data: Cow<'a, [f32]>,
    dims: &'a [usize],
    strides: Cow<'a, [usize]>,
}

impl<'a> TensorData<'a> {
    pub(super) fn new(tensor: &'a Tensor) -> Self {
        let (storage, layout) = tensor.storage_and_layout();
        Self { storage, layout }
    }

    /// Wherever they lie; numbers stored in fewer bytes are widened.
    pub(super) fn floats(&self) -> Result<Floats<'_>> {
        let (dims, start) = (self.layout.dims(), self.layout.start_offset());
        let strides = Cow::Borrowed(self.layout.stride());
        match self.cpu()? {
            CpuStorage::F32(data) => Ok(Floats { data: Cow::Borrowed(&data[start..]), dims, strides }),
            CpuStorage::BF16(data) => {
                let count = last(self.layout).map_or(0, |last| last + 1);
                Ok(Floats { data: Cow::Owned(widen(&data[start..start + count])), dims, strides })
            }
            other => candle_core::bail!("expected fp32 values, got {:?}", other_type(other)),
        }
    }

    /// One behind the other.
    pub(super) fn in_order(&self) -> Result<Cow<'_, [f32]>> {
        let floats = self.floats()?;
        if self.layout.is_contiguous() {
            let count = self.layout.shape().elem_count();
            return Ok(match floats.data {
                Cow::Borrowed(data) => Cow::Borrowed(&data[..count]),
                Cow::Owned(data) => Cow::Owned(data),
            });
        }
        Ok(Cow::Owned(copy(floats.view())))
    }

    /// Weights as they are stored; they must lie one behind the other.
    pub(super) fn stored(&self) -> Result<WeightSlice<'_>> {
        let Some((start, end)) = self.layout.contiguous_offsets() else {
            candle_core::bail!("weights of shape {:?} are not contiguous", self.layout.dims());
        };
        match self.cpu()? {
            CpuStorage::F32(data) => Ok(WeightSlice::Single(&data[start..end])),
            CpuStorage::BF16(data) => Ok(WeightSlice::Brain(&data[start..end])),
            other => candle_core::bail!("weights are {:?}, not f32 or bf16", other_type(other)),
        }
    }

    fn cpu(&self) -> Result<&CpuStorage> {
        match &*self.storage {
            Storage::Cpu(storage) => Ok(storage),
            _ => candle_core::bail!("expected a CPU tensor, got one on another device"),
        }
    }
}

impl Floats<'_> {
    pub(super) fn view(&self) -> View<'_> {
        View { data: &self.data, dims: self.dims, strides: &self.strides }
    }

    /// The same with the last dimension's elements one behind the other.
    pub(super) fn rows(self) -> Self {
        if self.strides.last().is_none_or(|stride| *stride == 1) {
            return self;
        }
        let data = Cow::Owned(copy(self.view()));
        let strides = (0..self.dims.len()).map(|dim| self.dims[dim + 1..].iter().product()).collect();
        Self { data, dims: self.dims, strides }
    }
}

/// The farthest element of a tensor, from its first; none when it is empty.
fn last(layout: &Layout) -> Option<usize> {
    let steps = layout.dims().iter().zip(layout.stride());
    steps.map(|(size, stride)| Some(size.checked_sub(1)? * stride)).sum()
}

fn other_type(storage: &CpuStorage) -> candle_core::DType {
    use candle_core::backend::BackendStorage;
    storage.dtype()
}
