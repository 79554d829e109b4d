//! Numbers in single precision, as the kernels want them.

use std::borrow::Cow;

use super::strides_in_order;
use crate::kernel::runs::{View, copy};

/// Single-precision numbers and where they lie.
pub(crate) struct Floats<'a> {
    pub(super) data: Cow<'a, [f32]>,
    pub(super) dims: &'a [usize],
    pub(super) strides: Cow<'a, [usize]>,
}

impl Floats<'_> {
    /// As the kernels take them.
    pub(crate) fn view(&self) -> View<'_> {
        View { data: &self.data, dims: self.dims, strides: &self.strides }
    }

    /// The same with the last dimension's elements one behind the other.
    pub(crate) fn rows(self) -> Self {
        if self.strides.last().is_none_or(|stride| *stride == 1) {
            return self;
        }
        let data = Cow::Owned(copy(self.view()));
        Self { data, dims: self.dims, strides: Cow::Owned(strides_in_order(self.dims)) }
    }
}
