//! Headers of tar members: `ustar`, and a `pax` record where a path or a size does not fit.
//!
//! The header follows from path and size alone. A reader makes the header it expects and compares, so that nothing in an
//! archive is parsed but the size of its first member.

/// Archives are made of blocks of this size.
pub(super) const BLOCK: usize = 512;

/// Bytes of the name field, and of the field for the folders before it.
const NAME: usize = 100;
const PREFIX: usize = 155;
/// Eleven octal digits.
const MOST_OCTAL: u64 = 0o777_7777_7777;

/// Where the size stands.
const SIZE: std::ops::Range<usize> = 124..136;

/// All blocks in front of the content.
pub(super) fn header(path: &str, bytes: u64) -> Vec<u8> {
    match (split(path), bytes <= MOST_OCTAL) {
        (Some((prefix, name)), true) => block(prefix, name, bytes, b'0').to_vec(),
        (place, fits) => {
            let mut records = String::new();
            if place.is_none() {
                records += &record("path", path);
            }
            if !fits {
                records += &record("size", &bytes.to_string());
            }
            let (prefix, name) = place.unwrap_or(("", "long-name"));
            let mut blocks = block("", "long", records.len() as u64, b'x').to_vec();
            blocks.extend(records.as_bytes());
            blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
            blocks.extend(block(prefix, name, if fits { bytes } else { 0 }, b'0'));
            blocks
        }
    }
}

/// Zeros that fill the last block of a content.
pub(super) fn padding(bytes: u64) -> usize {
    (bytes.wrapping_neg() % BLOCK as u64) as usize
}

/// The size that a header states; absent where it is none.
pub(super) fn stated_size(header: &[u8; BLOCK]) -> Option<u64> {
    let digits = std::str::from_utf8(&header[SIZE]).ok()?.trim_end_matches('\0');
    u64::from_str_radix(digits, 8).ok()
}

/// A path as the two fields hold it.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME {
        return Some(("", path));
    }
    let cuts = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    cuts.rev().find(|(prefix, name)| prefix.len() <= PREFIX && name.len() <= NAME)
}

/// A `pax` record, which starts with its own length.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    loop {
        let text = format!("{length}{rest}");
        if text.len() == length {
            return text;
        }
        length = text.len();
    }
}

fn block(prefix: &str, name: &str, bytes: u64, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(SIZE.start, format!("{bytes:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_as_the_standard_has_it() {
        let header: [u8; BLOCK] = header("a/b.txt", 8).try_into().unwrap();
        assert_eq!(&header[..8], b"a/b.txt\0");
        assert_eq!(&header[SIZE], b"00000000010\0");
        assert_eq!(&header[257..265], b"ustar\x0000");
        // The sum of all bytes, with spaces for its own field, checked with GNU tar 1.34.
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let field: u32 = header[148..156].iter().map(|byte| u32::from(*byte)).sum();
        let stated = u32::from_str_radix(std::str::from_utf8(&header[148..154]).unwrap(), 8).unwrap();
        assert_eq!(stated, sum - field + 8 * u32::from(b' '));
        assert_eq!(stated_size(&header), Some(8));
    }

    #[test]
    fn long_paths_and_sizes_get_a_record_that_counts_itself() {
        let within = format!("{}/{}", "a".repeat(150), "b".repeat(100));
        assert_eq!(header(&within, 1).len(), BLOCK);
        let beyond = "c".repeat(101);
        let blocks = header(&beyond, MOST_OCTAL + 1);
        assert_eq!(blocks.len(), 3 * BLOCK);
        let records = std::str::from_utf8(&blocks[BLOCK..2 * BLOCK]).unwrap().trim_end_matches('\0');
        assert_eq!(records, format!("111 path={beyond}\n19 size=8589934592\n"));
    }

    #[test]
    fn padding_fills_the_last_block() {
        assert_eq!([0, 1, 511, 512, 513].map(padding), [0, 511, 1, 0, 511]);
    }
}
