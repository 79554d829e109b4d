//! A tensor of the meter: a shape, and how it lies in memory and on devices.

use std::cell::Cell;
use std::rc::Rc;

use types::{Op, Role, Spec};

use crate::arena::Allocation;
use crate::layout::Layout;
use crate::storage::Storage;

/// A shape, the storage it would live in, and how it lies on devices and in memory.
#[derive(Clone, Debug)]
pub struct ShapeTensor {
    pub(crate) spec: Spec,
    /// Kept so that the arena sees when the forward code lets go of it.
    pub(crate) storage: Option<Rc<Allocation>>,
    /// Absent for what is whole on every device. Shared, because a sum that is added up is so for all who hold it.
    pub(crate) layout: Option<Rc<Cell<Layout>>>,
    /// Set where it is kept in memory in another form than it is computed with.
    pub(crate) stored: Option<Storage>,
}

impl ShapeTensor {
    pub(crate) fn layout(&self) -> Layout {
        self.layout.as_ref().map_or(Layout::WHOLE, |layout| layout.get())
    }

    /// Puts a layout in place of the one it had, for all who hold it.
    pub(crate) fn settle(&self, layout: Layout) {
        if let Some(shared) = &self.layout {
            shared.set(layout);
        }
    }

    /// The piece of it that one device reads, in the form it is stored in.
    fn piece(&self, layout: Layout) -> Spec {
        let dtype = self.stored.map_or(self.spec.dtype, |stored| stored.dtype);
        Spec { shape: layout.local(self.spec.shape), dtype, ..self.spec }
    }
}

/// What one device works on: the operation, its pieces of the inputs and of the output, which lies as `layout`.
pub(crate) fn pieces(
    op: &Op,
    inputs: &[&ShapeTensor],
    output: Spec,
    layout: Layout,
    single: bool,
) -> (Op, Vec<Spec>, Spec) {
    let local = Spec { shape: layout.local(output.shape), ..output };
    if single {
        return (*op, inputs.iter().map(|tensor| tensor.piece(Layout::WHOLE)).collect(), local);
    }
    let rows = |tensor: &ShapeTensor| tensor.piece(tensor.layout());
    match op {
        // One row for each choice that falls to this device.
        Op::Dispatch { .. } if layout.ways(0) > 1 => {
            let rows = Spec { dtype: inputs[0].spec.dtype, role: inputs[0].spec.role, ..local };
            (Op::Dispatch { per_token: 1 }, vec![rows], local)
        }
        Op::Combine { .. } if inputs[0].layout().ways(0) > 1 => {
            let outputs = rows(inputs[0]);
            let sums = Spec { shape: outputs.shape, ..output };
            (Op::Combine { per_token: 1 }, vec![outputs, rows(inputs[1])], sums)
        }
        Op::Linear => {
            let inner = inputs[1].layout().ways(1);
            let last = inputs[0].spec.shape.rank().saturating_sub(1);
            let pieces = inputs.iter().enumerate().map(|(index, tensor)| match index {
                // A whole input is cut for free where the matrix wants pieces of it.
                0 => tensor.piece(tensor.layout().with(last, inner)),
                _ => rows(tensor),
            });
            (*op, pieces.collect(), local)
        }
        _ => {
            let rank = output.shape.rank();
            let aligned = |tensor: &ShapeTensor| {
                let shape = tensor.spec.shape;
                let mut own = tensor.layout();
                for (dim, size) in shape.dims().iter().enumerate() {
                    let to = (rank + dim).checked_sub(shape.rank());
                    if let Some(to) = to.filter(|to| own.ways(dim) == 1 && output.shape.dims()[*to] == *size) {
                        own = own.with(dim, layout.ways(to));
                    }
                }
                own
            };
            let elementwise = !matches!(op, Op::Attention { .. } | Op::LatentAttention { .. } | Op::Embedding);
            let pieces = inputs.iter().map(|tensor| {
                if elementwise && tensor.spec.role == Role::Activation {
                    tensor.piece(aligned(tensor))
                } else {
                    rows(tensor)
                }
            });
            (*op, pieces.collect(), local)
        }
    }
}
