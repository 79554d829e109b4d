//! Regions by where they are nested, and which of them a kernel belongs to.
//!
//! The rule, because ranges need not be well behaved:
//! - Push/pop ranges of one thread and one domain nest by the order they were pushed in. A kernel belongs to all of them,
//!   and exclusively to the innermost.
//! - Domains are trees of their own: a kernel inside `A` and inside `LLM@prefill` belongs to both, and numbers of
//!   different domains are never added.
//! - Start/end ranges may overlap, so none is inside another: a kernel belongs to every one that was open, exclusively.
//! - Where a profiler shows ranges of several threads for one kernel, it belongs to the regions of all of them, and counts
//!   once in each.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use types::RegionStyle;
use types::counter::{OpenRange, ProfiledWork};

use super::key::RegionKey;

/// Place of a region in a tree.
pub(super) type Node = usize;

/// Every region, each after the one around it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) keys: Vec<RegionKey>,
    parents: Vec<Option<Node>>,
    places: HashMap<RegionKey, Node>,
}

/// The regions one kernel belongs to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Membership {
    /// All of them, with the thread that opened each.
    pub(super) inclusive: Vec<(Node, Option<u64>)>,
    /// Those with nothing of the kernel's nested inside.
    pub(super) exclusive: Vec<Node>,
    /// The innermost of each thread and domain, and each start/end range.
    pub(super) leaves: Vec<(Node, Option<u64>)>,
}

/// Memberships by the ranges that were open: thousands of kernels share a few.
#[derive(Debug, Default)]
pub(super) struct Memberships(HashMap<Open, Rc<Membership>>);

/// Ranges that were open: pushed, and started.
type Open = (Arc<[OpenRange]>, Arc<[OpenRange]>);

/// Pushed ranges of one thread and one domain, outermost first.
struct Stack<'a> {
    thread: Option<u64>,
    domain: Option<&'a Arc<str>>,
    names: Vec<Arc<str>>,
}

impl Tree {
    /// The place of a region, which is added with all around it where it is new.
    pub(super) fn add(&mut self, key: RegionKey) -> Node {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let parent = key.parent().map(|parent| self.add(parent));
        self.keys.push(key.clone());
        self.parents.push(parent);
        self.places.insert(key, self.keys.len() - 1);
        self.keys.len() - 1
    }

    /// The region around a region.
    pub(super) fn parent(&self, node: Node) -> Option<Node> {
        self.parents[node]
    }

    /// Regions directly inside.
    pub(super) fn children(&self, node: Node) -> impl Iterator<Item = Node> {
        (0..self.keys.len()).filter(move |child| self.parents[*child] == Some(node))
    }

    /// Every region, each followed by those inside it, in the order they were added.
    pub(super) fn ordered(&self) -> Vec<Node> {
        let mut order = Vec::with_capacity(self.keys.len());
        let mut inside: Vec<Vec<Node>> = vec![Vec::new(); self.keys.len()];
        let mut open: Vec<Node> = Vec::new();
        for node in (0..self.keys.len()).rev() {
            match self.parents[node] {
                Some(parent) => inside[parent].push(node),
                None => open.push(node),
            }
        }
        while let Some(node) = open.pop() {
            order.push(node);
            open.append(&mut inside[node]);
        }
        order
    }
}

impl Memberships {
    /// The regions of a kernel; new ones are added to the tree.
    pub(super) fn of(&mut self, work: &ProfiledWork, tree: &mut Tree) -> Rc<Membership> {
        let key = (Arc::clone(&work.pushed), Arc::clone(&work.started));
        Rc::clone(self.0.entry(key).or_insert_with(|| Rc::new(membership(work, tree))))
    }
}

fn membership(work: &ProfiledWork, tree: &mut Tree) -> Membership {
    let mut stacks: Vec<Stack<'_>> = Vec::new();
    for range in work.pushed.iter() {
        let (thread, domain, name) = (range.owner, range.domain.as_ref(), Arc::clone(&range.name));
        match stacks.iter_mut().find(|stack| (stack.thread, stack.domain) == (thread, domain)) {
            Some(stack) => stack.names.push(name),
            None => stacks.push(Stack { thread, domain, names: vec![name] }),
        }
    }
    let mut found = Membership::default();
    for Stack { thread, domain, names } in stacks {
        let key = RegionKey { domain: domain.cloned(), style: RegionStyle::PushPop, segments: names };
        found.leaves.push((tree.add(key), thread));
    }
    for range in work.started.iter() {
        let segments = vec![Arc::clone(&range.name)];
        let node = tree.add(RegionKey { domain: range.domain.clone(), style: RegionStyle::StartEnd, segments });
        // Two of one name are one region: the kernel ran inside of it.
        if !found.leaves.contains(&(node, None)) {
            found.leaves.push((node, None));
        }
    }
    for (leaf, thread) in &found.leaves {
        let mut around = Some(*leaf);
        while let Some(node) = around {
            if !found.inclusive.contains(&(node, *thread)) {
                found.inclusive.push((node, *thread));
            }
            around = tree.parent(node);
        }
    }
    for (leaf, _) in &found.leaves {
        let has_inner =
            found.leaves.iter().any(|(other, _)| other != leaf && tree.keys[*other].is_within(&tree.keys[*leaf]));
        if !has_inner && !found.exclusive.contains(leaf) {
            found.exclusive.push(*leaf);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use types::counter::ProfiledKind;

    use super::super::key::key;
    use super::*;

    fn range(owner: u64, domain: Option<&str>, name: &str) -> OpenRange {
        OpenRange { owner: Some(owner), domain: domain.map(Arc::from), name: name.into() }
    }

    fn kernel(pushed: &[OpenRange], started: &[OpenRange]) -> ProfiledWork {
        ProfiledWork {
            id: 0,
            kind: ProfiledKind::Kernel,
            name: "f".into(),
            process: None,
            process_name: None,
            device: None,
            compute_capability: None,
            context: None,
            stream: None,
            grid: None,
            block: None,
            pushed: pushed.into(),
            started: started.into(),
        }
    }

    fn regions(work: &ProfiledWork) -> (Vec<String>, Vec<String>) {
        let mut tree = Tree::default();
        let found = Memberships::default().of(work, &mut tree);
        let path = |node: &Node| tree.keys[*node].path();
        (found.inclusive.iter().map(|(node, _)| path(node)).collect(), found.exclusive.iter().map(path).collect())
    }

    #[test]
    fn a_kernel_belongs_to_all_ranges_around_it_and_to_the_innermost_exclusively() {
        let stack = [range(1, None, "A"), range(1, None, "A1"), range(1, None, "A")];
        let (inclusive, exclusive) = regions(&kernel(&stack, &[]));
        assert_eq!(inclusive, ["A::A1::A", "A::A1", "A"]);
        assert_eq!(exclusive, ["A::A1::A"]);
        assert_eq!(regions(&kernel(&[], &[])), (vec![], vec![]));
    }

    #[test]
    fn domains_are_trees_of_their_own() {
        let stack = [range(1, None, "A"), range(1, Some("LLM"), "prefill"), range(1, None, "A1")];
        let (inclusive, exclusive) = regions(&kernel(&stack, &[]));
        assert_eq!(inclusive, ["A::A1", "A", "LLM@prefill"]);
        assert_eq!(exclusive, ["A::A1", "LLM@prefill"]);
    }

    #[test]
    fn overlapping_start_end_ranges_are_never_inside_one_another() {
        let started = [range(1, None, "X"), range(2, None, "Y"), range(3, None, "X")];
        let (inclusive, exclusive) = regions(&kernel(&[range(1, None, "X")], &started));
        assert_eq!((inclusive.len(), &exclusive), (3, &inclusive));
        assert_eq!(inclusive, ["X", "X", "Y"], "a pushed X, a started X, and Y");
    }

    #[test]
    fn ranges_of_several_threads_count_once_in_each_region() {
        let stack = [range(1, None, "A"), range(2, None, "A"), range(2, None, "B")];
        let mut tree = Tree::default();
        let found = Memberships::default().of(&kernel(&stack, &[]), &mut tree);
        let exclusive: Vec<String> = found.exclusive.iter().map(|node| tree.keys[*node].path()).collect();
        assert_eq!(exclusive, ["A::B"], "A has something inside it");
        let threads: Vec<_> = found.inclusive.iter().map(|(node, thread)| (tree.keys[*node].path(), *thread)).collect();
        let expected = [("A", 1), ("A::B", 2), ("A", 2)].map(|(path, thread)| (path.to_owned(), Some(thread)));
        assert_eq!(threads, expected);
    }

    #[test]
    fn regions_are_listed_before_those_inside_them() {
        let mut tree = Tree::default();
        for path in ["A", "B", "A/A1", "B/B1", "A/A1/A2", "C/D"] {
            tree.add(key(path));
        }
        let paths: Vec<String> = tree.ordered().into_iter().map(|node| tree.keys[node].path()).collect();
        assert_eq!(paths, ["A", "A::A1", "A::A1::A2", "B", "B::B1", "C", "C::D"]);
    }
}
