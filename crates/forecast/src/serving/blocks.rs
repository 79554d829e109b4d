//! Blocks of the KV cache: which sequence holds how many, and which prefixes of prompts are still there.

use std::collections::{BTreeMap, HashMap};

/// Blocks of one server.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    total: u64,
    block_size: u64,
    /// Held by a sequence; shared ones count once.
    used: u64,
    /// Held by nobody, but with the keys and values of a prefix.
    idle: u64,
    prefixes: HashMap<u64, Prefix>,
    /// Idle prefixes, the one unused longest first.
    unused: BTreeMap<u64, u64>,
    clock: u64,
}

/// A piece of a prompt whose keys and values are in the cache.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    blocks: u64,
    holders: u64,
    since: u64,
    /// Tokens in front of it, where it is what a dropped sequence had by itself: its last blocks may go alone.
    behind: Option<u64>,
}

/// What one sequence holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    own: u64,
    shared: Vec<u64>,
    /// Tokens in shared blocks.
    shared_tokens: u64,
}

impl Blocks {
    pub(crate) fn new(total: u64, block_size: u64) -> Self {
        let (prefixes, unused) = (HashMap::new(), BTreeMap::new());
        Self { total, block_size: block_size.max(1), used: 0, idle: 0, prefixes, unused, clock: 0 }
    }

    /// Share of the blocks that sequences hold.
    pub(crate) fn usage(&self) -> f64 {
        self.used as f64 / self.total.max(1) as f64
    }

    /// Blocks that a sequence may still get.
    pub(crate) fn free(&self) -> u64 {
        self.total - self.used
    }

    /// Blocks of so many tokens.
    pub(crate) fn of(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.block_size)
    }

    /// Tokens that the cache has of a prompt with these pieces of `piece` tokens each.
    pub(crate) fn cached(&self, pieces: &[u64], piece: u64) -> u64 {
        pieces.iter().take_while(|hash| self.prefixes.contains_key(hash)).count() as u64 * piece
    }

    /// Takes the first `tokens` of a prompt from the cache; `cached` said they are there.
    pub(crate) fn share(&mut self, held: &mut Held, pieces: &[u64], piece: u64, tokens: u64) {
        for hash in &pieces[..(tokens / piece.max(1)) as usize] {
            let Some(prefix) = self.prefixes.get_mut(hash) else { return };
            if prefix.holders == 0 {
                self.unused.remove(&prefix.since);
                self.idle -= prefix.blocks;
                self.used += prefix.blocks;
            }
            prefix.holders += 1;
            held.shared.push(*hash);
            held.shared_tokens += piece;
        }
    }

    /// Whether a sequence can hold `tokens`.
    pub(crate) fn fits(&self, held: &Held, tokens: u64) -> bool {
        self.missing(held, tokens) <= self.free()
    }

    /// Gives a sequence the blocks of `tokens` where there are enough.
    pub(crate) fn grow(&mut self, held: &mut Held, tokens: u64) -> bool {
        let missing = self.missing(held, tokens);
        if missing > self.free() {
            return false;
        }
        held.own += missing;
        self.used += missing;
        while let excess @ 1.. = (self.used + self.idle).saturating_sub(self.total) {
            let Some((since, hash)) = self.unused.pop_first() else { break };
            match self.prefixes.get_mut(&hash) {
                Some(Prefix { blocks, behind: Some(_), .. }) if *blocks > excess => {
                    *blocks -= excess;
                    self.idle -= excess;
                    self.unused.insert(since, hash);
                }
                _ => self.idle -= self.prefixes.remove(&hash).map_or(0, |prefix| prefix.blocks),
            }
        }
        true
    }

    /// Takes everything back from a sequence that may come again for what is still there of its first `computed` tokens.
    pub(crate) fn drop_sequence(&mut self, request: usize, held: &mut Held, computed: u64) {
        let behind = held.shared_tokens;
        let blocks = (computed.saturating_sub(behind) / self.block_size).min(held.own);
        self.release(held);
        if blocks > 0 {
            self.clock += 1;
            self.idle += blocks;
            let kept = Prefix { blocks, holders: 0, since: self.clock, behind: Some(behind) };
            self.prefixes.insert(name(request), kept);
            self.unused.insert(self.clock, name(request));
        }
    }

    /// Gives a sequence that was dropped what is still there of it, up to `most` tokens; how many tokens it then has in the cache.
    pub(crate) fn take_back(&mut self, request: usize, held: &mut Held, most: u64) -> u64 {
        let Some(Prefix { blocks, since, behind, .. }) = self.prefixes.remove(&name(request)) else {
            return held.shared_tokens;
        };
        self.unused.remove(&since);
        self.idle -= blocks;
        if behind == Some(held.shared_tokens) {
            held.own = blocks.min(most.saturating_sub(held.shared_tokens) / self.block_size);
            self.used += held.own;
        }
        held.shared_tokens + held.own * self.block_size
    }

    /// Keeps the pieces of a prompt whose keys and values are all computed for prompts to come.
    pub(crate) fn keep(&mut self, held: &mut Held, pieces: &[u64], piece: u64, computed: u64) {
        let blocks = self.of(piece);
        while let Some(hash) = pieces.get(held.shared.len()) {
            let is_whole = held.shared_tokens + piece <= computed && piece.is_multiple_of(self.block_size);
            if !is_whole || self.prefixes.contains_key(hash) || held.own < blocks {
                return;
            }
            self.prefixes.insert(*hash, Prefix { blocks, holders: 1, since: 0, behind: None });
            held.own -= blocks;
            held.shared.push(*hash);
            held.shared_tokens += piece;
        }
    }

    /// Takes everything back from a sequence.
    pub(crate) fn release(&mut self, held: &mut Held) {
        let Held { own, shared, .. } = std::mem::take(held);
        self.used -= own;
        for hash in shared.iter().rev() {
            let Some(prefix) = self.prefixes.get_mut(hash) else { continue };
            prefix.holders -= 1;
            if prefix.holders == 0 {
                self.clock += 1;
                prefix.since = self.clock;
                self.unused.insert(self.clock, *hash);
                self.used -= prefix.blocks;
                self.idle += prefix.blocks;
            }
        }
    }

    fn missing(&self, held: &Held, tokens: u64) -> u64 {
        self.of(tokens.saturating_sub(held.shared_tokens)).saturating_sub(held.own)
    }
}

/// What a dropped sequence is kept under, beside the names of pieces of prompts.
const fn name(request: usize) -> u64 {
    u64::MAX - request as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_stay_until_their_blocks_are_needed() {
        let mut blocks = Blocks::new(10, 16);
        let (mut one, mut other) = (Held::default(), Held::default());
        assert!(blocks.grow(&mut one, 70));
        assert_eq!((blocks.free(), blocks.of(70)), (5, 5));
        blocks.keep(&mut one, &[7, 8, 9], 32, 70);
        assert_eq!(blocks.cached(&[7, 8, 9], 32), 64, "the third piece is not whole");
        // The second prompt shares the first two pieces and needs one more block.
        blocks.share(&mut other, &[7, 8, 1], 32, 64);
        assert!(blocks.grow(&mut other, 80));
        assert_eq!(blocks.free(), 4);
        blocks.release(&mut one);
        blocks.release(&mut other);
        assert_eq!((blocks.free(), blocks.idle, blocks.usage()), (10, 4, 0.0));
        // Eight blocks are left without them: the piece released first goes.
        let mut third = Held::default();
        assert!(blocks.grow(&mut third, 8 * 16));
        assert_eq!((blocks.cached(&[7], 32), blocks.idle), (32, 2));
        assert!(!blocks.fits(&third, 11 * 16) && !blocks.grow(&mut third, 11 * 16));
    }

    #[test]
    fn a_dropped_sequence_loses_its_last_blocks_first() {
        let mut blocks = Blocks::new(10, 16);
        let (mut dropped, mut other) = (Held::default(), Held::default());
        assert!(blocks.grow(&mut dropped, 70));
        // Of 70 tokens, 64 fill blocks; the fifth block is free at once.
        blocks.drop_sequence(3, &mut dropped, 70);
        assert_eq!((blocks.free(), blocks.idle, &dropped), (10, 4, &Held::default()));
        assert!(blocks.grow(&mut other, 8 * 16));
        assert_eq!((blocks.free(), blocks.idle), (2, 2));
        assert_eq!(blocks.take_back(3, &mut dropped, 69), 32);
        assert_eq!((blocks.free(), blocks.idle, dropped.own), (0, 0, 2));
        assert_eq!(blocks.take_back(3, &mut Held::default(), 69), 0, "once");
        // The token whose logits are wanted is always processed: of two whole blocks, one counts.
        blocks.drop_sequence(3, &mut dropped, 32);
        assert_eq!(blocks.take_back(3, &mut dropped, 31), 16);
    }
}
