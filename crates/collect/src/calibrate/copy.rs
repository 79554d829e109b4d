//! A copy between two buffers that no cache holds.

use std::mem::MaybeUninit;
use std::path::Path;

use rayon::prelude::*;
use types::{MemoryInfo, Nanos, UserError};

use super::{CalibrationSettings, rounds, time};
use crate::error::not_calibrated;

/// Bytes that are copied even where the caches are small.
const LEAST_BYTES: usize = 256 << 20;

/// How much to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Bytes of each of the two buffers.
    pub(super) bytes: usize,
    /// Whether the memory was too short for buffers that the caches cannot hold.
    short: bool,
}

impl Size {
    /// Twice the caches, at least 256 MiB, and no more than an eighth of the memory this process can have.
    pub(super) fn choose(wanted: Option<usize>, memory: &MemoryInfo) -> Self {
        if let Some(bytes) = wanted {
            return Self { bytes, short: false };
        }
        let caches = last_level_cache(Path::new("/sys/devices/system/cpu"));
        let room = [memory.available_bytes, memory.limit_bytes].into_iter().flatten().min();
        Self::for_machine(caches, room.and_then(|room| usize::try_from(room.get()).ok()))
    }

    fn for_machine(caches: Option<usize>, room: Option<usize>) -> Self {
        let wanted = caches.unwrap_or_default().saturating_mul(2).max(LEAST_BYTES);
        let most = room.map_or(wanted, |room| (room / 8).max(1 << 20));
        Self { bytes: wanted.min(most), short: most < wanted }
    }

    /// What was copied, for the record.
    pub(super) fn method(&self) -> String {
        let doubt = if self.short { "; low on memory, so the copy was smaller and caches may have helped" } else { "" };
        format!(
            "copy of {} MiB, all threads; counts bytes read and written, without write-allocate traffic{doubt}",
            self.bytes >> 20
        )
    }
}

/// All last-level caches of the machine together, as the kernel lists them.
fn last_level_cache(processors: &Path) -> Option<usize> {
    let text =
        |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).ok().map(|text| text.trim().to_owned());
    let mut caches: Vec<(u32, String, usize)> = Vec::new();
    for processor in std::fs::read_dir(processors).ok()?.flatten() {
        for cache in std::fs::read_dir(processor.path().join("cache")).into_iter().flatten().flatten() {
            let path = cache.path();
            let level = text(&path, "level").and_then(|level| level.parse().ok());
            let size = text(&path, "size").and_then(|size| read_size(&size));
            if let (Some(level), Some(shared), Some(size)) = (level, text(&path, "shared_cpu_list"), size) {
                caches.push((level, shared, size));
            }
        }
    }
    // Every processor lists the cache it shares with others.
    caches.sort();
    caches.dedup();
    let last = caches.iter().map(|(level, ..)| *level).max()?;
    Some(caches.iter().filter(|(level, ..)| *level == last).map(|(.., size)| size).sum())
}

/// `107520K`.
fn read_size(text: &str) -> Option<usize> {
    match text.strip_suffix('K') {
        Some(kibibytes) => kibibytes.parse::<usize>().ok()?.checked_mul(1 << 10),
        None => text.strip_suffix('M')?.parse::<usize>().ok()?.checked_mul(1 << 20),
    }
}

/// Copies, on the threads of the pool this is called in.
pub(super) fn measure(size: &Size, settings: &CalibrationSettings) -> Result<Vec<Nanos>, UserError> {
    let wrong = |reason: &str| not_calibrated("copy", reason);
    let words = (size.bytes / 8).max(1);
    let piece = words.div_ceil(settings.threads.max(1));
    let no_memory = || wrong("could not allocate memory");
    let source = filled(words, piece, mark).ok_or_else(no_memory)?;
    let mut target = filled(words, piece, |_| 0).ok_or_else(no_memory)?;
    let samples = rounds(settings, || {
        time(|| {
            target.par_chunks_mut(piece).zip(source.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
        })
    })?;
    let right = [0, words / 2, words - 1].iter().all(|place| target[*place] == mark(place / piece));
    if right { Ok(samples) } else { Err(wrong("the copy differs from its source")) }
}

/// What a part is filled with, so that it can be recognised; never what the target holds before.
fn mark(part: usize) -> u64 {
    part as u64 + 1
}

/// A buffer filled part by part, or nothing where the memory for it cannot be had.
///
/// Every word is written before it is read, because pages nobody wrote all show one page of zeros, which a cache holds;
/// and by the threads that copy it later, because where the first one to write sits decides where the page is.
fn filled(words: usize, piece: usize, value: impl Fn(usize) -> u64 + Sync) -> Option<Vec<u64>> {
    let mut buffer: Vec<u64> = Vec::new();
    buffer.try_reserve_exact(words).ok()?;
    let parts = buffer.spare_capacity_mut()[..words].par_chunks_mut(piece).enumerate();
    parts.for_each(|(number, part)| part.fill(MaybeUninit::new(value(number))));
    // SAFETY: the parts cover the first `words` places of the capacity, and each was filled.
    unsafe { buffer.set_len(words) };
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    #[test]
    fn the_copy_is_twice_the_caches_and_at_least_256_mebibytes() {
        let gibibyte = 1024 * MEBIBYTE;
        assert_eq!(Size::for_machine(Some(105 * MEBIBYTE), Some(64 * gibibyte)).bytes, 256 * MEBIBYTE);
        assert_eq!(Size::for_machine(Some(384 * MEBIBYTE), Some(64 * gibibyte)).bytes, 768 * MEBIBYTE);
        assert_eq!(Size::for_machine(None, None), Size { bytes: 256 * MEBIBYTE, short: false });
    }

    #[test]
    fn a_machine_short_of_memory_copies_less_and_says_so() {
        let size = Size::for_machine(Some(32 * MEBIBYTE), Some(512 * MEBIBYTE));
        assert_eq!(size, Size { bytes: 64 * MEBIBYTE, short: true });
        assert!(size.method().ends_with("low on memory, so the copy was smaller and caches may have helped"));
    }

    #[test]
    fn a_cache_that_threads_share_is_counted_once() {
        let root = tempfile::tempdir().unwrap();
        for (processor, index, level, size, shared) in [
            ("cpu0", "index0", "1", "48K", "0"),
            ("cpu1", "index0", "1", "48K", "1"),
            ("cpu0", "index3", "3", "32M", "0-1"),
            ("cpu1", "index3", "3", "32M", "0-1"),
            ("cpu2", "index3", "3", "32768K", "2-3"),
        ] {
            let folder = root.path().join(processor).join("cache").join(index);
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in [("level", level), ("size", size), ("shared_cpu_list", shared)] {
                std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(last_level_cache(root.path()), Some(64 * MEBIBYTE));
        assert_eq!(last_level_cache(&root.path().join("absent")), None);
    }

    #[test]
    fn sizes_are_read_in_both_units() {
        assert_eq!(read_size("107520K"), Some(105 * MEBIBYTE));
        assert_eq!(read_size("32M"), Some(32 * MEBIBYTE));
        assert_eq!(read_size("32"), None);
        assert_eq!(read_size(""), None);
    }
}
