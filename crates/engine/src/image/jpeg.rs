//! Whether a JPEG file is whole.
//!
//! The decoder fills what is missing from a cut-off file with grey; a page that is half grey would be measured as if it
//! were real. So the file is walked, segment by segment, to its end mark.

const START_OF_SCAN: u8 = 0xda;
const END_OF_IMAGE: u8 = 0xd9;

/// Whether the end mark is where it belongs: after the last scan, outside of every segment.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let mut at = 2; // after the start mark
    let mut in_scan = false;
    while let Some(pair) = bytes.get(at..at + 2) {
        match (pair[0], pair[1]) {
            // Entropy-coded data: a stuffed zero or a restart mark belongs to it, any other mark ends it.
            (0xff, 0x00 | 0xd0..=0xd7) if in_scan => at += 2,
            (0xff, 0xff) => at += 1,
            (0xff, END_OF_IMAGE) => return true,
            // Marks without a length.
            (0xff, 0x01 | 0xd0..=0xd8) => at += 2,
            (0xff, kind) => {
                let Some(length) = bytes.get(at + 2..at + 4) else { return false };
                at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
                in_scan = kind == START_OF_SCAN;
            }
            _ => at += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Vec<u8> {
        let levels: Vec<u8> = (0..48 * 48 * 3).map(|index| (index * 7919 % 251) as u8).collect();
        let mut bytes = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, 70);
        encoder.encode(&levels, 48, 48, jpeg_encoder::ColorType::Rgb).unwrap();
        bytes
    }

    #[test]
    fn a_file_cut_anywhere_is_not_whole() {
        let bytes = whole();
        assert!(is_whole(&bytes));
        for length in 0..bytes.len() {
            assert!(!is_whole(&bytes[..length]), "cut after {length} of {}", bytes.len());
        }
    }

    #[test]
    fn what_follows_the_end_does_not_matter() {
        let mut bytes = whole();
        bytes.extend(b"appended by a camera");
        assert!(is_whole(&bytes));
    }

    #[test]
    fn an_end_mark_inside_a_segment_is_not_the_end() {
        // A thumbnail inside the metadata ends, the image itself never starts.
        let bytes = [0xff, 0xd8, 0xff, 0xe1, 0x00, 0x04, 0xff, 0xd9];
        assert!(!is_whole(&bytes));
    }
}
