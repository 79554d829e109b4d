//! Nodes of the graph: calls of the host and device work, with what each waits for.

use std::num::NonZeroU32;

use types::{IdleCause, Nanos};

use crate::scope::Scope;
use crate::time::Span;

/// Place of a node in its list. Four bytes, also inside an `Option`: a trace has millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePlace(NonZeroU32);

impl NodePlace {
    /// A place below the largest number, which no row of a trace has.
    pub(super) fn new(place: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(place))
    }

    /// The place, counted from zero.
    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A node that another waits for, and how long after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The node.
    pub(crate) node: NodePlace,
    /// Time after it.
    pub(crate) lag: Nanos,
}

/// What a blocking call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The work, and how long after it the call returns.
    pub(crate) work: Behind,
    /// Whether it waits for the end of the work, or for its start (a launch into a full queue).
    pub(crate) until_end: bool,
}

/// A call of a thread, and the time of the host before it.
#[derive(Clone, Debug)]
pub(crate) struct CallNode {
    /// Its row in `Timeline::calls`.
    pub(crate) row: u32,
    /// As recorded.
    pub(crate) span: Span,
    /// The call before it on its thread.
    pub(crate) before: Option<NodePlace>,
    /// A call of another thread that it waited for.
    pub(crate) handed_over: Option<NodePlace>,
    /// Time of the host between the later of those and this call; for the first call, from the start of the recording.
    pub(crate) gap: Nanos,
    /// What the host did in the gap.
    pub(crate) doing: IdleCause,
    /// How much of the gap that is.
    pub(crate) doing_ns: Nanos,
    /// What the call is: `None` is a launch.
    pub(crate) kind: Option<IdleCause>,
    /// Whether it loads what it launches.
    pub(crate) first_use: bool,
    /// Time in the call where it waits for nothing.
    pub(crate) own: Nanos,
    /// What it waits for.
    pub(crate) wait: Option<Wait>,
    /// Kernels, copies and memsets that it launched.
    pub(crate) launched: u32,
    /// What it counts for.
    pub(crate) scope: Option<Scope>,
}

/// A kernel, copy or memset.
#[derive(Clone, Debug)]
pub(crate) struct WorkNode {
    /// As recorded.
    pub(crate) span: Span,
    /// Its queue.
    pub(crate) queue: u32,
    /// The call that launched it, in the calls of the graph; the lag is from the start of the call.
    pub(crate) launch: Option<Behind>,
    /// The work before it in its queue.
    pub(crate) stream: Option<Behind>,
    /// Work of another queue that it waited for.
    pub(crate) event: Option<Behind>,
}

/// One place in the order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// In the calls of the graph.
    Call(u32),
    /// In the work of the graph.
    Work(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_small() {
        // A trace of ten gigabytes has tens of millions of each.
        assert_eq!((size_of::<CallNode>(), size_of::<WorkNode>(), size_of::<Node>()), (88, 72, 8));
        assert_eq!((NodePlace::new(0).index(), NodePlace::new(7).index()), (0, 7));
    }
}
