//! Memory for large outputs.

use std::mem::MaybeUninit;

/// Bytes from which a vector is worth large pages: less is reused by the allocator without going back to the system.
const LARGE: usize = 8 << 20;
/// Size of a large page.
const PAGE: usize = 2 << 20;

/// An empty vector with room for `length` elements, on large pages where it is large and the system has them: fresh memory
/// is mapped and cleared page by page, and with pages of 4 KiB that takes several times as long as filling it.
pub(crate) fn room<T>(length: usize) -> Vec<T> {
    let mut values: Vec<T> = Vec::with_capacity(length);
    let room = values.spare_capacity_mut();
    if size_of_val(room) >= LARGE {
        ask_for_large_pages(room);
    }
    values
}

#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(room: &mut [MaybeUninit<T>]) {
    let start = room.as_mut_ptr() as usize;
    let (first, last) = (start.next_multiple_of(PAGE), (start + size_of_val(room)) / PAGE * PAGE);
    if first < last {
        let at = std::ptr::without_provenance_mut::<libc::c_void>(first);
        // SAFETY: the range lies within memory this vector owns, starts at a page, and the advice changes neither its
        // contents nor who may use it. The system may refuse, which costs time and nothing else.
        unsafe { libc::madvise(at, last - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_: &mut [MaybeUninit<T>]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_vectors_have_the_room_asked_for() {
        for length in [0, 1, 1000, LARGE / 4, LARGE + 12_345] {
            let mut values = room(length);
            assert!(values.is_empty() && values.capacity() >= length);
            values.resize(length, 1.0);
            assert!(values.iter().all(|value| *value == 1.0));
        }
    }
}
