//! Tensors: numbers that views share, and where each view finds its elements.
//!
//! Knows layouts only. What is computed with the numbers is left to `kernel`, and by which operation to `op`.

mod data;
mod floats;

use std::borrow::Cow;
use std::sync::Arc;

pub(crate) use self::data::Data;
pub(crate) use self::floats::Floats;
use crate::compute_error::{ComputeError, Result};
use crate::kernel::linear::{WeightSlice, widen};
use crate::kernel::runs::{View, Walk, copy};

/// Numbers in dimensions. Cloning, reshaping and slicing share the numbers.
#[derive(Clone)]
pub struct Tensor {
    data: Data,
    dims: Vec<usize>,
    /// Elements from one index to the next, by dimension; zero where an element is repeated.
    strides: Vec<usize>,
    /// Where the first element stands.
    start: usize,
}

impl Tensor {
    /// `values` one behind the other, the last dimension fastest.
    pub(crate) fn new(values: impl Into<Data>, dims: impl Into<Vec<usize>>) -> Result<Self> {
        let (data, dims) = (values.into(), dims.into());
        if data.len() != dims.iter().product::<usize>() {
            return Err(ComputeError::new(format!("{} values do not fill {dims:?}", data.len())));
        }
        Ok(Self { data, strides: strides_in_order(&dims), dims, start: 0 })
    }

    /// Sizes of the dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Sizes of the dimensions, of which there must be `N`.
    pub(crate) fn sizes<const N: usize>(&self) -> Result<[usize; N]> {
        let wrong = |_| ComputeError::new(format!("expected {N} dimensions, got {:?}", self.dims));
        self.dims.as_slice().try_into().map_err(wrong)
    }

    /// Size of the last dimension.
    pub(crate) fn width(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// The same elements in other dimensions; a copy where they do not lie one behind the other.
    pub(crate) fn reshape(&self, dims: impl Into<Vec<usize>>) -> Result<Self> {
        let dims = dims.into();
        if self.count() != dims.iter().product::<usize>() {
            return Err(ComputeError::new(format!("{:?} cannot be reshaped to {dims:?}", self.dims)));
        }
        Ok(Self { strides: strides_in_order(&dims), dims, ..self.contiguous() })
    }

    /// A view with dimension `order[n]` as dimension n.
    pub(crate) fn permute(&self, order: &[usize]) -> Result<Self> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.dims.len()) {
            return Err(ComputeError::new(format!("{order:?} is not an order of the dimensions {:?}", self.dims)));
        }
        let in_order = |sizes: &[usize]| order.iter().map(|dim| sizes[*dim]).collect();
        let (dims, strides) = (in_order(&self.dims), in_order(&self.strides));
        Ok(Self { data: self.data.clone(), dims, strides, start: self.start })
    }

    /// A view of `length` indices of dimension `dim`, from `start` on.
    pub(crate) fn slice(&self, dim: usize, start: usize, length: usize) -> Result<Self> {
        if self.dims.get(dim).is_none_or(|size| start + length > *size) {
            let wanted = start..start + length;
            return Err(ComputeError::new(format!("dimension {dim} of {:?} has no {wanted:?}", self.dims)));
        }
        let mut part = self.clone();
        part.dims[dim] = length;
        part.start += start * self.strides[dim];
        Ok(part)
    }

    /// A view in which dimensions of size one, and those missing in front, are repeated to `dims`.
    pub(crate) fn expand(&self, dims: &[usize]) -> Result<Self> {
        let front = dims.len().checked_sub(self.dims.len());
        let fits = |front: usize| self.dims.iter().zip(&dims[front..]).all(|(own, wide)| own == wide || *own == 1);
        let Some(front) = front.filter(|front| fits(*front)) else {
            return Err(ComputeError::new(format!("{:?} cannot be expanded to {dims:?}", self.dims)));
        };
        let mut strides = vec![0; dims.len()];
        for (dim, size) in self.dims.iter().enumerate().filter(|(dim, size)| **size == dims[front + dim]) {
            strides[front + dim] = if *size == 1 { 0 } else { self.strides[dim] };
        }
        Ok(Self { data: self.data.clone(), dims: dims.to_vec(), strides, start: self.start })
    }

    /// Itself, or a copy with all elements one behind the other.
    pub(crate) fn contiguous(&self) -> Self {
        if self.is_contiguous() {
            return self.clone();
        }
        let data = match &self.data {
            Data::Single(values) => copy(self.view(values)).into(),
            Data::Brain(values) => copy(self.view(values)).into(),
            Data::Long(values) => copy(self.view(values)).into(),
            Data::Byte(values) => copy(self.view(values)).into(),
        };
        Self { data, dims: self.dims.clone(), strides: strides_in_order(&self.dims), start: 0 }
    }

    /// Whether all elements lie one behind the other.
    pub(crate) fn is_contiguous(&self) -> bool {
        let mut wanted = 1;
        self.dims.iter().zip(&self.strides).rev().all(|(size, stride)| {
            let fits = *size == 1 || *stride == wanted;
            wanted *= size;
            fits
        })
    }

    /// Writes `part` over the indices of dimension `dim` from `at` on: in place, unless a view still shows the old numbers.
    /// The view keeps them then, and this tensor goes on with a copy.
    pub(crate) fn write(&mut self, dim: usize, at: usize, part: &Self) -> Result<()> {
        let room = self.slice(dim, at, part.dims.get(dim).copied().unwrap_or(0))?;
        if room.dims != part.dims {
            return Err(ComputeError::new(format!("{:?} cannot be written into {:?}", part.dims, self.dims)));
        }
        let start = room.start;
        // It would count as a view.
        drop(room);
        let Data::Single(values) = &mut self.data else {
            return Err(ComputeError::new(format!("only fp32 values can be written, not {}", self.data.kind())));
        };
        let (values, part) = (&mut Arc::make_mut(values)[start..], part.floats()?);
        let part = part.view();
        let walk = Walk::new(part.dims, [&self.strides, part.strides]);
        walk.visit(0, part.dims.iter().product(), |[to, from], count| match walk.step() {
            [1, 1] => values[to..to + count].copy_from_slice(&part.data[from..from + count]),
            [up, along] => (0..count).for_each(|index| values[to + index * up] = part.data[from + index * along]),
        });
        Ok(())
    }

    /// In single precision, wherever they lie; numbers stored in fewer bytes are widened.
    pub(crate) fn floats(&self) -> Result<Floats<'_>> {
        let data = match &self.data {
            Data::Single(values) => Cow::Borrowed(&values[self.start..]),
            Data::Brain(values) => Cow::Owned(widen(&values[self.start..self.start + self.reach()])),
            other => return Err(ComputeError::new(format!("expected fp32 values, got {}", other.kind()))),
        };
        Ok(Floats { data, dims: &self.dims, strides: Cow::Borrowed(&self.strides) })
    }

    /// In single precision, one behind the other.
    pub fn in_order(&self) -> Result<Cow<'_, [f32]>> {
        let floats = self.floats()?;
        if !self.is_contiguous() {
            return Ok(Cow::Owned(copy(floats.view())));
        }
        Ok(match floats.data {
            Cow::Borrowed(data) => Cow::Borrowed(&data[..self.count()]),
            owned => owned,
        })
    }

    /// Weights as they are stored; they must lie one behind the other.
    pub(crate) fn stored(&self) -> Result<WeightSlice<'_>> {
        match &self.data {
            Data::Single(values) => Ok(WeightSlice::Single(self.part(values)?)),
            Data::Brain(values) => Ok(WeightSlice::Brain(self.part(values)?)),
            other => Err(ComputeError::new(format!("weights are {}, not fp32 or bf16", other.kind()))),
        }
    }

    /// Token ids or positions; they must lie one behind the other.
    pub(crate) fn longs(&self) -> Result<&[i64]> {
        match &self.data {
            Data::Long(values) => self.part(values),
            other => Err(ComputeError::new(format!("expected int64 values, got {}", other.kind()))),
        }
    }

    /// A mask; its elements must lie one behind the other.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        match &self.data {
            Data::Byte(values) => self.part(values),
            other => Err(ComputeError::new(format!("expected uint8 values, got {}", other.kind()))),
        }
    }

    fn part<'a, T>(&self, values: &'a [T]) -> Result<&'a [T]> {
        match self.is_contiguous() {
            true => Ok(&values[self.start..self.start + self.count()]),
            false => Err(ComputeError::new(format!("elements of {:?} are not contiguous", self.dims))),
        }
    }

    fn view<'a, T>(&'a self, values: &'a [T]) -> View<'a, T> {
        View { data: &values[self.start..], dims: &self.dims, strides: &self.strides }
    }

    fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Elements from the first to the farthest, both included.
    fn reach(&self) -> usize {
        let steps = self.dims.iter().zip(&self.strides);
        let last: Option<usize> = steps.map(|(size, stride)| Some(size.checked_sub(1)? * stride)).sum();
        last.map_or(0, |last| last + 1)
    }
}

/// Strides of elements that lie one behind the other.
fn strides_in_order(dims: &[usize]) -> Vec<usize> {
    (0..dims.len()).map(|dim| dims[dim + 1..].iter().product()).collect()
}

impl std::fmt::Debug for Tensor {
    /// Without its elements, which are millions.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tensor {} {:?}", self.data.kind(), self.dims)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::kernel::linear::narrow;
    use crate::kernel::tests::numbers;

    /// Numbers that look random and are the same every time.
    pub(crate) fn random(dims: &[usize], seed: u32) -> Tensor {
        Tensor::new(numbers(dims.iter().product(), seed), dims).unwrap()
    }

    /// Zero, one, two and so on.
    pub(crate) fn counted(dims: &[usize]) -> Tensor {
        let count: usize = dims.iter().product();
        Tensor::new((0..count).map(|value| value as f32).collect::<Vec<_>>(), dims).unwrap()
    }

    /// The largest difference of two tensors of one shape.
    pub(crate) fn worst(found: &Tensor, wanted: &Tensor) -> f32 {
        assert_eq!(found.dims(), wanted.dims());
        crate::kernel::tests::worst(&found.in_order().unwrap(), &wanted.in_order().unwrap())
    }

    #[test]
    fn views_show_their_elements_in_order() {
        let x = counted(&[2, 3, 4]);
        let turned = x.permute(&[2, 0, 1]).unwrap();
        assert_eq!((turned.dims(), turned.is_contiguous()), (&[4, 2, 3][..], false));
        let part = turned.slice(0, 1, 2).unwrap();
        assert_eq!(*part.in_order().unwrap(), [1., 5., 9., 13., 17., 21., 2., 6., 10., 14., 18., 22.]);
        assert_eq!(part.contiguous().in_order().unwrap(), part.in_order().unwrap());
        assert_eq!(*part.reshape([3, 4]).unwrap().slice(0, 2, 1).unwrap().in_order().unwrap(), [10., 14., 18., 22.]);
        let row = x.slice(0, 1, 1).unwrap().slice(1, 2, 1).unwrap();
        let wide = row.reshape([4]).unwrap().expand(&[2, 4]).unwrap();
        assert_eq!(*wide.in_order().unwrap(), [20., 21., 22., 23., 20., 21., 22., 23.]);
        assert!(x.is_contiguous() && row.is_contiguous() && !wide.is_contiguous());
        let column = x.slice(2, 3, 1).unwrap().expand(&[2, 3, 2]).unwrap();
        assert_eq!(column.in_order().unwrap()[..4], [3., 3., 7., 7.]);
        let last = turned.floats().unwrap().rows();
        assert_eq!(last.view().strides, [6, 3, 1]);
        assert_eq!(last.view().data[..3], [0., 4., 8.]);
    }

    #[test]
    fn numbers_in_half_the_bytes_are_widened_and_other_types_refused() {
        let x = counted(&[3, 4]);
        let stored = Tensor::new(narrow(&x.in_order().unwrap()), [3, 4]).unwrap();
        for view in [&x, &stored].map(|x| x.permute(&[1, 0]).unwrap().slice(0, 1, 2).unwrap()) {
            assert_eq!(*view.in_order().unwrap(), [1., 5., 9., 2., 6., 10.]);
            assert_eq!(*view.contiguous().in_order().unwrap(), [1., 5., 9., 2., 6., 10.]);
            assert!(view.stored().unwrap_err().to_string().contains("not contiguous"));
        }
        assert!(matches!(stored.stored(), Ok(WeightSlice::Brain(values)) if values.len() == 12));
        let ids = Tensor::new(vec![1i64, 2], [1, 2]).unwrap();
        let mask = Tensor::new(vec![0u8, 1], [2]).unwrap();
        assert_eq!((ids.longs().unwrap(), mask.bytes().unwrap()), (&[1, 2][..], &[0, 1][..]));
        assert_eq!(ids.floats().err().unwrap().to_string(), "expected fp32 values, got int64");
        assert_eq!(x.longs().unwrap_err().to_string(), "expected int64 values, got fp32");
        assert_eq!(format!("{ids:?}"), "Tensor int64 [1, 2]");
    }

    #[test]
    fn layouts_that_do_not_fit_are_refused() {
        let x = counted(&[2, 3]);
        assert_eq!(Tensor::new(vec![0u8; 5], [2, 3]).unwrap_err().to_string(), "5 values do not fill [2, 3]");
        assert!(x.reshape([5]).is_err() && x.permute(&[0, 0]).is_err() && x.permute(&[0]).is_err());
        assert!(x.slice(1, 2, 2).is_err() && x.slice(2, 0, 1).is_err());
        assert!(x.expand(&[3, 3]).is_err() && x.expand(&[3]).is_err());
        assert_eq!(x.sizes::<3>().unwrap_err().to_string(), "expected 3 dimensions, got [2, 3]");
    }

    #[test]
    fn what_is_written_shows_everywhere_but_in_older_views() {
        let mut held = Tensor::new(vec![0f32; 12], [2, 3, 2]).unwrap();
        let turned = counted(&[2, 2, 1]).permute(&[1, 2, 0]).unwrap();
        held.write(1, 2, &turned).unwrap();
        assert_eq!(*held.in_order().unwrap(), [0., 0., 0., 0., 0., 2., 0., 0., 0., 0., 1., 3.]);
        let view = held.slice(1, 2, 1).unwrap();
        held.write(1, 2, &counted(&[2, 1, 2])).unwrap();
        assert_eq!(*view.in_order().unwrap(), [0., 2., 1., 3.]);
        assert_eq!(*held.slice(1, 2, 1).unwrap().in_order().unwrap(), [0., 1., 2., 3.]);
        assert!(held.write(1, 3, &turned).is_err() && held.write(0, 0, &turned).is_err());
    }
}
