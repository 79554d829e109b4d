//! Memory that a forward pass would hold: tensors register themselves and leave when the forward code drops them.

use std::cell::Cell;
use std::rc::Rc;

use types::Bytes;

/// Counts live bytes and remembers the most there were.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    live: Cell<u64>,
    peak: Cell<u64>,
}

/// The storage of one tensor; views share it.
#[derive(Debug)]
pub(crate) struct Allocation {
    bytes: u64,
    arena: Rc<Arena>,
}

impl Arena {
    /// Storage of that size, live until dropped.
    pub(crate) fn allocate(self: &Rc<Self>, bytes: Bytes) -> Rc<Allocation> {
        self.live.set(self.live.get().saturating_add(bytes.get()));
        self.peak.set(self.peak.get().max(self.live.get()));
        Rc::new(Allocation { bytes: bytes.get(), arena: Rc::clone(self) })
    }

    /// Storage that is needed only for a moment.
    pub(crate) fn touch(&self, bytes: u64) {
        self.peak.set(self.peak.get().max(self.live.get().saturating_add(bytes)));
    }

    /// Bytes live now.
    pub(crate) fn live(&self) -> Bytes {
        Bytes::new(self.live.get())
    }

    /// Most bytes live at once since [`Arena::mark`].
    pub(crate) fn peak(&self) -> Bytes {
        Bytes::new(self.peak.get())
    }

    /// Begins a new peak at what is live now and gives back the old one.
    pub(crate) fn mark(&self) -> Bytes {
        Bytes::new(self.peak.replace(self.live.get()))
    }

    /// Takes an older peak into account again.
    pub(crate) fn restore(&self, peak: Bytes) {
        self.peak.set(self.peak.get().max(peak.get()));
    }
}

impl Allocation {
    /// Its size.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // Only a sum that once saturated can fall short here; its peak has already said so.
        self.arena.live.set(self.arena.live.get().saturating_sub(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_remembers_what_the_forward_code_dropped() {
        let arena = Rc::new(Arena::default());
        let first = arena.allocate(Bytes::new(10));
        let second = arena.allocate(Bytes::new(20));
        drop(first);
        let third = arena.allocate(Bytes::new(5));
        assert_eq!((arena.live.get(), arena.peak()), (25, Bytes::new(30)));
        arena.touch(100);
        drop((second, third));
        assert_eq!((arena.live.get(), arena.peak()), (0, Bytes::new(125)));
    }

    #[test]
    fn an_inner_peak_does_not_hide_the_outer_one() {
        let arena = Rc::new(Arena::default());
        drop(arena.allocate(Bytes::new(50)));
        let outer = arena.mark();
        drop(arena.allocate(Bytes::new(7)));
        assert_eq!(arena.peak(), Bytes::new(7));
        arena.restore(outer);
        assert_eq!(arena.peak(), Bytes::new(50));
    }
}
