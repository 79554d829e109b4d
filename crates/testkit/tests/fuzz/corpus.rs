//! Inputs that took ways through a reader which no other took: kept in a folder, and changed further.
//!
//! Two inputs went the same way where the reader took both or neither and asked for memory about as often and for about as much. That
//! is coarser than what cargo-fuzz sees in instrumented code, and needs no other compiler. Both may use the same folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::cost::Cost;
use super::mutation;
use super::random::Random;

/// Largest input that is kept: changes of large ones are slow, and find less.
const LARGEST: usize = 1 << 16;

/// Outcome, calls for memory by their size and a quarter of that, and peak by its size.
type Way = (bool, u32, u32);

/// The inputs of one reader; empty, and it stays so, where no folder is named.
pub(crate) struct Corpus {
    folder: Option<PathBuf>,
    /// Of earlier runs, to be checked as they are before anything is made of them.
    waiting: Vec<Vec<u8>>,
    inputs: Vec<Vec<u8>>,
    ways: BTreeSet<Way>,
}

impl Corpus {
    /// What earlier runs have found.
    pub(crate) fn open(name: &str) -> Self {
        let root = std::env::var_os("LLM_PERF_FUZZ_CORPUS");
        // Tests run in the folder of their crate.
        let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let folder = root.map(|root| PathBuf::from(repository).join(root).join(name));
        let mut waiting = Vec::new();
        if let Some(folder) = &folder {
            fs::create_dir_all(folder).unwrap();
            let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            paths.retain(|path| path.metadata().is_ok_and(|found| found.len() <= LARGEST as u64));
            paths.sort();
            waiting = paths.iter().filter_map(|path| fs::read(path).ok()).collect();
        }
        Self { folder, waiting, inputs: Vec::new(), ways: BTreeSet::new() }
    }

    pub(crate) fn grows(&self) -> bool {
        self.folder.is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// One of an earlier run as it is, or one of them changed; every other time, as the seeds are not exhausted.
    pub(crate) fn next(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        if random.once_in(2) {
            return None;
        }
        if let Some(input) = self.waiting.pop() {
            return Some(input);
        }
        if self.inputs.is_empty() {
            return None;
        }
        let input = random.one_of(&self.inputs);
        Some(mutation::of_any(random, input))
    }

    /// Leaves an input where it is found should the reader not come back.
    pub(crate) fn begin(&self, input: &[u8]) {
        if let Some(folder) = &self.folder {
            fs::write(folder.with_extension(format!("{}.now", std::process::id())), input).unwrap();
        }
    }

    /// Keeps the input if nothing went its way before.
    pub(crate) fn end(&mut self, input: &[u8], was_read: bool, cost: &Cost) {
        let Some(folder) = &self.folder else { return };
        let size = |number: usize| ((number as f64 + 1.0).log2() * 4.0) as u32;
        let is_new = self.ways.insert((was_read, size(cost.allocations), size(cost.memory) / 4));
        if is_new && input.len() <= LARGEST {
            // FNV-1a: a name for each content.
            let next = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            let name = input.iter().fold(0xcbf2_9ce4_8422_2325, next);
            fs::write(folder.join(format!("{name:016x}")), input).unwrap();
            self.inputs.push(input.to_vec());
        }
    }
}

impl Drop for Corpus {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_file(folder.with_extension(format!("{}.now", std::process::id())));
        }
    }
}
