//! Walking strided tensors in the order of their elements, one run of evenly spaced elements at a time; and the copies that
//! lay such tensors out anew.

use types::Shape;

use super::filled;

/// A tensor, wherever its elements lie; of single-precision numbers where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a, T = f32> {
    /// Elements from the first one on.
    pub(crate) data: &'a [T],
    pub(crate) dims: &'a [usize],
    /// Elements from one index to the next, by dimension.
    pub(crate) strides: &'a [usize],
}

/// The order in which `N` tensors of one shape are walked together: dimensions that lie one behind the other in all of
/// them are joined, so that runs are as long as they can be.
#[derive(Debug)]
pub(crate) struct Walk<const N: usize> {
    /// Outer dimensions, the slowest first: size and stride in each tensor.
    outer: Vec<(usize, [usize; N])>,
    /// Length of a run, and the stride within it.
    length: usize,
    step: [usize; N],
}

impl<const N: usize> Walk<N> {
    /// Over `dims`, with each tensor's strides; a stride of zero repeats an element.
    pub(crate) fn new(dims: &[usize], strides: [&[usize]; N]) -> Self {
        let mut outer: Vec<(usize, [usize; N])> = Vec::with_capacity(dims.len());
        for (dim, size) in dims.iter().copied().enumerate().filter(|(_, size)| *size != 1) {
            let steps = strides.map(|strides| strides[dim]);
            match outer.last_mut() {
                Some((before, wider)) if (0..N).all(|at| wider[at] == steps[at] * size) => {
                    *before *= size;
                    *wider = steps;
                }
                _ => outer.push((size, steps)),
            }
        }
        let (length, step) = outer.pop().unwrap_or((1, [1; N]));
        Self { outer, length, step }
    }

    /// Stride within a run, in each tensor.
    pub(crate) fn step(&self) -> [usize; N] {
        self.step
    }

    /// Visits elements `start..end`: where each run starts in each tensor, and how much of it is wanted.
    #[inline(always)]
    pub(crate) fn visit(&self, start: usize, end: usize, mut visit: impl FnMut([usize; N], usize)) {
        if start >= end {
            return;
        }
        let mut index = [0usize; Shape::MAX_RANK];
        let index = &mut index[..self.outer.len()];
        let mut at = [0usize; N];
        let mut rest = start / self.length;
        for (index, (size, strides)) in index.iter_mut().zip(&self.outer).rev() {
            *index = rest % size;
            rest /= size;
            for (at, stride) in at.iter_mut().zip(strides) {
                *at += *index * stride;
            }
        }
        let mut inside = start % self.length;
        let mut left = end - start;
        loop {
            let count = (self.length - inside).min(left);
            let mut begin = at;
            for (begin, step) in begin.iter_mut().zip(self.step) {
                *begin += inside * step;
            }
            visit(begin, count);
            left -= count;
            if left == 0 {
                return;
            }
            inside = 0;
            for (index, (size, strides)) in index.iter_mut().zip(&self.outer).rev() {
                *index += 1;
                let wrapped = *index == *size;
                for (at, stride) in at.iter_mut().zip(strides) {
                    *at = if wrapped { *at - (size - 1) * stride } else { *at + stride };
                }
                if !wrapped {
                    break;
                }
                *index = 0;
            }
        }
    }
}

/// The elements of `x` one behind the other.
pub(crate) fn copy<T: Copy + Default + Send + Sync>(x: View<'_, T>) -> Vec<T> {
    let walk = Walk::new(x.dims, [x.strides]);
    filled(x.dims.iter().product(), 1, |start, piece| {
        let mut to = 0;
        walk.visit(start, start + piece.len(), |[from], count| {
            let y = &mut piece[to..to + count];
            match walk.step() {
                [0] => y.fill(x.data[from]),
                [1] => y.copy_from_slice(&x.data[from..from + count]),
                [step] => y.iter_mut().enumerate().for_each(|(index, y)| *y = x.data[from + index * step]),
            }
            to += count;
        });
    })
}

/// `parts`, whose sizes differ in dimension `dim` alone, one behind the other in that dimension.
pub(crate) fn concat(parts: &[View<'_>], dim: usize) -> Vec<f32> {
    let mut dims = parts.first().map_or(vec![0; dim + 1], |part| part.dims.to_vec());
    dims[dim] = parts.iter().map(|part| part.dims[dim]).sum();
    let strides: Vec<usize> = (0..dims.len()).map(|dim| dims[dim + 1..].iter().product()).collect();
    // A block is all that dimensions before `dim` leave together; each part has its place in it.
    let block = (dims[dim] * strides[dim]).max(1);
    let mut end = 0;
    let placed = parts.iter().map(|part| {
        let place = end..end + part.dims[dim] * strides[dim];
        end = place.end;
        (part, place, Walk::new(part.dims, [part.strides, &strides]))
    });
    let placed: Vec<_> = placed.collect();
    filled(dims.iter().product(), 1, |start, piece| {
        for (part, place, walk) in &placed {
            // Elements of the part that stand before one of the output.
            let before =
                |at: usize| at / block * place.len() + (at % block).clamp(place.start, place.end) - place.start;
            walk.visit(before(start), before(start + piece.len()), |[from, to], count| {
                let to = to + place.start - start;
                match walk.step() {
                    [0, 1] => piece[to..to + count].fill(part.data[from]),
                    [1, 1] => piece[to..to + count].copy_from_slice(&part.data[from..from + count]),
                    [by, on] => (0..count).for_each(|index| piece[to + index * on] = part.data[from + index * by]),
                }
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strides of a shape laid out in order.
    fn strides(dims: &[usize]) -> Vec<usize> {
        (0..dims.len()).map(|dim| dims[dim + 1..].iter().product()).collect()
    }

    #[test]
    fn permuted_and_repeated_tensors_are_copied_in_order() {
        let data: Vec<f32> = (0..50 * 40 * 30).map(|value| value as f32).collect();
        let whole = strides(&[50, 40, 30]);
        for order in [[0, 1, 2], [0, 2, 1], [2, 0, 1], [1, 0, 2]] {
            let dims = order.map(|dim| [50, 40, 30][dim]);
            let turned = order.map(|dim| whole[dim]);
            let found = copy(View { data: &data, dims: &dims, strides: &turned });
            let at = |index: usize| {
                let place = [index / (dims[1] * dims[2]), index / dims[2] % dims[1], index % dims[2]];
                (0..3).map(|dim| place[dim] * turned[dim]).sum::<usize>()
            };
            assert!(found.iter().enumerate().all(|(index, value)| *value == at(index) as f32), "{order:?}");
        }
        assert_eq!(copy(View { data: &data, dims: &[2, 3], strides: &[0, 1] }), [0., 1., 2., 0., 1., 2.]);
        assert_eq!(copy(View { data: &data[7..], dims: &[], strides: &[] }), [7.]);
    }

    #[test]
    fn dimensions_that_follow_each_other_become_one_run() {
        let walk = Walk::new(&[4, 1, 5, 6], [&[30, 77, 6, 1], &[0, 0, 6, 1]]);
        assert_eq!((walk.length, walk.step), (30, [1, 1]));
        assert_eq!(Walk::new(&[4, 5, 6], [&[30, 6, 1]]).length, 120);
        // A walk may start and end within a run.
        let mut seen = Vec::new();
        walk.visit(28, 62, |begin, count| seen.push((begin, count)));
        assert_eq!(seen, [([28, 28], 2), ([30, 0], 30), ([60, 0], 2)]);
    }

    #[test]
    fn parts_stand_behind_each_other_in_one_dimension() {
        let data: Vec<f32> = (1..=12).map(|value| value as f32).collect();
        let x = View { data: &data, dims: &[2, 2, 3], strides: &[6, 3, 1] };
        let zero = |dims| View { data: &[0.0], dims, strides: &[0, 0, 0] };
        assert_eq!(concat(&[x, zero(&[2, 1, 3])], 1)[..9], [1., 2., 3., 4., 5., 6., 0., 0., 0.]);
        assert_eq!(concat(&[x, zero(&[2, 2, 2])], 2)[..10], [1., 2., 3., 0., 0., 4., 5., 6., 0., 0.]);
        let turned = View { data: &data, dims: &[2, 2, 3], strides: &[1, 6, 2] };
        assert_eq!(concat(&[zero(&[0, 2, 3]), x, turned], 0)[10..18], [11., 12., 1., 3., 5., 7., 9., 11.]);
    }

    #[test]
    fn parts_that_several_threads_copy_are_whole() {
        let big: Vec<f32> = (0..64 * 64 * 48).map(|value| value as f32).collect();
        let dims = [1, 64, 64, 48];
        let x = View { data: &big, dims: &dims, strides: &strides(&dims) };
        let zeros = View { data: &[0.0], dims: &[1, 64, 6, 48], strides: &[0; 4] };
        let padded = concat(&[x, zeros], 2);
        assert_eq!(padded.len(), 64 * 70 * 48);
        for (row, line) in padded.chunks_exact(70 * 48).enumerate() {
            assert_eq!(line[..64 * 48], big[row * 64 * 48..][..64 * 48]);
            assert!(line[64 * 48..].iter().all(|value| *value == 0.0));
        }
    }
}
