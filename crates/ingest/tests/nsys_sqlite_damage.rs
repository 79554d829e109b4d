//! SQLite exports of nsys that were cut off or damaged: read as far as they go, and never in silence.

use std::io::Read as _;
use std::sync::LazyLock;

use llm_perf_ingest::nsys::sqlite::read;
use proptest::prelude::*;
use types::Severity;
use types::timeline::Timeline;

const SMALL: &[u8] = include_bytes!("fixtures/nsys/small.sqlite");
const LARGE: &[u8] = include_bytes!("fixtures/nsys/dsocr-h200.sqlite.gz");

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(LARGE).read_to_end(&mut bytes).unwrap();
    bytes
});

/// Whether the reader says that numbers of this timeline cannot be trusted.
fn warned(timeline: &Timeline) -> bool {
    timeline.quality.iter().any(|counter| counter.severity == Severity::Error)
}

/// Rows and time on the device.
fn totals(timeline: &Timeline) -> (usize, usize, usize, i64) {
    let time = timeline.work.iter().map(|work| work.duration.get()).sum();
    (timeline.work.len(), timeline.calls.len(), timeline.ranges.len(), time)
}

#[test]
fn a_small_file_cut_at_any_byte_is_refused_or_counted() {
    let whole = totals(&read("small.sqlite", SMALL).unwrap());
    assert_eq!(whole.0, 56);
    // Every byte of the header, around every page, and on a grid that meets every place of a page.
    let lengths = (0..SMALL.len()).filter(|at| *at < 600 || at % 11 == 0 || (at + 3) % 512 < 6);
    for length in lengths {
        if let Ok(timeline) = read("small.sqlite", &SMALL[..length]) {
            assert!(warned(&timeline), "cut at {length}");
        }
    }
}

#[test]
fn a_page_of_zeros_is_counted_wherever_a_row_was() {
    let whole = totals(&read("small.sqlite", SMALL).unwrap());
    for page in 1..SMALL.len() / 512 {
        let mut bytes = SMALL.to_vec();
        bytes[page * 512..][..512].fill(0);
        if let Ok(timeline) = read("small.sqlite", &bytes)
            && totals(&timeline) != whole
        {
            assert!(warned(&timeline), "page {}", page + 1);
        }
    }
}

#[test]
fn two_pages_in_each_others_place_end_in_no_panic() {
    let pages = SMALL.len() / 512;
    for (first, second) in (1..pages).flat_map(|first| (first + 1..pages).map(move |second| (first, second))) {
        let mut bytes = SMALL.to_vec();
        let (left, right) = bytes.split_at_mut(second * 512);
        left[first * 512..][..512].swap_with_slice(&mut right[..512]);
        drop(read("small.sqlite", &bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_capture_cut_at_any_byte_is_refused_or_counted(length in 0..WHOLE.len()) {
        if let Ok(timeline) = read("cut.sqlite", &WHOLE[..length]) {
            prop_assert!(warned(&timeline));
        }
    }

    #[test]
    fn flipped_bits_end_in_no_panic(flips in prop::collection::vec((0..WHOLE.len(), 0..8_u8), 1..200)) {
        let mut bytes = WHOLE.clone();
        for (at, bit) in flips {
            bytes[at] ^= 1 << bit;
        }
        drop(read("flipped.sqlite", &bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn flipped_bits_of_a_small_file_end_in_no_panic(flips in prop::collection::vec((0..SMALL.len(), 0..8_u8), 1..20)) {
        let mut bytes = SMALL.to_vec();
        for (at, bit) in flips {
            bytes[at] ^= 1 << bit;
        }
        drop(read("flipped.sqlite", &bytes));
    }

    #[test]
    fn anything_behind_the_header_ends_in_no_panic(noise in prop::collection::vec(any::<u8>(), 0..4096)) {
        let bytes = [&SMALL[..100], &noise].concat();
        drop(read("noise.sqlite", &bytes));
    }
}
